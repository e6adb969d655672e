"""Gate: can the answer be learned from the words alone?

For each task a model reads the wording, order, number and ids of the options, and the case's id. What it may know is
how often an answer is right for the target (the prior, reported apart); the gate asks whether the text adds to that
and to the best constant answer.
"""

import re
from array import array
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Final

import msgspec

from carina.cases.audit.frame import measured
from carina.cases.audit.learning import Asked, Sample, combined, compared, feature, features, hashed
from carina.cases.audit.record import GateResult, Row
from carina.cases.audit.steps import Choices, choices, target_of, task_of
from carina.cases.audit.thresholds import Thresholds
from carina.cases.model import Case, Step

_WORDS: Final = re.compile(r"[a-z]+|\d+")
_OPTIONS: Final = "\nOptions:"


class TextOnly:
    """What text predicts, by task."""

    cost = 14.0

    def __init__(self, thresholds: Thresholds) -> None:
        self._thresholds = thresholds
        self._n = 0
        self._sample = Sample(thresholds.most_cases)

    def see(self, case: Case) -> None:
        self._n += 1
        for step in case.steps:
            found = choices(step)
            if found is not None and len(found.texts) >= 2:
                self._offer(case, step, found)

    def _offer(self, case: Case, step: Step, found: Choices) -> None:
        name = f"{case.id} {step.id}"

        def make() -> Asked:
            return Asked(
                patient=case.patient or case.study,
                target=target_of(case, step),
                texts=found.texts,
                right=found.right,
                features=tuple(_features(case, step, found)),
                group=case.target or "",
            )

        self._sample.offer(task_of(step), name, hashed(name), make)

    def result(self) -> GateResult:
        limits = self._thresholds
        tasks = self._sample.tasks(limits.least_cases)
        rows = [row for task, asked in tasks.items() for row in self._rows(task, asked, len(tasks))]
        least = f" by more than {limits.slack:g}" if limits.slack else ""
        return measured(
            "text",
            rows,
            n=self._n,
            threshold=f"text no better{least} than the best constant answer and the prior of the target (fail at "
            f"{limits.fail_level:g}, warn at {limits.warn_level:g}, all tasks together; tasks with "
            f"at least {limits.least_cases} cases)",
            good="The words of a question do not tell its answer.",
            bad="The answer can be guessed from the text alone better than from the frequency of answers; look at the "
            "wording, order and number of options of these tasks.",
            none=f"No task has {limits.least_cases} cases of several patients to learn from.",
        )

    def _rows(self, task: str, asked: list[Asked], tests: int) -> Iterator[Row]:
        found = compared(asked, self._thresholds, name=task, what="text", tests=tests)
        slack, row = self._thresholds.slack, found.text
        if slack and found.gain <= slack:
            row = msgspec.structs.replace(row, status="pass")
        elif slack and found.low <= slack and row.status == "fail":
            # Sure to be there, but not sure to be large.
            row = msgspec.structs.replace(row, status="warn")
        yield row
        yield found.prior


def _features(case: Case, step: Step, found: Choices) -> Iterator["array[int]"]:
    """What can be read about each option, as words with a prefix that says where they stand."""
    question = step.question.split(_OPTIONS)[0]
    words = [_asked(word) for word in sorted(set(_WORDS.findall(f"{step.context or ''} {question}".lower())))]
    target = target_of(case, step)
    k, lengths = len(found.texts), [len(text) for text in found.texts]
    first = found.texts[0]
    for place, text in enumerate(found.texts):
        own = _WORDS.findall(text)
        back = k - place
        option = step.options[place] if step.options else None
        plain = (
            f"prior {target} {text}",
            f"text {text}",
            *(f"word {word}" for word in own),
            *(f"pair {one} {other}" for one, other in pairwise(own)),
            f"place {place}",
            f"back {back}",
            f"place {place} of {k}",
            f"text {text} of {k}",
            f"text {text} at {place}",
            f"text {text} after {first}",
            f"longest {lengths[place] == max(lengths)}",
            f"shortest {lengths[place] == min(lengths)}",
            f"id {option.id if option else ''}",
            f"begins {case.id[2:3]} at {place}",
            f"begins {case.id[2:3]} {text}",
            f"ends {case.id[-1:]} at {place}",
            f"ends {case.id[-1:]} {text}",
        )
        yield features((*map(feature, plain), *combined(words, text), *combined(words, f"at {place}")))


@lru_cache(maxsize=4096)
def _asked(word: str) -> int:
    return feature(f"asked {word} ")
