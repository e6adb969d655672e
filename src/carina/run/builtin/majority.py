"""The examinee that never looks but knows what is usually right: what it reaches, a benchmark gives away.

It learns from the keys of the benchmark itself, crosswise: what it says of one half of the patients it has learnt from
the other, so that no case tells its own key.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from carina.cases import Benchmark, Box, Case, Step
from carina.cases.chat import answer, box_text
from carina.models.served import Reply
from carina.run.builtin.draw import NOTHING, SPOKEN, is_none
from carina.run.examinee import Pictures
from carina.run.records import Turn

_WHOLE: Final = Box(image="", xyxy=(0.0, 0.0, 100.0, 100.0), frame="percent")
_NAMES: Final = ("the_region", "the_finding", "finding")
"""Slots that name what a question is about."""

Kind = tuple[str, ...]


@dataclass
class _Learnt:
    """How often what was right, in one half of a benchmark."""

    offered: Counter[tuple[Kind, str]] = field(default_factory=Counter)
    right: Counter[tuple[Kind, str]] = field(default_factory=Counter)
    """Options by what they say."""
    words: defaultdict[Kind, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    corners: defaultdict[Kind, list[tuple[float, ...]]] = field(default_factory=lambda: defaultdict(list))
    frames: dict[Kind, Box] = field(default_factory=dict)


class Majority:
    """Gives the answer that is most often right for this kind of question."""

    name = "builtin/majority"
    batch = 64

    def __init__(self, benchmark: Benchmark) -> None:
        self._halves = (_Learnt(), _Learnt())
        self._half_of: dict[str, int] = {}
        for case in benchmark.without("regions"):
            half = _half(case.patient or case.id)
            self._half_of[case.id] = half
            # What is learnt here serves the other half.
            _learn(self._halves[1 - half], case)

    def answer(self, turns: Sequence[Turn], pictures: Pictures) -> list[Reply]:
        """The likeliest answers; no picture is looked at."""
        del pictures
        return [Reply(text=_say(self._halves[self._half_of[t.case]], t.step), stop="stop") for t in turns]


def _half(name: str) -> int:
    return hashlib.sha256(name.encode()).digest()[0] & 1


def _learn(learnt: _Learnt, case: Case) -> None:
    for step in case.steps:
        key = step.key
        if step.format == "choice":
            for option in step.options:
                learnt.offered[_kind(step), option.text] += 1
                learnt.right[_kind(step), option.text] += option.id in key.options
        elif step.format == "boxes":
            for box in key.boxes:
                learnt.corners[_about(step)].append(box.xyxy)
                learnt.frames[_about(step)] = box
        else:
            for kind in (_kind(step), _about(step)):
                learnt.words[kind][key.label or answer(case, step)] += 1


def _say(learnt: _Learnt, step: Step) -> str:
    if step.format == "choice":
        return f"Answer: {', '.join(map(str, _likeliest(learnt, step)))}"
    if step.format == "boxes":
        return box_text(_mean_box(learnt, step))
    counted = learnt.words.get(_about(step)) or learnt.words.get(_kind(step))
    if step.format == "yes_no":
        return SPOKEN[_most_common(counted)] if counted else SPOKEN["no"]
    return _most_common(counted) if counted else NOTHING


def _likeliest(learnt: _Learnt, step: Step) -> list[int]:
    """Numbers of the options that are most often right where they are offered; the first of equals."""
    shares = [
        learnt.right[_kind(step), option.text] / max(1, learnt.offered[_kind(step), option.text])
        for option in step.options
    ]
    best = int(np.argmax(shares)) + 1
    if not step.multiple:
        return [best]
    none = {n for n, option in enumerate(step.options, start=1) if is_none(option.text)}
    return [n for n, share in enumerate(shares, start=1) if share > 0.5 and n not in none] or [best]


def _mean_box(learnt: _Learnt, step: Step) -> Box:
    corners = learnt.corners.get(_about(step))
    if not corners:
        return _WHOLE
    x1, y1, x2, y2 = np.mean(corners, axis=0).tolist()
    frame = learnt.frames[_about(step)]
    return Box(image=frame.image, xyxy=(x1, y1, x2, y2), frame=frame.frame, name=frame.name)


def _most_common(counted: Counter[str]) -> str:
    """Of several that are as common the first in order, so that the result is the same everywhere."""
    return min(counted, key=lambda word: (-counted[word], word))


def _kind(step: Step) -> Kind:
    return (str(step.stage), step.task, step.format)


def _about(step: Step) -> Kind:
    """A kind of question about one thing."""
    return (*_kind(step), *(slot.value for slot in step.slots if slot.name in _NAMES))
