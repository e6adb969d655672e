"""Attributes are read in every encoding, and only those of the allow-list."""

import struct
import subprocess
import sys
import warnings
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sources.dicom.encoding import BIG_ENDIAN, DEFLATED, EXPLICIT, IMPLICIT, Items
from tests.sources.dicom.objects import code, encode, radiograph, save

from carina import CarinaError
from carina.phantom import write_dicom
from carina.sources import import_source
from carina.sources.dicom import attributes
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
    assert {int(element.tag) for element in found.dataset} <= {*map(int, Tag), 0x00080005}
    assert "secret" not in str(found.dataset)


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
    whole = parse_object(content[: len(cut) + 10], is_whole=False, with_pixels=False, max_bytes=1000)
    assert whole.attributes.word(Tag.COLUMNS) == 4
    with pytest.raises(MoreNeededError):
        parse_object(cut[:-30], is_whole=False, with_pixels=False, max_bytes=1000)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", "not DICOM"),
        (b"\0" * 128 + b"DICN", "not DICOM"),
        (bytes(128) + b"DICM", "damaged"),
        (encode(radiograph()).replace(b"1.2.840.10008.1.2.1\0", b" " * 20), "damaged"),
        (encode(radiograph(), DEFLATED)[:-300], "damaged"),
    ],
    ids=["empty", "other", "header only", "no syntax", "deflated"],
)
def test_damaged_objects_are_refused(content, kind, parse):
    with pytest.raises(ObjectError) as caught:
        parse(content)
    assert caught.value.kind == kind


def test_a_value_that_is_cut_short_is_refused(parse):
    content = encode(radiograph(PIXEL_DATA=None))
    at = content.index(b"Example^Erika")
    found = parse(content[: content.index(b"4711") + 2]).attributes
    assert found.text(Tag.MODALITY) == "DX"
    with pytest.raises(ObjectError, match="cut short"):
        found.text(Tag.PATIENT_ID)
    assert parse(content[:at]).attributes.text(Tag.PATIENT_ID) == ""


def test_deep_nesting_is_refused(parse):
    content = b""
    for _ in range(3000):
        content = sequence(0x00400555, item(content))
    with pytest.raises(ObjectError, match="cannot be read"):
        parse(encode(radiograph(PIXEL_DATA=None)) + content)


def test_more_attributes_than_memory_is_for_are_refused(parse, monkeypatch):
    monkeypatch.setattr(attributes, "_MOST_READS", 1000)
    value = struct.pack("<HH", 0x0008, 0x0100) + b"SH" + struct.pack("<H", 0)
    content = encode(radiograph(PIXEL_DATA=None)) + sequence(0x00400555, item(value * 2000))
    with pytest.raises(ObjectError, match="damaged"):
        parse(content)


def test_a_sequence_of_any_length_is_not_read(parse, monkeypatch):
    monkeypatch.setattr(attributes, "_LONGEST_SEQUENCE", 20)
    found = parse(encode(radiograph(VIEW_CODE=code("399348003")))).attributes
    with pytest.raises(ObjectError, match="too long"):
        found.first(Tag.VIEW_CODE)


def test_what_pydicom_would_quote_in_a_warning_is_not_printed(parse, capfd):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = parse(encode(radiograph(STUDY_DATE=("DA", "secret"), PATIENT_ID=("UI", "secret"))))
        assert found.attributes.raw(Tag.PATIENT_ID) == b"secret"
    assert (said, capfd.readouterr()) == ([], ("", ""))


def test_pydicom_is_not_imported_before_it_is_needed():
    program = "import sys, carina.sources.dicom, carina.phantom; sys.exit('pydicom' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_without_the_extra_there_is_one_sentence(monkeypatch, tmp_path):
    save(tmp_path / "in/a.dcm", radiograph())
    monkeypatch.setattr(attributes.importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(CarinaError, match=r"pip install 'carina\[dicom\]'"):
        import_source("dicom", tmp_path / "in", tmp_path / "out", options={"key_file": tmp_path / "key"})
    with pytest.raises(CarinaError, match=r"pip install 'carina\[dicom\]'"):
        write_dicom(tmp_path, tmp_path / "archive")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_a_deflated_object_that_grows_without_end_is_refused():
    elements = radiograph()
    elements[0x00104000] = ("UT", "a" * 100_000)
    with pytest.raises(ObjectError, match="unpacks"):
        parse_object(encode(elements, DEFLATED), is_whole=True, with_pixels=True, max_bytes=10_000)


@given(st.binary(max_size=300), st.integers(132, 700))
def test_any_bytes_give_attributes_or_an_object_error(noise, at):
    content = encode(radiograph())
    with suppress(ObjectError):
        changed = content[:at] + noise + content[at + len(noise) :]
        parse_object(changed, is_whole=True, with_pixels=True, max_bytes=100_000)
