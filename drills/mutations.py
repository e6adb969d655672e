"""Damage to files: what goes wrong by accident, and what somebody does on purpose.

Every function takes a generator of random numbers and returns words for what it did. The same generator gives the same
damage.
"""

import copy
import csv
import hashlib
import io
import json
import os
import random
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

TRAVERSALS: Final = (
    "../../outside/secret.png",
    "../outside/secret.json",
    "/etc/passwd",
    "../../../../../../../../etc/passwd",
    "a/../../outside/secret.png",
    "\\\\server\\share",
    "file:///etc/passwd",
    "a\0b",
    "con:",
    ".",
    "",
)
NUMBERS: Final = (2**63, 2**63 - 1, -(2**63), 2**31, 10**30, -1, 0, 1, 3, 65_536, 10**9)
FLOATS: Final = (float("nan"), float("inf"), float("-inf"), 1e308, -1e308, 5e-324, -1.0, 0.0, 1.5, 1e18)
TEXTS: Final = (
    "",
    " ",
    "no such word",
    "yes",
    "x" * 100_000,
    "\u202etext\u202c",
    "\x1b[31mred\x1b[0m",
    "<script>alert(1)</script>",
    "{slot}",
    "%s%n",
    "-0",
    "NaN",
    "1e999",
    "é" * 300,
    "\ud7ff\U0010ffff",
    "null",
)


# ---- bytes ---------------------------------------------------------------------------------------------------------


def damage_bytes(path: Path, draw: random.Random) -> str:
    """Flip, cut, repeat, insert or replace bytes of a file."""
    content = bytearray(path.read_bytes())
    how = draw.choice(
        ("flip", "flip", "flip", "cut", "repeat", "insert", "empty", "zeros", "noise", "not utf-8")
    )
    at = draw.randrange(len(content) + 1) if content else 0
    if how == "flip" and content:
        for _ in range(draw.choice((1, 1, 2, 8, 64))):
            content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    elif how == "cut":
        del content[at:]
    elif how == "repeat":
        content[at:at] = content[at : at + draw.randrange(1, 4096)]
    elif how == "insert":
        content[at:at] = draw.randbytes(draw.choice((1, 4, 100)))
    elif how == "empty":
        content.clear()
    elif how == "zeros":
        content[at : at + 64] = bytes(min(64, len(content) - at))
    elif how == "noise":
        content = bytearray(draw.randbytes(draw.choice((1, 40, 3000))))
    else:
        content[at:at] = draw.choice((b"\xff\xfe", b"\xc3\x28", b"\x00", b"\xed\xa0\x80"))
    replace_file(path, bytes(content))
    return f"bytes: {how} at {at}"


def replace_file(path: Path, content: bytes) -> None:
    """Write a file anew; links to the file of before keep its content."""
    path.unlink(missing_ok=True)
    path.write_bytes(content)


def replace_by_oddity(path: Path, draw: random.Random) -> str:
    """Put something that is no regular file in the place of a file."""
    how = draw.choice(("directory", "pipe", "loop of links", "dangling link", "missing", "device"))
    path.unlink()
    if how == "directory":
        path.mkdir()
    elif how == "pipe":
        os.mkfifo(path)
    elif how == "loop of links":
        path.symlink_to(path.name)
    elif how == "dangling link":
        path.symlink_to("nowhere")
    elif how == "device":
        path.symlink_to("/dev/zero")
    return f"file: replaced by {how}"


# ---- JSON ----------------------------------------------------------------------------------------------------------


