"""Stage 7: what the study recommends, and because of what."""

from collections import Counter

import pytest


@pytest.fixture(scope="module")
def asked(conversations):
    return [(talk, step) for talk in conversations for step in talk.case.steps if step.stage == 7]


def due(study):
    there = {t.id for t in (*study.findings, *study.devices) if t.certainty != "absent"}
    return [r for r in study.recommendations if there & set(r.about)]


def test_stage_seven_is_asked_exactly_where_a_recommendation_is_stored(conversations):
    for talk in conversations:
        assert sum(step.stage == 7 for step in talk.case.steps) == bool(due(talk.study)), talk.case.id


def test_the_answer_lists_the_recommendations_with_their_sentences(made, asked):
    restated = Counter()
    actions = made.words.wording.phrases[7]["action"]
    for talk, step in asked:
        wanted = due(talk.study)
        assert sorted(fact.text for fact in made.facts(step, "recommendation")) == sorted(
            r.action for r in wanted
        )
        assert {fact.about for fact in made.facts(step, "recommendation")} == {
            " ".join(r.about) for r in wanted
        }
        assert {mark.sentence for mark in step.evidence} == {n for r in wanted for n in r.evidence}
        for recommendation in wanted:
            clauses = actions.get(recommendation.action, actions["other"])
            starts = [clause.partition("{")[0].strip().lower() for clause in clauses]
            quotes = [
                talk.study.report.quote(talk.study.report.sentences[n]) for n in recommendation.evidence
            ]
            assert any(start and start in step.key.text.lower() for start in starts) or any(
                q in step.key.text for q in quotes
            )
        assert step.restates == step.template.startswith("s7.advice.open-restating")
        if step.restates:
            for thing in (*talk.study.findings, *talk.study.devices):
                if thing.certainty != "absent":
                    assert (
                        made.words.name(thing.name).a.removeprefix("a ").removeprefix("an ") in step.question
                        or made.words.name(thing.name).bare in step.question
                    )
        restated[step.restates] += 1
    assert set(restated) == {True, False}


def test_recommendations_about_absent_findings_are_not_asked_for(made):
    study = made.study(
        made.finding("mass", "absent"),
        made.finding("fracture"),
        recommendations=(made.recommendation(id="r", action="chest CT", about=("f-mass",)),),
    )
    assert not any(step.stage == 7 for case in made.talks(10, study) for step in case.steps)


def test_an_action_outside_the_wording_is_quoted_unchanged(made):
    study = made.study(
        made.finding("mass"),
        recommendations=(made.recommendation(id="r", action="needle biopsy under CT", about=("f-mass",)),),
    )
    steps = [s for case in made.talks(20, study) for s in case.steps if s.stage == 7]
    assert len(steps) == 20
    assert all("needle biopsy under ct" in step.key.text.lower() for step in steps)


def test_without_a_report_nothing_is_quoted(made):
    study = made.study(
        made.finding("mass", evidence=(4,)),
        recommendations=(made.recommendation(id="r", action="chest CT", about=("f-mass",), evidence=(4,)),),
    )
    for case in made.talks(10, study):
        assert not any("{" in str(step.key.text) or '""' in str(step.key.text) for step in case.steps)
