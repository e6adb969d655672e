"""Analysed lesions: what is stored leads from the shown contour to the right one, pixel by pixel."""

from collections import Counter

import msgspec
import numpy as np
import pytest
from scipy import ndimage

from carina.percept.analysis import analyse_lesion, frontal_image, subject_of
from carina.percept.lesions import LESIONS
from carina.percept.records import LesionAnalysis, Skipped
from carina.percept.rules import Ineligible, Rules
from carina.percept.truth import FusedMasks, masks_as_drawn
from carina.studies import Image, Region
from carina.studies.readers import FusionRule

RULES = Rules()
replace = msgspec.structs.replace


def test_the_fixture_has_lesions_of_every_kind(analyses):
    targets = Counter(one.target for one in analyses)
    assert targets["edema"] >= 8
    assert targets["cardiomegaly"] >= 2
    assert len(targets) >= 4
    asked = {frozenset(edit.operation for edit in one.edits) for one in analyses}
    assert len(asked) == 3


def test_stored_regions_keep_the_bands(analyses):
    for one in analyses:
        truth, revised, shown = (region.to_mask() for region in (one.truth, one.revised, one.shown))
        assert (revised & truth).sum() / (revised | truth).sum() == pytest.approx(one.agreement)
        assert one.agreement >= RULES.good_iou
        assert (shown & truth).sum() / (shown | truth).sum() == pytest.approx(one.overlap)
        assert RULES.revise_low <= one.overlap <= RULES.revise_high
        assert one.area == truth.sum()
        assert one.share == truth.mean()
        assert one.scale == max(truth.shape) / 1024


def test_the_edits_are_the_difference_between_shown_and_revised(analyses):
    for one in analyses:
        shown, revised = one.shown.to_mask(), one.revised.to_mask()
        pieces, count = ndimage.label(shown ^ revised, np.ones((3, 3)))
        assert count == len(one.edits)
        held = set()
        for edit in one.edits:
            row, column = int(edit.point[1]), int(edit.point[0])
            assert edit.point == (column + 0.5, row + 0.5)
            piece = pieces == pieces[row, column]
            assert pieces[row, column] > 0
            held.add(pieces[row, column])
            assert edit.area == piece.sum()
            assert edit.share == pytest.approx(piece.sum() / one.area)
            assert edit.share >= RULES.edit_share
            # The contour was pushed out where shown is larger than it should be.
            assert shown[row, column] == (edit.operation == "expansion")
        assert len(held) == count


def test_points_lie_apart_and_away_from_changes(analyses):
    for one in analyses:
        shown, revised = one.shown.to_mask(), one.revised.to_mask()
        far = ndimage.distance_transform_edt(shown == revised)
        places = np.array([placed.point for placed in (*one.edits, *one.points)])
        gaps = np.linalg.norm(places[:, None] - places[None], axis=2) + 1e9 * np.eye(len(places))
        assert gaps.min() >= RULES.point_gap * one.scale
        assert RULES.min_points <= len(places) <= RULES.max_points
        assert sum(not placed.inside for placed in one.points) >= RULES.min_outside
        for placed in one.points:
            row, column = int(placed.point[1]), int(placed.point[0])
            assert shown[row, column] == placed.inside
            assert far[row, column] >= 0.97 * RULES.change_gap * one.scale


def test_all_lesions_except_cardiomegaly_have_attributes(analyses):
    for one in analyses:
        assert (one.attributes is None) == (one.target == "cardiomegaly")
        if one.attributes is None:
            continue
        assert 1 <= len(one.attributes.affected) <= 6
        assert one.attributes.locations
        for right, choice in one.attributes.locations.items():
            assert (len(choice.right), len(choice.wrong)) == (right, 3 - right)
            assert all(share <= RULES.option_overlap for _, _, share in choice.overlaps)
            assert len(choice.overlaps) == 3
            assert all(one.attributes.regions[name] >= RULES.region.high for name in choice.right)
            assert all(one.attributes.regions[name] <= RULES.region.low for name in choice.wrong)


def test_the_same_seed_gives_the_same_analysis_and_another_seed_another_one(chest):
    drawn = chest.study(chest.finding("edema", chest.lesions()["lower"]))
    one, same = (analyse_lesion(drawn, "edema", seed=1, rules=RULES) for _ in range(2))
    assert isinstance(one, LesionAnalysis)
    assert one == same
    assert analyse_lesion(drawn, "edema", seed=2, rules=RULES) != one
    # Neither do other studies, findings or the name of the file matter.
    more = replace(drawn, findings=(*drawn.findings, chest.finding("cardiomegaly", number=2)), split="test")
    again = analyse_lesion(more, "edema", seed=1, rules=RULES)
    assert again.shown == one.shown
    assert again.subject.split == "test"


def test_an_analysis_survives_encoding_and_decoding(analyses):
    for one in analyses[:3]:
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(one), type=LesionAnalysis) == one


