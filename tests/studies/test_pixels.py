"""Decoding and writing images: every kind that can be read, and a plain sentence for the rest."""

import io
import os
import struct
import zlib
from pathlib import Path

import cv2
import numpy as np
import pytest
import tifffile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image as Pillow
from PIL.TiffImagePlugin import TiffImageFile

from carina.cases import case_image
from carina.store.errors import ImageError
from carina.store.files import sha256
from carina.studies import Image
from carina.studies import pixels as module
from carina.studies.pixels import (
    Header,
    display_image,
    read_colour,
    read_header,
    read_pixels,
    to_display,
    write_png,
)

REAL = Path(__file__).parents[3] / "shared" / "data"

GREY8 = np.arange(0, 240, dtype=np.uint8).reshape(12, 20)
GREY16 = (np.arange(240, dtype=np.uint16) * 273).reshape(12, 20)


def encoded(array, extension, *settings):
    return cv2.imencode(extension, array, settings)[1].tobytes()


def pillow(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def tiff(array, **options):
    file = io.BytesIO()
    tifffile.imwrite(file, array, **options)
    return file.getvalue()


def palette():
    image = Pillow.new("P", (20, 12))
    image.putpalette([value for step in range(16) for value in (step * 16,) * 3])
    image.putdata((GREY8 // 16).ravel().tolist())
    return image


EXACT = {
    "8-bit PNG": (encoded(GREY8, ".png"), GREY8, 8),
    "16-bit PNG": (encoded(GREY16, ".png"), GREY16, 16),
    "grey as RGB PNG": (encoded(np.dstack([GREY8] * 3), ".png"), GREY8, 8),
    "grey as RGBA PNG": (encoded(np.dstack([GREY8] * 3 + [GREY8 * 0 + 255]), ".png"), GREY8, 8),
    "transparent RGBA PNG": (encoded(np.dstack([GREY8] * 3 + [GREY8 * 0]), ".png"), GREY8, 8),
    "grey as 16-bit RGB PNG": (encoded(np.dstack([GREY16] * 3), ".png"), GREY16, 16),
    "grey as 16-bit RGBA PNG": (encoded(np.dstack([GREY16] * 4), ".png"), GREY16, 16),
    "grey with alpha PNG": (pillow(Pillow.fromarray(np.dstack([GREY8, GREY8]), "LA"), "PNG"), GREY8, 8),
    "palette PNG": (pillow(palette(), "PNG"), GREY8 // 16 * 16, 8),
    "palette PNG with transparency": (pillow(palette(), "PNG", transparency=3), GREY8 // 16 * 16, 8),
    "1-bit PNG": (pillow(Pillow.fromarray(GREY8 > 100), "PNG"), (GREY8 > 100) * np.uint8(255), 8),
    "8-bit TIFF": (tiff(GREY8), GREY8, 8),
    "16-bit TIFF": (tiff(GREY16), GREY16, 16),
    "big-endian 16-bit TIFF": (tiff(GREY16, byteorder=">"), GREY16, 16),
    "BigTIFF": (tiff(GREY16, bigtiff=True), GREY16, 16),
    "deflated TIFF": (tiff(GREY16, compression="zlib"), GREY16, 16),
    "LZW TIFF": (pillow(Pillow.fromarray(GREY16), "TIFF", compression="tiff_lzw"), GREY16, 16),
    "PackBits TIFF": (pillow(Pillow.fromarray(GREY8), "TIFF", compression="packbits"), GREY8, 8),
    "white-is-zero TIFF": (tiff(GREY8, photometric="miniswhite"), 255 - GREY8, 8),
    "white-is-zero 16-bit TIFF": (tiff(GREY16, photometric="miniswhite"), 65535 - GREY16, 16),
    "grey as RGB TIFF": (tiff(np.dstack([GREY8] * 3), photometric="rgb"), GREY8, 8),
    "grey as 16-bit RGB TIFF": (tiff(np.dstack([GREY16] * 3), photometric="rgb"), GREY16, 16),
}


@pytest.mark.parametrize("kind", EXACT)
def test_every_kind_is_decoded_exactly(tmp_path, kind):
    content, expected, bits = EXACT[kind]
    path = tmp_path / "image"
    path.write_bytes(content)
    decoded = read_pixels(path)
    assert decoded.dtype == expected.dtype
    np.testing.assert_array_equal(decoded, expected)
    assert read_header(path) == Header(width=20, height=12, bits=bits)


@pytest.mark.parametrize("array", [GREY8, np.dstack([GREY8] * 3)], ids=["grey", "colour"])
def test_a_jpeg_is_decoded_within_its_tolerance(tmp_path, array):
    path = tmp_path / "image.jpg"
    path.write_bytes(encoded(array, ".jpg", cv2.IMWRITE_JPEG_QUALITY, 100))
    decoded = read_pixels(path)
    assert decoded.dtype == np.uint8
    assert np.abs(decoded.astype(int) - GREY8).max() <= 3
    assert read_header(path) == Header(20, 12, 8)


def test_colour_becomes_luminance(tmp_path):
    for dtype, top in ((np.uint8, 255), (np.uint16, 65535)):
        blue_green_red = np.array([[[top, 0, 0], [0, top, 0], [0, 0, top]]], dtype)
        (tmp_path / "a.png").write_bytes(encoded(blue_green_red, ".png"))
        expected = np.array([[0.114, 0.587, 0.299]]) * top
        np.testing.assert_allclose(read_pixels(tmp_path / "a.png"), expected, atol=1)


def test_an_orientation_tag_moves_no_pixel(tmp_path):
    tagged = Pillow.Exif()
    tagged[0x0112] = 6
    Pillow.fromarray(GREY8).save(tmp_path / "a.jpg", exif=tagged)
    assert read_pixels(tmp_path / "a.jpg").shape == GREY8.shape


def bomb(width, height, *, bits=8, colour=0):
    """A PNG of a few bytes that says it is huge."""
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    data = b"IDAT" + zlib.compress(b"\0" * 100)
    chunks = b"".join(
        struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk))
        for chunk in (header, data, b"IEND")
    )
    return b"\x89PNG\r\n\x1a\n" + chunks


def test_a_decompression_bomb_is_refused_from_its_header(tmp_path):
    path = tmp_path / "bomb.png"
    path.write_bytes(bomb(60_000, 60_000))
    for read in (read_header, read_pixels):
        with pytest.raises(
            ImageError, match=r"bomb\.png: 60000 x 60000 pixels, more than the limit of 100,000,000"
        ):
            read(path)


def test_a_side_longer_than_any_image_has_is_refused_from_the_header(tmp_path):
    path = tmp_path / "wide.png"
    path.write_bytes(bomb(70_000, 1))
    for read in (read_header, read_pixels):
        with pytest.raises(ImageError, match=r"wide\.png: 70000 x 1 pixels, expected sides of up to 65,535"):
            read(path)


def test_bytes_of_all_channels_are_limited_from_the_header(tmp_path):
    """9900 x 9900 pixels of 16-bit colour with transparency are within the limit of pixels, and 784 MB decoded."""
    (tmp_path / "deep.png").write_bytes(bomb(9_900, 9_900, bits=16, colour=6))
    for read in (read_header, read_pixels):
        with pytest.raises(
            ImageError, match=r"deep\.png: 9900 x 9900 .* 784,080,000 bytes, more than the limit"
        ):
            read(tmp_path / "deep.png")


def test_the_pages_of_a_tiff_are_not_counted_one_by_one(tmp_path, monkeypatch):
    """Counting reads the header of every page, of which a small file can hold hundreds of thousands."""
    pages = [Pillow.fromarray(GREY8)] * 3
    pages[0].save(tmp_path / "pages.tif", save_all=True, append_images=pages[1:])
    monkeypatch.setattr(
        TiffImageFile, "n_frames", property(lambda _image: pytest.fail("the pages were counted"))
    )
    with pytest.raises(ImageError, match=r"pages\.tif: holds several pages, expected one"):
        read_header(tmp_path / "pages.tif")


def test_the_caller_sets_the_limit_of_pixels(tmp_path):
    write_png(tmp_path / "a.png", GREY8)
    assert read_pixels(tmp_path / "a.png", max_pixels=240).shape == (12, 20)
    with pytest.raises(ImageError, match="20 x 12 pixels, more than the limit of 239"):
        read_pixels(tmp_path / "a.png", max_pixels=239)


def test_an_image_between_pillows_limit_and_ours_is_read_without_a_warning(tmp_path):
    large = np.zeros((9_000, 10_000), np.uint8)
    write_png(tmp_path / "a.png", large)
    assert large.size > Pillow.MAX_IMAGE_PIXELS
    assert read_pixels(tmp_path / "a.png").shape == large.shape


def test_a_file_too_large_to_be_an_image_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_BYTES", 10)
    write_png(tmp_path / "a.png", GREY8)
    with pytest.raises(ImageError, match="bytes, more than the limit of 10"):
        read_pixels(tmp_path / "a.png")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"GIF89a" + b"\0" * 50, "unknown image format, expected PNG, JPEG, TIFF"),
        (b"\0" * 128 + b"DICM" + b"\0" * 50, "a DICOM file, which must be imported"),
        (b"\x89PNG\r\n\x1a\n", "damaged or cut short"),
        (b"II*\0\xff\xff\xff\x7f", "damaged or cut short"),
        (b"\xff\xd8\xff\xe0", "damaged or cut short"),
        (tiff(np.stack([GREY8] * 2), photometric="minisblack"), "holds several pages, expected one"),
        (tiff(GREY8.astype(np.float32)), "holds values of mode F, 32 bits; expected unsigned, up to 16 bits"),
        (tiff(GREY8.astype(np.int16)), "expected unsigned"),
        (tiff(GREY8.astype(np.uint32)), "expected unsigned"),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_file_that_cannot_be_read_is_named(tmp_path, content, message):
    path = tmp_path / "image.png"
    path.write_bytes(content)
    with pytest.raises(ImageError, match=r"image\.png: ") as caught:
        read_pixels(path)
    assert message in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ImageError, match=r"gone\.png: no such image file"):
        read_pixels(tmp_path / "gone.png")
    with pytest.raises(ImageError, match="not a regular file"):
        read_header(tmp_path)


@pytest.mark.parametrize("read", [read_header, read_pixels, read_colour])
def test_a_pipe_or_a_device_is_refused_at_once(tmp_path, read):
    os.mkfifo(tmp_path / "pipe.png")
    # Something to read, lest a reader that opens it wait for ever.
    writer = os.open(tmp_path / "pipe.png", os.O_RDWR)
    os.write(writer, b"GIF89a" * 50)
    for path in (tmp_path / "pipe.png", Path("/dev/zero")):
        with pytest.raises(ImageError, match="not a regular file"):
            read(path)
    os.close(writer)


@pytest.mark.parametrize(
    "kind", ["8-bit PNG", "16-bit PNG", "grey as 16-bit RGB PNG", "16-bit TIFF", "LZW TIFF"]
)
@pytest.mark.filterwarnings("ignore::UserWarning")  # Pillow warns of damaged tags before it fails
def test_a_truncated_file_is_refused(tmp_path, kind):
    content = EXACT[kind][0]
    # PNG keeps its last 16 bytes for a checksum and an end mark, TIFF may keep tags after the pixels.
    path = tmp_path / "cut"
    told = 0
    for length in range(0, len(content) - 16, 7):
        path.write_bytes(content[:length])
        try:
            np.testing.assert_array_equal(read_pixels(path), EXACT[kind][1])
        except ImageError as error:
            told += 1
            assert str(error).startswith(f"{path}: ")  # noqa: PT017
    assert told > 3


@given(data=st.data())
@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_damage_gives_an_image_or_an_image_error(tmp_path, data):
    content = bytearray(EXACT[data.draw(st.sampled_from(sorted(EXACT)))][0])
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    (tmp_path / "damaged").write_bytes(content)
    try:
        decoded = read_pixels(tmp_path / "damaged", max_pixels=1_000_000)
    except ImageError:
        return
    assert decoded.ndim == 2
    assert decoded.dtype in (np.uint8, np.uint16)


# Writing and showing ----------------------------------------------------------------------------------------


@given(
    array=arrays.arrays(st.sampled_from([np.uint8, np.uint16]), arrays.array_shapes(min_dims=2, max_dims=2))
)
@settings(max_examples=40, suppress_health_check=list(HealthCheck))
def test_written_pixels_are_read_back(tmp_path, array):
    digest = write_png(tmp_path / "a.png", array)
    assert digest == sha256(tmp_path / "a.png")
    assert write_png(tmp_path / "b.png", np.asfortranarray(array)) == digest
    decoded = read_pixels(tmp_path / "a.png")
    assert decoded.dtype == array.dtype
    np.testing.assert_array_equal(decoded, array)


@pytest.mark.parametrize(
    "array", [np.zeros((2, 2, 3), np.uint8), np.zeros((2, 2)), np.zeros((0, 2), np.uint8)]
)
def test_pixels_that_a_grey_png_cannot_hold_are_refused(tmp_path, array):
    with pytest.raises(ImageError, match="2-D uint8 or uint16"):
        write_png(tmp_path / "a.png", array)
    assert list(tmp_path.iterdir()) == []


def test_display_scales_the_range_of_the_stored_bits():
    stored = np.array([[0, 2048, 4095, 5000]], np.uint16)
    assert to_display(stored, bits=12).tolist() == [[0, 128, 255, 255]]
    assert to_display(stored, bits=12, monochrome1=True).tolist() == [[255, 127, 0, 0]]
    assert to_display(GREY8, bits=8).tolist() == GREY8.tolist()


def test_a_window_over_all_values_shows_what_no_window_shows():
    stored = np.arange(4096, dtype=np.uint16)[None]
    # Centre 2048 and width 4096 map 0 to 0 and 4095 to 255: (x - 2047.5) / 4095 + 0.5 = x / 4095.
    assert np.array_equal(to_display(stored, bits=12, window=(2048, 4096)), to_display(stored, bits=12))


def test_a_window_is_linear_between_its_ends():
    # Width 11 and centre 100: black up to 99.5 - 5 = 94.5, white above 99.5 + 5 = 104.5, 25.5 a step between.
    stored = np.array([[0, 94, 95, 99, 100, 104, 105, 255]], np.uint8)
    expected = [[0, 0, 13, 115, 140, 242, 255, 255]]  # 12.75, 114.75, 140.25, 242.25
    assert to_display(stored, bits=8, window=(100, 11)).tolist() == expected
    inverted = to_display(stored, bits=8, window=(100, 11), monochrome1=True)
    assert inverted.tolist() == [[255 - value for value in expected[0]]]


def test_a_window_of_width_1_is_a_threshold():
    stored = np.array([[98, 99, 100, 101]], np.uint8)
    assert to_display(stored, bits=8, window=(100, 1)).tolist() == [[0, 0, 255, 255]]


def test_a_window_applies_to_rescaled_values():
    # 2 * stored - 100: -50, -48, 0, 48, 50. Centre 0 and width 100: ((value + 0.5) / 99 + 0.5) * 255.
    stored = np.array([[25, 26, 50, 74, 75]], np.uint8)
    shown = to_display(stored, bits=8, rescale=(2.0, -100.0), window=(0.0, 100.0))
    assert shown.tolist() == [[0, 5, 129, 252, 255]]  # 5.15, 128.79, 252.42


def test_values_beyond_the_stored_bits_are_the_highest_of_them_before_they_are_rescaled():
    stored = np.array([[0, 4095, 5000]], np.uint16)
    assert to_display(stored, bits=12, rescale=(1.0, -1024.0), window=(4000, 1)).tolist() == [[0, 0, 0]]
    assert to_display(stored, bits=12, rescale=(1.0, -1024.0), window=(3000, 1)).tolist() == [[0, 255, 255]]


def test_without_a_window_rescaling_changes_the_display_only_where_it_inverts():
    stored = np.array([[0, 1024, 4095]], np.uint16)
    plain = to_display(stored, bits=12)
    assert np.array_equal(to_display(stored, bits=12, rescale=(0.5, -1000)), plain)
    assert to_display(stored, bits=12, rescale=(-2, 7)).tolist() == [
        [255, 191, 0]
    ]  # 255 * 3071 / 4095 = 191.2


def test_an_image_is_displayed_as_its_record_says():
    stored = np.array([[25, 26, 50, 74, 75]], np.uint8)
    image = Image(
        key="a.png", view="PA", width=5, height=1, monochrome1=True, rescale=(2, -100), window=(0, 100)
    )
    assert display_image(stored, image).tolist() == [[255, 250, 126, 3, 0]]
    assert display_image(stored, case_image(image)).tolist() == [[255, 250, 126, 3, 0]]


# Real images ------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not REAL.is_dir(), reason="real images are not on this machine")
def test_real_images_are_decoded_as_another_decoder_does():
    paths = sorted([*REAL.glob("nih/images/*"), *REAL.glob("covid/images/*")])
    assert len(paths) > 100
    for path in paths:
        decoded, header = read_pixels(path), read_header(path)
        assert decoded.shape == (header.height, header.width)
        assert decoded.dtype == (np.uint8 if header.bits == 8 else np.uint16)
        reference = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
        if reference.ndim == 3:
            reference = reference[..., :3] @ [0.114, 0.587, 0.299]
        assert np.abs(decoded - reference.astype(float)).max() <= 1, path.name


def test_pixel_data_with_a_wrong_checksum_is_damaged(tmp_path):
    """Pillow decodes it without a word: the checksum of the data is what tells."""
    path = tmp_path / "a.png"
    write_png(path, GREY8)
    content = bytearray(path.read_bytes())
    start = content.index(b"IDAT")
    (length,) = struct.unpack_from(">I", content, start - 4)
    content[start + 4 + length] ^= 1
    path.write_bytes(content)
    Pillow.open(path).load()
    with pytest.raises(ImageError, match=r"a\.png: damaged: .*checksum"):
        read_pixels(path)


# Finished pictures ------------------------------------------------------------------------------------------

RED_GREEN_BLUE = np.dstack([GREY8, GREY8[::-1], GREY8[:, ::-1]])


@pytest.mark.parametrize("kind", [kind for kind, (_, _, bits) in EXACT.items() if bits == 8])
def test_a_grey_image_is_read_as_colour(tmp_path, kind):
    content, expected, _ = EXACT[kind]
    (tmp_path / "image").write_bytes(content)
    found = read_colour(tmp_path / "image")
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, np.dstack([expected] * 3))


