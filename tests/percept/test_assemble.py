"""Cases as they are asked: sound, of the right length, and telling nothing but what they ask."""

import re
from collections import Counter
from itertools import pairwise

import msgspec
import numpy as np
import pytest
from scipy import ndimage

from carina.cases import without_keys
from carina.cases.draw import MARKS
from carina.cases.faults import faults
from carina.percept import wording
from carina.percept.anatomy import REGIONS
from carina.percept.assemble import case_id, make_lesion_case, make_lesion_free_case
from carina.percept.facts import PerceptCaseFacts, PerceptStepFacts
from carina.percept.lesions import LESIONS
from carina.percept.rules import Rules
from carina.percept.select import assign_key_positions, choose_masks
from carina.percept.steps import shuffle_with_first_at
from carina.store.seeding import rng

RULES = Rules()
CALLS = {"RR": 9, "RF": 6, "LF": 1}
CALLS_OF_HEARTS = {"RR": 5, "RF": 2, "LF": 1}
ORDER = {
    "LF": ["1"],
    "RF": ["1", "2", "4a", "4b", "4c", "4d"],
    "RR": ["1", "2", "3a", "3b", "3c", "4a", "4b", "4c", "4d"],
}


def made(one, path, index=0, seed=1):
    """The case of an analysed lesion on a path."""
    due = assign_key_positions(one.target, path, index, seed=seed)
    if path == "LF":
        return make_lesion_free_case(one.subject, one.target, seed=seed, rules=RULES, key_position=due)
    right = sorted(one.attributes.locations)[index % len(one.attributes.locations)] if one.attributes else 0
    (one,) = choose_masks([one], seed=seed)
    return make_lesion_case(one, path, right_regions=right, seed=seed, rules=RULES, key_position=due)


@pytest.fixture(scope="module")
def cases(analyses):
    """Every lesion on every path."""
    return [made(one, path, index) for index, one in enumerate(analyses) for path in ("LF", "RF", "RR")]


def of(cases, path):
    return [case for case in cases if case.path == path]


def roles(case):
    return PerceptCaseFacts.of(case).roles


def mask_of(case, role):
    (name,) = [name for name, there in roles(case).items() if there == role]
    return case.region(name).region.to_mask()


def test_cases_are_sound(cases):
    assert [(case.id, fault) for case in cases for fault in faults(case)] == []
    for case in cases:
        for holder in (case, *case.steps):
            for fact in holder.facts:
                assert fact.low is None or fact.low <= fact.value, (case.id, fact)
                assert fact.high is None or fact.value <= fact.high, (case.id, fact)


def test_a_case_stores_the_conspicuity_of_its_lesion_where_known(analyses):
    for known in (2.5, None):
        case = made(msgspec.structs.replace(analyses[0], conspicuity=known), "RF")
        assert PerceptCaseFacts.of(case).conspicuity == known


def test_the_declared_records_hold_every_fact_in_the_order_of_its_rows(cases):
    for case in cases:
        assert PerceptCaseFacts.of(case).rows() == case.facts
        for step in case.steps:
            assert PerceptStepFacts.of(step).rows() == step.facts


STEPS = {"distribution": "4a", "location": "4b", "severity": "4c", "comparison": "4d"}


def test_every_path_has_its_questions_in_order(cases):
    for case in cases:
        heart = case.target == "cardiomegaly"
        left_out = {STEPS[task] for task in PerceptCaseFacts.of(case).not_asked}
        assert len(case.steps) == (CALLS_OF_HEARTS if heart else CALLS)[case.path] - len(left_out)
        expected = [
            step for step in ORDER[case.path] if not (heart and step.startswith("4")) and step not in left_out
        ]
        assert [step.id for step in case.steps] == expected
        assert [step.stage for step in case.steps] == [int(step.id[0]) for step in case.steps]


def test_a_hundred_a_cell_make_2100_cases_and_10400_questions():
    hearts = sum(lesion.name == "cardiomegaly" for lesion in LESIONS.values())
    others = len(LESIONS) - hearts
    assert 100 * len(CALLS) * len(LESIONS) == 2100
    assert 100 * (others * sum(CALLS.values()) + hearts * sum(CALLS_OF_HEARTS.values())) == 10400


