"""Gate: what does a model score that reads the question and the right answers before it, but no image?

A text-only model with gold history, tested on other patients. It reads the words of the question, where and how its
target or option was mentioned before, earlier labels, and the words of earlier answers.
"""

from array import array
from collections.abc import Iterator
from functools import lru_cache
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from carina.audits.answer_options import Choices, read_choices, task_of
from carina.audits.facts import target_of
from carina.audits.gate import AuditContext, Count, Limits, Share, gate
from carina.audits.result import GateResult, Row, Status
from carina.audits.text_model import (
    Question,
    QuestionSample,
    compare_with_prior,
    extend_features,
    hash_feature,
    hash_text,
    pack_features,
)
from carina.audits.trek.base import ConversationGate
from carina.audits.trek.conversation import Conversation, Turn, list_forms

_MIX: Final = 0x9E3779B97F4A7C15
_MASK: Final = (1 << 64) - 1
_BEFORE: Final = 40
"""Characters before a mention that the model reads."""


class HistoryBaselineLimits(Limits, frozen=True):
    """Limits of `history-baseline`."""

    warn_gain: Annotated[
        Share,
        Meta(
            description="Accuracy that the history may add to the prior of the target before the gate warns."
        ),
    ] = 0.03
    fail_gain: Annotated[
        Share,
        Meta(
            description="Accuracy that the history may add to the prior of the target before the gate fails."
        ),
    ] = 0.10
    min_questions: Annotated[Count, Meta(description="Questions that a task needs to be tested.")] = 30
    max_questions: Annotated[
        Count,
        Meta(description="Questions of a task that the model learns from, sampled by a hash of their ids."),
    ] = 1500


@gate(
    "history-baseline",
    title="Text-only baseline with history",
    meaning="The conversation so far does not reveal closed answers.",
    limits=HistoryBaselineLimits,
    protocols=("trek",),
    order=440,
)
class HistoryBaseline(ConversationGate[HistoryBaselineLimits]):
    """Accuracy of a model that reads the conversation so far, by task."""

    cost = 20.0

    def __init__(self, context: AuditContext, limits: HistoryBaselineLimits) -> None:
        super().__init__(context, limits)
        self._sample = QuestionSample(limits.max_questions)

    def examine(self, conversation: Conversation) -> None:
        rank = hash_text(conversation.case.id)
        for turn in conversation.turns:
            if turn.step.format == "yes_no" or turn.choices is not None:
                choices = turn.choices or read_choices(turn.step)
                if choices is not None and len(choices.texts) > 1:
                    # One hash per conversation, mixed with the place of the turn.
                    turn_rank = ((rank ^ turn.at) * _MIX & _MASK) >> 1
                    self._offer(conversation, turn, choices, turn_rank)

    def _offer(self, conversation: Conversation, turn: Turn, choices: Choices, rank: int) -> None:
        case = conversation.case

        def make() -> Question:
            return Question(
                patient=case.patient or case.study,
                target=target_of(case, turn.step),
                texts=choices.texts,
                right=choices.right,
                features=tuple(_extract_features(conversation, turn, choices)),
            )

        self._sample.offer(task_of(turn.step), f"{case.id} {turn.step.id}", rank, make)

    def result(self) -> GateResult:
        limits = self.limits
        tasks = self._sample.tasks(limits.min_questions)
        rows = [self._row(task, questions, len(tasks)) for task, questions in tasks.items()]
        return self.report_rows(
            rows,
            n=self._n,
            threshold=f"question and right answers before it add at most {limits.warn_gain:g} (warn) or "
            f"{limits.fail_gain:g} (fail) to the best constant answer and the prior of the target; tasks with at "
            f"least {limits.min_questions} questions",
            good="The conversation so far does not reveal closed answers.",
            bad="The conversation before them reveals some closed answers, so they measure reading, not looking; ask "
            "these questions earlier, or ask what the earlier answers leave open.",
            warned="The conversation before them partly reveals some closed answers; report these tasks beside this "
            "baseline.",
            none=f"No task has {limits.min_questions} closed questions of enough patients to learn from.",
        )

    def _row(self, task: str, questions: list[Question], tests: int) -> Row:
        limits = self.limits
        found = compare_with_prior(
            questions, self.context, name=task, what="question and history", tests=tests
        )
        p = found.text.p or 0.0
        status: Status = "pass"
        if found.gain > limits.fail_gain and p <= self.context.fail_level:
            status = "fail"
        elif found.gain > limits.warn_gain and p <= self.context.warn_level:
            status = "warn"
        return msgspec.structs.replace(found.text, status=status)


def _extract_features(conversation: Conversation, turn: Turn, choices: Choices) -> Iterator["array[int]"]:
    """The features of each option."""
    question_words = sorted(set(conversation.text[turn.start : turn.answer_start].split()))
    answer_words = sorted(_answer_words(conversation, turn)) if turn.label is not None else []
    # Prefixes that all options share are hashed once, and continued with the words of each option.
    prefixes = [
        *(_hash_prefix(f"asked {word} ") for word in question_words),
        *(_hash_prefix(f"said {word} ") for word in answer_words),
        *(_hash_prefix(f"target {how} ") for how in _list_mentions(conversation, turn.name, turn.start)),
    ]
    labels = [_hash_prefix(f"{label} ") for label in _earlier_labels(conversation, turn)]
    target = target_of(conversation.case, turn.step)
    k = len(choices.texts)
    longest = max(map(len, choices.texts))
    for place, text in enumerate(choices.texts):
        yield pack_features(
            (
                hash_feature(f"prior {target} {text}"),
                hash_feature(f"text {text}"),
                hash_feature(f"place {place} of {k}"),
                hash_feature(f"longest {len(text) == longest}"),
                *extend_features(prefixes, text),
                *(hash_feature(f"option {how}") for how in _list_mentions(conversation, text, turn.start)),
                *extend_features(labels, text),
            )
        )


def _answer_words(conversation: Conversation, turn: Turn) -> set[str]:
    """Words of all earlier right answers."""
    words: set[str] = set()
    for before in conversation.turns[: turn.at]:
        words.update(conversation.text[before.answer_start : before.end].split())
    return words


def _earlier_labels(conversation: Conversation, turn: Turn) -> list[str]:
    """Earlier labels: for the same name, in the same task, in others, and which one is more frequent."""
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
        elif not before.is_closed:
            found.append(f"family {before.step.task} {before.label}")
    return [*found, f"last {last}", f"lead {max(-2, min(2, lead))}"]


def _list_mentions(conversation: Conversation, name: str, end: int) -> list[str]:
    """How a name was mentioned so far: in questions or in answers, and after which words."""
    text, found = conversation.text, set()
    for form in list_forms(name):
        at = text.find(form, 0, end)
        while at >= 0:
            turn = next(turn for turn in conversation.turns if at < turn.end)
            where = "question" if at < turn.answer_start else "answer"
            found.add(f"in {where}")
            begin = turn.answer_start if where == "answer" else turn.start
            before = text[max(begin, at - _BEFORE) : at].split()
            found.update(f"in {where} after {word}" for word in before[-3:])
            at = text.find(form, at + 1, end)
    return sorted(found) or ["not mentioned"]


@lru_cache(maxsize=16384)
def _hash_prefix(words: str) -> int:
    return hash_feature(words)
