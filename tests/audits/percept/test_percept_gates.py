"""percept's own gates on a sound benchmark, and with one thing broken in it."""

import msgspec
import numpy as np
import pytest
from tests.audits import gates
from tests.audits import sound as made
from tests.audits.gates import objecting

from carina.audits.percept.masks import components, contains, distance, edge, iou, perimeter
from carina.cases.model import Fact, Key
from carina.studies.region import Region

change = msgspec.structs.replace


def audited(cases, **rules):
    return gates.audited(cases, gates.PERCEPT, options={"rules": rules})


def first(cases, path):
    return next(case for case in cases if case.path == path)


def instead(cases, case):
    return [case if one.id == case.id else one for one in cases]


def role(case, name):
    return next(fact.about for fact in case.facts if fact.name == "role" and fact.text == name)


def with_region(case, name, make):
    """The case with one region's mask made anew."""
    regions = tuple(
        change(r, region=Region.from_mask(make(r.region.to_mask()))) if r.name == name else r
        for r in case.regions
    )
    return change(case, regions=regions)


def with_step(case, step_id, **changes):
    return change(case, steps=tuple(change(s, **changes) if s.id == step_id else s for s in case.steps))


def with_mark(case, option, x, y):
    """The case with the point of an option moved."""
    text = case.step("3a").option(option).mark
    views = tuple(
        change(
            v,
            panels=tuple(
                change(p, marks=tuple(change(m, x=x, y=y) if m.text == text else m for m in p.marks))
                for p in v.panels
            ),
        )
        for v in case.views
    )
    return change(case, views=views)


def mark_of(case, option):
    text = case.step("3a").option(option).mark
    return next(m for v in case.views for p in v.panels for m in p.marks if m.text == text)


def test_a_sound_benchmark_passes_every_gate(sound):
    result = audited(sound)
    assert {gate.status for gate in result.gates} == {"pass"}
    assert {gate.name: gate.n for gate in result.gates if gate.name != "contour-shortcuts"} == {
        "path-steps": 48,
        "contour-overlap": 32,
        "revision-points": 16,
        "option-separation": 32,
        "attribute-keys": 32,
    }


def test_imported_images_without_regions_are_not_measured(sound):
    bare = [change(c, regions=(), facts=(), views=c.views[:1]) for c in sound]
    statuses = {gate.name: gate.status for gate in audited(bare).gates}
    assert statuses.pop("path-steps") == "pass"
    assert set(statuses.values()) == {"not applicable"}


def test_a_key_that_contradicts_the_path_fails(sound):
    case = with_step(first(sound, "RF"), "2", key=Key(options=("yes",)))
    result = audited(instead(sound, case))
    assert objecting(result) == {"path-steps"}
    (found,) = result.gate("path-steps").worst
    assert (found.id, found.what) == (case.id, "step '2' has the key 'yes' on path RF, expected 'no'")


def test_a_missing_step_fails(sound):
    case = first(sound, "RR")
    case = change(case, steps=tuple(step for step in case.steps if step.id != "4c"))
    assert audited(instead(sound, case)).gate("path-steps").worst[0].id == case.id


def test_a_heart_needs_no_attribute_steps():
    cases = [
        change(c, steps=tuple(s for s in c.steps if s.stage < 4))
        for c in made.benchmark(12, target="cardiomegaly")
    ]
    assert audited(cases).gate("path-steps").status == "pass"


def test_an_inaccurate_contour_keyed_as_good_fails(sound):
    case = first(sound, "RF")
    case = with_region(case, role(case, "shown"), lambda mask: mask | np.roll(mask, 20, axis=1))
    result = audited(instead(sound, case))
    assert objecting(result) == {"contour-overlap"}
    assert result.gate("contour-overlap").worst[0].id == case.id
    assert "expected at least 0.97" in result.gate("contour-overlap").worst[0].what


def test_a_contour_that_needs_no_major_revision_fails(sound):
    case = first(sound, "RR")
    best = case.region(role(case, "revised")).region.to_mask()
    case = with_region(case, role(case, "shown"), lambda _: best)
    result = audited(instead(sound, case))
    assert (
        "overlaps the truth by 1.000, expected 0.55 to 0.85" in result.gate("contour-overlap").worst[0].what
    )