def test_tasks_formats_and_scores_are_those_of_the_protocol(cases):
    expected = {
        "1": ("detection", False, "exact"),
        "2": ("contour evaluation", False, "exact"),
        "3a": ("expansion", True, "set"),
        "3b": ("contraction", True, "set"),
        "3c": ("revision", False, "exact"),
        "4a": ("distribution", False, "exact"),
        "4b": ("location", True, "set"),
        "4c": ("severity", False, "exact"),
        "4d": ("comparison", False, "exact"),
    }
    for case in cases:
        for step in case.steps:
            assert (step.task, step.multiple, step.score) == expected[step.id]
            assert step.format == "choice"
            assert step.multiple or len(step.key.options) == 1


def test_presence_and_contour_are_keyed_by_the_path(cases):
    for case in cases:
        assert case.step("1").key.options == (("no",) if case.path == "LF" else ("yes",))
        if case.path != "LF":
            assert case.step("2").key.options == (("yes",) if case.path == "RR" else ("no",))


def test_questions_hold_their_options_word_for_word(cases):
    for case in cases:
        for step in case.steps:
            head, _, listed = step.question.partition("\nOptions:\n")
            assert head
            numbered = [f"({n}) {option.text}" for n, option in enumerate(step.options, start=1)]
            assert listed.split("\n") == numbered


def test_the_right_option_is_at_its_balanced_position(analyses):
    for one in analyses[:4]:
        for index in range(8):
            case = made(one, "RR", index)
            due = assign_key_positions(one.target, "RR", index, seed=1)
            for step in case.steps:
                if not step.multiple:
                    assert step.right == (due(step.id, len(step.options)) + 1,), step.id


def test_ordinal_options_are_rotated_in_rising_or_falling_order(analyses):
    ways = Counter()
    for one in analyses:
        if one.attributes is None:
            continue
        for seed in range(3):
            case = made(one, "RF", seed, seed)
            for step, names in (("4a", list(wording.ZONE_COUNTS)), ("4c", list(wording.SEVERITIES))):
                places = [names.index(option.id) for option in case.step(step).options]
                steps = {(b - a) % len(names) for a, b in pairwise(places)}
                assert steps in ({1}, {len(names) - 1})
                ways[step, steps.pop() == 1] += 1
    assert all(ways[step, up] for step in ("4a", "4c") for up in (True, False))


def revise(shown, revised, points):
    """What the revisions at these points make of the shown mask: at each, the whole error that the point lies in."""
    pieces, _ = ndimage.label(shown ^ revised, np.ones((3, 3)))
    after = shown.copy()
    for x, y, operation in points:
        piece = pieces == pieces[int(y), int(x)]
        assert pieces[int(y), int(x)] > 0, "a key point lies where nothing is wrong"
        # An expansion takes in what is not shown, a contraction gives up what is.
        assert (shown[piece] == (operation == "contraction")).all()
        after[piece] = operation == "expansion"
    return after


def key_points(case):
    marks = {mark.text: mark for mark in case.view("v3").panels[0].marks}
    return [
        (marks[option.mark].x, marks[option.mark].y, step.task)
        for step in (case.step("3a"), case.step("3b"))
        for option in step.options
        if option.id in step.key.options and option.id != "none"
    ]


def test_the_key_points_applied_to_the_shown_mask_lead_to_the_keyed_mask(cases):
    for case in of(cases, "RR"):
        shown = case.region(case.view("v2").panels[0].overlays[0].region).region.to_mask()
        (number,) = case.step("3c").right
        view = case.view(case.step("3c").options[number - 1].view)
        keyed = case.region(view.panels[0].overlays[0].region).region.to_mask()
        points = key_points(case)
        assert points
        np.testing.assert_array_equal(revise(shown, keyed, points), keyed)
        # None of them can be spared.
        for left_out in range(len(points)):
            some = points[:left_out] + points[left_out + 1 :]
            assert (revise(shown, keyed, some) != keyed).any()
        # It is the same mask on every view, and the one that the facts call so.
        np.testing.assert_array_equal(keyed, mask_of(case, "revised"))
        np.testing.assert_array_equal(shown, mask_of(case, "shown"))
        assert case.view("v3").panels[0].overlays == case.view("v2").panels[0].overlays


