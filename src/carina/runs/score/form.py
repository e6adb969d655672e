"""Whether an answer keeps the form that the question demands: a number of words, the bare answer."""

import re
from typing import Final

from carina.cases import Step
from carina.runs.records import ParsedAnswer

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
"""Words that introduce an answer and explain nothing."""
_BARE: Final = 60
"""Words of a bare answer beside the chosen options, at most."""
_SIGNS: Final = 100_000
"""Signs of an answer that are read: more than any limit allows."""
_WORD: Final = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")
_SENTENCES: Final = re.compile(r"[.!?]\s+\S|\n\s*\S")
_UNSURE: Final = 3
"""Words that a bare "I am unsure" may take."""


def keeps_form(step: Step, parsed: ParsedAnswer, answer: str) -> bool | None:
    """Whether an answer has the demanded number of words and, if demanded, explains nothing.

    Args:
        step: The step with its constraints.
        parsed: What the answer says. One that could not be parsed does not keep the form.
        answer: The answer without reasoning. Words are separated by white space, as they were when limits were set.

    Returns:
        None where the step demands no form.
    """
    demanded = step.constraints
    if demanded.max_words is None and demanded.min_words is None and not demanded.answer_only:
        return None
    if parsed.status != "ok":
        return False
    answer = answer[:_SIGNS]
    count = len(answer.split())
    if demanded.max_words is not None and count > demanded.max_words:
        return False
    if demanded.min_words is not None and count < demanded.min_words:
        return False
    return not demanded.answer_only or _is_bare(step, parsed, answer, count)


def _is_bare(step: Step, parsed: ParsedAnswer, answer: str, count: int) -> bool:
    if step.format == "choice":
        return _only_options(step, parsed, answer, count)
    if step.format == "yes_no":
        most = _UNSURE if parsed.label == "uncertain" else 1
        return count <= most + len(_LEAD) and len(_other_words(answer)) <= most
    # What else explains shows in a second sentence, unless the key itself takes as many words.
    return _SENTENCES.search(answer.strip()) is None or count <= len((step.key.text or "").split())


def _only_options(step: Step, parsed: ParsedAnswer, answer: str, count: int) -> bool:
    """Whether nothing is left when the chosen options, by text, id or number, are removed."""
    chosen = [(n, option) for n, option in enumerate(step.options, start=1) if option.id in parsed.options]
    texts = [_normalise(option.text) for _, option in chosen]
    if count > _BARE + sum(len(text.split()) for text in texts):
        return False
    left = f" {_normalise(answer)} "
    for text in sorted(texts, key=len, reverse=True):
        left = left.replace(f" {text} ", " ", 1)
    names = {
        name.lower() for n, option in chosen for name in (option.id, str(n), chr(ord("a") + (n - 1) % 26))
    }
    # Ids such as "left-upper" are folded into several words, as the answer's are.
    allowed = {word for name in names for word in _normalise(name).split()}
    return all(word in allowed for word in _other_words(left))


def _normalise(text: str) -> str:
    return " ".join(_WORD.findall(text.lower()))


def _other_words(text: str) -> list[str]:
    """Words that do more than introduce an answer."""
    return [word for word in _WORD.findall(text.lower()) if word not in _LEAD]
