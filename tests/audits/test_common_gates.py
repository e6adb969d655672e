"""A sound benchmark passes every gate; with one thing broken, the gate meant for it fails and names the record."""

import hashlib
from collections import Counter

import msgspec
import pytest
from tests.audits import gates
from tests.audits.gates import objecting

from carina.audits.result import Objections, worst_status
from carina.cases.model import Key, Option

change = msgspec.structs.replace


def audited(cases, *, per_cell=None, **options):
    stated = {} if per_cell is None else {"per_cell": per_cell}
    return gates.audited(cases, gates.COMMON, options=stated, **options)


def with_step(case, step_id, **changes):
    steps = tuple(change(step, **changes) if step.id == step_id else step for step in case.steps)
    return change(case, steps=steps)


def each_step(cases, task, make):
    """All cases, with the step of this task made anew."""
    return [
        change(case, steps=tuple(make(case, step) if step.task == task else step for step in case.steps))
        for case in cases
    ]


def first(cases, path="RR"):
    return next(at for at, case in enumerate(cases) if case.path == path)


def replaced(cases, at, case):
    return [*cases[:at], case, *cases[at + 1 :]]


def test_a_sound_benchmark_passes_every_gate(sound):
    result = audited(sound, per_cell=16)
    assert {gate.name: gate.status for gate in result.gates if gate.status != "pass"} == {
        "image-files": "not applicable"
    }
    assert (result.status, result.cases, result.patients) == ("pass", 48, 48)
    assert result.cells == {"edema/LF": 16, "edema/RF": 16, "edema/RR": 16}
    assert result.steps == 16 * (1 + 6 + 9)


def test_an_empty_benchmark_fails_case_integrity_only():
    result = audited([])
    assert result.status == "fail"
    assert objecting(result) == {"case-integrity"}
    assert {gate.status for gate in result.gates if gate.name != "case-integrity"} == {"not applicable"}


def test_a_fault_and_a_repeated_id_fail_case_integrity(sound):
    at = first(sound)
    gone = with_step(sound[at], "2", uses=("v99",), shows=("v99",))
    result = audited(replaced(sound, at, gone))
    assert objecting(result) == {"case-integrity"}
    assert {found.id for found in result.gate("case-integrity").worst} == {gone.id}
    assert result.gate("case-integrity").count == 1
    twin = change(sound[1], id=sound[0].id)
    result = audited(replaced(sound, 1, twin))
    assert "case-integrity" in objecting(result)
    assert result.gate("case-integrity").worst[0].what == "another case has the same id"


def test_a_fact_outside_its_range_is_named_with_it(sound):
    at = first(sound)
    facts = tuple(change(f, value=0.9) if f.name == "iou with truth" else f for f in sound[at].facts)
    result = audited(replaced(sound, at, change(sound[at], facts=facts)))
    assert objecting(result) == {"key-margins"}
    (found,) = result.gate("key-margins").worst
    assert found.id == sound[at].id
    assert found.what.endswith("is 0.9, expected 0.55 to 0.85")


def test_a_margin_without_a_value_fails(sound):
    at = first(sound)
    facts = tuple(change(f, value=None) if f.name == "iou with truth" else f for f in sound[at].facts)
    assert objecting(audited(replaced(sound, at, change(sound[at], facts=facts)))) == {"key-margins"}


def moved_to(step, place):
    """The right option at this place."""
    right = step.key.options[0]
    others = [option for option in step.options if option.id != right]
    options = (*others[:place], step.option(right), *others[place:])
    listed = "\n".join(f"({n}) {option.text}" for n, option in enumerate(options, start=1))
    return change(step, options=options, question=f"{step.question.split('Options:')[0]}Options:\n{listed}")


def test_the_right_answer_always_first_fails_position_and_constant(sound):
    result = audited(each_step(sound, "comparison", lambda _, step: moved_to(step, 0)))
    assert objecting(result) == {"answer-position", "constant-answers"}
    assert result.gate("answer-position").worst[0].id == "4 comparison: position 1"
    row = next(row for row in result.gate("constant-answers").rows if row.status == "fail")
    assert (row.name, row.value, row.chance) == ("4 comparison: always (1)", 1.0, 0.25)


