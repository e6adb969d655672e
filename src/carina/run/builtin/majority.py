"""The examinee that never looks but knows what is usually right: what it reaches, a benchmark gives away.

It learns from the keys of the benchmark itself, crosswise: what it says of one half of the patients it has learnt from
the other, so that no case tells its own key. Hardly any two answers in words are worded alike, so they are counted by
the facts that they rest on, and one of those that tell the commonest facts is given.
"""

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from carina.cases import Benchmark, Box, Case, Step
from carina.cases.chat import answer, box_text
from carina.models.served import Reply
from carina.run.builtin.draw import NOTHING, SPOKEN
from carina.run.examinee import Pictures
from carina.run.parse.choices import says_none
from carina.run.records import Turn
from carina.run.score.entities import said_in

_WHOLE: Final = Box(image="", xyxy=(0.0, 0.0, 100.0, 100.0), frame="percent")
_NAMES: Final = ("the_region", "the_finding", "the_other", "a_finding", "finding")
"""Slots that name what a question is about."""
_THINGS: Final = frozenset({"finding", "device"})
"""Kinds of targets that have an id of their own in a case."""
_ID: Final = re.compile(r"\b[a-z]\d+\b")
"""The number of a finding or device, which means nothing in another case."""
_UNNAMED: Final = "?"
_TRIED: Final = 20
"""Wordings of the same facts that are tried, the shortest: to say that a list is complete is no answer by itself."""

Kind = tuple[str, ...]
Facts = tuple[tuple[str, str, str], ...]
"""What a key rests on, in order: name, what it concerns, and what it says of it."""


