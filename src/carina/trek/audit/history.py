"""Gate: what does a model score that reads the question and the right answers before it, and never looks?

A text-only model with gold history, tried on other patients. It reads the words of the question, where and how its
target or option was mentioned before, earlier labels, and the words of earlier answers.
"""

from array import array
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import msgspec

from carina.cases.audit import GateResult, Row, Status, measured
from carina.cases.audit.learning import Asked, Sample, combined, compared, feature, features, hashed
from carina.cases.audit.steps import Choices, choices, target_of, task_of
from carina.cases.model import Case
from carina.trek.audit.limits import Limits
from carina.trek.audit.turns import Conversation, Decoder, Turn, forms

_MIX: Final = 0x9E3779B97F4A7C15
_MASK: Final = (1 << 64) - 1
_BEFORE: Final = 40
"""Characters before a mention that say how it was mentioned."""


class History:
    """What the conversation so far predicts, by task."""

    cost = 20.0

    def __init__(self, limits: Limits, decoder: Decoder) -> None:
        self._limits = limits
        self.decoder = decoder
        self._n = 0
        self._sample = Sample(limits.history_questions)

    def see(self, case: Case) -> None:
        conversation = self.decoder.read(case)
        if conversation is None:
            return
        self._n += 1
        rank = hashed(case.id)
        for turn in conversation.turns:
            if turn.step.format == "yes_no" or turn.choices is not None:
                found = turn.choices or choices(turn.step)
                if found is not None and len(found.texts) > 1:
                    # One hash a conversation, mixed with the place of the turn.
                    here = ((rank ^ turn.at) * _MIX & _MASK) >> 1
                    self._offer(conversation, turn, found, here)

    def _offer(self, conversation: Conversation, turn: Turn, found: Choices, rank: int) -> None:
        case = conversation.case

        def make() -> Asked:
            return Asked(
                patient=case.patient or case.study,
                target=target_of(case, turn.step),
                texts=found.texts,
                right=found.right,
                features=tuple(_features(conversation, turn, found)),
            )

        self._sample.offer(task_of(turn.step), f"{case.id} {turn.step.id}", rank, make)

    def result(self) -> GateResult:
        limits = self._limits
        tasks = self._sample.tasks(limits.common.least_cases)
        rows = [self._row(task, asked, len(tasks)) for task, asked in tasks.items()]
        return measured(
            "history",
            rows,
            n=self._n,
            threshold=f"question and right answers before it add at most {limits.history_warn:g} (warn) or "
            f"{limits.history_fail:g} (fail) to the best constant answer and the prior of the target; tasks with at "
            f"least {limits.common.least_cases} questions",
            good="Reading the conversation so far tells no closed answer.",
            bad="Some closed answers can be read off the conversation before them, so they measure reading and not "
            "looking; ask them earlier, or ask what the earlier answers leave open.",
            warned="Some closed answers can in part be read off the conversation before them; report these tasks "
            "beside this baseline.",
            none=f"No task has {limits.common.least_cases} closed questions of several patients to learn from.",
        )

    def _row(self, task: str, asked: list[Asked], tests: int) -> Row:
        limits = self._limits
        found = compared(asked, limits.common, name=task, what="question and history", tests=tests)
        p = found.text.p or 0.0
        status: Status = "pass"
        if found.gain > limits.history_fail and p <= limits.common.fail_level:
            status = "fail"
        elif found.gain > limits.history_warn and p <= limits.common.warn_level:
            status = "warn"
        return msgspec.structs.replace(found.text, status=status)


def _features(conversation: Conversation, turn: Turn, found: Choices) -> Iterator["array[int]"]:
    """Of each option."""
    asked = sorted(set(conversation.text[turn.start : turn.answered].split()))
    said = sorted(_answer_words(conversation, turn)) if turn.label is not None else []
    # What is the same for all options is begun once, and goes on with the words of each.
    begun = [
        *(_begun(f"asked {word} ") for word in asked),
        *(_begun(f"said {word} ") for word in said),
        *(_begun(f"target {how} ") for how in _manner(conversation, turn.name, turn.start)),
    ]
    labels = [_begun(f"{label} ") for label in _labels(conversation, turn)]
    target = target_of(conversation.case, turn.step)
    k = len(found.texts)
    longest = max(map(len, found.texts))
    for place, text in enumerate(found.texts):
        yield features(
            (
                feature(f"prior {target} {text}"),
                feature(f"text {text}"),
                feature(f"place {place} of {k}"),
                feature(f"longest {len(text) == longest}"),
                *combined(begun, text),
                *(feature(f"option {how}") for how in _manner(conversation, text, turn.start)),
                *combined(labels, text),
            )
        )


def _answer_words(conversation: Conversation, turn: Turn) -> set[str]:
    """Of all right answers before."""
    words: set[str] = set()
    for before in conversation.turns[: turn.at]:
        words.update(conversation.text[before.answered : before.end].split())
    return words


def _labels(conversation: Conversation, turn: Turn) -> list[str]:
    """Labels given so far: for the same name, in the same family, in others, and which one leads."""
    found = []
    last = "none"
    lead = 0
    for before in conversation.turns[: turn.at]:
        if before.label is None:
            continue
        lead += (before.label == "yes") - (before.label == "no")
        if before.step.task == turn.step.task:
            last = before.label
        if before.name and before.name == turn.name:
            found.append(f"same {before.step.task} {before.label}")
        elif not before.closed:
            found.append(f"family {before.step.task} {before.label}")
    return [*found, f"last {last}", f"lead {max(-2, min(2, lead))}"]


def _manner(conversation: Conversation, name: str, end: int) -> list[str]:
    """How something was mentioned so far: whether, in questions or in answers, and after which words."""
    text, found = conversation.text, set()
    for form in forms(name):
        at = text.find(form, 0, end)
        while at >= 0:
            turn = next(turn for turn in conversation.turns if at < turn.end)
            where = "question" if at < turn.answered else "answer"
            found.add(f"in {where}")
            begin = turn.answered if where == "answer" else turn.start
            before = text[max(begin, at - _BEFORE) : at].split()
            found.update(f"in {where} after {word}" for word in before[-3:])
            at = text.find(form, at + 1, end)
    return sorted(found) or ["not mentioned"]


@lru_cache(maxsize=16384)
def _begun(words: str) -> int:
    return feature(words)
