import numpy as np
import pytest

from carina.cases.draw import HUES, INK, Colour, Cut, Layer, Size, outline, overlay, scale_mask, tint
from carina.store.errors import RegionError
from carina.studies.region import Region

ORANGE = HUES["orange"]


def blob(seed: int = 1, height: int = 40, width: int = 56) -> np.ndarray:
    """A ragged mask with a hole, touching the image's lower edge."""
    noise = np.random.default_rng(seed).random((height, width))
    rows, columns = np.mgrid[:height, :width]
    mask = ((columns - 25) / 18) ** 2 + ((rows - 28) / 16) ** 2 + 0.3 * noise < 1
    mask[20:25, 20:27] = False
    return mask


def steps_to_outside(mask: np.ndarray) -> np.ndarray:
    """City-block distance of every masked pixel to the nearest one outside, the image's frame included."""
    padded = np.pad(mask, 1)
    rows, columns = np.nonzero(~padded)
    distances = np.zeros(mask.shape, int)
    for row, column in zip(*np.nonzero(mask), strict=True):
        distances[row, column] = (np.abs(rows - row - 1) + np.abs(columns - column - 1)).min()
    return distances


@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize("order", ["C", "F"])
def test_outline_has_the_pixels_within_its_width_of_the_border(width: int, order: str) -> None:
    mask = blob()
    distances = steps_to_outside(mask)

    edge = outline(np.asarray(mask, order=order), width=width)

    np.testing.assert_array_equal(edge, (distances >= 1) & (distances <= width))


def test_dashes_are_parts_of_the_outline() -> None:
    mask = np.zeros((30, 30), bool)
    mask[5:25, 5:25] = True
    solid, dashed = outline(mask), outline(mask, dash=4)
    assert not (dashed & ~solid).any()
    # The border has 4 * 19 = 76 pixels: 19 groups of four, ten of them inked.
    assert solid.sum() == 76
    assert dashed.sum() == 40
    assert not (outline(mask, width=3, dash=4) & ~outline(mask, width=3)).any()


def test_empty_masks_draw_nothing() -> None:
    image = np.full((8, 8), 70, np.uint8)
    empty = Layer(region=Region.from_mask(np.zeros((8, 8), bool)), colour=ORANGE, fill=0.5, dash=2, casing=1)
    assert (overlay(image, [empty]) == 70).all()


def test_overlay_touches_only_the_region_and_mixes_exactly() -> None:
    image = np.random.default_rng(2).integers(0, 256, (40, 56), dtype=np.uint8)
    mask = blob()
    edge = outline(mask, width=2)

    picture = overlay(image, [Layer(region=Region.from_mask(mask), colour=ORANGE, fill=0.25, outline=2)])

    assert (picture[~mask] == image[~mask][:, None]).all()
    assert (picture[edge] == ORANGE).all()
    inside = mask & ~edge
    expected = np.rint(image[inside][:, None] * 0.75 + np.array(ORANGE) * 0.25)
    np.testing.assert_array_equal(picture[inside], expected)


def test_tint_has_the_value_worked_out_by_hand() -> None:
    picture = np.full((3, 3, 3), 100, np.uint8)
    mask = np.zeros((3, 3), bool)
    mask[1, 1] = True
    tint(picture, mask, Colour(200, 0, 101), opacity=0.5)
    assert picture[1, 1].tolist() == [150, 50, 100]  # 100.5 rounds to even
    assert (np.delete(picture.reshape(9, 3), 4, axis=0) == 100).all()


def test_tints_lie_below_all_outlines() -> None:
    image = np.zeros((20, 20), np.uint8)
    first, second = np.zeros((2, 20, 20), bool)
    first[2:12, 2:12] = True
    second[6:18, 6:18] = True
    layers = [
        Layer(region=Region.from_mask(first), colour=ORANGE),
        Layer(region=Region.from_mask(second), colour=HUES["blue"], fill=0.5, outline=0),
    ]
    assert (overlay(image, layers)[outline(first)] == ORANGE).all()


def test_casing_is_a_dark_line_within_the_outline() -> None:
    image = np.full((20, 20), 200, np.uint8)
    mask = np.zeros((20, 20), bool)
    mask[4:16, 4:16] = True
    picture = overlay(image, [Layer(region=Region.from_mask(mask), colour=ORANGE, outline=1, casing=1)])
    assert picture[10, 4:8].tolist() == [list(ORANGE), list(INK), [200] * 3, [200] * 3]
    assert (picture[~mask] == 200).all()


def test_outlines_stay_crisp_when_scaled() -> None:
    image = np.zeros((64, 64), np.uint8)
    mask = np.zeros((64, 64), bool)
    mask[16:48, 16:48] = True
    layer = Layer(region=Region.from_mask(mask), colour=ORANGE, outline=1)

    picture = overlay(image, [layer], size=Size(width=128, height=128))

    # A line of one pixel, of no other colour, around a square of twice the side.
    coloured = picture.any(axis=2)
    assert coloured.sum() == 4 * 63
    assert (picture[coloured] == ORANGE).all()


def test_thin_line_is_kept_on_a_thumbnail() -> None:
    mask = np.zeros((512, 512), bool)
    mask[:, 200] = True
    small = scale_mask(mask, Size(width=64, height=64))
    assert small.shape == (64, 64)
    assert small[:, 25].all()
    assert small.sum() == 64


def test_region_of_another_size_is_refused() -> None:
    layer = Layer(region=Region.from_mask(blob()), colour=ORANGE)
    with pytest.raises(RegionError, match=r"56 x 40 .* 10 x 20"):
        overlay(np.zeros((20, 10), np.uint8), [layer])


def test_overlay_changes_no_input_and_is_the_same_every_time() -> None:
    image = np.random.default_rng(3).integers(0, 256, (40, 56), dtype=np.uint8)
    before = image.copy()
    layers = [Layer(region=Region.from_mask(blob()), colour=ORANGE, fill=0.3, outline=2, dash=3, casing=1)]
    first = overlay(image, layers, size=Size(width=100, height=71))
    assert first.tobytes() == overlay(image, layers, size=Size(width=100, height=71)).tobytes()
    np.testing.assert_array_equal(image, before)


def test_region_continues_beyond_a_cut_side() -> None:
    mask = np.zeros((30, 30), bool)
    mask[5:25, 5:25] = True
    image = np.zeros((15, 12), np.uint8)
    part = Layer(region=Region.from_mask(mask[:15, 8:20]), colour=ORANGE, outline=2)

    picture = overlay(image, [part], cut=Cut(left=True, right=True, bottom=True))

    # Within this part the square has only its upper side.
    np.testing.assert_array_equal(picture.any(axis=2), outline(mask, width=2)[:15, 8:20])
    assert picture.any(axis=2).sum() == 2 * 12


def test_cut_opens_only_the_sides_that_a_region_reaches() -> None:
    mask = np.zeros((20, 20), bool)
    mask[4:16, 0:10] = True
    layer = Layer(region=Region.from_mask(mask), colour=ORANGE, outline=1)
    picture = overlay(np.zeros((20, 20), np.uint8), [layer], cut=Cut(True, True, True, True))
    expected = outline(mask)
    expected[5:15, 0] = False
    np.testing.assert_array_equal(picture.any(axis=2), expected)