@pytest.mark.parametrize("kind", ["RGB PNG", "RGBA PNG", "RGB TIFF", "palette PNG"])
def test_colours_are_read_as_they_stand(tmp_path, kind):
    picture = Pillow.fromarray(RED_GREEN_BLUE)
    expected = RED_GREEN_BLUE
    if kind == "palette PNG":
        picture = picture.quantize(16)
        expected = np.asarray(picture.convert("RGB"))
        several = bytes(range(0, 160, 10))  # a transparency for each colour
        content = pillow(picture, "PNG", transparency=several)
    elif kind == "RGBA PNG":
        picture.putalpha(Pillow.fromarray(GREY8))
        content = pillow(picture, "PNG")
    else:
        content = pillow(picture, kind.split()[1])
    (tmp_path / "image").write_bytes(content)
    np.testing.assert_array_equal(read_colour(tmp_path / "image"), expected)


def test_a_finished_image_is_checked_like_any_other(tmp_path):
    path = tmp_path / "image.png"
    path.write_bytes(EXACT["16-bit PNG"][0])
    with pytest.raises(ImageError, match=r"image\.png: holds 16 bits a value"):
        read_colour(path)
    path.write_bytes(EXACT["8-bit PNG"][0])
    with pytest.raises(ImageError, match="20 x 12 pixels, more than the limit of 239"):
        read_colour(path, max_pixels=239)
    path.write_bytes(EXACT["8-bit PNG"][0][:-30])
    with pytest.raises(ImageError, match="damaged or cut short"):
        read_colour(path)
