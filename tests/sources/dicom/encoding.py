"""Writes DICOM objects: the elements of a data set in the format of PS3.10, in any transfer syntax without compression.

Compressed pixel data are written as they are given, in fragments.
"""

import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

EXPLICIT: Final = "1.2.840.10008.1.2.1"
IMPLICIT: Final = "1.2.840.10008.1.2"
DEFLATED: Final = "1.2.840.10008.1.2.1.99"
BIG_ENDIAN: Final = "1.2.840.10008.1.2.2"
_LONG_FORMS: Final = frozenset(("OB", "OD", "OF", "OL", "OV", "OW", "SQ", "SV", "UC", "UN", "UR", "UT", "UV"))
_NUMBERS: Final = {"US": "H", "SS": "h", "UL": "I", "SL": "i", "FD": "d", "FL": "f"}
_UNDEFINED: Final = 0xFFFFFFFF
_IMPLEMENTATION: Final = "2.25.302645861935672198274350127640821563911"
"""UID by which files tell that Carina wrote them."""

Elements: TypeAlias = "Mapping[int, tuple[str, Value]]"
"""Elements by tag: value representation, and value."""
Value: TypeAlias = "str | bytes | int | float | Sequence[int | float] | Items | Fragments"


@dataclass(frozen=True)
class Items:
    """The items of a sequence."""

    items: tuple[Elements, ...]


@dataclass(frozen=True)
class Fragments:
    """Compressed pixel data: one fragment a frame."""

    fragments: tuple[bytes, ...]


def encode_object(elements: Elements, *, syntax: str = EXPLICIT) -> bytes:
    """The content of a DICOM file.

    Args:
        elements: Elements of the data set; SOP class and SOP instance must be among them.
        syntax: UID of the transfer syntax.

    Returns:
        The file, with its preamble and the elements of group 2.

    Example:
        >>> patient = {0x00080016: ("UI", "1.2.3"), 0x00080018: ("UI", "1.2.4"), 0x00100020: ("LO", "17")}
        >>> encode_object(patient)[128:132]
        b'DICM'
    """
    meta: Elements = {
        0x00020001: ("OB", b"\0\1"),
        0x00020002: elements[0x00080016],
        0x00020003: elements[0x00080018],
        0x00020010: ("UI", syntax),
        0x00020012: ("UI", _IMPLEMENTATION),
    }
    group = _encode_elements(meta, order="<", is_explicit=True)
    length = _encode_elements({0x00020000: ("UL", len(group))}, order="<", is_explicit=True)
    order = ">" if syntax == BIG_ENDIAN else "<"
    body = _encode_elements(elements, order=order, is_explicit=syntax != IMPLICIT)
    if syntax == DEFLATED:
        machine = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        body = machine.compress(body) + machine.flush()
    return bytes(128) + b"DICM" + length + group + body


def _encode_elements(elements: Elements, *, order: str, is_explicit: bool) -> bytes:
    return b"".join(
        _encode_element(tag, form, value, order=order, is_explicit=is_explicit)
        for tag, (form, value) in sorted(elements.items())
    )


def _encode_element(tag: int, form: str, value: Value, *, order: str, is_explicit: bool) -> bytes:
    content = _encode_value(form, value, order=order, is_explicit=is_explicit)
    length = _UNDEFINED if isinstance(value, Fragments) else len(content)
    start = struct.pack(f"{order}HH", tag >> 16, tag & 0xFFFF)
    if not is_explicit:
        return start + struct.pack(f"{order}I", length) + content
    if form in _LONG_FORMS:
        return start + form.encode() + b"\0\0" + struct.pack(f"{order}I", length) + content
    return start + form.encode() + struct.pack(f"{order}H", length) + content


def _encode_value(form: str, value: Value, *, order: str, is_explicit: bool) -> bytes:
    if isinstance(value, Fragments):
        return _encode_fragments(value.fragments)
    if isinstance(value, Items):
        return _encode_items(value.items, order=order, is_explicit=is_explicit)
    if isinstance(value, bytes):
        return _pad(value, b"\0")
    if isinstance(value, str):
        return _pad(value.encode(), b"\0" if form == "UI" else b" ")
    numbers = [value] if isinstance(value, int | float) else list(value)
    return _pad(struct.pack(f"{order}{len(numbers)}{_NUMBERS[form]}", *numbers), b"\0")


def _encode_items(items: Sequence[Elements], *, order: str, is_explicit: bool) -> bytes:
    encoded = [_encode_elements(item, order=order, is_explicit=is_explicit) for item in items]
    return b"".join(struct.pack(f"{order}HHI", 0xFFFE, 0xE000, len(item)) + item for item in encoded)


def _encode_fragments(fragments: Sequence[bytes]) -> bytes:
    padded = [b"", *(_pad(fragment, b"\0") for fragment in fragments)]
    items = b"".join(struct.pack("<HHI", 0xFFFE, 0xE000, len(item)) + item for item in padded)
    return items + struct.pack("<HHI", 0xFFFE, 0xE0DD, 0)


def _pad(content: bytes, sign: bytes) -> bytes:
    return content + sign if len(content) % 2 else content
