"""Whether an answer keeps to the form that the question demands."""

import re
from typing import Final

from carina.cases import Step
from carina.run.records import Parsed

_LEAD: Final = frozenset(
    {
        "the",
        "my",
        "final",
        "correct",
        "right",
        "best",
        "answer",
        "answers",
        "option",
        "options",
        "choice",
        "choices",
        "is",
        "are",
        "and",
    }
)
"""Words that hand over an answer and explain nothing."""
_BARE: Final = 60
"""Words beyond which no answer with options is bare, however long these are."""
_SIGNS: Final = 100_000
"""Signs of an answer that are looked at: more than any limit asks for."""
_WORD: Final = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")
_SENTENCES: Final = re.compile(r"[.!?]\s+\S|\n\s*\S")
_UNSURE: Final = 3
"""Words that it may take to say that one does not know."""


def obeyed(step: Step, parsed: Parsed, said: str) -> bool | None:
    """Whether the answer, without reasoning, has the demanded length and bareness; None where nothing is demanded.

    What could not be read as an answer does not obey. Words are what stands between blanks, as when limits were set.
    """
    asked = step.constraints
    if asked.max_words is None and asked.min_words is None and not asked.answer_only:
        return None
    if parsed.status != "ok":
        return False
    said = said[:_SIGNS]
    count = len(said.split())
    if asked.max_words is not None and count > asked.max_words:
        return False
    if asked.min_words is not None and count < asked.min_words:
        return False
    return not asked.answer_only or _is_bare(step, parsed, said, count)


def _is_bare(step: Step, parsed: Parsed, said: str, count: int) -> bool:
    if step.format == "choice":
        return _only_options(step, parsed, said, count)
    if step.format == "yes_no":
        most = _UNSURE if parsed.label == "uncertain" else 1
        return count <= most + len(_LEAD) and len(_beside(said)) <= most
    # What else explains shows in a second sentence, unless the key itself takes as many words.
    return _SENTENCES.search(said.strip()) is None or count <= len((step.key.text or "").split())


def _only_options(step: Step, parsed: Parsed, said: str, count: int) -> bool:
    """Whether nothing is left once the chosen options, by text, id or number, are taken away."""
    chosen = [(n, option) for n, option in enumerate(step.options, start=1) if option.id in parsed.options]
    texts = [_folded(option.text) for _, option in chosen]
    if count > _BARE + sum(len(text.split()) for text in texts):
        return False
    left = f" {_folded(said)} "
    for text in sorted(texts, key=len, reverse=True):
        left = left.replace(f" {text} ", " ", 1)
    names = {
        name.lower() for n, option in chosen for name in (option.id, str(n), chr(ord("a") + (n - 1) % 26))
    }
    # Ids such as "left-upper" are folded into several words, as the answer's are.
    allowed = {word for name in names for word in _folded(name).split()}
    return all(word in allowed for word in _beside(left))


def _folded(text: str) -> str:
    return " ".join(_WORD.findall(text.lower()))


def _beside(text: str) -> list[str]:
    """The words that do more than hand over an answer."""
    return [word for word in _WORD.findall(text.lower()) if word not in _LEAD]