def test_a_point_is_right_in_one_of_the_two_questions_at_most(cases):
    for case in of(cases, "RR"):
        expansion, contraction = case.step("3a"), case.step("3b")
        assert [option.id for option in expansion.options] == [option.id for option in contraction.options]
        right = [*expansion.key.options, *contraction.key.options]
        assert len(set(right) - {"none"}) == len([name for name in right if name != "none"])
        for step in (expansion, contraction):
            assert step.options[-1].id == "none"
            assert step.key.kinds[-1] == "none"
            asked = {f"p{n}" for n, kind in enumerate(step.key.kinds, start=1) if kind == step.task}
            assert set(step.key.options) == (asked or {"none"})


def test_points_carry_their_number_and_a_colour_of_their_own(cases):
    pairs = Counter()
    for case in of(cases, "RR"):
        marks = case.view("v3").panels[0].marks
        assert [mark.text for mark in marks] == [str(n) for n in range(1, len(marks) + 1)]
        assert len({mark.colour for mark in marks}) == len(marks)
        assert {mark.colour for mark in marks} <= set(MARKS)
        options = case.step("3a").options[:-1]
        assert [option.text for option in options] == [f"{mark.colour} point" for mark in marks]
        assert [option.mark for option in options] == [mark.text for mark in marks]
        pairs.update((mark.text, mark.colour) for mark in marks)
    # Number and colour are drawn independently: the first point has many colours.
    first = {colour for number, colour in pairs if number == "1"}
    assert len(first) >= 4


def test_the_number_of_a_point_does_not_reveal_the_key(analyses):
    first = Counter()
    for one in analyses:
        for seed in range(3):
            kinds = made(one, "RR", 0, seed).step("3a").key.kinds[:-1]
            first["right"] += kinds[0] in ("expansion", "contraction")
            first["share"] += sum(kind in ("expansion", "contraction") for kind in kinds) / len(kinds)
            first["n"] += 1
    # The first point is an edit's as often as any other is.
    spread = np.sqrt(first["n"]) * 0.5
    assert abs(first["right"] - first["share"]) < 3 * spread


def test_names_of_regions_do_not_reveal_their_roles(cases):
    seen = Counter()
    for case in cases:
        names = [region.name for region in case.regions]
        assert names == [f"r{n + 1}" for n in range(len(names))]
        there = roles(case)
        assert set(there) == set(names)
        count = Counter(there.values())
        if case.path == "RR":
            assert count == {"truth": 1, "shown": 1, "revised": 1, "option": 3}
            seen.update((name, role) for name, role in there.items())
        elif case.path == "RF":
            assert count == {"truth": 1, "shown": 1}
    for role in ("truth", "shown", "revised"):
        assert len([name for name, there in seen if there == role]) >= 4


def test_rf_shows_the_redrawn_truth_and_rr_the_edited_one(cases, analyses):
    for one, case in zip(analyses, of(cases, "RF"), strict=True):
        np.testing.assert_array_equal(mask_of(case, "shown"), one.revised.to_mask())
        np.testing.assert_array_equal(mask_of(case, "truth"), one.truth.to_mask())
    for one, case in zip(analyses, of(cases, "RR"), strict=True):
        np.testing.assert_array_equal(mask_of(case, "shown"), one.shown.to_mask())


def test_no_view_draws_the_truth(cases):
    for case in cases:
        truth = {name for name, role in roles(case).items() if role == "truth"}
        drawn = {overlay.region for view in case.views for panel in view.panels for overlay in panel.overlays}
        assert not truth & drawn
        assert len(case.view("v1").panels[0].overlays) == 0


def test_every_step_names_the_views_it_needs(cases):
    for case in cases:
        for step in case.steps:
            assert "v1" in step.uses
            if step.id in ("3a", "3b"):
                assert "v3" in step.uses
            if step.id == "3c":
                assert {option.view for option in step.options} == {"v4", "v5", "v6", "v7"} <= set(step.uses)
        shown = [view for step in case.steps for view in step.shows]
        assert sorted(shown) == sorted(view.id for view in case.views)


