"""Stage 4: only what the study relates, and in the right direction."""

from collections import Counter

import pytest


@pytest.fixture(scope="module")
def asked(conversations):
    return [(talk, step) for talk in conversations for step in talk.case.steps if step.stage == 4]


def stored(study):
    there = {t.id for t in (*study.findings, *study.devices) if t.certainty != "absent"}
    return [r for r in study.relations if r.subject in there and r.object in there]


def test_stage_four_is_there_exactly_where_something_is_related(conversations):
    for talk in conversations:
        assert any(step.stage == 4 for step in talk.case.steps) == bool(stored(talk.study)), talk.case.id


def test_both_families_are_asked_and_tell_what_is_stored(made, asked):
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


def test_a_cause_is_never_turned_round(made):
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


def test_a_relation_to_what_is_not_there_is_not_asked(made):
    study = made.study(
        made.finding("mass"),
        made.finding("atelectasis", "absent"),
        relations=(
            made.relation(id="x", subject="f-mass", kind="causes", object="f-atelectasis"),
            made.relation(id="y", subject="f-mass", kind="causes", object="nobody"),
        ),
    )
    assert not any(step.stage == 4 for case in made.talks(20, study) for step in case.steps)


def test_what_there_is_twice_is_only_related_in_general(made):
    study = made.study(
        made.finding("nodule", number="f1"),
        made.finding("nodule", number="f2"),
        made.finding("mass"),
        relations=(made.relation(id="x", subject="f1", kind="accompanies", object="f-mass"),),
    )
    tasks = Counter(
        s.task for case in made.talks(20, study, quotas=made.everything) for s in case.steps if s.stage == 4
    )
    assert set(tasks) == {"relations"}


def test_the_pair_comes_before_what_tells_it(conversations):
    for talk in conversations:
        tasks = [step.task for step in talk.case.steps if step.stage == 4]
        assert tasks in ([], ["relations"], ["relation"], ["relation", "relations"], ["relation", "relation"])
