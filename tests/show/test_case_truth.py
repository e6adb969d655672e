"""The picture that explains a case: the border that is true, the one that is shown, and the areas between them."""

import importlib.util
from pathlib import Path

import msgspec
import numpy as np

from carina.cases import Fact
from carina.draw import WHITE, Rgb
from carina.show.case_truth import EXCESS, MISSING, SHOWN, explanation

spec = importlib.util.spec_from_file_location("percept_like", Path(__file__).with_name("percept_like.py"))
like = importlib.util.module_from_spec(spec)
spec.loader.exec_module(like)

SIDE = 400


def of_colour(picture: Rgb, colour: tuple[int, ...]) -> np.ndarray:
    return (picture == colour).all(axis=2)


def test_too_much_lies_at_the_base_and_too_little_at_the_top() -> None:
    case = like.rr_case(SIDE)
    made = explanation(like.bench_of(case), case)
    assert made is not None
    picture = made.picture.pixels
    # The window is centred on the masks, 1.3 times as long as their height, and enlarged to 900 pixels.
    assert picture.shape == (900, 900, 3)
    excess, missing = (np.argwhere(of_colour(picture, entry.colour)) for entry in (EXCESS, MISSING))
    assert len(excess) > 2000
    assert len(missing) > 1000
    assert missing[:, 0].max() < excess[:, 0].min()
    assert of_colour(picture, WHITE).sum() > 1000
    assert of_colour(picture, SHOWN.colour).sum() > 500


def test_hatches_of_the_two_differ_in_direction() -> None:
    case = like.rr_case(SIDE)
    picture = explanation(like.bench_of(case), case).picture.pixels
    for entry, step in ((EXCESS, (1, -1)), (MISSING, (1, 1))):
        inked = of_colour(picture, entry.colour)
        along = (inked & np.roll(inked, step, axis=(0, 1))).sum() / inked.sum()
        across = (inked & np.roll(inked, (step[0], -step[1]), axis=(0, 1))).sum() / inked.sum()
        assert along > 0.9
        assert across < 0.6


def test_the_edits_name_their_point_and_what_undoes_them() -> None:
    case = like.rr_case(SIDE)
    edits = explanation(like.bench_of(case), case).edits
    assert [(edit.done, edit.wanted, edit.mark) for edit in edits] == [
        ("expansion", "contraction", "2"),
        ("contraction", "expansion", "3"),
    ]
    assert [row.name for row in edits[0].facts.margins] == ["changed share", "changed area"]


def test_the_legend_names_only_what_is_there() -> None:
    case = like.rr_case(SIDE)
    assert [sign.name for sign in explanation(like.bench_of(case), case).legend] == [
        "true",
        "shown",
        "excess",
        "missing",
    ]
    shown_as_drawn = (
        Fact(name="role", about="r3", text="shown"),
        Fact(name="role", about="r6", text="truth"),
    )
    same = explanation(like.bench_of(case), msgspec.structs.replace(case, facts=shown_as_drawn))
    assert [sign.name for sign in same.legend] == ["true", "shown"]
    assert same.edits == ()


def test_masks_wider_than_the_image_is_high_are_shown_whole() -> None:
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
    picture = explanation(like.bench_of(flat, image=np.zeros((200, SIDE), np.uint8)), flat).picture.pixels
    assert picture.shape == (450, 900, 3)
    across = np.argwhere(of_colour(picture, WHITE))[:, 1]
    assert across.min() < 20
    assert across.max() > 880


def test_without_a_true_and_a_shown_mask_nothing_is_explained() -> None:
    case = like.rr_case(SIDE)
    for facts in (
        (),
        (Fact(name="role", about="r1", text="shown"),),
        (Fact(name="role", about="gone", text="truth"),),
    ):
        assert explanation(like.bench_of(case), msgspec.structs.replace(case, facts=facts)) is None