@dataclass
class _Learnt:
    """How often what was right, in one half of a benchmark."""

    offered: Counter[tuple[Kind, str]] = field(default_factory=Counter)
    right: Counter[tuple[Kind, str]] = field(default_factory=Counter)
    """Options by what they say."""
    labels: defaultdict[Kind, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    told: defaultdict[Kind, Counter[Facts]] = field(default_factory=lambda: defaultdict(Counter))
    """Answers in words by their facts."""
    wordings: defaultdict[tuple[Kind, Facts], set[str]] = field(default_factory=lambda: defaultdict(set))
    usual: dict[Kind, str] = field(default_factory=dict)
    """Words that have been decided on."""
    corners: defaultdict[Kind, defaultdict[int, list[list[tuple[float, ...]]]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )
    """Boxes of each key, by their number."""
    frames: dict[Kind, Box] = field(default_factory=dict)


class Majority:
    """Gives the answer that is most often right for this kind of question."""

    name = "builtin/majority"
    batch = 64

    def __init__(self, benchmark: Benchmark) -> None:
        self._halves = (_Learnt(), _Learnt())
        self._half_of: dict[str, int] = {}
        self._shown: dict[str, dict[str, str]] = {}
        for case in benchmark.without("regions"):
            half = _half(case.patient or case.id)
            self._half_of[case.id] = half
            self._shown[case.id] = _projections(case)
            # What is learnt here serves the other half.
            _learn(self._halves[1 - half], case)

    def answer(self, turns: Sequence[Turn], pictures: Pictures) -> list[Reply]:
        """The likeliest answers; no picture is looked at."""
        del pictures
        return [Reply(text=self._say(turn), stop="stop") for turn in turns]

    def _say(self, turn: Turn) -> str:
        learnt, step = self._halves[self._half_of[turn.case]], turn.step
        if step.format == "choice":
            return f"Answer: {', '.join(map(str, _likeliest(learnt, step)))}"
        if step.format == "boxes":
            boxes = _mean_boxes(learnt, step, _projection(step, self._shown[turn.case]))
            return "\n".join(map(box_text, boxes))
        if step.format == "yes_no":
            return SPOKEN[_usual_label(learnt, step)]
        return _usual_words(learnt, step)


def _half(name: str) -> int:
    return hashlib.sha256(name.encode()).digest()[0] & 1


# ---- learning -------------------------------------------------------------------------------------------------------


def _learn(learnt: _Learnt, case: Case) -> None:
    names = _names(case)
    for step in case.steps:
        key = step.key
        if step.format == "choice":
            for option in step.options:
                learnt.offered[_kind(step), option.text] += 1
                learnt.right[_kind(step), option.text] += option.id in key.options
        elif step.format == "boxes":
            _learn_boxes(learnt, case, step)
        elif step.format == "yes_no" and key.label is not None:
            for kind in {_kind(step), _about(step)}:
                learnt.labels[kind][key.label] += 1
        else:
            _learn_words(learnt, step, answer(case, step), names)


def _learn_boxes(learnt: _Learnt, case: Case, step: Step) -> None:
    boxes = step.key.boxes
    if not boxes:
        return
    for kind in ((*_wanted(step), case.image(boxes[0].image).view), _wanted(step)):
        learnt.corners[kind][len(boxes)].append([box.xyxy for box in boxes])
        learnt.frames[kind] = boxes[0]


def _learn_words(learnt: _Learnt, step: Step, text: str, names: Mapping[str, str]) -> None:
    facts = _facts(step, text, names)
    for kind in {_kind(step), _about(step)}:
        learnt.told[kind][facts] += 1
        learnt.wordings[kind, facts].add(text)


def _facts(step: Step, text: str, names: Mapping[str, str]) -> Facts:
    """What a key says, comparable with that of another case: things by their names, not by their ids.

    What the question itself names is no part of it, and what can't be told apart by facts is by its words.
    """
    asks_by_name = _about(step) != _kind(step)
    told: list[tuple[str, str, str]] = []
    for fact in step.facts:
        if fact.name == "target" and asks_by_name:
            continue
        says = _named(fact.text or "", names)
        # Words that name things themselves stand under the number of a relation, not of a thing.
        about = _named(fact.about, names) if says == (fact.text or "") else ""
        told.append((fact.name, about, says))
    if not step.facts or any(_UNNAMED in about + says for _, about, says in told):
        told.append(("words", "", text))
    return tuple(sorted(told))


def _named(words: str, names: Mapping[str, str]) -> str:
    return _ID.sub(lambda found: names.get(found.group(), _UNNAMED), words)


def _names(case: Case) -> dict[str, str]:
    """What the ids of findings and devices stand for, as far as a step about one alone tells."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for step in case.steps:
        targets = {fact.text or "" for fact in step.facts if fact.name == "target" and fact.about in _THINGS}
        ids = {fact.about for fact in step.facts if _ID.fullmatch(fact.about)}
        if len(targets) == len(ids) == 1:
            found[ids.pop()] |= targets
    return {name: said.pop() for name, said in found.items() if len(said) == 1}


def _projections(case: Case) -> dict[str, str]:
    """Of each view with one panel, the projection of its image; a case tells it to everybody."""
    of_image = {image.key: image.view for image in case.images}
    return {view.id: of_image[view.panels[0].image] for view in case.views if len(view.panels) == 1}


# ---- answering ------------------------------------------------------------------------------------------------------


def _likeliest(learnt: _Learnt, step: Step) -> list[int]:
    """Numbers of the options that are most often right where they are offered; the first of equals."""
    shares = [
        learnt.right[_kind(step), option.text] / max(1, learnt.offered[_kind(step), option.text])
        for option in step.options
    ]
    best = int(np.argmax(shares)) + 1
    if not step.multiple:
        return [best]
    none = {n for n, option in enumerate(step.options, start=1) if says_none(option.text)}
    return [n for n, share in enumerate(shares, start=1) if share > 0.5 and n not in none] or [best]


def _usual_label(learnt: _Learnt, step: Step) -> str:
    counted = learnt.labels.get(_about(step)) or learnt.labels.get(_kind(step))
    return min(counted, key=lambda label: (-counted[label], label)) if counted else "no"


def _usual_words(learnt: _Learnt, step: Step) -> str:
    """Words for the commonest facts of this kind of question about one thing, or of this kind."""
    for kind in (_about(step), _kind(step)):
        if kind in learnt.told:
            if kind not in learnt.usual:
                learnt.usual[kind] = _decided(learnt, kind)
            return learnt.usual[kind]
    return NOTHING


def _decided(learnt: _Learnt, kind: Kind) -> str:
    """Of words for the commonest facts the shortest that our reader understands, the first in order of those as short.

    Nothing is left to the order of the cases, so that the result is the same everywhere.
    """
    counted = learnt.told[kind]
    facts = min(counted, key=lambda one: (-counted[one], one))
    shortest = sorted(learnt.wordings[kind, facts], key=lambda text: (len(text), text))
    return next((text for text in shortest[:_TRIED] if said_in(text).entities), shortest[0])


def _mean_boxes(learnt: _Learnt, step: Step, projection: str) -> list[Box]:
    """As many as there usually are, each the mean of those in its place."""
    for kind in ((*_wanted(step), projection), _wanted(step)):
        if kind in learnt.corners:
            by_number, frame = learnt.corners[kind], learnt.frames[kind]
            number = min(by_number, key=lambda one: (-len(by_number[one]), one))
            return [
                Box(image=frame.image, xyxy=(x1, y1, x2, y2), frame=frame.frame, name=frame.name)
                for x1, y1, x2, y2 in np.mean(by_number[number], axis=0).tolist()
            ]
    return [_WHOLE]


def _projection(step: Step, shown: Mapping[str, str]) -> str:
    """The projection that a box is asked for on: of several, the lateral one only where the question says so."""
    used = sorted({shown[view] for view in step.uses if view in shown})
    wanted = [view for view in used if (view == "lateral") == ("lateral" in step.question.lower())]
    return (wanted or used or [""])[0]


# ---- kinds of questions ---------------------------------------------------------------------------------------------


def _kind(step: Step) -> Kind:
    return (str(step.stage), step.task, step.format)


def _about(step: Step) -> Kind:
    """A kind of question about one thing; where it asks for projections, about so many pictures."""
    named = tuple(slot.value for slot in step.slots if slot.name in _NAMES)
    return (*_kind(step), *named, str(len(step.uses))) if step.task == "view" else (*_kind(step), *named)


def _wanted(step: Step) -> Kind:
    """The same where boxes are asked for: the wording tells whether it is one or several."""
    return (*_about(step), (step.template or "").rpartition(".")[0])
