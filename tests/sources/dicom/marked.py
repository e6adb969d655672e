"""Objects that hold a marker wherever an object can hold text, and two scans that look for it.

The attributes are those of PS3.15 Annex E, edition 2026c, as the package dicom-anonymizer lists them: 655 rows, of
which three stand for repeating groups (curves and overlays).
"""

import base64
import gzip
import io
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from dicomanonymizer.dicom_anonymization_databases import dicomfields_2026c
from PIL import Image
from pydicom.datadict import dictionary_VR
from tests.sources.dicom.encoding import Items

from carina.sources.dicom.attributes import Tag

MARKER = "QZXMARKER"
MARKER_UID = "1.2.826.0.1.3680043.98765.4321"
MARKER_DATE = "18730405"
MARKS = (MARKER, MARKER_UID, MARKER_DATE, "1873-04-05", "05.04.1873")

ALLOWED = frozenset(int(tag) for tag in Tag)
PRIVATE = (0x00090010, 0x00091001, 0x00191099, 0x70010010)


def list_annex_e() -> list[list[int]]:
    """The rows of Annex E: one tag each, or all tags of a repeating group."""
    rows = []
    for group, element, *repeats in dicomfields_2026c.ALL_TAGS:
        if not repeats:
            rows.append([group << 16 | element])
        elif element:
            rows.append([(group + more) << 16 | element for more in range(0, 32, 2)])
        else:
            rows.append([(group + more) << 16 | at for more in range(0, 32, 2) for at in (0x5, 0x40, 0x3000)])
    return rows


def mark(tag: int) -> tuple[str, object]:
    """An element with the marker in the form that the standard gives it."""
    try:
        form = dictionary_VR(tag).split()[0]
    except KeyError:
        form = "LO"
    if form == "SQ":
        return form, Items(
            ({0x00100010: ("PN", MARKER), 0x00081155: ("UI", MARKER_UID), 0x00091001: ("LO", MARKER)},)
        )
    value = {"UI": MARKER_UID, "DA": MARKER_DATE, "DT": MARKER_DATE, "TM": MARKER}.get(form, MARKER)
    return form, value.encode()


def mark_everywhere(tags: list[int]) -> dict[int, tuple[str, object]]:
    """Elements with the tags at the top, within sequences of the standard and private ones, and private elements."""
    marked = {tag: mark(tag) for tag in tags}
    item: Items = Items((marked, marked))
    deeper = Items(({0x00081140: ("SQ", item), **marked},))
    made = dict(marked)
    for tag in (0x00081111, 0x00400275, 0x00400555, 0x00091010, int(Tag.VIEW_CODE), int(Tag.ANATOMIC_REGION)):
        made.setdefault(tag, ("SQ", deeper))
    for tag in PRIVATE:
        made[tag] = ("LO", MARKER)
    return made


def marked_item() -> Items:
    """An item that holds the marker in everything that is read, too."""
    return Items(({int(tag): ("LO", MARKER) for tag in Tag if tag >> 16 not in (2, 4, 0x7FE0)},))


# ---- the first scan --------------------------------------------------------------------------------------------------


def scan(folder: Path) -> list[str]:
    """Files below a folder in whose names or bytes a mark is, unpacked in every way that the files are packed."""
    found = []
    for path in sorted(folder.rglob("*")):
        if has_mark(str(path.relative_to(folder)).encode()):
            found.append(f"{path}: name")
        if path.is_file():
            found += [f"{path}: {where}" for where, content in unpack(path) if has_mark(content)]
    return found


def has_mark(content: bytes) -> bool:
    lower = content.lower()
    for mark in MARKS:
        for form in (
            mark.encode(),
            mark.encode("utf-16-le"),
            mark.encode("utf-16-be"),
            mark.encode().hex().encode(),
        ):
            if form.lower() in lower:
                return True
        for shift in range(
            3
        ):  # base64 at any offset: the signs that nothing but the mark decides, eight and more
            padded = b"\0" * shift + mark.encode()
            if base64.b64encode(padded)[4 if shift else 0 : len(padded) // 3 * 4] in content:
                return True
    return False


def unpack(path: Path) -> Iterator[tuple[str, bytes]]:
    """The bytes of a file, and what is packed in them."""
    content = path.read_bytes()
    yield "bytes", content
    if content[:4] == b"PAR1":
        table = pq.read_table(path)
        yield "rows", repr(table.to_pylist()).encode()
        yield "metadata", repr(table.schema.metadata).encode() + str(pq.read_metadata(path)).encode()
    elif content[:4] == b"\x89PNG":
        yield from png_chunks(content)
    elif content[:2] == b"\x1f\x8b":
        yield "gzip", gzip.decompress(content)
    elif content[:2] == b"PK":
        with zipfile.ZipFile(path) as archive:
            yield from ((name, archive.read(name)) for name in archive.namelist())
    elif content[:6] == b"ARROW1":
        yield "arrow", repr(pa.ipc.open_file(path).read_all().to_pylist()).encode()
    for number, data in enumerate(re.findall(rb"base64,([A-Za-z0-9+/=]{40,})", content)):
        inner = base64.b64decode(data + b"=" * (-len(data) % 4))
        yield f"inner {number}", inner
        if inner[:4] == b"\x89PNG":
            yield from png_chunks(inner)


def png_chunks(content: bytes) -> Iterator[tuple[str, bytes]]:
    at = 8
    while at + 12 <= len(content):
        (length,) = struct.unpack_from(">I", content, at)
        kind, data = content[at + 4 : at + 8], content[at + 8 : at + 8 + length]
        yield kind.decode("latin-1"), data
        if kind in (b"zTXt", b"iCCP"):
            yield f"{kind!r} unpacked", zlib.decompress(data.split(b"\0", 1)[1][1:])
        at += 12 + length


# ---- the second scan -------------------------------------------------------------------------------------------------


def scan_again(folder: Path) -> list[str]:
    """The same by other means: one pattern over text, data frames of polars, and what Pillow tells of an image."""
    pattern = re.compile("|".join(re.escape(mark) for mark in MARKS), re.IGNORECASE)
    suspects = []
    stack = [folder]
    while stack:
        for path in stack.pop().iterdir():
            if path.is_dir():
                stack.append(path)
            texts = [path.name]
            if path.is_file():
                texts.append(path.read_text(encoding="latin-1"))
                texts.append(path.read_text(encoding="latin-1").replace("\0", ""))  # two bytes a sign
                for run in re.findall(r"[A-Za-z0-9+/]{16,}", texts[1]):
                    texts.append(base64.b64decode(run[: len(run) // 4 * 4]).decode("latin-1"))
                if zipfile.is_zipfile(path):
                    with zipfile.ZipFile(path) as archive:
                        texts += [archive.read(name).decode("latin-1") for name in archive.namelist()]
                if path.suffix == ".parquet":
                    texts.append(repr(pl.read_parquet(path).rows()))
                if path.suffix in (".png", ".jpg"):
                    with Image.open(io.BytesIO(path.read_bytes())) as image:
                        texts.append(f"{image.info} {dict(image.getexif())} {getattr(image, 'text', '')}")
            if any(pattern.search(text) for text in texts):
                suspects.append(str(path))
    return suspects