def test_a_view_that_shows_the_truth_fails(sound):
    case = first(sound, "RR")
    truth, shown = role(case, "truth"), role(case, "shown")
    view = case.views[2]
    panel = change(view.panels[0], overlays=(change(view.panels[0].overlays[0], region=truth),))
    case = change(case, views=tuple(change(v, panels=(panel,)) if v.id == view.id else v for v in case.views))
    result = audited(instead(sound, case))
    assert result.gate("contour-overlap").worst[0].what == "view 'v3' shows the true contour"
    assert shown != truth


def test_a_missing_role_fails(sound):
    case = first(sound, "RR")
    case = change(case, facts=tuple(f for f in case.facts if f.text != "truth"))
    found = audited(instead(sound, case)).gate("contour-overlap").worst[0]
    assert (found.id, found.what) == (case.id, "has 0 regions with the role 'truth', expected 1")


def keyed(case):
    return next(
        step.key.options[0] for step in (case.step("3a"), case.step("3b")) if step.key.options != ("none",)
    )


def test_a_key_point_outside_the_change_fails(sound):
    case = first(sound, "RR")
    option = keyed(case)
    case = with_mark(case, option, 5.0, 5.0)
    result = audited(instead(sound, case))
    assert objecting(result) == {"revision-points"}
    whats = {found.what for found in result.gate("revision-points").worst}
    assert any(
        what.startswith(f"point {option!r}") and "outside the area that must change" in what for what in whats
    )
    assert any("contains 0 key points, expected 1" in what for what in whats)
    assert result.gate("revision-points").count == 1


def test_a_point_keyed_with_the_wrong_operation_fails(sound):
    case = next(c for c in sound if c.path == "RR" and c.step("3b").key.options == ("none",))
    a, b = case.step("3a").key, case.step("3b").key
    case = with_step(with_step(case, "3a", key=b), "3b", key=a)
    result = audited(instead(sound, case))
    assert objecting(result) == {"revision-points"}
    assert (
        "of contraction lies outside the area that must change"
        in result.gate("revision-points").worst[0].what
    )


def distractor(case):
    keys = {*case.step("3a").key.options, *case.step("3b").key.options}
    return next(o.id for o in case.step("3a").options if o.mark and o.id not in keys)


def test_a_distractor_near_a_change_fails(sound):
    case = first(sound, "RR")
    point, option = mark_of(case, keyed(case)), distractor(case)
    result = audited(instead(sound, with_mark(case, option, point.x + 10, point.y)))
    gate = result.gate("revision-points")
    assert gate.status == "fail"
    assert any(f"point {option!r} is a distractor but" in found.what for found in gate.worst)


def test_points_too_near_to_each_other_fail(sound):
    case = first(sound, "RR")
    wrong = [
        o.id
        for o in case.step("3a").options
        if o.mark and o.id not in {*case.step("3a").key.options, *case.step("3b").key.options}
    ]
    there = mark_of(case, wrong[0])
    # 30 px of 512 are 60 of the frame.
    result = audited(
        instead(sound, with_mark(case, wrong[1], there.x + 30 * np.sign(256 - there.x), there.y))
    )
    assert any(
        "are 60 px apart, expected at least 80" in found.what
        for found in result.gate("revision-points").worst
    )


def option_region(case, option):
    return case.view(case.step("3c").option(option).view).panels[0].overlays[0].region


def wrong_option(case):
    return next(o.id for o in case.step("3c").options if o.id not in case.step("3c").key.options)


@pytest.mark.parametrize(
    ("like", "what"),
    [
        ("shown", "the unrevised contour that is shown"),
        ("revised", "overlap by 1.000, expected at most 0.93"),
    ],
)
def test_options_with_similar_masks_fail(sound, like, what):
    case = first(sound, "RR")
    mask = case.region(role(case, like)).region.to_mask()
    result = audited(
        instead(sound, with_region(case, option_region(case, wrong_option(case)), lambda _: mask))
    )
    assert objecting(result) == {"option-separation"}
    assert result.gate("option-separation").worst[0].id == case.id
    assert what in result.gate("option-separation").worst[0].what


def test_a_key_that_is_not_the_revised_contour_fails(sound):
    case = first(sound, "RR")
    case = with_step(case, "3c", key=Key(options=(wrong_option(case),)))
    found = audited(instead(sound, case)).gate("option-separation").worst[0]
    assert (found.id, "is not the revised contour" in found.what) == (case.id, True)


def with_fact(case, step_id, name, **changes):
    facts = list(case.step(step_id).facts)
    at = next(at for at, fact in enumerate(facts) if fact.name == name)
    facts[at] = change(facts[at], **changes)
    return with_step(case, step_id, facts=tuple(facts))


