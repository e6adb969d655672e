"""Stored values are those that pydicom gives, in every transfer syntax; what cannot be decoded safely is refused."""

import io
import struct

import numpy as np
import pydicom
import pytest
from pydicom import uid
from pydicom.pixels import pixel_array
from tests.sources.dicom import syntaxes
from tests.sources.dicom.encoding import BIG_ENDIAN, EXPLICIT, encode_object
from tests.sources.dicom.objects import compressed, encode, encode_image, encode_rle, radiograph

from carina.sources.dicom import isolated_decoder
from carina.sources.dicom.attributes import ObjectError, parse_object
from carina.sources.dicom.stored_values import RLE, decode_stored_values

JPEG_BASELINE = str(uid.JPEGBaseline8Bit)
JPEG_2000_LOSSLESS = str(uid.JPEG2000Lossless)
DEPTHS = [(bits, signed) for bits in (8, 10, 12, 14, 16) for signed in (False, True)]
DEPTH_IDS = [f"{bits}-{'signed' if signed else 'unsigned'}" for bits, signed in DEPTHS]


def decode_file(content):
    found = parse_object(content, is_whole=True, with_pixels=True, max_bytes=10_000_000)
    return decode_stored_values(found)[0]


def decode(elements, syntax=EXPLICIT):
    return decode_file(encode(elements, syntax))


def make_values(bits, signed):
    """Waves over the whole range of the bits."""
    y, x = np.mgrid[0:37, 0:50]
    values = ((np.sin(x / 9) * np.cos(y / 7) + 1) / 2 * (2**bits - 1)).astype(int) - (signed << (bits - 1))
    return values.astype(f"{'i' if signed else 'u'}{1 if bits == 8 else 2}")


def compare(values, bits, syntax, folder):
    """What Carina decodes, after comparing it with pydicom."""
    content = syntaxes.encode(syntaxes.dataset(values, bits), syntax, folder)
    ours = decode_file(content)
    theirs = pydicom.dcmread(io.BytesIO(content))
    assert ours.dtype == values.dtype
    # Two decoders of lossy JPEG may differ by one: pydicom prefers gdcm, which is not safe with damaged data.
    plugin = "pillow" if syntax in (uid.JPEGBaseline8Bit, uid.JPEGExtended12Bit) else ""
    assert np.array_equal(ours, pixel_array(theirs, decoding_plugin=plugin))
    assert np.abs(ours.astype(int) - theirs.pixel_array).max() <= (1 if plugin else 0)
    return ours


@pytest.mark.parametrize(("bits", "signed"), DEPTHS, ids=DEPTH_IDS)
@pytest.mark.parametrize("name", [*syntaxes.NATIVE, *syntaxes.LOSSLESS])
def test_values_come_back_exactly_and_as_pydicom_reads_them(name, bits, signed, tmp_path):
    values = make_values(bits, signed)
    syntax = {**syntaxes.NATIVE, **syntaxes.LOSSLESS}[name]
    assert np.array_equal(compare(values, bits, syntax, tmp_path), values)


@pytest.mark.parametrize(("bits", "signed"), DEPTHS, ids=DEPTH_IDS)
@pytest.mark.parametrize("name", ["jpeg-ls-near", "jpeg-2000"])
def test_lossy_values_are_those_of_pydicom(name, bits, signed, tmp_path):
    values = make_values(bits, signed) // 2  # lossy values of the outermost ones may leave the range
    found = compare(values, bits, syntaxes.LOSSY[name], tmp_path)
    largest = 3 if name == "jpeg-ls-near" else 2 + 2**bits // 80
    assert np.abs(found.astype(int) - values).max() <= largest


@pytest.mark.parametrize("name", ["jpeg-baseline", "jpeg-extended"])
def test_lossy_jpeg_of_8_bits_is_that_of_pydicom(name, tmp_path):
    values = make_values(8, False)
    found = compare(values, 8, syntaxes.LOSSY[name], tmp_path)
    assert 0 < np.abs(found.astype(int) - values).max() <= 3


@pytest.mark.parametrize(("bits", "signed"), DEPTHS, ids=DEPTH_IDS)
@pytest.mark.parametrize("syntax", syntaxes.HTJ2K.values(), ids=syntaxes.HTJ2K)
def test_high_throughput_jpeg_2000_is_that_of_pydicom(syntax, bits, signed, tmp_path):
    values = np.zeros((9, 7), make_values(bits, signed).dtype)
    middle = 2 ** (bits - 1)
    expected = -middle if signed else middle  # the codestream is unsigned, whatever the object says
    assert np.unique(compare(values, bits, syntax, tmp_path)).tolist() == [expected]


