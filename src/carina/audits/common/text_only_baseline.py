"""Gate: can the answer be learned from the text alone?

For each task a model reads the wording, order, number and ids of the options, and the case's id. It may know how often
an answer is right for the target (the prior, which is reported separately); the gate asks whether the text adds to that
and to the best constant answer.
"""

import re
from array import array
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from carina.audits.answer_options import Choices, read_choices, task_of
from carina.audits.facts import target_of
from carina.audits.gate import AuditContext, Count, Gate, Limits, Share, gate
from carina.audits.result import GateResult, Row
from carina.audits.text_model import (
    Question,
    QuestionSample,
    compare_with_prior,
    extend_features,
    hash_feature,
    hash_text,
    pack_features,
)
from carina.cases.model import Case, Step

_WORDS: Final = re.compile(r"[a-z]+|\d+")
_OPTIONS: Final = "\nOptions:"


class TextOnlyLimits(Limits, frozen=True):
    """Limits of `text-only-baseline`."""

    margin: Annotated[
        Share,
        Meta(
            description="Accuracy that the text may add to the best constant answer and prior.",
            extra={"trek": 0.05},
        ),
    ] = 0.0
    min_questions: Annotated[Count, Meta(description="Questions that a task needs to be tested.")] = 30
    max_questions: Annotated[
        Count,
        Meta(
            description="Questions of a task that the model learns from, sampled by a hash of their ids.",
            extra={"trek": 1500},
        ),
    ] = 4000


@gate(
    "text-only-baseline",
    title="Text-only baseline",
    meaning="The text of a question does not reveal its answer.",
    limits=TextOnlyLimits,
    order=50,
)
class TextOnlyBaseline(Gate[TextOnlyLimits]):
    """Accuracy of a model that only reads, by task."""

    cost = 14.0

    def __init__(self, context: AuditContext, limits: TextOnlyLimits) -> None:
        super().__init__(context, limits)
        self._n = 0
        self._sample = QuestionSample(limits.max_questions)

    def see(self, case: Case) -> None:
        self._n += 1
        for step in case.steps:
            choices = read_choices(step)
            if choices is not None and len(choices.texts) >= 2:
                self._offer(case, step, choices)

    def _offer(self, case: Case, step: Step, choices: Choices) -> None:
        name = f"{case.id} {step.id}"

        def make() -> Question:
            return Question(
                patient=case.patient or case.study,
                target=target_of(case, step),
                texts=choices.texts,
                right=choices.right,
                features=tuple(_extract_features(case, step, choices)),
                group=case.target or "",
            )

        self._sample.offer(task_of(step), name, hash_text(name), make)

    def result(self) -> GateResult:
        limits, context = self.limits, self.context
        tasks = self._sample.tasks(limits.min_questions)
        rows = [row for task, questions in tasks.items() for row in self._rows(task, questions, len(tasks))]
        least = f" by more than {limits.margin:g}" if limits.margin else ""
        return self.report_rows(
            rows,
            n=self._n,
            threshold=f"text no better{least} than the best constant answer and the prior of the target (fail at "
            f"{context.fail_level:g}, warn at {context.warn_level:g}, corrected for all tasks; tasks with at least "
            f"{limits.min_questions} questions)",
            good="The text of a question does not reveal its answer.",
            bad="The answer can be guessed from the text better than from the frequency of answers; check the wording, "
            "order and number of options of these tasks.",
            none=f"No task has {limits.min_questions} questions of enough patients to learn from.",
        )

    def _rows(self, task: str, questions: list[Question], tests: int) -> Iterator[Row]:
        found = compare_with_prior(questions, self.context, name=task, what="text", tests=tests)
        margin, row = self.limits.margin, found.text
        if margin and found.gain <= margin:
            row = msgspec.structs.replace(row, status="pass")
        elif margin and found.gain_low <= margin and row.status == "fail":
            # There is certainly a gain, but it is not certainly a large one.
            row = msgspec.structs.replace(row, status="warn")
        yield row
        yield found.prior


def _extract_features(case: Case, step: Step, choices: Choices) -> Iterator["array[int]"]:
    """What can be read about each option, as words with a prefix that says where they stand."""
    question = step.question.split(_OPTIONS)[0]
    words = [
        _hash_question_word(word)
        for word in sorted(set(_WORDS.findall(f"{step.context or ''} {question}".lower())))
    ]
    target = target_of(case, step)
    k, lengths = len(choices.texts), [len(text) for text in choices.texts]
    first = choices.texts[0]
    for place, text in enumerate(choices.texts):
        own = _WORDS.findall(text)
        from_end = k - place
        option = step.options[place] if step.options else None
        plain = (
            f"prior {target} {text}",
            f"text {text}",
            *(f"word {word}" for word in own),
            *(f"pair {one} {other}" for one, other in pairwise(own)),
            f"place {place}",
            f"back {from_end}",
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
        yield pack_features(
            (
                *map(hash_feature, plain),
                *extend_features(words, text),
                *extend_features(words, f"at {place}"),
            )
        )


@lru_cache(maxsize=4096)
def _hash_question_word(word: str) -> int:
    return hash_feature(f"asked {word} ")
