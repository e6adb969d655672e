"""Stage 4: only what the study relates, and in the right direction."""

from collections import Counter

import pytest


@pytest.fixture(scope="module")
def asked(conversations):
    return [(talk, step) for talk in conversations for step in talk.case.steps if step.stage == 4]


def stored(study):
    """Relations of what is there, but those between the two lungs."""
    there = {t.id: t for t in (*study.findings, *study.devices) if t.certainty != "absent"}

    def side(end):
        location = getattr(there[end], "location", None)
        return None if location is None else location.side

    return [
        r
        for r in study.relations
        if r.subject in there and r.object in there and {side(r.subject), side(r.object)} != {"right", "left"}
    ]


def test_stage_four_is_asked_exactly_where_a_relation_is_stored(conversations):
    for talk in conversations:
        assert any(step.stage == 4 for step in talk.case.steps) == bool(stored(talk.study)), talk.case.id


def test_both_families_are_asked_and_answered_by_the_record(made, asked):
    families = Counter()
    for talk, step in asked:
        told = {(fact.about, fact.text) for fact in made.facts(step, "relation")}
        known = {(r.id, f"{r.subject} {r.kind} {r.object}"): r for r in stored(talk.study)}
        assert told <= set(known)
        names = {t.id: t.name for t in (*talk.study.findings, *talk.study.devices)}
        relations = [known[pair] for pair in told]
        assert {(m.report, m.sentence) for m in step.evidence} == {
            ("current", n) for r in relations for n in r.evidence
        }
        if step.task == "relation":
            (relation,) = relations
            assert made.targets(step) == [names[relation.subject], names[relation.object]]
            assert step.restates
        else:
            assert told == set(known)
            for relation in relations:
                for end in (relation.subject, relation.object):
                    assert made.words.name(names[end]).bare in step.key.text.lower()
            assert step.restates == step.template.startswith("s4.relations.open-restating")
        families[step.task, step.restates] += 1
    assert set(families) == {("relation", True), ("relations", True), ("relations", False)}


def test_cause_and_effect_are_never_swapped(made):
    study = made.study(
        made.finding("mass"),
        made.finding("atelectasis"),
        relations=(made.relation(id="x", subject="f-mass", kind="causes", object="f-atelectasis"),),
    )
    clauses = made.words.wording.phrases[4]["relation"]["causes"]
    forward = [c.format(the_finding="the mass", the_other="the atelectasis").lower() for c in clauses]
    backward = [c.format(the_finding="the atelectasis", the_other="the mass").lower() for c in clauses]
    seen = Counter()
    for case in made.talks(40, study, quotas=made.everything):
        for step in case.steps:
            if step.task == "relations":
                said = step.key.text.lower()
                assert any(clause in said for clause in forward), said
                assert not any(clause in said for clause in backward), said
                seen["general"] += 1
    assert seen["general"] > 10


def test_a_relation_to_an_absent_finding_is_not_asked_about(made):
    study = made.study(
        made.finding("mass"),
        made.finding("atelectasis", "absent"),
        relations=(
            made.relation(id="x", subject="f-mass", kind="causes", object="f-atelectasis"),
            made.relation(id="y", subject="f-mass", kind="causes", object="nobody"),
        ),
    )
    assert not any(step.stage == 4 for case in made.talks(20, study) for step in case.steps)


def test_findings_of_the_same_name_have_no_relations(made):
    """A name that two have does not say which of them is meant."""
    study = made.study(
        made.finding("nodule", number="f1"),
        made.finding("nodule", number="f2"),
        made.finding("mass"),
        made.finding("atelectasis"),
        relations=(
            made.relation(id="x", subject="f1", kind="accompanies", object="f-mass"),
            made.relation(id="y", subject="f-mass", kind="causes", object="f-atelectasis"),
        ),
    )
    told = {
        fact.about
        for case in made.talks(20, study, quotas=made.everything)
        for step in case.steps
        for fact in made.facts(step, "relation")
    }
    assert told == {"y"}


def test_the_question_about_a_pair_comes_before_the_general_one(conversations):
    for talk in conversations:
        tasks = [step.task for step in talk.case.steps if step.stage == 4]
        assert tasks in ([], ["relations"], ["relation"], ["relation", "relations"], ["relation", "relation"])


@pytest.mark.parametrize(
    ("one", "other", "related"),
    [
        ("right", "left", False),
        ("left", "right", False),
        ("right", "right", True),
        ("right", "bilateral", True),
        ("bilateral", "left", True),
        (None, "left", True),
        ("midline", "left", True),
        ("bilateral", "midline", True),
    ],
)
def test_findings_in_opposite_lungs_are_not_related(made, one, other, related):
    study = made.study(
        made.finding("mass", side=one),
        made.finding("atelectasis", side=other),
        relations=(made.relation(id="x", subject="f-mass", kind="causes", object="f-atelectasis"),),
    )
    cases = made.talks(10, study, quotas=made.everything)
    assert {any(step.stage == 4 for step in case.steps) for case in cases} == {related}
