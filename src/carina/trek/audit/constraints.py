"""Gate: do the right answers keep the lengths and the form that their questions ask for?"""

import re
from collections.abc import Iterator
from typing import Final

from carina.trek.audit.ruled import Broken, Ruled
from carina.trek.audit.turns import Conversation, Turn

_BARE: Final = 3
"""Words that a bare answer to a yes/no question may have: "cannot be determined"."""
_JOINED: Final = 2
"""Words that the label of an option and the word before the next one take."""
_ASKED: Final = re.compile(r"(?:at most|no more than|at least|up to|fewer than|more than|within) (\d+) words")


class Constraints(Ruled):
    """Answers against what is demanded of them."""

    name = "constraints"
    rules = ("max_words", "min_words", "answer_only", "stored")
    threshold = "key.text within max_words and min_words; nothing but the answer where only that is asked for"
    good = "Every right answer obeys what its question demands of its form."
    bad = "Some right answers break their own questions' demands, so a model is taught to break them; render them anew."

    def broken(self, conversation: Conversation) -> Iterator[Broken]:
        for turn in conversation.turns:
            asked, words = turn.step.constraints, len(turn.answer)
            if asked.max_words is not None and words > asked.max_words:
                yield Broken("max_words", turn.step.id, f"key.text: {words} words, at most {asked.max_words}")
            if asked.min_words is not None and words < asked.min_words:
                yield Broken(
                    "min_words", turn.step.id, f"key.text: {words} words, at least {asked.min_words}"
                )
            if asked.answer_only and words > _most(turn):
                yield Broken("answer_only", turn.step.id, "key.text: more than the answer that is asked for")
            if asked.max_words is None and asked.min_words is None and "words" in turn.step.question:
                number = _ASKED.search(turn.step.question.lower())
                if number:
                    what = f"constraints: none stored where the question asks for {number.group(1)} words"
                    yield Broken("stored", turn.step.id, what)


def _most(turn: Turn) -> float:
    """Words that the bare answer can take."""
    if turn.step.format == "yes_no":
        return _BARE
    if turn.step.format == "choice":
        right = [option.text for option in turn.step.options if option.id in turn.step.key.options]
        return sum(len(text.split()) + _JOINED for text in right)
    return float("inf")