def reason(study, target="edema"):
    outcome = analyse_lesion(study, target, seed=1, rules=RULES)
    assert isinstance(outcome, Skipped), outcome
    assert (outcome.study, outcome.target) == (study.id, target)
    return outcome.reason, outcome.detail


def test_ineligible_studies_have_a_reason(chest):
    mask = chest.lesions()["lower"]
    of = lambda *findings, **more: reason(chest.study(*findings, **more))  # noqa: E731
    good = chest.finding("edema", mask)
    assert isinstance(analyse_lesion(chest.study(good), "edema", seed=1, rules=RULES), LesionAnalysis)
    assert of(good, fields=())[0] == "no lungs"
    assert of(chest.finding("edema", np.zeros_like(mask))) == ("empty mask", "the lesion has no pixel")
    one = np.zeros_like(mask)
    one[180, 75] = True
    assert of(chest.finding("edema", one)) == ("lesion too small", "1 px, at least 125 needed")
    assert of(chest.finding("edema", Region.full(300, 256))) == (
        "region outside its image",
        "finding 'f1' is of an image of 256 x 300, the image is 256 x 256",
    )
    assert of(chest.finding("edema", mask, drawn="box"))[0] == "drawn as a box"
    assert of(chest.finding("edema")) == ("not drawn", "finding 'f1' has no region on 's1.png'")
    broken = Region(256, 256, Region.from_mask(mask).counts[:-3])
    assert of(chest.finding("edema", broken))[0] == "damaged region"
    assert of(good, view="lateral") == ("no frontal image", "views: lateral")


def test_a_question_on_a_cut_is_not_asked_and_the_lesion_is_kept(chest):
    # Half of one lung and a third more on the other side: neither similar nor clearly larger.
    right, left = chest.lungs()
    rows = np.arange(256)[:, None]
    drawn = chest.study(chest.finding("edema", (right & (rows > 130)) | (left & (rows > 150))))
    one = analyse_lesion(drawn, "edema", seed=1, rules=RULES)
    assert one.attributes.comparison is None
    assert one.attributes.not_asked == {"comparison": "size ratio on a cut: 1.57"}
    assert (one.attributes.distribution, set(one.attributes.severity)) == ("3", {"right"})


def test_all_findings_of_a_name_are_one_lesion_by_one_annotator(chest):
    right, left = (chest.lesions()["lower"] & lung for lung in chest.lungs())
    both = chest.study(chest.finding("edema", right), chest.finding("edema", left, number=2))
    one = analyse_lesion(both, "edema", seed=1, rules=RULES)
    np.testing.assert_array_equal(one.truth.to_mask(), right | left)
    assert (one.provenance, one.reviewed) == ("drawn by reader", True)
    by_two = chest.study(
        chest.finding("edema", right, annotator="a"), chest.finding("edema", left, number=2, annotator="b")
    )
    assert reason(by_two) == ("not drawn", "no annotator has drawn every finding of the name")


def test_a_lesion_is_as_conspicuous_as_the_piece_that_is_seen_best(chest):
    right, left = (chest.lesions()["lower"] & lung for lung in chest.lungs())
    pieces = [chest.finding("edema", right), chest.finding("edema", left, number=2)]

    def seen(*values):
        known = [
            replace(piece, annotations=tuple(replace(one, conspicuity=value) for one in piece.annotations))
            for piece, value in zip(pieces, values, strict=True)
        ]
        return analyse_lesion(chest.study(*known), "edema", seed=1, rules=RULES).conspicuity

    assert [seen(1.5, 2.5), seen(1.5, None), seen(None, None)] == [2.5, 1.5, None]


def test_absent_and_uncertain_findings_draw_nothing(chest):
    right, left = (chest.lesions()["bilateral"] & lung for lung in chest.lungs())
    drawn = chest.study(
        chest.finding("edema", right | left),
        chest.finding("edema", ~right, number=2, certainty="absent"),
        chest.finding("edema", ~right, number=3, certainty="uncertain"),
    )
    assert analyse_lesion(drawn, "edema", seed=1, rules=RULES).truth.to_mask().sum() == (right | left).sum()


def test_the_first_frontal_image_is_asked_about(chest):
    drawn = chest.study(view="AP")
    side = Image(key="side.png", view="lateral", width=10, height=10)
    assert frontal_image(replace(drawn, images=(side, *drawn.images))).key == "s1.png"
    subject = subject_of(replace(drawn, images=(side, *drawn.images)))
    assert (subject.study, subject.patient) == ("s1", "p-s1")
    assert (subject.image.key, subject.image.view) == ("s1.png", "AP")
    with pytest.raises(Ineligible, match="views: none"):
        frontal_image(replace(drawn, images=()))


