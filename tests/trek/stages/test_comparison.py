"""Stage 5: what has changed, against the records of both studies."""

from collections import Counter

import pytest

GRADES = ("mild", "moderate", "severe")


def things(study):
    """What is there by name, where a name says which is meant."""
    all_there = [t for t in (*study.findings, *study.devices) if t.certainty != "absent"]
    counted = Counter(t.name for t in all_there)
    return {t.name: t for t in all_there if counted[t.name] == 1}


def trend(name, before, now):
    """Recomputed: what the later one says, else presence, else grades."""
    old, new = things(before).get(name), things(now).get(name)
    if new is None:
        recorded = [t for t in (*now.findings, *now.devices) if t.name == name]
        gone = old is not None and old.certainty == "present"
        return "resolved" if gone and all(t.certainty == "absent" for t in recorded) else None
    if new.trend is not None:
        return new.trend
    if old is None:
        return "new"
    grades = [getattr(t, "severity", None) for t in (old, new)]
    if None in grades:
        return None
    change = GRADES.index(grades[1]) - GRADES.index(grades[0])
    return "worse" if change > 0 else "improved" if change < 0 else "unchanged"


@pytest.fixture(scope="module")
def asked(conversations):
    return [(talk, step) for talk in conversations for step in talk.case.steps if step.stage == 5]


def name_of(talk, about):
    return [t.name for t in (*talk.study.findings, *talk.study.devices) if t.id == about]


def test_every_family_is_asked(asked):
    assert {(step.task, step.format) for _, step in asked} == {
        ("comparison", "open"),
        ("trend", "open"),
        ("change", "choice"),
    }


def test_trends_are_those_of_the_records(made, asked):
    seen = Counter()
    for talk, step in asked:
        assert talk.case.reference_study == talk.before.id
        if step.task == "comparison":
            for fact in made.facts(step, "trend"):
                assert any(
                    trend(name, talk.before, talk.study) == fact.text for name in name_of(talk, fact.about)
                )
        else:
            (name,), (fact,) = made.targets(step), made.facts(step, "trend")
            assert fact.text == trend(name, talk.before, talk.study)
            # Ids are the current study's own, also of what has gone.
            recorded = [t.id for t in (*talk.study.findings, *talk.study.devices) if t.name == name]
            assert fact.about in (recorded or [""])
        seen.update(fact.text for fact in made.facts(step, "trend"))
        for mark in step.evidence:
            assert mark.report in ("current", "reference")
            source = talk.study if mark.report == "current" else talk.before
            assert 0 <= mark.sentence < len(source.report.sentences)
    assert {"new", "unchanged", "resolved"} <= set(seen)


def test_exactly_one_option_of_a_change_is_right(made, asked):
    words = made.words.wording.phrases[5]["change"]
    none_said = made.words.wording.common["none_of_these"]
    checked = Counter()
    for talk, step in asked:
        if step.task != "change":
            continue
        (name,) = made.targets(step)
        truth = trend(name, talk.before, talk.study)
        old, new = things(talk.before).get(name), things(talk.study).get(name)

        def holds(text, truth=truth, old=old, new=new):
            for kind, clauses in words["trend"].items():
                if text in clauses:
                    return kind == truth
            return any(
                text
                == clause.format(before=getattr(old, "severity", None), now=getattr(new, "severity", None))
                for clause in words["from_to"]
            )

        (right,) = made.right(step)
        if right in none_said:
            assert not any(holds(option.text) for option in step.options if option.text != right)
            checked["none"] += 1
        else:
            assert holds(right)
            assert not any(holds(text) for text in made.wrong(step))
            checked["one"] += 1
        # What is there now has not gone, so that would be no option at all.
        assert not any(option.text in words["trend"]["resolved"] for option in step.options)
    assert checked["one"] > 5


def test_both_images_are_used(asked):
    for talk, step in asked:
        current = [f"v{n + 1}" for n, image in enumerate(talk.case.images) if image.role == "current"]
        assert set(step.uses) == {view.id for view in talk.case.views}
        assert set(current) < set(step.uses)


# ---- by hand ---------------------------------------------------------------------------------------------------------


def test_two_normal_studies_are_compared_as_unchanged(made):
    before, now = (
        made.study(made.finding("mass", "absent"), name="a"),
        made.study(made.finding("mass", "absent"), name="b"),
    )
    cases = made.talks(20, now, before)
    assert {case.reference_study for case in cases} == {"a"}
    tasks = Counter(s.task for case in cases for s in case.steps if s.stage == 5)
    assert set(tasks) == {"comparison"}


def test_without_anything_to_compare_there_is_no_reference(made):
    vague = [made.study(made.finding("mass"), name=name) for name in "ab"]
    for case in made.talks(10, vague[1], vague[0]):
        assert case.reference_study is None
        assert {image.role for image in case.images} == {"current"}
        assert not any(step.stage == 5 for step in case.steps)


def test_a_change_of_grade_names_both_grades(made):
    before = made.study(made.finding("pneumonia", severity="severe"), name="a")
    now = made.study(made.finding("pneumonia", severity="mild"), name="b")
    rights = Counter()
    for case in made.talks(120, now, before, quotas=made.everything):
        for step in case.steps:
            if step.task == "change":
                rights[made.right(step)[0]] += 1
                for text in [
                    option.text for option in step.options if "mild" in option.text or "severe" in option.text
                ]:
                    assert text.rfind("mild") >= max(text.rfind("moderate"), text.rfind("severe")), text
    assert any("severe" in text for text in rights)
    assert any("severe" not in text for text in rights)


@pytest.mark.parametrize("kind", ["new", "resolved"])
def test_devices_are_placed_and_removed(made, kind):
    with_tube = made.study(made.device("chest tube"), name="a")
    without = made.study(made.device("chest tube", "absent"), name="b")
    before, now = (without, with_tube) if kind == "new" else (with_tube, without)
    steps = [
        s for case in made.talks(20, now, before, quotas=made.everything) for s in case.steps if s.stage == 5
    ]
    assert {fact.text for s in steps for fact in made.facts(s, "trend")} == {kind}
    assert not any(step.task == "change" for step in steps)
    assert all("chest tube" in step.key.text for step in steps)


@pytest.mark.parametrize("followed", [True, False])
def test_nothing_is_called_stable_where_the_course_of_a_finding_is_unknown(made, followed):
    same = made.finding("pneumonia", severity="mild")
    vague = made.finding("fracture", severity="mild" if followed else None)
    before, now = (made.study(same, vague, name=name) for name in "ab")
    tasks = Counter(
        step.task
        for case in made.talks(40, now, before, quotas=made.everything)
        for step in case.steps
        if step.stage == 5
    )
    assert ("comparison" in tasks) == followed
    assert tasks["trend"] > 0


def test_a_grade_before_is_never_the_grade_now(made):
    before = made.study(made.finding("pneumonia", severity="severe"), name="a")
    now = made.study(made.finding("pneumonia", severity="mild"), name="b")
    clauses = made.words.wording.phrases[5]["change"]["from_to"]
    said = {
        grade: {clause.format(before=grade, now="mild") for clause in clauses}
        for grade in ("mild", "moderate", "severe")
    }
    seen = Counter()
    for case in made.talks(120, now, before, quotas=made.everything):
        for step in case.steps:
            if step.task == "change":
                seen.update(g for g, texts in said.items() for o in step.options if o.text in texts)
    assert set(seen) == {"moderate", "severe"}
