"""One question of a record, read and compared with itself: text, options, answer and index must agree."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from carina.percept.bundle.faults import RecordError
from carina.percept.bundle.fields import Fields, shown

_LIST: Final = re.compile(r"^[^\S\n]*options:", re.IGNORECASE | re.MULTILINE)
_ITEM: Final = re.compile(r"\s*\(([0-9]{1,4})\)\s*(.*?)\s*")


@dataclass(frozen=True)
class Asked:
    """A question as it is put, with the numbers of its right options."""

    question: str
    texts: tuple[str, ...]
    right: tuple[int, ...]
    """From 1, ascending."""


def read_single(block: Fields, texts: Sequence[str]) -> Asked:
    """A question with one right option."""
    asked = _read(block, texts, (block.whole("answer_index"),))
    (number,) = asked.right
    answer = block.text("answer")
    if _plain(answer) != _plain(texts[number - 1]):
        raise RecordError(
            "answer",
            block.called("answer"),
            f"is {shown(answer)}, but answer_index {number} is {shown(texts[number - 1])}",
        )
    return asked


def read_several(block: Fields, texts: Sequence[str], *, none: int) -> Asked:
    """A question with any number of right options; `none` is the number of the one that excludes the others."""
    asked = _read(block, texts, block.wholes("answer_index"))
    answer = block.text("answer")
    expected = [texts[number - 1] for number in asked.right]
    # In the order of the options or of the index, or in any other where no text holds a comma of its own.
    given = [texts[number - 1] for number in block.wholes("answer_index")]
    if _plain(answer) not in (_plain(", ".join(expected)), _plain(", ".join(given))) and sorted(
        _plain(part) for part in answer.split(",")
    ) != sorted(_plain(text) for text in expected):
        raise RecordError(
            "answer",
            block.called("answer"),
            f"is {shown(answer)}, but answer_index {list(asked.right)} is {shown(', '.join(expected))}",
        )
    if none in asked.right and len(asked.right) > 1:
        raise RecordError(
            "answer",
            block.called("answer_index"),
            f"holds {none}, {shown(texts[none - 1])}, together with others: {list(asked.right)}",
        )
    return asked


def _read(block: Fields, texts: Sequence[str], right: tuple[int, ...]) -> Asked:
    question = block.text("question")
    if len(texts) < 2:
        raise RecordError(
            "options", block.called("answer_options"), f"expected two or more, found {len(texts)}"
        )
    _compare_options(block, question, texts)
    name = block.called("answer_index")
    if not right:
        raise RecordError("answer", name, "is empty")
    if len(set(right)) < len(right):
        raise RecordError("answer", name, f"names an option twice: {shown(list(right))}")
    for number in right:
        if not 1 <= number <= len(texts):
            raise RecordError(
                "answer",
                name,
                f"is {shown(number)}, expected 1 to {len(texts)}, the number of answer_options",
            )
    return Asked(question, tuple(texts), tuple(sorted(right)))


def _compare_options(block: Fields, question: str, texts: Sequence[str]) -> None:
    """The list at the end of the question is the list of options."""
    starts = list(_LIST.finditer(question))
    if not starts:
        raise RecordError("options", block.called("question"), 'has no line "Options:" before its options')
    listed = question[starts[-1].end() :]
    if _plain(listed) == _plain(" ".join(f"({n}) {text}" for n, text in enumerate(texts, start=1))):
        return
    found = _items(listed)
    for number, text in enumerate(texts, start=1):
        if number > len(found) or _plain(found[number - 1]) != _plain(text):
            listed_text = shown(found[number - 1]) if number <= len(found) else "nothing"
            raise RecordError(
                "options",
                block.called("question"),
                f"lists {listed_text} as option {number}, but answer_options has {shown(text)}",
            )
    if len(found) > len(texts):
        raise RecordError(
            "options",
            block.called("question"),
            f"lists {len(found)} options, but answer_options has {len(texts)}",
        )


def _items(listed: str) -> list[str]:
    """Texts of the lines "(1) ...", "(2) ..." as long as they are numbered in order."""
    found: list[str] = []
    for line in listed.splitlines():
        item = _ITEM.fullmatch(line)
        if item and int(item[1]) == len(found) + 1:
            found.append(item[2])
    return found


def _plain(text: str) -> str:
    return " ".join(text.split())