@pytest.mark.parametrize("target", LESIONS)
def test_every_lesion_of_the_protocol_can_be_analysed(chest, target):
    mask = chest.lesions()["lower"] if LESIONS[target].in_lungs else chest.ellipse(135, 170, 50, 40)
    outcomes = [
        analyse_lesion(
            chest.study(chest.finding(LESIONS[target].finding, mask), name=f"n{n}"),
            target,
            seed=1,
            rules=RULES,
        )
        for n in range(4)
    ]
    assert any(isinstance(outcome, LesionAnalysis) for outcome in outcomes), outcomes


def test_an_annotator_who_drew_one_finding_twice_has_not_drawn_all(chest):
    right, left = chest.ellipse(75, 130, 25, 40), chest.ellipse(184, 130, 25, 40)
    upper, lower = right.copy(), right.copy()
    upper[130:], lower[:130] = False, False
    twice = chest.study(
        chest.finding("edema", upper, lower, annotator="a"),
        chest.finding("edema", left, number=2, annotator="b"),
    )
    assert reason(twice) == ("not drawn", "no annotator has drawn every finding of the name")


def test_annotators_who_have_drawn_the_lesion_must_agree(chest):
    large, small = chest.ellipse(75, 130, 35, 60), chest.ellipse(75, 130, 18, 30)
    first = chest.finding("edema", large, annotator="a")
    second = chest.finding("edema", small, annotator="b")
    both = msgspec.structs.replace(first, annotations=(*first.annotations, *second.annotations))
    told, detail = reason(chest.study(both))
    assert told == "annotators disagree"
    # Two ellipses of which one has half the axes: a quarter of the area.
    assert detail == "a and b overlap by 0.26"


@pytest.mark.parametrize(
    ("fusion", "expected"),
    [("union", "large"), ("consensus", "middle"), ("intersection", "small"), ("consensus 1", "large")],
)
def test_masks_of_several_readers_become_one_by_a_rule(chest, fusion, expected):
    masks = {
        name: chest.ellipse(75, 130, wide, high)
        for name, wide, high in (("large", 35, 60), ("middle", 25, 45), ("small", 18, 30))
    }
    findings = [chest.finding("edema", mask, annotator=name) for name, mask in masks.items()]
    drawn = tuple(one for finding in findings for one in finding.annotations)
    study = chest.study(msgspec.structs.replace(findings[0], annotations=drawn))
    name, _, at_least = fusion.partition(" ")
    rule = FusionRule(fusion=name, at_least=int(at_least) if at_least else None)
    truth = FusedMasks(rule)(study, study.images[0], LESIONS["edema"])
    assert (truth.mask == masks[expected]).all()
    assert truth.provenance.startswith(
        f"drawn by large, middle, small; {rule.describe(3)}, who overlap by 0."
    )


def drawn_by(chest, *drawers):
    """A study whose edema several annotators drew alike; of each, the name and whether it is a program."""
    mask = chest.ellipse(75, 130, 35, 60)
    findings = [chest.finding("edema", mask, annotator=name) for name, _ in drawers]
    drawn = tuple(
        msgspec.structs.replace(one, automatic=automatic)
        for finding, (_, automatic) in zip(findings, drawers, strict=True)
        for one in finding.annotations
    )
    return chest.study(msgspec.structs.replace(findings[0], annotations=drawn))


@pytest.mark.parametrize("source", [masks_as_drawn, FusedMasks(FusionRule(fusion="union"))])
def test_a_mask_by_a_program_is_never_called_reviewed(chest, source):
    study = drawn_by(chest, ("segmenter", True))
    truth = source(study, study.images[0], LESIONS["edema"])
    assert (truth.provenance, truth.reviewed) == ("drawn by a program (segmenter); not reviewed", False)
    study = drawn_by(chest, ("segmenter", True), ("zoe", False))
    truth = source(study, study.images[0], LESIONS["edema"])
    assert (truth.provenance, truth.reviewed) == ("drawn by zoe", True)


def test_readers_who_share_no_pixel_leave_no_lesion(chest):
    findings = [
        chest.finding("edema", chest.ellipse(x, 130, 20, 30), annotator=name)
        for x, name in ((75, "a"), (184, "b"))
    ]
    drawn = tuple(one for finding in findings for one in finding.annotations)
    study = chest.study(msgspec.structs.replace(findings[0], annotations=drawn))
    with pytest.raises(Ineligible, match="share no pixel"):
        FusedMasks(FusionRule(fusion="consensus"))(study, study.images[0], LESIONS["edema"])


def test_a_lesion_under_another_dense_finding_is_ineligible(chest):
    mask = chest.ellipse(75, 130, 30, 50)
    half = mask.copy()
    half[130:] = False
    hidden = chest.study(chest.finding("edema", mask), chest.finding("lung opacity", half, number=2))
    assert reason(hidden) == ("overlaps another finding", "lung opacity covers 50% of it")
    # What is dense stands out from haze.
    dense = chest.study(chest.finding("consolidation", mask), chest.finding("edema", half, number=2))
    outcome = analyse_lesion(dense, "consolidation", seed=1, rules=RULES)
    assert getattr(outcome, "reason", "") != "overlaps another finding"
