import io
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from carina.cases.draw import PngEncoder, PngRows, Size, encode_png, is_complete
from carina.cases.draw.png import BAND


def decoded(content: bytes) -> Image.Image:
    """By Pillow, which checks the checksums of the stream as well."""
    image = Image.open(io.BytesIO(content))
    image.load()
    return image


@settings(max_examples=60)
@given(
    height=st.integers(1, 3 * BAND + 1),
    width=st.integers(1, 40),
    colour=st.booleans(),
    levels=st.sampled_from([1, 2, 40, 256]),
    seed=st.integers(0, 2**32 - 1),
)
def test_decoding_gives_the_same_pixels(
    height: int, width: int, colour: bool, levels: int, seed: int
) -> None:
    shape = (height, width, 3) if colour else (height, width)
    picture = np.random.default_rng(seed).integers(0, levels, shape, dtype=np.uint8)
    content = encode_png(picture)
    again = np.asarray(decoded(content).convert("RGB"))
    np.testing.assert_array_equal(again, picture if colour else np.stack([picture] * 3, axis=2))
    assert is_complete(content)


def test_grey_image_is_stored_grey_from_one_or_three_channels() -> None:
    grey = np.random.default_rng(1).integers(0, 256, (40, 50), dtype=np.uint8)
    rgb = np.stack([grey] * 3, axis=2)
    assert encode_png(rgb) == encode_png(grey)
    assert decoded(encode_png(rgb)).mode == "L"
    # One pixel off the sparse grid, in one channel, makes it a colour picture.
    for channel in range(3):
        almost = rgb.copy()
        almost[5, 7, channel] ^= 1
        image = decoded(encode_png(almost))
        assert image.mode == "RGB"
        np.testing.assert_array_equal(np.asarray(image), almost)


def test_remembered_bands_do_not_change_the_bytes() -> None:
    first = np.random.default_rng(2).integers(0, 40, (5 * BAND + 3, 30, 3), dtype=np.uint8)
    second = first.copy()
    second[2 * BAND + 1, 4] = (255, 0, 0)
    encoder = PngEncoder()
    encoder.encode(first)
    encoder.encode(second)
    assert encoder.encode(second) == encode_png(second)
    assert encoder.encode(first) == encode_png(first)


def test_known_band_is_not_deflated_again(monkeypatch: pytest.MonkeyPatch) -> None:
    deflated = []
    real = zlib.compressobj
    monkeypatch.setattr(zlib, "compressobj", lambda *args: deflated.append(1) or real(*args))
    first = np.random.default_rng(3).integers(0, 40, (6 * BAND, 30, 3), dtype=np.uint8)
    second = first.copy()
    second[2 * BAND : 2 * BAND + 2] = 7
    encoder = PngEncoder()
    encoder.encode(first)
    assert len(deflated) == 6
    encoder.encode(second)
    assert len(deflated) == 7


def test_bands_with_the_same_checksum_are_distinguished(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = np.random.default_rng(4).integers(0, 256, (2, BAND, 20, 3), dtype=np.uint8)
    expected = encode_png(other)
    encoder = PngEncoder()
    real = zlib.crc32
    # As if all bands of this size had one checksum.
    monkeypatch.setattr(zlib, "crc32", lambda data, *rest: 1 if len(data) == one.size else real(data, *rest))
    encoder.encode(one)
    assert encoder.encode(other) == expected


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("carina.cases.draw.png._REMEMBERED_BYTES", 10_000)
    encoder = PngEncoder()
    for seed in range(20):
        picture = np.random.default_rng(seed).integers(0, 256, (2 * BAND, 60, 3), dtype=np.uint8)
        np.testing.assert_array_equal(np.asarray(decoded(encoder.encode(picture))), picture)
        assert encoder._remembered == sum(len(band.rows) for band in encoder._bands.values()) <= 10_000


def test_damaged_file_is_not_complete() -> None:
    content = encode_png(np.random.default_rng(5).integers(0, 256, (40, 50, 3), dtype=np.uint8))
    assert is_complete(content)
    for at in (0, 9, 20, len(content) // 2, len(content) - 14, len(content) - 1):
        damaged = bytearray(content)
        damaged[at] ^= 1
        assert not is_complete(bytes(damaged)), at
    for part in (b"", content[:8], content[: len(content) // 2], content[:-1], content + b"\0"):
        assert not is_complete(part)


def test_png_rows_give_the_pixels_of_the_image(tmp_path: Path) -> None:

    image = np.random.default_rng(1).integers(0, 255, (50, 31, 3), np.uint8)
    with (tmp_path / "a.png").open("wb") as file:
        rows = PngRows(file, Size(width=31, height=50))
        rows.write(image[:20])
        rows.write(image[20:])
        rows.close()
    assert np.array_equal(np.asarray(decoded((tmp_path / "a.png").read_bytes())), image)


def test_png_rows_must_fill_the_image(tmp_path: Path) -> None:
    with (tmp_path / "a.png").open("wb") as file:
        rows = PngRows(file, Size(width=4, height=4))
        rows.write(np.zeros((2, 4, 3), np.uint8))
        with pytest.raises(ValueError, match="2 rows"):
            rows.close()
        with pytest.raises(ValueError, match="5 x 1"):
            rows.write(np.zeros((1, 5, 3), np.uint8))
