"""The figure of a contour difference: true border, shown border, and the areas between them."""

import msgspec
import numpy as np
from tests.pages import percept_cases as like

from carina.cases import Fact
from carina.cases.draw import WHITE, Rgb
from carina.pages.contour_difference import EXCESS, MISSING, SHOWN_BORDER, contour_difference

SIDE = 400


def drawn(bench, case) -> Rgb:
    """The pixels of the figure."""
    pixels: dict[str, Rgb] = {}
    made = contour_difference(bench, case, pixels)
    assert made is not None
    return pixels[made.figure.id]


def of_colour(pixels: Rgb, colour: tuple[int, ...]) -> np.ndarray:
    return (pixels == colour).all(axis=2)


def test_excess_is_at_the_base_and_missing_area_at_the_top() -> None:
    case = like.rr_case(SIDE)
    pixels = drawn(like.bench_of(case), case)
    # The window is centred on the masks, 1.3 times as long as their height, and enlarged to 900 pixels.
    assert pixels.shape == (900, 900, 3)
    excess, missing = (np.argwhere(of_colour(pixels, entry.colour)) for entry in (EXCESS, MISSING))
    assert len(excess) > 2000
    assert len(missing) > 1000
    assert missing[:, 0].max() < excess[:, 0].min()
    assert of_colour(pixels, WHITE).sum() > 1000
    assert of_colour(pixels, SHOWN_BORDER.colour).sum() > 500


def test_hatches_of_excess_and_missing_area_differ_in_direction() -> None:
    case = like.rr_case(SIDE)
    pixels = drawn(like.bench_of(case), case)
    for entry, step in ((EXCESS, (1, -1)), (MISSING, (1, 1))):
        inked = of_colour(pixels, entry.colour)
        along = (inked & np.roll(inked, step, axis=(0, 1))).sum() / inked.sum()
        across = (inked & np.roll(inked, (step[0], -step[1]), axis=(0, 1))).sum() / inked.sum()
        assert along > 0.9
        assert across < 0.6


def test_edits_give_their_point_and_the_revision_they_need() -> None:
    case = like.rr_case(SIDE)
    edits = contour_difference(like.bench_of(case), case, {}).edits
    assert [(edit.operation, edit.revision, edit.mark) for edit in edits] == [
        ("expansion", "contraction", "2"),
        ("contraction", "expansion", "3"),
    ]
    assert [row.name for row in edits[0].facts.margins] == ["changed share", "changed area"]


def test_legend_lists_only_what_is_drawn() -> None:
    case = like.rr_case(SIDE)
    assert [item.name for item in contour_difference(like.bench_of(case), case, {}).legend] == [
        "true",
        "shown",
        "excess",
        "missing",
    ]
    shown_as_drawn = (
        Fact(name="role", about="r3", text="shown"),
        Fact(name="role", about="r6", text="truth"),
    )
    same = contour_difference(like.bench_of(case), msgspec.structs.replace(case, facts=shown_as_drawn), {})
    assert [item.name for item in same.legend] == ["true", "shown"]
    assert same.edits == ()


def test_wide_masks_are_shown_whole() -> None:
    case = like.rr_case(SIDE)
    wide = tuple(
        msgspec.structs.replace(region, region=like.Region.from_box(5, 90, 390, 20, height=200, width=SIDE))
        for region in case.regions
    )
    flat = msgspec.structs.replace(
        case,
        images=(msgspec.structs.replace(case.images[0], height=200),),
        regions=wide,
        facts=case.facts[:6],
    )
    pixels = drawn(like.bench_of(flat, image=np.zeros((200, SIDE), np.uint8)), flat)
    assert pixels.shape == (450, 900, 3)
    across = np.argwhere(of_colour(pixels, WHITE))[:, 1]
    assert across.min() < 20
    assert across.max() > 880


def test_case_without_true_and_shown_mask_has_no_difference() -> None:
    case = like.rr_case(SIDE)
    for facts in (
        (),
        (Fact(name="role", about="r1", text="shown"),),
        (Fact(name="role", about="gone", text="truth"),),
    ):
        assert contour_difference(like.bench_of(case), msgspec.structs.replace(case, facts=facts), {}) is None