def test_a_position_that_is_never_right_fails_position_only(sound):
    # The right one of four at places 1 to 3 only: no single place is above chance, but the last is never right.
    result = audited(
        each_step(sound, "comparison", lambda case, step: moved_to(step, int(case.id[-1], 16) % 3))
    )
    assert objecting(result) == {"answer-position"}
    assert result.gate("answer-position").worst[0].id == "4 comparison: position 4"


def test_one_answer_that_is_always_right_fails_constant_answers(sound):
    result = audited([case for case in sound if case.path != "LF"])
    assert objecting(result) == {"constant-answers"}
    (row,) = [row for row in result.gate("constant-answers").rows if row.status == "fail"]
    assert (row.name, row.value, row.chance) == ('1 detection: always "yes"', 1.0, 0.5)


def test_an_answer_that_is_never_right_warns(sound):
    kept = [c for c in sound if c.path == "LF" or c.step("4c").key.options != ("low",)]
    gate = audited(kept).gate("constant-answers")
    row = next(row for row in gate.rows if row.status != "pass")
    keys = Counter(c.step("4c").key.options for c in kept if c.path != "LF")
    often, n = max(keys.values()), keys.total()
    plain = f"the most frequent right answer, in {often} of {n} ({often / n:.0%})"
    assert (row.status, row.note) == ("warn", f"only 2 of 3 answers are ever right; {plain}")


def test_every_constant_answer_has_its_accuracy_in_the_note(sound):
    gate = audited(sound).gate("constant-answers")
    keys = Counter(c.step("4b").key.options for c in sound if c.path != "LF")
    rows = {row.name.split(":")[0]: row for row in gate.rows if '"' in row.name}
    assert set(rows) >= {"1 detection", "3 expansion", "4 location", "4 comparison"}
    assert rows["1 detection"].note == "the most frequent right answer, in 32 of 48 (67%)"
    n = rows["4 location"].n
    assert n == keys.total()
    assert all("the most frequent right answer, in " in row.note for row in rows.values())
    assert f" of {n} (" in rows["4 location"].note


def test_a_set_of_regions_that_is_right_too_often_fails_constant_answers(sound):
    def none(_, step):
        return change(step, key=Key(options=("none",)))

    assert "constant-answers" in objecting(audited(each_step(sound, "location", none)))


def test_wording_that_reveals_the_answer_fails_the_text_only_baseline(sound):
    def worded(_, step):
        more = "Is it clearly there?" if step.key.options == ("yes",) else "Is it there at all?"
        return change(step, question=f"{more} {step.question}")

    result = audited(each_step(sound, "detection", worded))
    assert objecting(result) == {"text-only-baseline"}
    row = next(row for row in result.gate("text-only-baseline").rows if row.status == "fail")
    assert (row.name, row.value) == ("1 detection: text", 1.0)
    # Of 48 cases 32 are "yes", which is what a constant has.
    assert row.chance == pytest.approx(32 / 48)


def test_a_number_of_options_that_reveals_the_answer_fails_the_text_only_baseline(sound):
    def longer(_, step):
        return (
            step
            if step.key.options != ("yes",)
            else change(step, options=(*step.options, Option(id="x", text="Unsure")))
        )

    assert objecting(audited(each_step(sound, "contour evaluation", longer))) >= {"text-only-baseline"}