def test_attributes_are_keyed_as_described(cases, analyses):
    for path in ("RF", "RR"):
        for one, case in zip(analyses, of(cases, path), strict=True):
            if one.attributes is None:
                continue
            count, left_out = len(one.attributes.affected), one.attributes.not_asked
            assert PerceptCaseFacts.of(case).not_asked == left_out
            if "distribution" not in left_out:
                assert case.step("4a").key.options == ("4+" if count >= 4 else str(count),)
            if "comparison" not in left_out:
                assert case.step("4d").key.options == (one.attributes.comparison,)
            if {"severity", "location"} & set(left_out):
                continue
            severity = case.step("4c")
            side = PerceptStepFacts.of(severity).side
            assert f"the patient's {side} lung" in severity.question
            assert severity.key.options == (one.attributes.severity[side],)
            location = case.step("4b")
            right = [name for name in REGIONS if name.replace(" ", "-") in location.key.options]
            assert all(one.attributes.regions[name] >= RULES.region.high for name in right)
            assert location.options[-1].text == "None of the above (options 1-3)"
            assert len(location.options) == 4
            texts = {option.text for option in location.options}
            assert all(wording.region(name) in texts for name in right)


def test_regions_have_names_of_their_own_in_plain_words():
    assert wording.region("right mid lateral") == "lateral half of the right mid zone"
    assert wording.region("left upper peripheral") == "periphery of the left upper zone"
    assert wording.region("left costophrenic angle") == "left costophrenic angle"
    assert len({wording.region(name) for name in REGIONS}) == len(REGIONS)


def test_nothing_that_a_model_receives_reveals_the_path(cases, analyses):
    for one in analyses:
        ids = {made(one, path).id for path in ("LF", "RF", "RR")}
        assert len(ids) == 1
        assert re.fullmatch(r"c-[0-9a-f]{16}", ids.pop())
    for case in cases:
        bare = without_keys(case)
        text = msgspec.json.encode(bare).decode()
        for word in ("truth", "revised", "partial", "overshoot", "wrong_", '"LF"', '"RF"', '"RR"'):
            assert word not in text, word
        drawn = {o.region for view in bare.views for panel in view.panels for o in panel.overlays}
        assert {region.name for region in bare.regions} == drawn
    # The first question of a lesion reads alike whatever its answer, but for the order of yes and no.
    by_target = {}
    for case in cases:
        head = case.step("1").question.split("\nOptions:")[0]
        assert by_target.setdefault(case.target, head) == head
        if case.path != "LF":
            assert {option.text for option in case.step("2").options} == {"Yes", "No"}
    evaluations = {
        (case.target, case.step("2").question.split("\nOptions:")[0]) for case in cases if case.path != "LF"
    }
    assert len(evaluations) == len({case.target for case in cases})


def test_ids_differ_between_studies_lesions_and_seeds():
    ids = {case_id(seed, study, target) for seed in (1, 2) for study in ("a", "b") for target in LESIONS}
    assert len(ids) == 2 * 2 * len(LESIONS)
    # Where one field ends and the next begins is told too.
    assert case_id(1, "a/edema", "b") != case_id(1, "a", "edema/b")


def test_a_shuffled_list_has_its_first_item_at_the_given_place():
    seen = set()
    for seed in range(20):
        order = shuffle_with_first_at(2, 4, rng(seed))
        assert sorted(order) == [0, 1, 2, 3]
        assert order[2] == 0
        seen.add(tuple(order))
    assert len(seen) == 6


def test_provenance_and_review_are_stated(cases):
    for case in of(cases, "RR"):
        facts = PerceptCaseFacts.of(case)
        truth, shown = (facts.sources[facts.region(role)] for role in ("truth", "shown"))
        assert truth.provenance.startswith("drawn by ")
        assert truth.reviewed == "yes"
        assert shown.provenance == "deformed from the redrawn truth by signed-distance warp"


def test_only_questions_about_lung_lesions_exclude_the_heart(cases):
    for case in cases:
        if case.path != "LF":
            aside = "lies over the heart" in case.step("2").question
            assert aside == (case.target != "cardiomegaly")