@pytest.mark.parametrize(
    ("name", "value", "what"),
    [
        ("overlap", 0.3, "expected at most 0.1"),
        ("region ratio", 0.2, "with a share of 0.200"),
        ("overlap", None, "states no overlap"),
    ],
)
def test_overlapping_regions_and_shares_on_a_cut_fail(sound, name, value, what):
    case = with_fact(first(sound, "RF"), "4b", name, value=value)
    result = audited(instead(sound, case))
    assert objecting(result) == {"option-separation"}
    assert what in result.gate("option-separation").worst[0].what


@pytest.mark.parametrize(
    ("step", "name", "value", "what"),
    [
        ("4a", "zone ratio", 0.2, "a zone on the cut-off (0.200)"),
        ("4c", "share", 0.35, "a share on the cut-off (0.350)"),
        ("4d", "right share", 0.01, "the presence in a lung on the cut-off"),
    ],
)
def test_an_attribute_on_a_cut_fails(sound, step, name, value, what):
    # From four zones on, a zone on the cut-off does not change the key.
    few = [case for case in sound if case.path == "RF" and case.step("4a").key.options != ("4+",)]
    case = with_fact(few[0], step, name, value=value)
    result = audited(instead(sound, case))
    assert objecting(result) == {"attribute-keys"}
    assert result.gate("attribute-keys").worst[0].what.endswith(what)


def test_an_attribute_may_be_left_out_with_a_reason_and_not_without(sound):
    case = first(sound, "RF")
    shorter = change(case, steps=tuple(step for step in case.steps if step.task != "comparison"))
    assert objecting(audited(instead(sound, shorter))) == {"path-steps"}
    fact = Fact(name="not asked", about="comparison", text="size ratio on a cut: 1.57")
    stated = change(shorter, facts=(*shorter.facts, fact))
    assert objecting(audited(instead(sound, stated))) == set()


def with_straight_key(case):
    """The case with a right mask cut straight on one side, as a polygon would be."""
    return with_region(case, role(case, "revised"), cut_straight)


def test_right_masks_with_straight_edges_fail():
    cases = [with_straight_key(c) if c.path == "RR" else c for c in made.benchmark(192)]
    result = audited(cases).gate("contour-shortcuts")
    failed = {row.name for row in result.rows if row.status == "fail"}
    assert "3 revision: largest longest straight run at 3 px mask" in failed
    assert "3 revision: classifier over contours" in failed
    assert result.status == "fail"