def test_jpeg_extended_of_12_bits_is_refused_with_the_package_that_decodes_it(tmp_path):
    content = syntaxes.encode(syntaxes.dataset(make_values(12, False), 12), uid.JPEGExtended12Bit, tmp_path)
    with pytest.raises(ObjectError, match="pylibjpeg-libjpeg") as caught:
        decode_file(content)
    assert caught.value.kind == "compression"


def test_several_fragments_are_one_image():
    values = make_values(8, False)
    packed = encode_image(values, "JPEG", quality=90)
    whole = radiograph(values, bits=8, PIXEL_DATA=compressed(packed))
    parts = radiograph(values, bits=8, PIXEL_DATA=compressed(packed[:100], packed[100:]))
    assert np.array_equal(decode(parts, JPEG_BASELINE), decode(whole, JPEG_BASELINE))


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
    assert decode_file(encode_object(swapped, syntax=BIG_ENDIAN)).tolist() == [[1, 2, 3]]


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


def test_an_image_with_more_bits_than_stated_is_cut_at_the_stated_ones():
    values = np.array([[0, 4095, 4096, 65535]], np.uint16)
    packed = encode_image(values, "JPEG2000", irreversible=False, no_jp2=True)
    elements = radiograph(values, bits=12, PIXEL_DATA=compressed(packed))
    assert decode(elements, JPEG_2000_LOSSLESS).tolist() == [[0, 4095, 4095, 4095]]


# ---- what is refused -------------------------------------------------------------------------------------------------


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
    ids=[
        "colour",
        "frames",
        "too large",
        "no rows",
        "cut short",
        "32 bits",
        "17 of 16",
        "high bit",
        "none",
        "packed",
    ],
)
def test_what_cannot_be_decoded_is_refused(changes, kind):
    with pytest.raises(ObjectError) as caught:
        decode(radiograph(**changes))
    assert caught.value.kind == kind


COMPRESSED = [
    RLE,
    *map(str, syntaxes.LOSSLESS.values()),
    *map(str, syntaxes.LOSSY.values()),
    *map(str, syntaxes.HTJ2K.values()),
]
BROKEN = {
    "empty": b"",
    "jpeg": b"\xff\xd8\xff",
    "jpeg without size": b"\xff\xd8\xff\xe0\x00\x02" * 9,
    "jpeg 2000": b"\xff\x4f\xff\x51" + bytes(60),
    "jp2": b"\0\0\0\x0cjP  \r\n\x87\n" + bytes(60),
    "numbers": struct.pack("<16I", *range(16)) * 3,
}


@pytest.mark.parametrize("syntax", COMPRESSED)
@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
def test_damaged_compressed_data_are_refused(syntax, data):
    with pytest.raises(ObjectError):
        decode(radiograph(np.zeros((3, 4), np.uint8), bits=8, PIXEL_DATA=compressed(data)), syntax)


def test_a_compressed_image_of_another_size_is_refused_before_it_is_decoded():
    jpeg = encode_image(np.zeros((8, 8), np.uint8), "JPEG")
    jpeg_2000 = syntaxes.make_htj2k(60_000, 60_000, 8)
    small = np.zeros((3, 4), np.uint8)
    for syntax, packed in (
        (JPEG_BASELINE, jpeg),
        (JPEG_2000_LOSSLESS, jpeg_2000),
        (str(uid.HTJ2K), jpeg_2000),
    ):
        with pytest.raises(ObjectError, match="another size"):
            decode(radiograph(small, bits=8, PIXEL_DATA=compressed(packed)), syntax)


def test_an_image_that_ends_the_process_of_gdcm_does_not_end_this_one(tmp_path):
    values = make_values(8, False)
    made = syntaxes.encode(syntaxes.dataset(values, 8), uid.JPEGLosslessSV1, tmp_path)
    at = made.index(b"\xff\xd8\xff\xc3")
    broken = made[: at + 6] + b"\x11" + made[at + 7 :]  # 17 bits: gdcm ends its process
    assert np.array_equal(decode_file(made), values)
    before = isolated_decoder._running[0]
    with pytest.raises(ObjectError, match="decoded"):
        decode_file(broken)
    assert isolated_decoder._running == []
    assert before._process.poll() is not None
    assert np.array_equal(decode_file(made), values)


@pytest.mark.parametrize("syntax", ["1.2.840.10008.1.2.4.100", "1.2.3"], ids=["video", "private"])
def test_a_transfer_syntax_without_decoder_is_refused(syntax):
    with pytest.raises(ObjectError) as caught:
        decode(radiograph(), syntax)
    assert caught.value.kind == "compression"