def _places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if place:
        yield place
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _places(inner, (*place, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value[:50]):
            yield from _places(inner, (*place, number))


def _container(value: Any, place: tuple[Any, ...]) -> Any:
    for key in place[:-1]:
        value = value[key]
    return value


def other_value(old: object, draw: random.Random, *, same_type: bool) -> Any:
    """Another value: of the same type, or of any."""
    if not same_type and draw.random() < 0.4:
        return draw.choice((None, True, [], {}, [[]], {"a": 1}, "text", 7, -1, 0.5, [None], {"": None}))
    if isinstance(old, bool):
        return not old
    if isinstance(old, int):
        return draw.choice((*NUMBERS, old + 1, old - 1, -old))
    if isinstance(old, float):
        return draw.choice((*FLOATS, -old, old * 1000))
    if isinstance(old, str):
        kinds: tuple[Callable[[], str], ...] = (
            lambda: draw.choice(TRAVERSALS),
            lambda: draw.choice(TEXTS),
            lambda: old[: len(old) // 2],
            lambda: old + old,
            old.upper,
            lambda: old + "x",
        )
        return draw.choice(kinds)()
    return _other_list(old, draw) if isinstance(old, list) else None


def _other_list(old: list[Any], draw: random.Random) -> list[Any]:
    made = list(old)
    how = draw.randrange(4)
    if how == 0:
        made.clear()
    elif how == 1 and made:
        made.append(copy.deepcopy(draw.choice(made)))
    elif how == 2 and made:
        made.pop(draw.randrange(len(made)))
    else:
        draw.shuffle(made)
    return made


def change_value(value: Any, draw: random.Random, *, same_type: bool = False) -> str:
    """Change one place of a nested value."""
    places = list(_places(value))
    if not places:
        return "nothing to change"
    place = draw.choice(places)
    inner = _container(value, place)
    old = inner[place[-1]]
    named = ".".join(map(str, place))
    if isinstance(inner, dict) and not same_type:
        how = draw.random()
        if how < 0.15:
            del inner[place[-1]]
            return f"{named} deleted"
        if how < 0.25:
            inner[f"{place[-1]} more"] = copy.deepcopy(old)
            return f"{named} repeated under another name"
    inner[place[-1]] = new = other_value(old, draw, same_type=same_type)
    return f"{named} = {str(new)[:40]!r}"


def damage_json(path: Path, draw: random.Random) -> str:
    """Change one or two values of a JSON document, or write a document that is hard to read."""
    if draw.random() < 0.04:
        depth = draw.choice((900, 100_000))
        replace_file(path, draw.choice((b"[" * depth, b"[" * depth + b"]" * depth, b'{"a":' * depth)))
        return f"json: nested {depth} deep"
    value = json.loads(path.read_text())
    if draw.random() < 0.03:
        value = draw.choice(([], {}, None, 3, "text", [value]))
        words = "another document"
    else:
        words = "; ".join(change_value(value, draw) for _ in range(draw.choice((1, 1, 2))))
    replace_file(path, json.dumps(value).encode())
    return f"json: {words}"


def damage_lines(path: Path, draw: random.Random) -> str:
    """The same in one line of a file of JSON lines; or lines are dropped, repeated or exchanged."""
    lines = path.read_bytes().splitlines(keepends=True)
    if not lines or draw.random() < 0.3:
        return damage_bytes(path, draw)
    at = draw.randrange(len(lines))
    how = draw.choice(("drop", "repeat", "exchange", "value", "value", "value"))
    words = how
    if how == "drop":
        del lines[at]
    elif how == "repeat":
        lines.insert(at, lines[at])
    elif how == "exchange":
        lines[at], lines[0] = lines[0], lines[at]
    else:
        prefix, brace, _ = lines[at].partition(b"{")
        try:
            value = json.loads(lines[at][len(prefix) :])
        except ValueError:
            return damage_bytes(path, draw)
        words = change_value(value, draw)
        record = json.dumps(value).encode()
        if (
            len(prefix) == 9 and brace
        ):  # a checksum of the record stands before it: repaired, so that this gets through
            prefix = b"%08x " % zlib.crc32(record)
        lines[at] = prefix + record + b"\n"
    replace_file(path, b"".join(lines))
    return f"lines: {at}: {words}"


# ---- words ---------------------------------------------------------------------------------------------------------


def damage_words(path: Path, draw: random.Random) -> str:
    """Change one word or number of a text file, such as XML, or drop, repeat or exchange one of its lines."""
    if draw.random() < 0.2:
        return damage_bytes(path, draw)
    text = path.read_text()
    if draw.random() < 0.3:
        lines = text.splitlines(keepends=True)
        at = draw.randrange(len(lines))
        how = draw.choice(("drop", "repeat", "exchange"))
        lines[at : at + 1] = {"drop": [], "repeat": [lines[at]] * 2, "exchange": [lines[0]]}[how]
        replace_file(path, "".join(lines).encode())
        return f"words: {how} line {at}"
    words = list(re.finditer(r"[\w.+-]+", text))
    word = draw.choice(words)
    new = str(draw.choice((*NUMBERS, *FLOATS, *TEXTS, *TRAVERSALS)))
    replace_file(path, (text[: word.start()] + new + text[word.end() :]).encode("utf-8", "surrogatepass"))
    return f"words: {word[0][:40]} = {new[:40]!r}"


# ---- tables --------------------------------------------------------------------------------------------------------


def damage_csv(path: Path, draw: random.Random) -> str:
    """Change one cell, row or heading of a CSV file."""
    if draw.random() < 0.3:
        return damage_bytes(path, draw)
    rows = list(csv.reader(io.StringIO(path.read_text())))
    if not rows:
        return damage_bytes(path, draw)
    row = draw.choice(rows)
    how = draw.choice(("cell", "drop row", "longer row", "quote", "huge"))
    if how == "drop row":
        rows.remove(row)
    elif how == "longer row":
        row += ["more"] * 3
    elif row:
        at = draw.randrange(len(row))
        row[at] = {"quote": '"', "huge": "x" * 200_000}.get(
            how, draw.choice((*TEXTS, *TRAVERSALS, "nan", "-1", "1e400"))
        )
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    replace_file(path, text.getvalue().encode("utf-8", "surrogatepass"))
    return f"csv: {how}"


def damage_table(path: Path, draw: random.Random) -> str:
    """Change values of one row of a Parquet file, which stays well-formed."""
    table = pq.read_table(path)
    rows = table.to_pylist()
    words = "no row"
    for _ in range(40):
        if not rows:
            break
        changed = copy.deepcopy(rows)
        at = draw.randrange(len(changed))
        if draw.random() < 0.08:
            how = draw.choice(("drop", "repeat"))
            if how == "drop":
                del changed[at]
            else:
                changed.append(changed[at])
            words = f"row {at}: {how}"
        else:
            words = f"row {at}: {change_value(changed[at], draw, same_type=draw.random() < 0.9)}"
        try:
            made = io.BytesIO()
            pq.write_table(pa.Table.from_pylist(changed, schema=table.schema), made, compression="zstd")
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            continue
        replace_file(path, made.getvalue())
        return f"table: {words}"
    return damage_bytes(path, draw)


def damage_columns(path: Path, draw: random.Random) -> str:
    """Rename, remove, add or retype a column of a Parquet file."""
    table = pq.read_table(path)
    at = draw.randrange(table.num_columns)
    name = table.column_names[at]
    how = draw.choice(("remove", "rename", "add", "text", "nulls"))
    if how == "remove":
        table = table.remove_column(at)
    elif how == "rename":
        table = table.rename_columns([f"{n} x" if n == name else n for n in table.column_names])
    elif how == "add":
        table = table.append_column("more", pa.array(range(table.num_rows)))
    elif how == "text":
        table = table.set_column(at, name, pa.array(["text"] * table.num_rows))
    else:
        table = table.set_column(at, name, pa.nulls(table.num_rows, table.schema.field(at).type))
    made = io.BytesIO()
    try:
        pq.write_table(table, made)
    except pa.ArrowException:  # nulls in a field within the column that allows none
        return damage_bytes(path, draw)
    replace_file(path, made.getvalue())
    return f"columns: {how} {name}"


def repair_manifest(manifest: Path) -> None:
    """State the size, rows and checksum of the parts as they are now, so that a change of a part is read."""
    try:
        stated = json.loads(manifest.read_text())
        for part in stated["parts"]:
            path = manifest.parent / part["file"]
            if not path.is_file():  # a pipe would wait for ever
                continue
            content = path.read_bytes()
            part["bytes"], part["sha256"] = len(content), hashlib.sha256(content).hexdigest()
            part["rows"] = pq.ParquetFile(io.BytesIO(content)).metadata.num_rows
        replace_file(manifest, json.dumps(stated).encode())
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException):
        pass


# ---- YAML ----------------------------------------------------------------------------------------------------------

_BOMB: Final = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)


