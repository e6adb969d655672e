"""Several readers: their regions fused by a rule that is named, and what each says about presence."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carina.store.errors import CarinaError
from carina.studies import Annotation, Assessed, Finding, Region, Study
from carina.studies.readers import (
    FUSIONS,
    FusionRule,
    agree_with_others,
    box_iou,
    by_reader,
    fuse_boxes,
    fuse_readers,
    presence_votes,
)

HEIGHT, WIDTH = 12, 16


def region(x, y, w, h):
    return Region.from_box(x, y, w, h, height=HEIGHT, width=WIDTH)


def drawn(reader, shape, kind="mask", *, automatic=False):
    return Annotation(image="a.png", region=shape, drawn=kind, annotator=reader, automatic=automatic)


def fuse(rule, *annotations, readers=None):
    return fuse_readers(by_reader(annotations), rule, readers=readers).region


def test_three_readers_by_hand():
    # Columns 0-3, 2-5 and 3-8 of one row: 2 is marked by two, 3 by all, 4 and 5 by two.
    three = [drawn("A", region(0, 0, 4, 1)), drawn("B", region(2, 0, 4, 1)), drawn("C", region(3, 0, 6, 1))]
    expected = {
        FusionRule(): (0, 9),
        FusionRule(fusion="consensus"): (2, 4),
        FusionRule(fusion="consensus", at_least=1): (0, 9),
        FusionRule(fusion="consensus", at_least=3): (3, 1),
        FusionRule(fusion="intersection"): (3, 1),
        FusionRule(fusion="first"): (0, 4),
    }
    for rule, (left, width) in expected.items():
        assert fuse(rule, *three) == region(left, 0, width, 1), rule


def test_a_reader_who_drew_nothing_counts_for_the_consensus():
    two = [drawn("A", region(0, 0, 4, 4)), drawn("B", region(2, 0, 4, 4))]
    rule = FusionRule(fusion="consensus")
    assert fuse(rule, *two, readers=3) == region(2, 0, 2, 4)
    # One of three is no majority.
    assert fuse(rule, two[0], readers=3).is_empty
    assert fuse(FusionRule(fusion="consensus", at_least=1), two[0], readers=3) == two[0].region


def test_boxes_that_overlap_enough_become_one_with_mean_corners():
    # A and B share 8 x 10 of 12 x 10 columns: IoU 80 / 120.
    boxes = [("A", (0, 0, 10, 10)), ("B", (2, 0, 12, 10)), ("C", (40, 0, 50, 10))]
    assert fuse_boxes(boxes, overlap=0.6) == [(1, 0, 11, 10), (40, 0, 50, 10)]
    assert fuse_boxes(boxes, overlap=0.6, needed=2) == [(1, 0, 11, 10)]
    assert fuse_boxes(boxes, overlap=0.7) == [(0, 0, 10, 10), (2, 0, 12, 10), (40, 0, 50, 10)]
    # The mean of A and B, 1 to 11, shares 9 of 11 columns with a third box.
    third = ("D", (2, 0, 12, 10))
    assert fuse_boxes([*boxes, third], overlap=0.6, needed=3) == [pytest.approx((4 / 3, 0, 34 / 3, 10))]


def test_two_boxes_of_one_reader_are_two_things():
    own = [("A", (0, 0, 10, 10)), ("A", (1, 0, 11, 10))]
    assert fuse_boxes(own) == [(0, 0, 10, 10), (1, 0, 11, 10)]
    # B's box joins the one that it overlaps most.
    assert fuse_boxes([*own, ("B", (2, 0, 12, 10))]) == [(0, 0, 10, 10), (1.5, 0, 11.5, 10)]


def test_weighted_boxes_need_boxes():
    with pytest.raises(CarinaError, match="weighted-boxes: A drew a mask"):
        fuse(
            FusionRule(fusion="weighted-boxes"),
            drawn("A", region(0, 0, 4, 4)),
            drawn("B", region(0, 0, 4, 4), "box"),
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fusion": "mean"}, "readers 'mean'"),
        ({"at_least": 2}, "at_least 2: is for consensus"),
        ({"fusion": "consensus", "at_least": 0}, "at_least 0"),
        ({"box_overlap": 0}, "box_overlap 0"),
        ({"box_overlap": 1.5}, r"box_overlap 1\.5"),
    ],
)
def test_a_wrong_rule_is_refused(options, message):
    with pytest.raises(CarinaError, match=message):
        FusionRule(**options)


MASKS = st.lists(
    st.integers(0, 2 ** (HEIGHT * WIDTH) - 1).map(
        lambda bits: Region.from_mask(
            np.array([bits >> place & 1 for place in range(HEIGHT * WIDTH)], bool).reshape(HEIGHT, WIDTH)
        )
    ),
    min_size=1,
    max_size=5,
)
BOXES = st.lists(
    st.tuples(
        st.sampled_from("ABC"), st.integers(0, 8), st.integers(0, 6), st.integers(1, 7), st.integers(1, 6)
    ),
    min_size=1,
    max_size=7,
)


@given(MASKS)
def test_union_holds_consensus_and_consensus_holds_intersection(shapes):
    annotations = [drawn(f"R{number}", shape) for number, shape in enumerate(shapes)]
    union, consensus, shared = (
        fuse(FusionRule(fusion=name), *annotations) for name in ("union", "consensus", "intersection")
    )
    assert consensus.difference(union).is_empty
    assert shared.difference(consensus).is_empty
    marked = np.sum([shape.to_mask() for shape in shapes], axis=0)
    assert (consensus.to_mask() == (2 * marked > len(shapes))).all()


@given(MASKS, st.randoms(use_true_random=False))
def test_the_order_of_masks_and_the_names_of_readers_do_not_matter(shapes, chance):
    names = [f"R{number}" for number in range(len(shapes))]
    other = chance.sample(names, len(names))
    for fusion in ("union", "consensus", "intersection"):
        rule = FusionRule(fusion=fusion)
        expected = fuse(rule, *map(drawn, names, shapes))
        assert fuse(rule, *map(drawn, other, shapes)) == expected


@given(BOXES, st.permutations("ABC"), st.floats(0.05, 1), st.integers(1, 3))
def test_the_order_of_boxes_and_the_names_of_readers_do_not_matter(boxes, names, overlap, needed):
    given_boxes = [(reader, (x, y, x + w, y + h)) for reader, x, y, w, h in boxes]
    renamed = dict(zip("ABC", names, strict=True))
    other = [(renamed[reader], corners) for reader, corners in reversed(given_boxes)]
    assert fuse_boxes(other, overlap=overlap, needed=needed) == fuse_boxes(
        given_boxes, overlap=overlap, needed=needed
    )


@given(BOXES)
def test_one_reader_stays_as_drawn(boxes):
    own = [drawn("A", region(*corners), "box") for _, *corners in boxes]
    whole = own[0].region.union(*(one.region for one in own[1:]))
    for name in FUSIONS:
        assert fuse(FusionRule(fusion=name), *own) == whole
    given_boxes = [("A", (x, y, x + w, y + h)) for _, x, y, w, h in boxes]
    assert fuse_boxes(given_boxes) == sorted(corners for _, corners in given_boxes)


@given(BOXES, BOXES)
def test_iou_of_boxes_is_that_of_their_regions(one, other):
    for _, x, y, w, h in one:
        for _, left, top, wide, high in other:
            by_corners = box_iou((x, y, x + w, y + h), (left, top, left + wide, top + high))
            first, second = (
                Region.from_box(*corners, height=20, width=20)
                for corners in ((x, y, w, h), (left, top, wide, high))
            )
            assert by_corners == pytest.approx(first.iou(second))


def make_study(*findings, **assessed):
    return Study(
        id="s", patient="p", source="made", images=(), findings=findings, assessed=Assessed(**assessed)
    )


def test_votes_come_from_statements_and_drawings_of_readers_who_looked():
    mass = Finding(
        id="f1",
        name="mass",
        certainty="present",
        stated_by=("R1",),
        annotations=(drawn("R2", region(0, 0, 2, 2)),),
    )
    looked = {"findings": "listed", "listed": ("mass", "edema"), "readers": ("R3", "R1", "R2")}
    study = make_study(mass, **looked)
    assert presence_votes(study, "mass") == {"R1": True, "R2": True, "R3": False}
    assert presence_votes(study, "edema") == {"R1": False, "R2": False, "R3": False}
    # Nobody looked for a fracture, and without names nobody's opinion is known.
    assert presence_votes(study, "fracture") == {}
    assert presence_votes(make_study(mass, findings="every"), "mass") == {}


def test_a_reader_is_compared_with_most_of_the_others():
    assert agree_with_others({"A": True, "B": False}) == {"A": 0, "B": 0}
    # A and B each have one for and one against them; C has two against.
    assert agree_with_others({"A": True, "B": True, "C": False}) == {"A": 0.5, "B": 0.5, "C": 0}
    assert agree_with_others({"A": False, "B": False, "C": False}) == {"A": 1, "B": 1, "C": 1}
    assert agree_with_others({"A": True}) == {}
