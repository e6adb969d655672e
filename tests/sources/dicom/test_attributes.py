"""Attributes are read in every encoding, and only those of the allow-list."""

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sources.dicom.objects import code, encode, radiograph

from carina.phantom.dicom_objects import BIG_ENDIAN, DEFLATED, EXPLICIT, IMPLICIT, Items
from carina.sources.dicom.attributes import MoreNeededError, ObjectError, Tag, parse_object

SYNTAXES = {"implicit": IMPLICIT, "explicit": EXPLICIT, "big": BIG_ENDIAN, "deflated": DEFLATED}


@pytest.mark.parametrize("syntax", SYNTAXES.values(), ids=SYNTAXES)
def test_attributes_are_the_same_in_every_encoding(syntax, parse):
    found = parse(encode(radiograph(VIEW_CODE=code("399348003")), syntax)).attributes
    assert found.text(Tag.PATIENT_ID) == "4711"
    assert found.word(Tag.ROWS) == 3
    assert found.numbers(Tag.IMAGER_PIXEL_SPACING) == [0.2, 0.2]
    assert found.texts(Tag.PATIENT_ORIENTATION) == ["L", "F"]
    assert found.first(Tag.VIEW_CODE).text(Tag.CODE_VALUE) == "399348003"


@pytest.mark.parametrize("syntax", SYNTAXES.values(), ids=SYNTAXES)
def test_what_is_not_on_the_allow_list_is_not_read(syntax, parse):
    elements = radiograph()
    elements[0x00104000] = ("LT", "secret")
    elements[0x00091001] = ("LO", "secret")
    elements[0x00081110] = ("SQ", Items(({0x00081155: ("UI", "1.9"), 0x00100010: ("PN", "secret")},)))
    found = parse(encode(elements, syntax)).attributes
    assert set(found.values) <= {int(tag) for tag in Tag}
    assert b"secret" not in repr(found).encode()


def sequence(tag: int, content: bytes, *, form: bytes = b"SQ") -> bytes:
    """An element of undefined length."""
    head = struct.pack("<HH", tag >> 16, tag & 0xFFFF) + form + b"\0\0" + struct.pack("<I", 0xFFFFFFFF)
    return head + content + struct.pack("<HHI", 0xFFFE, 0xE0DD, 0)


def item(content: bytes) -> bytes:
    """An item of undefined length."""
    start = struct.pack("<HHI", 0xFFFE, 0xE000, 0xFFFFFFFF)
    return start + content + struct.pack("<HHI", 0xFFFE, 0xE00D, 0)


def test_sequences_of_undefined_length_are_read_and_stepped_over(parse):
    value = struct.pack("<HH", 0x0008, 0x0100) + b"SH" + struct.pack("<H", 8) + b"R-10206 "
    inner = sequence(0x00081110, item(value))
    wanted = sequence(Tag.VIEW_CODE, item(value + inner) + item(b""))
    plain = radiograph(PIXEL_DATA=None)
    body = encode(plain) + sequence(0x00400555, item(inner)) + wanted
    found = parse(body).attributes
    assert [i.text(Tag.CODE_VALUE) for i in found.items(Tag.VIEW_CODE)] == ["R-10206", ""]


def test_an_unknown_sequence_of_undefined_length_is_implicit(parse):
    value = struct.pack("<HHI", 0x0008, 0x0100, 4) + b"xyzw"
    body = encode(radiograph(PIXEL_DATA=None)) + sequence(0x00091001, item(value), form=b"UN")
    assert parse(body).attributes.text(Tag.PATIENT_ID) == "4711"


def test_the_beginning_of_a_file_is_enough():
    content = encode(radiograph())
    cut = content[: content.index(b"OW")]
    whole = parse_object(content[: len(cut) + 10], is_whole=False, max_bytes=1000)
    assert whole.attributes.word(Tag.COLUMNS) == 4
    with pytest.raises(MoreNeededError):
        parse_object(cut[:-30], is_whole=False, max_bytes=1000)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", "not DICOM"),
        (b"\0" * 128 + b"DICN", "not DICOM"),
        (bytes(128) + b"DICM", "damaged"),
        (encode(radiograph())[:400], "damaged"),
        (encode(radiograph()).replace(b"LO\x04\x004711", b"..\x04\x004711"), "damaged"),
        (encode(radiograph())[:-200] + sequence(0x00400555, b"no items"), "damaged"),
    ],
    ids=["empty", "other", "header only", "cut", "form", "items"],
)
def test_damaged_objects_are_refused(content, kind, parse):
    with pytest.raises(ObjectError) as caught:
        parse(content)
    assert caught.value.kind == kind


def test_deep_nesting_is_refused(parse):
    content = b""
    for _ in range(40):
        content = sequence(0x00400555, item(content))
    with pytest.raises(ObjectError, match="nested"):
        parse(encode(radiograph(PIXEL_DATA=None)) + content)


def test_a_deflated_object_that_grows_without_end_is_refused():
    elements = radiograph()
    elements[0x00104000] = ("UT", "a" * 100_000)
    with pytest.raises(ObjectError, match="unpacks"):
        parse_object(encode(elements, DEFLATED), is_whole=True, max_bytes=10_000)


@given(st.binary(max_size=300), st.integers(132, 700))
def test_any_bytes_give_attributes_or_an_object_error(noise, at):
    content = encode(radiograph())
    with suppress(ObjectError):
        parse_object(content[:at] + noise + content[at + len(noise) :], is_whole=True, max_bytes=100_000)
