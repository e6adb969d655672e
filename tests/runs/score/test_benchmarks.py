"""Every step of small phantom benchmarks: the right answer is perfect, and a wrong one is not."""

from collections import Counter

import pytest

from carina.cases.messages import answer
from carina.percept.analysis import analyse_lesion
from carina.percept.assemble import make_lesion_case, make_lesion_free_case
from carina.percept.lesions import LESIONS
from carina.percept.records import LesionAnalysis
from carina.percept.rules import Rules
from carina.percept.select import assign_key_positions, choose_masks
from carina.phantom import PhantomOptions, make_studies
from carina.runs.records import ParsedAnswer
from carina.runs.score import chance, score
from carina.trek.conversation import make_conversation
from carina.trek.language import load_language
from carina.trek.options import TrekOptions
from carina.trek.subject import subject_of
from carina.trek.survey import survey_studies

RULES = Rules()


@pytest.fixture(scope="module")
def conversations():
    """Phantoms, each with its neighbours in time."""
    words = load_language()
    studies = [study for study, _ in make_studies(24, 7, PhantomOptions(size=96))]
    among = survey_studies(studies, words)
    subjects = {study.id: subject_of(study, words, known=among.known, most_images=2) for study in studies}
    return [
        make_conversation(
            subjects[study.id],
            subjects.get(study.prior),
            subjects.get(study.later),
            survey=among,
            words=words,
            options=TrekOptions(seed=seed),
        )
        for seed in range(3)
        for study in studies
    ]


@pytest.fixture(scope="module")
def examinations():
    """Lesions of phantoms on every path."""
    cases = []
    for study, _ in make_studies(8, 5, PhantomOptions(size=256)):
        for found in study.findings:
            target = next((lesion.name for lesion in LESIONS.values() if lesion.finding == found.name), None)
            if target is None or found.certainty != "present":
                continue
            analysis = analyse_lesion(study, target, seed=3, rules=RULES)
            if isinstance(analysis, LesionAnalysis):
                (analysis,) = choose_masks([analysis], seed=1)
                due = {
                    path: assign_key_positions(target, path, len(cases), seed=1)
                    for path in ("LF", "RF", "RR")
                }
                right = min(analysis.attributes.locations, default=0) if analysis.attributes else 0
                cases.append(
                    make_lesion_free_case(
                        analysis.subject, target, seed=1, rules=RULES, key_position=due["LF"]
                    )
                )
                cases += [
                    make_lesion_case(
                        analysis, path, right_regions=right, seed=1, rules=RULES, key_position=due[path]
                    )
                    for path in ("RF", "RR")
                ]
    return cases


def right_answer(case, step):
    key = step.key
    return ParsedAnswer(
        status="ok", options=key.options, label=key.label, boxes=key.boxes, text=answer(case, step)
    )


def figures(scores):
    return {scores.overlap, scores.f1, scores.rouge, scores.entity_f1, scores.attribute_f1} - {None}


def test_the_key_of_every_step_of_trek_scores_1(conversations):
    seen = Counter()
    for case in conversations:
        for step in case.steps:
            scores = score(case, step, right_answer(case, step), answer(case, step))
            seen[step.format] += 1
            assert scores.score == pytest.approx(1), (step, scores)
            assert scores.correct in (True, None), (step, scores)
            assert figures(scores) <= {1.0}, (step, scores)
            assert scores.obeyed in (True, None), (step, scores)
            assert (scores.correct is None) <= (step.format in ("open", "report"))
            assert (scores.rouge == 1) == (step.format in ("open", "report"))
    assert min(seen[form] for form in ("open", "report", "choice", "yes_no", "boxes")) > 20


def test_the_key_of_every_step_of_percept_scores_1(examinations):
    seen = Counter()
    for case in examinations:
        for step in case.steps:
            scores = score(case, step, right_answer(case, step), "")
            seen[step.multiple] += 1
            assert (scores.correct, scores.score) == (True, 1.0)
            assert figures(scores) == ({1.0} if step.multiple else set())
    assert min(seen.values()) > 10


def test_random_answers_are_right_as_often_as_chance_says(examinations):
    """Counted over every admissible answer: one option, or a set of options without "none", or "none" alone."""
    counted = set()
    for case in examinations:
        for step in case.steps:
            content = [option.id for option in step.options if option.id != "none"]
            if step.multiple:
                draws = [
                    tuple(name for n, name in enumerate(content) if bits >> n & 1)
                    for bits in range(1, 2 ** len(content))
                ] + [("none",)]
            else:
                draws = [(option.id,) for option in step.options]
            if (step.task, len(draws)) in counted:
                continue
            counted.add((step.task, len(draws)))
            right = [score(case, step, ParsedAnswer(status="ok", options=draw), "").correct for draw in draws]
            assert sum(right) / len(right) == pytest.approx(chance(step))
    assert {8, 32} <= {number for _, number in counted}


def test_keys_of_other_cases_score_less(conversations):
    """Answers to the same task of other cases: figures tell right answers from wrong ones."""
    keys = {}
    for case in conversations:
        for step in case.steps:
            if step.format == "open" and step.task in ("abnormalities", "side", "severity", "trend", "view"):
                keys.setdefault(step.task, []).append((case, step))
    for task, asked in keys.items():
        others = [*asked[1:], asked[0]]
        mean = sum(
            score(case, step, right_answer(*other), "").score
            for (case, step), other in zip(asked, others, strict=True)
        ) / len(asked)
        assert mean < 0.9, task
