import numpy as np

from carina.cases.draw import (
    GAP,
    HUES,
    PANEL,
    LegendEntry,
    Panel,
    Size,
    blank,
    fit_size,
    join_panels,
    legend,
    line_height,
    montage,
    stack,
    wrap,
)


def test_fit_size_keeps_the_shape() -> None:
    assert fit_size(Size(width=2000, height=1000), Size(width=300, height=300)) == (300, 150)
    assert fit_size(Size(width=100, height=400), Size(width=800, height=800)) == (200, 800)


def test_panels_are_centred_in_their_cells() -> None:
    image = np.full((50, 100), 200, np.uint8)
    sheet = montage([Panel(image=image)] * 3, columns=2, cell=Size(width=100, height=100))
    assert sheet.shape == (2 * (100 + GAP) + GAP, 2 * (100 + GAP) + GAP, 3)
    bright = (sheet == 200).all(axis=2)
    assert bright.sum() == 3 * image.size
    assert bright[GAP + 25 : GAP + 75, GAP : GAP + 100].all()
    assert (sheet[~bright] == PANEL).all()


def test_captions_stand_below_their_panels() -> None:
    image = np.zeros((20, 20), np.uint8)
    cell = Size(width=80, height=80)
    sheet = montage([Panel(image=image, caption="PA, a caption too long for its cell")], columns=1, cell=cell)
    below = sheet[GAP + 80 :]
    assert below.shape[0] == line_height(15) + 6 + GAP
    written = (below != PANEL).any(axis=2)
    assert written.any()
    assert not written[:, GAP + 80 :].any()


def test_legend_wraps_into_lines() -> None:
    entries = [LegendEntry(text=name, colour=colour) for name, colour in HUES.items()]
    wide, narrow = legend(entries, width=1200), legend(entries, width=300)
    assert wide.shape[0] < narrow.shape[0]
    for sheet in (wide, narrow):
        for colour in HUES.values():
            assert (sheet == colour).all(axis=2).sum() >= 15 * 15
    assert legend([], width=300).shape == (0, 300, 3)


def test_stacked_images_have_the_largest_width() -> None:
    sheet = stack([blank(Size(width=10, height=4), HUES["blue"]), blank(Size(width=30, height=5), PANEL)])
    assert sheet.shape == (9, 30, 3)
    assert (sheet[:4, :10] == HUES["blue"]).all()
    assert (sheet[:4, 10:] == PANEL).all()


def test_joined_panels_keep_their_pixels() -> None:
    rng = np.random.default_rng(1)
    wide = rng.integers(0, 256, (30, 90), dtype=np.uint8)
    tall = rng.integers(0, 256, (70, 40, 3), dtype=np.uint8)
    sheet = join_panels([Panel(image=wide), Panel(image=tall)])
    assert sheet.shape == (70 + 2 * GAP, 90 + 40 + 3 * GAP, 3)
    left, right = sheet[GAP : GAP + 30, GAP : GAP + 90], sheet[GAP : GAP + 70, 2 * GAP + 90 : -GAP]
    assert (left == wide[:, :, None]).all()
    assert (right == tall).all()
    left[:], right[:] = PANEL, PANEL
    assert (sheet == PANEL).all()


def test_long_caption_is_wrapped_below_its_image() -> None:
    image = np.zeros((20, 100), np.uint8)
    caption = "Chest radiograph of three months before, taken lying"
    lines = len(wrap(caption, width=100, size=15))
    assert lines >= 3
    sheet = join_panels([Panel(image=image, caption=caption), Panel(image=image)])
    assert sheet.shape[0] == 20 + 6 + lines * line_height(15) + 2 * GAP
    written = (sheet[GAP + 20 :] != PANEL).any(axis=2)
    assert written[: 5 + line_height(15)].any()
    assert written[5 + (lines - 1) * line_height(15) :].any()
    assert not written[:, GAP + 100 :].any()