def test_the_prior_of_a_target_is_reported_but_does_not_fail(sound):
    # Left is right for edema only: that is what the disease is like, not what the words give away.
    def named(case, step):
        others = [option for option in step.options if option.id != "left"]
        options = (*others, Option(id="left", text="left larger"))
        return change(step, options=options, key=Key(options=("left" if case.target == "edema" else "one",)))

    twins = [
        change(c, id=f"d-{c.id[2:]}", target="effusion", patient=f"{c.patient}x", study=f"{c.study}x")
        for c in sound
    ]
    rows = audited(each_step([*sound, *twins], "comparison", named)).gate("text-only-baseline").rows
    by_name = {row.name: row for row in rows}
    assert by_name["4 comparison: prior of the target"].value == 1.0
    assert by_name["4 comparison: text"].status == "pass"


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("option_1_mask_fake.png", "fake"),
        ("images/RR/a.png", "rr"),
        ("isCorrect.png", "correct"),
        ("edema_s1_negative_2.png", "negative"),
    ],
)
def test_a_revealing_word_in_an_image_key_fails(sound, name, word):
    at = first(sound, "LF")
    case = sound[at]
    views = tuple(change(v, panels=tuple(change(p, image=name) for p in v.panels)) for v in case.views)
    result = audited(
        replaced(sound, at, change(case, images=(change(case.images[0], key=name),), views=views))
    )
    assert objecting(result) == {"revealing-names"}
    assert result.gate("revealing-names").worst[0].id == case.id
    assert f"contains the word '{word}'" in result.gate("revealing-names").worst[0].what


def test_a_region_whose_name_reveals_its_role_fails(sound):
    def renamed(case):
        truth = next((f.about for f in case.facts if f.name == "role" and f.text == "truth"), None)
        if truth is None:
            return case
        regions = tuple(change(r, name="r0") if r.name == truth else r for r in case.regions)
        facts = tuple(change(f, about="r0") if f.about == truth else f for f in case.facts)
        return change(case, regions=regions, facts=facts)

    result = audited([renamed(case) for case in sound])
    assert objecting(result) == {"revealing-names"}
    assert "region 'truth' by name" in {found.id for found in result.gate("revealing-names").worst}


def test_view_ids_in_the_order_of_right_and_wrong_fail(sound):
    def first_view(_, step):
        ids = sorted(option.view for option in step.options)
        right = [option for option in step.options if option.id in step.key.options]
        order = [*right, *(option for option in step.options if option not in right)]
        views = {option.id: view for option, view in zip(order, ids, strict=True)}
        return change(step, options=tuple(change(option, view=views[option.id]) for option in step.options))

    result = audited(each_step(sound, "revision", first_view))
    assert objecting(result) == {"revealing-names"}
    assert result.gate("revealing-names").worst[0].id == "3 revision by order of views"


def test_cases_stored_by_path_fail(sound):
    result = audited(sorted(sound, key=lambda case: case.path))
    assert objecting(result) == {"revealing-names"}
    assert any("by order of the file" in found.id for found in result.gate("revealing-names").worst)


def test_ids_in_the_order_of_paths_fail(sound):
    cases = [change(case, id=f"c-{case.path == 'RR':d}{case.id[3:]}") for case in sound]
    # The text-only baseline reads ids too.
    assert objecting(audited(cases)) == {"revealing-names", "text-only-baseline"}


@pytest.mark.parametrize("same", ["study", "patient"])
def test_a_study_or_patient_twice_for_one_target_fails(sound, same):
    twin = change(sound[1], **{same: getattr(sound[0], same)})
    result = audited(replaced(sound, 1, twin))
    assert objecting(result) == {"duplicate-cases"}
    (found,) = result.gate("duplicate-cases").worst
    assert (found.id, found.what) == (twin.id, f"asks about the same {same} and target as {sound[0].id}")


def test_the_same_case_under_another_name_fails(sound):
    twin = change(sound[0], id="c-0", study="other", patient="other", target="effusion")
    result = audited([*sound, twin])
    assert (
        result.gate("duplicate-cases").worst[0].what
        == f"has the same images, questions and keys as {sound[0].id}"
    )


