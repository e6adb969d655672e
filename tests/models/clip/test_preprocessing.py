"""Images as networks take them: the published steps, written out, give the same pixels; and frames tell where."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from carina.models.clip.preprocessing import (
    Preparation,
    crop_to_even,
    preparation_from_open_clip,
    preparation_from_transformers,
    resize,
    square_first,
)
from carina.models.frame import Frame
from carina.store.errors import CarinaError

SIZES = ((64, 64), (101, 77), (77, 101), (33, 130), (500, 321), (321, 500))
HERE = Path("preprocessor_config.json")
SAID = {"size": {"shortest_edge": 36}, "crop_size": 32, "image_mean": [0.5] * 3, "image_std": [0.25] * 3}


def noise(height, width, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width), dtype=np.uint8)


# ---- the published steps ----


@pytest.mark.parametrize("size", SIZES)
def test_chexzero_is_prepared_as_published(size):
    """Lanczos to a square of 320 with black beside it, normalised, then torch's bicubic to 224."""
    torch = pytest.importorskip("torch", reason="the extra torch is not installed")
    from carina.models.clip.chexzero import LONGEST, MEAN, STD

    image = noise(*size)
    picture = Image.fromarray(image)
    width, height = (length * 320 // max(size) for length in picture.size)
    black = Image.new("L", (320, 320))
    black.paste(
        picture.resize((width, height), Image.Resampling.LANCZOS), ((320 - width) // 2, (320 - height) // 2)
    )
    square = (torch.from_numpy(np.array(black, np.float32)) - 101.48761) / 83.43944
    expected = torch.nn.functional.interpolate(
        square[None, None].expand(1, 3, -1, -1), (224, 224), mode="bicubic", align_corners=False
    )[0]
    preparation = Preparation(
        fit=partial(Frame.letterboxed, longest=LONGEST), side=224, resample="pil lanczos", again="cv2 cubic",
        mean=(MEAN,) * 3, std=(STD,) * 3, scale=1.0,
    )  # fmt: skip
    np.testing.assert_allclose(preparation(image), expected.numpy(), atol=1e-4)


@pytest.mark.parametrize("size", SIZES)
def test_medclip_is_prepared_as_published(size):
    """Into a square of at least 224 first, then PIL's bicubic."""
    image = noise(*size)
    side = max(*size, 224)
    black = Image.new("L", (side, side))
    black.paste(Image.fromarray(image), (int((side - size[1]) / 2), int((side - size[0]) / 2)))
    grey = np.asarray(black.resize((224, 224), Image.Resampling.BICUBIC)) / 255
    expected = np.stack([(grey - 0.5862785803043838) / 0.27950088968644304] * 3)
    preparation = Preparation(
        fit=partial(square_first, least=224), side=224, resample="pil bicubic", again="pil bicubic",
        mean=(0.5862785803043838,) * 3, std=(0.27950088968644304,) * 3,
    )  # fmt: skip
    np.testing.assert_allclose(preparation(image), expected, atol=1e-5)


@pytest.mark.parametrize("size", SIZES)
def test_open_clip_is_prepared_as_torchvision_does_it(size):
    """Shorter side resized, its length cut off after the decimal point; margins of the crop rounded to even."""
    image, side = noise(*size), 32
    short = min(size)
    height, width = (int(side * length / short) for length in size)
    grey = np.asarray(Image.fromarray(image).resize((width, height), Image.Resampling.BICUBIC)) / 255
    top, left = round((height - side) / 2.0), round((width - side) / 2.0)
    cut = grey[top : top + side, left : left + side]
    mean, std = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
    expected = [(cut - one) / other for one, other in zip(mean, std, strict=True)]
    preparation = preparation_from_open_clip(Path("open_clip_config.json"), {}, side)
    np.testing.assert_allclose(preparation(image), expected, atol=1e-5)


def test_margins_of_a_crop_are_rounded_to_even():
    # 35 - 32 = 3 rows too many: torchvision cuts 2 above and 1 below, transformers the other way round.
    assert crop_to_even(35, 32, shortest=32, side=32).top == -2
    assert Frame.cropped(35, 32, shortest=32, side=32).top == -1
    assert crop_to_even(37, 32, shortest=32, side=32).top == -2
    assert crop_to_even(32, 33, shortest=32, side=32).left == 0


def test_a_small_image_keeps_its_size_in_the_square_of_medclip():
    assert square_first(100, 51, least=224) == Frame(100, 51, 100, 51, 224, 62, 86)
    assert square_first(300, 501, least=224) == Frame(300, 501, 300, 501, 501, 100, 0)


def test_an_image_is_squashed_where_open_clip_says_so():
    preparation = preparation_from_open_clip(
        HERE, {"resize_mode": "squash", "interpolation": "bilinear", "mean": 0.5, "std": 0.5}, 32
    )
    image = noise(40, 90)
    grey = np.asarray(Image.fromarray(image).resize((32, 32), Image.Resampling.BILINEAR)) / 255
    np.testing.assert_allclose(preparation(image), [(grey - 0.5) / 0.5] * 3, atol=1e-5)
    assert preparation.frame(40, 90) == Frame.stretched(40, 90, side=32)


# ---- settings ----


def test_transformers_settings_in_their_older_forms():
    new = preparation_from_transformers(
        HERE, SAID | {"crop_size": {"height": 32, "width": 32}, "do_center_crop": True}, 32
    )
    old = preparation_from_transformers(HERE, SAID | {"size": 36}, 32)
    image = noise(50, 41)
    np.testing.assert_array_equal(new(image), old(image))
    plain = preparation_from_transformers(HERE, SAID | {"do_normalize": False, "do_rescale": False}, 32)
    np.testing.assert_allclose(plain(image) / 255, new(image) * 0.25 + 0.5, atol=1e-6)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"crop_size": 30}, "crop_size 30"),
        ({"crop_size": {"height": 32, "width": 30}}, "crop_size 0"),
        ({"size": {"shortest_edge": 20}}, "shortest_edge 20"),
        ({"size": {"shortest_edge": 100_000}}, "shortest_edge 100000"),
        ({"do_center_crop": False}, "cut to None"),
        ({"size": {"height": 32, "width": 40}}, "32 x 40"),
        ({"size": {"longest_edge": 32}}, "height"),
        ({"image_mean": [0.5]}, "1 channels"),
        ({"image_std": None}, "NoneType"),
        ({"resample": 9}, "9"),
    ],
)
def test_settings_that_do_not_fit_the_network_are_an_error(changes, what):
    with pytest.raises(CarinaError, match=f"network of 32 x 32 .*{what}"):
        preparation_from_transformers(HERE, SAID | changes, 32)


