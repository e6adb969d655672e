"""Stage 6: the key is what a later study showed, and nothing of that study is shown."""

from collections import Counter

import pytest

from carina.trek.options import Quotas


@pytest.fixture(scope="module")
def asked(conversations):
    return [(talk, step) for talk in conversations for step in talk.case.steps if step.stage == 6]


def test_every_family_is_asked_and_only_with_a_later_study(conversations, asked):
    assert {(step.task, step.format) for _, step in asked} == {
        ("outlook", "open"),
        ("finding outlook", "open"),
        ("prognosis", "open"),
    }
    for talk in conversations:
        staged = any(step.stage == 6 for step in talk.case.steps)
        assert (talk.case.later_study is not None) == staged
        if staged:
            assert talk.case.later_study == talk.after.id
            later = {image.key for image in talk.after.images}
            assert not later & {image.key for image in talk.case.images}


def test_evidence_is_marked_as_later_and_only_here(conversations, asked):
    for _, step in asked:
        assert {mark.report for mark in step.evidence} <= {"later"}
    for talk in conversations:
        for step in talk.case.steps:
            assert step.stage == 6 or all(mark.report != "later" for mark in step.evidence)


def test_facts_are_of_findings_of_the_current_study(made, asked):
    trends = Counter()
    for talk, step in asked:
        now = {t.id: t for t in (*talk.study.findings, *talk.study.devices) if t.certainty != "absent"}
        later = [*talk.after.findings, *talk.after.devices]
        for fact in made.facts(step, "trend"):
            assert fact.about in now, (talk.case.id, step.id, fact)
            name = now[fact.about].name
            same = [t for t in later if t.name == name]
            if fact.text == "resolved":
                assert all(t.certainty == "absent" for t in same)
            else:
                (thing,) = (t for t in same if t.certainty != "absent")
                assert thing.trend in (None, fact.text)
            trends[fact.text] += 1
        if step.task == "finding outlook":
            assert made.targets(step) == [now[made.facts(step, "trend")[0].about].name]
    assert {"unchanged", "resolved"} <= set(trends)
    assert "new" not in trends


def test_findings_that_are_not_yet_present_are_not_asked_about(made):
    now = made.study(made.finding("mass", "absent"), name="a")
    later = made.study(made.finding("mass"), name="b")
    for case in made.talks(20, now, None, later, quotas=Quotas(outlook=1.0)):
        assert case.later_study is None
        assert not any(step.stage == 6 for step in case.steps)


@pytest.mark.parametrize(
    ("trends", "kind"),
    [
        (("worse", "unchanged"), "worse"),
        (("improved", "unchanged"), "better"),
        (("worse", "improved"), "mixed"),
        (("unchanged", "unchanged"), "stable"),
    ],
)
def test_the_prognosis_is_the_sum_of_the_changes(made, trends, kind):
    names = ("pneumothorax", "cardiomegaly")
    now = made.study(*(made.finding(name) for name in names), name="a")
    later = made.study(*(made.finding(n, trend=t) for n, t in zip(names, trends, strict=True)), name="b")
    frames = made.words.wording.pools[6, "prognosis", "open"].answers
    told = 0
    for case in made.talks(40, now, None, later, quotas=Quotas(outlook=1.0)):
        for step in case.steps:
            if step.task == "prognosis":
                pieces = [frame.partition("{changes}") for frame in frames[kind]]
                assert any(
                    step.key.text.startswith(a.strip()[:1].upper() + a.strip()[1:])
                    and step.key.text.endswith(b.strip())
                    for a, _, b in pieces
                )
                told += 1
    assert told > 3


@pytest.mark.parametrize("followed", [True, False])
def test_a_prognosis_is_asked_for_only_where_the_course_of_everything_is_known(made, followed):
    now = made.study(made.finding("pneumothorax"), made.finding("cardiomegaly"), name="a")
    course = {"trend": "unchanged"} if followed else {}
    later = made.study(
        made.finding("pneumothorax", trend="worse"), made.finding("cardiomegaly", **course), name="b"
    )
    cases = made.talks(40, now, None, later, quotas=Quotas(outlook=1.0))
    tasks = {step.task for case in cases for step in case.steps if step.stage == 6}
    assert tasks == {"outlook", "finding outlook"} | ({"prognosis"} if followed else set())