def cut_straight(mask):
    rows = np.flatnonzero(mask.any(axis=1))
    mask = mask.copy()
    mask[: rows[0] + (rows[-1] - rows[0]) // 8] = False
    return mask


def with_sizes(case, number, *, is_revealing):
    """The case with discs of four sizes as options; in every fourth case, all four are cut straight on one side.

    The right mask has each size equally often. Where it is revealed, it is the largest of those cut straight.
    """
    is_straight, turn = number % 4 == 0, number // 4
    size = (3 if is_straight else (number % 4 + turn) % 3) if is_revealing else (number + turn) % 4
    right = case.step("3c").key.options[0]
    others = [option.id for option in case.step("3c").options if option.id != right]
    sizes = [size, *(other for other in range(4) if other != size)]
    for option, radius in zip([right, *others], sizes, strict=True):
        disc = made.disc(0, 200 + 10 * radius, 0)
        mask = cut_straight(disc) if is_straight else disc
        case = with_region(case, option_region(case, option), lambda _, mask=mask: mask)
    return case


@pytest.mark.parametrize(("is_revealing", "status"), [(True, "fail"), (False, "pass")])
def test_an_interaction_of_two_features_that_reveals_the_right_mask_fails(is_revealing, status):
    """The largest mask is right, but only where contours are straight: no single rule does better than chance."""
    revised = [case for case in made.benchmark(600) if case.path == "RR"]
    cases = [with_sizes(case, n, is_revealing=is_revealing) for n, case in enumerate(revised)]
    rows = {row.name: row for row in audited(cases).gate("contour-shortcuts").rows}
    assert rows["3 revision: boosted trees over contours"].status == status
    assert rows["3 revision: largest mask"].status == rows["3 revision: smallest mask"].status == "pass"


def test_an_attribute_key_that_contradicts_its_shares_fails(sound):
    case = next(c for c in sound if c.path == "RF" and c.step("4d").key.options == ("left",))
    result = audited(instead(sound, with_step(case, "4d", key=Key(options=("similar",)))))
    assert objecting(result) == {"attribute-keys"}
    case = next(c for c in sound if c.path == "RF" and c.step("4a").key.options == ("2",))
    result = audited(instead(sound, with_step(case, "4a", key=Key(options=("4+",)))))
    assert result.gate("attribute-keys").worst[0].what == "step '4a' has the key '4+', its shares give: 2"


def test_the_rules_of_the_benchmark_are_the_limits(sound):
    assert audited(sound, good_iou=0.97, revise_low=0.86, revise_high=0.9).gate("contour-overlap").count == 16


# ---- shortcuts ----------------------------------------------------------------------------------------------------


def larger(mask):
    for _ in range(14):
        mask = mask | np.roll(mask, 1, 0) | np.roll(mask, -1, 0) | np.roll(mask, 1, 1) | np.roll(mask, -1, 1)
    return mask


def test_a_right_mask_that_is_always_the_largest_fails(sound):
    def grown(case):
        if case.path != "RR":
            return case
        region = option_region(case, case.step("3c").key.options[0])
        return with_region(case, region, larger)

    row = {r.name: r for r in audited([grown(c) for c in sound]).gate("contour-shortcuts").rows}[
        "3 revision: largest mask"
    ]
    assert (row.status, row.chance) == ("fail", 0.25)
    assert row.value > 0.6


def test_a_right_point_that_is_always_the_nearest_fails(sound):
    """Key points on the contour itself, where distractors are 55 px away."""

    def nearer(case):
        if case.path != "RR":
            return case
        for option in {*case.step("3a").key.options, *case.step("3b").key.options} - {"none"}:
            mark = mark_of(case, option)
            away = np.hypot(mark.x - 256, mark.y - 256)
            outside = away > made.RADIUS * made.UNIT
            # Just inside a bump that was added, or just outside what was taken away.
            reach = (made.RADIUS + (made.EDIT - 6) * (1 if outside else -1)) * made.UNIT / away
            case = with_mark(case, option, 256 + (mark.x - 256) * reach, 256 + (mark.y - 256) * reach)
        return case

    result = audited([nearer(case) for case in sound])
    failed = {row.name for row in result.gate("contour-shortcuts").rows if row.status == "fail"}
    assert failed >= {"3 contraction: nearest point"} or failed >= {"3 expansion: nearest point"}
    assert objecting(result) == {"contour-shortcuts"}


def test_a_roughness_that_reveals_the_path_fails(sound):
    def smooth(case):
        if case.path != "RF":
            return case
        y, x = np.mgrid[:512, :512]
        disc = (x - 256) ** 2 + (y - 256) ** 2 < 110**2
        return with_region(
            with_region(case, role(case, "shown"), lambda _: disc), role(case, "truth"), lambda _: disc
        )

    result = audited([smooth(case) for case in sound])
    assert objecting(result) == {"contour-shortcuts"}
    row = next(r for r in result.gate("contour-shortcuts").rows if "roughness" in r.name)
    assert (row.status, row.value) == ("fail", 1.0)


# ---- measures -----------------------------------------------------------------------------------------------------


def test_measures_of_masks_equal_those_worked_by_hand():
    square = np.zeros((10, 10), bool)
    square[2:6, 2:6] = True
    assert iou(square, np.roll(square, 2, axis=1)) == pytest.approx(8 / 24)
    assert iou(~np.ones((2, 2), bool), np.zeros((2, 2), bool)) == 1.0
    assert distance((2.5, 9.5), square) == 4.0
    assert distance((0.0, 0.0), np.zeros((3, 3), bool)) == float("inf")
    assert int(edge(square).sum()) == 12
    assert contains(square, (5.9, 5.9))
    assert not contains(square, (6.0, 5.9))
    assert not contains(square, (-1.0, 3.0))
    assert perimeter(square) == pytest.approx(12)
    two = square | np.roll(square, (4, 4), axis=(0, 1))
    # They touch at a corner, which joins them.
    assert [int(piece.sum()) for piece in components(two, 1)] == [32]
    assert components(square, 17) == []


def test_masks_are_measured_again_whatever_the_facts_state(sound):
    """A wrong fact about the overlap changes nothing that is measured."""
    case = first(sound, "RR")
    facts = tuple(change(f, value=0.1) if f.name == "iou with truth" else f for f in case.facts)
    assert not objecting(audited(instead(sound, change(case, facts=(*facts, Fact(name="other"))))))
