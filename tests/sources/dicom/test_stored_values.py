"""Stored values are decoded exactly, in every transfer syntax that can be written here."""

import importlib.util
import io
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image
from tests.sources.dicom.objects import RAMP, compressed, encode, encode_image, encode_rle, radiograph

from carina.phantom.dicom_objects import BIG_ENDIAN, DEFLATED, EXPLICIT, IMPLICIT, encode_object
from carina.sources.dicom.attributes import ObjectError, Tag, parse_object
from carina.sources.dicom.stored_values import (
    JPEG_2000_LOSSLESS,
    JPEG_BASELINE,
    NEED_PYDICOM,
    RLE,
    PixelForm,
    decode_rle,
    decode_stored_values,
)

SYNTAXES = {"implicit": IMPLICIT, "explicit": EXPLICIT, "big": BIG_ENDIAN, "deflated": DEFLATED}
HAS_PYDICOM = importlib.util.find_spec("pydicom") is not None


def decode(elements, syntax=EXPLICIT):
    return decode_stored_values(parse_object(encode(elements, syntax), is_whole=True, max_bytes=10_000_000))[
        0
    ]


@pytest.mark.parametrize("syntax", SYNTAXES.values(), ids=SYNTAXES)
@pytest.mark.parametrize("bits", [8, 10, 12, 14, 16])
@pytest.mark.parametrize("signed", [False, True], ids=["unsigned", "signed"])
def test_native_values(syntax, bits, signed):
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    values = np.array([[low, high, 0], [1, 2, high // 2]], f"{'i' if signed else 'u'}{1 if bits == 8 else 2}")
    assert decode(radiograph(values, bits=bits), syntax).tolist() == values.tolist()


def test_unused_bits_are_cleared():
    values = np.array([[0xF123, 0x0FFF]], np.uint16)  # an overlay in the upper four bits
    assert decode(radiograph(values)).tolist() == [[0x123, 0xFFF]]


def test_the_sign_is_extended():
    values = np.array([[0x0FFF, 0x07FF, 0x0800]], np.uint16)
    elements = radiograph(values, PIXEL_REPRESENTATION=("US", 1))
    assert decode(elements).tolist() == [[-1, 2047, -2048]]


def test_bytes_in_words_are_swapped_where_the_highest_byte_comes_first():
    values = np.array([[1, 2, 3]], np.uint8)
    swapped = radiograph(values, bits=8, PIXEL_DATA=("OW", b"\x02\x01\x00\x03"))
    found = parse_object(encode_object(swapped, syntax=BIG_ENDIAN), is_whole=True, max_bytes=1000)
    assert decode_stored_values(found)[0].tolist() == [[1, 2, 3]]


def test_a_higher_high_bit_moves_the_values_down():
    values = np.array([[0x1230, 0xFFFF]], np.uint16)
    assert decode(radiograph(values, HIGH_BIT=("US", 15))).tolist() == [[0x123, 0xFFF]]


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int16])
def test_run_lengths(dtype):
    values = np.array([[0, 0, 0, 0, 7], [100, 101, 102, 102, 102]], dtype)
    if dtype != np.uint8:
        values[0, 4] = 30_000
    elements = radiograph(values, bits=8 * values.itemsize, PIXEL_DATA=compressed(encode_rle(values)))
    assert decode(elements, RLE).tolist() == values.tolist()


@given(
    arrays(
        np.uint16,
        st.tuples(st.integers(1, 9), st.integers(1, 9)),
        elements=st.sampled_from((0, 1, 300, 65535)),
    )
)
def test_run_lengths_of_any_image(values):
    form = PixelForm(*values.shape, 16, 16, 15, is_signed=False)
    assert decode_rle(encode_rle(values), form).reshape(values.shape).tolist() == values.tolist()


def test_jpeg_baseline_is_what_pillow_decodes():
    values = np.linspace(0, 255, 64 * 48).reshape(48, 64).astype(np.uint8)
    packed = encode_image(values, "JPEG", quality=90)
    elements = radiograph(values, bits=8, PIXEL_DATA=compressed(packed[:100], packed[100:]))  # two fragments
    found = decode(elements, JPEG_BASELINE)
    assert np.array_equal(found, np.asarray(Image.open(io.BytesIO(packed))))
    assert np.abs(found.astype(int) - values).max() < 10


@pytest.mark.parametrize(("dtype", "top"), [(np.uint8, 255), (np.uint16, 65535)])
def test_jpeg_2000_lossless_is_exact(dtype, top):
    values = np.random.default_rng(3).integers(0, top + 1, (40, 33)).astype(dtype)
    packed = encode_image(values, "JPEG2000", irreversible=False)
    elements = radiograph(values, bits=8 * values.itemsize, PIXEL_DATA=compressed(packed))
    assert decode(elements, JPEG_2000_LOSSLESS).tolist() == values.tolist()


def test_a_codestream_with_more_bits_than_stated_is_cut_at_the_stated_ones():
    values = np.array([[0, 4095, 4096, 65535]], np.uint16)
    packed = encode_image(values, "JPEG2000", irreversible=False)
    elements = radiograph(values, bits=12, PIXEL_DATA=compressed(packed))
    assert decode(elements, JPEG_2000_LOSSLESS).tolist() == [[0, 4095, 4095, 4095]]


@pytest.mark.skipif(HAS_PYDICOM, reason="pydicom is installed and decodes them")
@pytest.mark.parametrize("syntax", NEED_PYDICOM, ids=NEED_PYDICOM.values())
def test_a_compression_without_decoder_is_refused_with_what_to_install(syntax):
    with pytest.raises(ObjectError, match="pip install pydicom") as caught:
        decode(radiograph(PIXEL_DATA=compressed(b"\xff\xd8")), syntax)
    assert caught.value.kind == "compression"


@pytest.mark.skipif(not HAS_PYDICOM, reason="needs pydicom")
@pytest.mark.parametrize("syntax", [*SYNTAXES.values(), RLE, JPEG_BASELINE, JPEG_2000_LOSSLESS])
def test_the_same_values_as_pydicom(syntax):
    import pydicom

    values = np.random.default_rng(4).integers(0, 256, (30, 20)).astype(np.uint8)
    data = {
        RLE: lambda: compressed(encode_rle(values)),
        JPEG_BASELINE: lambda: compressed(encode_image(values, "JPEG")),
        JPEG_2000_LOSSLESS: lambda: compressed(encode_image(values, "JPEG2000", irreversible=False)),
    }.get(syntax, lambda: ("OB", values.tobytes()))()
    elements = radiograph(values, bits=8, PIXEL_DATA=data)
    theirs = pydicom.dcmread(io.BytesIO(encode(elements, syntax))).pixel_array
    assert decode(elements, syntax).tolist() == theirs.tolist()


@pytest.mark.skipif(not HAS_PYDICOM, reason="needs pydicom with its encoders")
def test_jpeg_ls_is_what_pydicom_encoded():
    import pydicom

    read = pydicom.dcmread(io.BytesIO(encode(radiograph())))
    try:
        read.compress("1.2.840.10008.1.2.4.80")
    except (RuntimeError, NotImplementedError):
        pytest.skip("pydicom has no encoder for JPEG-LS here")
    file = io.BytesIO()
    read.save_as(file)
    found = parse_object(file.getvalue(), is_whole=True, max_bytes=1_000_000)
    assert decode_stored_values(found)[0].tolist() == RAMP.tolist()


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"SAMPLES_PER_PIXEL": ("US", 3)}, "colour"),
        ({"FRAMES": ("IS", "2")}, "frames"),
        ({"ROWS": ("US", 60_000), "COLUMNS": ("US", 60_000)}, "too large"),
        ({"ROWS": ("US", 0)}, "damaged"),
        ({"ROWS": ("US", 4)}, "damaged"),
        ({"BITS_ALLOCATED": ("US", 32)}, "pixels"),
        ({"BITS_STORED": ("US", 17)}, "damaged"),
        ({"HIGH_BIT": ("US", 5)}, "damaged"),
        ({"PIXEL_DATA": None}, "pixels"),
        ({"PIXEL_DATA": compressed(b"")}, "damaged"),
    ],
)
def test_what_cannot_be_decoded_is_refused(changes, kind):
    with pytest.raises(ObjectError) as caught:
        decode(radiograph(**changes))
    assert caught.value.kind == kind


@pytest.mark.parametrize("syntax", [RLE, JPEG_BASELINE, JPEG_2000_LOSSLESS])
@pytest.mark.parametrize(
    "data", [b"", b"\xff\xd8\xff", b"\xff\x4f\xff\x51" + bytes(60), struct.pack("<16I", *range(16)) * 3]
)
def test_damaged_compressed_data_are_refused(syntax, data):
    values = np.zeros((3, 4), np.uint8)
    with pytest.raises(ObjectError):
        decode(radiograph(values, bits=8, PIXEL_DATA=compressed(data)), syntax)


def test_a_compressed_image_of_another_size_is_refused():
    packed = encode_image(np.zeros((8, 8), np.uint8), "JPEG")
    with pytest.raises(ObjectError, match="another size"):
        decode(radiograph(np.zeros((3, 4), np.uint8), bits=8, PIXEL_DATA=compressed(packed)), JPEG_BASELINE)


def test_unknown_transfer_syntax():
    with pytest.raises(ObjectError) as caught:
        decode(radiograph(), "1.2.840.10008.1.2.4.100")
    assert caught.value.kind == "compression"
    assert Tag.PIXEL_DATA == 0x7FE00010