def test_one_image_of_two_patients_fails(sound):
    digest = hashlib.sha256(b"x").hexdigest()
    cases = [
        change(c, images=(change(c.images[0], sha256=digest),)) if at < 2 else c for at, c in enumerate(sound)
    ]
    result = audited(cases)
    assert objecting(result) == {"duplicate-cases"}
    told = {(found.id, found.what) for found in result.gate("duplicate-cases").worst}
    key, patient = sound[1].images[0].key, sound[0].patient
    what = f"image {key!r} is the same file as one of patient {patient!r}, in {sound[0].id}"
    assert (sound[1].id, what) in told


def test_one_mask_under_two_names_warns(sound):
    at = first(sound, "RF")
    twin = with_step(
        change(sound[at], id="c-0f", target="opacity"), "1", question="Another?\nOptions:\n(1) Yes\n(2) No"
    )
    gate = audited([*sound, twin]).gate("duplicate-cases")
    assert (gate.status, gate.worst[0].id) == ("warn", "c-0f")
    assert (
        gate.worst[0].what == f"shows a mask that overlaps one of {sound[at].id} on the same image by 1.000"
    )


def test_a_patient_in_two_splits_fails(sound):
    cases = [
        *sound,
        change(
            sound[0],
            id="c-0",
            split="train",
            target="effusion",
            study="other",
            images=(change(sound[0].images[0], key="o.png"),),
            views=(),
        ),
    ]
    result = audited(cases)
    assert "patient-overlap" in objecting(result, to=("fail",))
    (found,) = result.gate("patient-overlap").worst
    assert found.id == sound[0].patient
    assert "'test'" in found.what
    assert "'train'" in found.what


def test_an_image_in_two_splits_fails(sound):
    other = change(sound[1], split="train", images=sound[0].images, views=sound[0].views, regions=())
    assert "patient-overlap" in objecting(audited(replaced(sound, 1, other)), to=("fail",))


def test_strata_that_are_not_full_warn(sound):
    result = audited(sound[:-1], per_cell=16, skipped={"edema": Counter({"zone on a cut": 3})})
    assert objecting(result) == {"stratum-quotas"}
    assert result.status == "warn"
    (found,) = result.gate("stratum-quotas").worst
    assert found.id == sound[-1].cell
    assert found.what == "15 of 16 cases; studies were skipped for: zone on a cut (3)"


def test_each_stratum_has_its_own_skip_reasons(sound):
    reasons = {"edema/LF": {}, "edema/RR": {"no room for edits": 2}}
    result = audited(sound, per_cell=20, skipped=reasons).gate("stratum-quotas")
    assert {row.name: row.note for row in result.rows} == {
        "edema/LF": "16 of 20 cases",
        "edema/RF": "16 of 20 cases",
        "edema/RR": "16 of 20 cases; studies were skipped for: no room for edits (2)",
    }


def test_only_the_worst_objections_are_kept_but_all_are_counted():
    objections = Objections(2)
    for n in range(5):
        objections.add(f"c{n}", "bad", n % 3)
    assert [found.id for found in objections.worst] == ["c2", "c1"]
    assert (objections.records, objections.total) == (5, 5)


def test_the_worst_status_of_several():
    assert worst_status("pass", "warn", "not applicable") == "warn"
    assert worst_status() == "not applicable"


def test_randomly_drawn_keys_do_not_fail(sound):
    """Every key drawn by a hash: the chance gates stay quiet at their level."""

    def drawn(case, step):
        ids = [option.id for option in step.options]
        at = int(hashlib.sha256(f"{case.id}{step.id}".encode()).hexdigest(), 16) % len(ids)
        return change(step, key=Key(options=(ids[at],)))

    cases = each_step(sound, "comparison", drawn)
    assert not {"answer-position", "constant-answers", "text-only-baseline"} & objecting(
        audited(cases), to=("fail",)
    )


def test_levels_of_zero_disable_tests_for_chance(sound):
    lax = audited(
        each_step(sound, "comparison", lambda _, step: moved_to(step, 0)),
        warn_level=0,
        fail_level=0,
    )
    assert not objecting(lax) - {"text-only-baseline"}
