"""Gate: do the right answers have the length and the form that their questions ask for?"""

import re
from collections.abc import Iterator
from typing import Final

from carina.audits.gate import gate
from carina.audits.trek.base import RuleGate, Violation
from carina.audits.trek.conversation import Conversation, Turn

_BARE_ANSWER: Final = 3
"""Longest bare answer to a yes/no question, in words: "cannot be determined"."""
_LABEL_WORDS: Final = 2
"""Words for the label of an option and the conjunction before the next one."""
_WORD_LIMIT: Final = re.compile(
    r"(?:at most|no more than|at least|up to|fewer than|more than|within) (\d+) words"
)


@gate(
    "answer-constraints",
    title="Length and form of answers",
    meaning="Every right answer obeys the length and the form that its question asks for.",
    protocols=("trek",),
    order=350,
)
class AnswerConstraints(RuleGate):
    """Right answers beside the constraints of their questions."""

    rules = ("max_words", "min_words", "answer_only", "stored")
    threshold = "key.text within max_words and min_words; only the answer where nothing else is asked for"
    good = "Every right answer obeys the length and the form that its question asks for."
    bad = "Some right answers violate the constraints of their own questions; generate these answers again."

    def find_violations(self, conversation: Conversation) -> Iterator[Violation]:
        for turn in conversation.turns:
            constraints, words = turn.step.constraints, len(turn.answer)
            if constraints.max_words is not None and words > constraints.max_words:
                yield Violation(
                    "max_words",
                    turn.step.id,
                    f"key.text: {words} words, expected at most {constraints.max_words}",
                )
            if constraints.min_words is not None and words < constraints.min_words:
                yield Violation(
                    "min_words",
                    turn.step.id,
                    f"key.text: {words} words, expected at least {constraints.min_words}",
                )
            if constraints.answer_only and words > _longest_bare_answer(turn):
                yield Violation(
                    "answer_only",
                    turn.step.id,
                    "key.text: more than the bare answer that the question asks for",
                )
            if (
                constraints.max_words is None
                and constraints.min_words is None
                and "words" in turn.step.question
            ):
                number = _WORD_LIMIT.search(turn.step.question.lower())
                if number:
                    what = f"constraints: none stored, but the question asks for {number.group(1)} words"
                    yield Violation("stored", turn.step.id, what)


def _longest_bare_answer(turn: Turn) -> float:
    """Words of the longest bare answer."""
    if turn.step.format == "yes_no":
        return _BARE_ANSWER
    if turn.step.format == "choice":
        right = [option.text for option in turn.step.options if option.id in turn.step.key.options]
        return sum(len(text.split()) + _LABEL_WORDS for text in right)
    return float("inf")