def damage_yaml(path: Path, draw: random.Random) -> str:
    """Change a number or a word of a YAML file, or write one that is hard to read."""
    text = path.read_text()
    how = draw.choice(("number", "number", "number", "bomb", "deep", "word", "bytes", "tag"))
    if how == "bytes":
        return damage_bytes(path, draw)
    if how == "bomb":
        text = _BOMB + text
    elif how == "deep":
        text = "[" * 50_000
    elif how == "tag":
        text = "!!python/object/apply:os.system ['touch ../outside/written']\n"
    else:
        words = text.split()
        at = draw.randrange(len(words))
        new = draw.choice(
            (".nan", ".inf", "-.inf", "-1", "1e308", "true", "null", "'0.5'", "[0.5]", "2", str(2**70))
        )
        words_of_kind = [n for n, word in enumerate(words) if word[:1].isdigit()] or [at]
        at = draw.choice(words_of_kind) if how == "number" else at
        text = text.replace(words[at], new if how == "number" else draw.choice(TEXTS[:4]), 1)
    replace_file(path, text.encode())
    return f"yaml: {how}"


# ---- images and arrays ---------------------------------------------------------------------------------------------


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def make_png(width: int, height: int, *, bits: int, colour: int, rows: int) -> bytes:
    """A PNG that states any size; only some rows of zeros are there."""
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    row = bytes(1 + -(-width * bits * channels // 8))
    packer = zlib.compressobj(9)
    packed = b"".join(packer.compress(row) for _ in range(rows)) + packer.flush()
    header = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", packed) + _chunk(b"IEND", b"")


def make_tiff(pages: int, *, size: int = 8, stated: tuple[int, int] | None = None) -> bytes:
    """A TIFF with many pages of one small grey image, or one that states another size than it has."""
    width, height = stated or (size, size)
    pixels = bytes(size * size)
    entries = ((256, 4, width), (257, 4, height), (258, 3, 8), (259, 3, 1), (262, 3, 1), (273, 4, 8), (278, 4, height),
               (279, 4, len(pixels)))  # fmt: skip
    made = bytearray(b"II*\0" + struct.pack("<I", 8 + len(pixels)) + pixels)
    for page in range(pages):
        made += struct.pack("<H", len(entries))
        for tag, kind, value in entries:
            made += struct.pack("<HHII", tag, kind, 1, value)
        following = len(made) + 4 if page + 1 < pages else 0
        made += struct.pack("<I", following)
    return bytes(made)


def damage_image(path: Path, draw: random.Random) -> str:
    """Damage an image, or put one in its place that is costly to decode."""
    how = draw.choice(
        ("bytes", "bytes", "bytes", "deep colour", "wide", "stated size", "pages", "tiff size", "odd")
    )
    if how == "bytes":
        return damage_bytes(path, draw)
    if how == "odd":
        return replace_by_oddity(path, draw)
    if how == "deep colour":
        content = make_png(9_900, 9_900, bits=16, colour=6, rows=200)
    elif how == "wide":
        content = make_png(50_000_000, 1, bits=8, colour=0, rows=1)
    elif how == "stated size":
        content = make_png(2**31 - 1, 2**31 - 1, bits=16, colour=6, rows=0)
    elif how == "pages":
        content = make_tiff(200_000)
    else:
        content = make_tiff(1, stated=draw.choice(((9_000, 9_000), (2**31, 2**31), (0, 0), (100_000_000, 1))))
    replace_file(path, content)
    return f"image: {how}"


def damage_array(path: Path, draw: random.Random) -> str:
    """Damage a `.npy` or `.npz` file, or put one in its place that unpacks to much more than it holds."""
    how = draw.choice(("bytes", "bytes", "header", "bomb"))
    if how == "bytes":
        return damage_bytes(path, draw)
    shape = draw.choice(
        ("(9999, 9999)", "(2147483648, 2147483648)", "(-1, 4)", "(4,)", "(0, 0)", "(True, 4)", "(1e3, 2)")
    )
    dtype = draw.choice(("<f8", "<f4", "|O", "<M8[s]", "<c16", "|V99999999", "<U9999999"))
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    array = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
    if path.suffix == ".npz":
        packed = io.BytesIO()
        with (
            zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive,
            archive.open("map.npy", "w") as file,
        ):
            file.write(array)
            for _ in range(60 if how == "bomb" else 0):
                file.write(bytes(10_000_000))
        array = packed.getvalue()
    replace_file(path, array)
    return f"array: {how} {shape} {dtype}"
