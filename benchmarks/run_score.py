"""How fast answers are scored: choices, boxes, and words with and without what they state.

    python benchmarks/run_score.py [--studies 60]

Prints answers a second. ROUGE-L alone is the bound for words. An answer is another key of the same task in slightly
other words, so that the report reader does its whole work on both sides; nothing is kept from one pass to the next.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable

from carina.cases import Case, Step
from carina.cases.messages import answer
from carina.phantom import PhantomOptions, make_studies
from carina.reports.answers import (
    denial_kinds,
    names_in,
    read_actions,
    read_attributes,
    read_position,
    read_quality,
    read_trend,
    read_trends,
    read_views,
)
from carina.reports.observations import parse_sentence
from carina.runs.records import ParsedAnswer
from carina.runs.score import score
from carina.runs.score.text import read_text, rouge_l
from carina.trek.conversation import make_conversation
from carina.trek.language import load_language
from carina.trek.options import TrekOptions
from carina.trek.subject import subject_of
from carina.trek.survey import survey_studies

Answer = tuple[Case, Step, ParsedAnswer, str]
CACHES = (
    denial_kinds,
    names_in,
    read_actions,
    read_attributes,
    read_position,
    read_quality,
    read_text,
    read_trend,
    read_trends,
    read_views,
    parse_sentence,
)
"""What scoring keeps from one text to the next."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=60)
    answers = answers_of(parser.parse_args().studies)
    texts = [one for one in answers if one[1].format in ("open", "report")]
    reports = [one for one in texts if one[1].format == "report"]
    choices = [one for one in answers if one[1].format in ("choice", "yes_no")]
    boxes = [one for one in answers if one[1].format == "boxes"]
    show("choice and yes/no", choices, scored)
    show("boxes", boxes, scored)
    show("words, ROUGE-L alone", texts, only_rouge)
    show("words, all figures", texts, scored)
    show("of these, reports", reports, scored)
    long = " ".join(one[3] for one in reports)
    huge = long * (10_000_000 // len(long) + 1)
    case, step, _, _ = reports[0]
    show("a report of 10 MB", [(case, step, ParsedAnswer(status="ok", text=huge), huge)], scored)


def answers_of(studies: int) -> list[Answer]:
    """Every step of conversations about phantoms, answered with the key of the next one of its task."""
    words = load_language()
    made = [study for study, _ in make_studies(studies, 3, PhantomOptions(size=96))]
    among = survey_studies(made, words)
    subjects = [subject_of(study, words, known=among.known, most_images=2) for study in made]
    cases = [
        make_conversation(subject, None, None, survey=among, words=words, options=TrekOptions(seed=seed))
        for seed in range(4)
        for subject in subjects
    ]
    alike: dict[tuple[str, str], list[tuple[Case, Step]]] = defaultdict(list)
    for case in cases:
        for step in case.steps:
            alike[step.task, step.format].append((case, step))
    answers: list[Answer] = []
    for steps in alike.values():
        for (case, step), (other, given) in zip(steps, [*steps[1:], steps[0]], strict=True):
            text = answer(other, given).replace("the ", "this ").replace("There ", "Here there ")
            image = step.key.boxes[0].image if step.key.boxes else ""
            parsed = ParsedAnswer(
                status="ok",
                options=given.key.options,
                label=given.key.label,
                boxes=tuple(
                    type(box)(image=image, xyxy=box.xyxy, frame=box.frame) for box in given.key.boxes
                ),
                text=text,
            )
            answers.append((case, step, parsed, text))
    return answers


def scored(answered: Answer) -> object:
    """Score one answer."""
    return score(*answered)


def only_rouge(answered: Answer) -> object:
    """ROUGE-L of one answer."""
    return rouge_l(answered[1].key.text or "", answered[3])


def show(name: str, answers: list[Answer], work: Callable[[Answer], object]) -> None:
    """Print the best of three passes, each with empty caches."""
    best = float("inf")
    for _ in range(3):
        for cache in CACHES:
            cache.cache_clear()
        start = time.perf_counter()
        for one in answers:
            work(one)
        best = min(best, time.perf_counter() - start)
    print(f"{name:24} {len(answers):6} answers  {len(answers) / best:10,.0f} /s  {1e3 * best:8.1f} ms")


if __name__ == "__main__":
    main()