@pytest.mark.parametrize("changes", [{"resize_mode": "longest"}, {"mean": [0.5, 0.5]}, {"std": "x"}])
def test_open_clip_settings_that_are_unknown_are_an_error(changes):
    with pytest.raises(CarinaError, match="preprocess_cfg is not understood"):
        preparation_from_open_clip(HERE, changes, 32)


def test_only_grey_images_of_uint8_are_accepted():
    preparation = preparation_from_open_clip(HERE, {}, 32)
    with pytest.raises(ValueError, match="grey image"):
        preparation(np.zeros((8, 8, 3), np.uint8))
    with pytest.raises(ValueError, match="grey image"):
        preparation(np.zeros((8, 8), np.float32))


@pytest.mark.parametrize("fit", [Frame.cropped, crop_to_even])
def test_an_image_of_which_next_to_nothing_is_seen_is_refused(fit):
    """It would be resized as a whole: 3 x 3000 to 32 x 32000."""
    preparation = Preparation(
        fit=partial(fit, shortest=32, side=32),
        side=32,
        resample="pil bicubic",
        mean=(0.0,) * 3,
        std=(1.0,) * 3,
    )
    for height, width in ((3, 3000), (3000, 3), (1, 21)):
        for ask in (preparation.frame, lambda *size: preparation(noise(*size))):
            with pytest.raises(
                CarinaError, match=rf"an image of {height} x {width} .* too long and narrow for this model"
            ):
                ask(height, width)
    assert preparation(noise(3, 60)).shape == (3, 32, 32)


def test_a_long_image_is_accepted_where_no_part_is_cropped():
    preparation = Preparation(
        fit=partial(Frame.letterboxed, longest=32),
        side=32,
        resample="pil bicubic",
        mean=(0.0,) * 3,
        std=(1.0,) * 3,
    )
    assert preparation(noise(3, 3000)).shape == (3, 32, 32)


def test_a_frame_of_another_size_needs_a_way_to_the_network():
    preparation = Preparation(
        fit=partial(Frame.stretched, side=64),
        side=32,
        resample="pil bicubic",
        mean=(0.0,) * 3,
        std=(1.0,) * 3,
    )
    with pytest.raises(ValueError, match="a frame of side 64 for a network of 32"):
        preparation(noise(8, 8))


def test_each_filter_resizes_as_its_library_does():
    image = np.array([[0, 100], [200, 40]], np.uint8)
    assert resize(image, 1, 1, "cv2 area").tolist() == [[85]]
    assert resize(image, 2, 2, "pil lanczos") is image
    assert resize(image, 4, 4, "pil nearest")[0].tolist() == [0, 0, 100, 100]
    assert resize(image.astype(np.float32), 2, 4, "cv2 linear")[0].tolist() == [0, 25, 75, 100]


# ---- geometry ----

FITS = {
    "crop": partial(crop_to_even, shortest=37, side=32),
    "square": partial(square_first, least=48),
    "letterbox": partial(Frame.letterboxed, longest=40),
    "stretch": partial(Frame.stretched, side=32),
}


@settings(max_examples=60)
@given(
    how=st.sampled_from(sorted(FITS)), height=st.integers(24, 160), width=st.integers(24, 160),
    x=st.floats(0, 1), y=st.floats(0, 1),
)  # fmt: skip
def test_a_bright_spot_comes_out_where_the_frame_says(how, height, width, x, y):
    """Pixels and geometry cannot disagree: the brightest place of the input is the frame's image of the spot."""
    preparation = Preparation(
        fit=FITS[how], side=32, resample="pil bilinear", again="pil bilinear", mean=(0.0,) * 3, std=(1.0,) * 3
    )
    frame = preparation.frame(height, width)
    # About as large as two pixels of the input.
    high, wide = (
        max(2, round(2 * frame.side / 32 * length / laid))
        for length, laid in ((height, frame.rows), (width, frame.columns))
    )
    top, left = int(y * max(height - high, 0)), int(x * max(width - wide, 0))
    image = np.zeros((height, width), np.uint8)
    image[top : top + high, left : left + wide] = 255
    middle = frame.to_input(np.array([[left + wide / 2, top + high / 2]]))[0] * 32 / frame.side
    made = preparation(image)
    assert made.shape == (3, 32, 32)
    if not (2 <= middle[0] <= 30 and 2 <= middle[1] <= 30):
        return
    weight = made[0] / made[0].sum()
    rows, columns = np.mgrid[:32, :32] + 0.5
    assert (weight * columns).sum() == pytest.approx(middle[0], abs=0.6)
    assert (weight * rows).sum() == pytest.approx(middle[1], abs=0.6)
