"""Objects that hold a marker wherever an object can hold text, and two scans that look for it.

PS3.15 Annex E lists attributes by tag. Instead of a copy of that list, every tag of every group that the standard uses
is filled, in the ranges in which the standard has ever defined elements: whatever edition of Annex E is asked for, all
of its attributes are among them, as are the repeating groups of curves and overlays and private groups.
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

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image
from tests.sources.dicom.encoding import Items, encode_object

from carina.sources.dicom.attributes import Tag

MARKER = "QZXMARKER"
MARKER_UID = "1.2.826.0.1.3680043.98765.4321"
MARKER_DATE = "18730405"
MARKS = (MARKER, MARKER_UID, MARKER_DATE, "1873-04-05", "05.04.1873")

_WIDE = (0x0008, 0x0010, 0x0012, 0x0014, 0x0018, 0x0020, 0x0022, 0x0024, 0x0028, 0x0032, 0x0038, 0x0040, 0x0070, 0x0072,
         0x0074, 0x3002, 0x3004, 0x3006, 0x3008, 0x300A, 0x300C, 0x300E, 0x3010, 0x4008, 0x5200)  # fmt: skip
"""Groups in which elements have high numbers, too."""
_NARROW = (
    0x0004, 0x0006, 0x0016, 0x001A, 0x0034, 0x0036, 0x003A, 0x003C, 0x003E, 0x0042, 0x0044, 0x0046, 0x0048,
    0x0050, 0x0052, 0x0054, 0x0056, 0x0060, 0x0062, 0x0064, 0x0066, 0x0068, 0x006A, 0x006C, 0x006E, 0x0076,
    0x0078, 0x007A, 0x0080, 0x0082, 0x0088, 0x0100, 0x0400, 0x1000, 0x1010, 0x2000, 0x2010, 0x2020, 0x2030,
    0x2040, 0x2050, 0x2100, 0x2110, 0x2120, 0x2130, 0x2200, 0x4000, 0x4010, 0x4FFE, *range(0x5000, 0x5020, 2),
    0x5400, 0x5600, *range(0x6000, 0x6020, 2),
)  # fmt: skip
_PRIVATE = (0x0009, 0x0011, 0x0019, 0x0029, 0x0043, 0x7001)
ALLOWED = frozenset(int(tag) for tag in Tag)
_FORMS = (b"LO", b"PN", b"LT", b"SH", b"ST", b"CS", b"UI", b"DA", b"DS", b"US", b"AE")
"""Short forms; the value is the marker in any of them, since nothing may read it."""


def marked_tags() -> Iterator[tuple[int, np.ndarray]]:
    """Groups and their elements, without those that are read."""
    high = [range(0x9000, 0xB000), range(0xD000, 0xF000)]
    for group in (*_WIDE, *_NARROW, *_PRIVATE):
        ranges = [range(0x3000), *(high if group in _WIDE else [])]
        numbers = np.concatenate([np.arange(r.start, r.stop) for r in ranges])
        yield group, numbers[[(group << 16 | int(n)) not in ALLOWED for n in numbers]]


def marked_elements(group: int, numbers: np.ndarray) -> bytes:
    """Elements of a group, encoded with explicit forms, each with the marker."""
    value = MARKER.encode() + b" "
    kind = np.dtype(
        [("g", "<u2"), ("e", "<u2"), ("form", "S2"), ("length", "<u2"), ("value", f"S{len(value)}")]
    )
    made = np.zeros(len(numbers), kind)
    made["g"], made["e"], made["length"], made["value"] = group, numbers, len(value), value
    made["form"] = np.resize(np.array(_FORMS), len(numbers))
    return made.tobytes()


def nested(content: bytes, *, tag: int, depth: int) -> bytes:
    """Content in sequences of undefined length within each other."""
    for _ in range(depth):
        item = (
            struct.pack("<HHI", 0xFFFE, 0xE000, 0xFFFFFFFF) + content + struct.pack("<HHI", 0xFFFE, 0xE00D, 0)
        )
        head = struct.pack("<HH", tag >> 16, tag & 0xFFFF) + b"SQ\0\0" + struct.pack("<I", 0xFFFFFFFF)
        content = head + item + struct.pack("<HHI", 0xFFFE, 0xE0DD, 0)
    return content


def insert(elements: dict[int, tuple[str, object]], content: bytes) -> bytes:
    """An object with more encoded elements before its pixel data."""
    pixels = elements[Tag.PIXEL_DATA]
    rest = {tag: value for tag, value in elements.items() if tag != Tag.PIXEL_DATA}
    sop = {tag: elements[tag] for tag in (Tag.SOP_CLASS, Tag.SOP_INSTANCE)}
    bare = encode_object(sop)
    tail = encode_object({**sop, Tag.PIXEL_DATA: pixels})[len(bare) :]
    return bytes(128).replace(b"\0", b"M") + encode_object(rest)[128:] + content + tail


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
                if path.suffix == ".parquet":
                    texts.append(repr(pl.read_parquet(path).rows()))
                if path.suffix in (".png", ".jpg"):
                    with Image.open(io.BytesIO(path.read_bytes())) as image:
                        texts.append(f"{image.info} {dict(image.getexif())} {getattr(image, 'text', '')}")
            if any(pattern.search(text) for text in texts):
                suspects.append(str(path))
    return suspects
