"""`builtin/majority`: the most frequent answer to each kind of question, without looking at an image.

It learns from the answer keys of the benchmark by cross-validation: answers for one half of the patients are learnt
from the other half, so that no case reveals its own key. Hardly any two free-text answers are worded alike, so they are
counted by the facts they state, and one of the answers with the most frequent facts is given.
"""

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from carina.cases import Benchmark, Box, Case, Step
from carina.cases.facts import stored_name
from carina.cases.messages import answer, box_text
from carina.models import ImageReader, Reply
from carina.reports import states_findings
from carina.runs.parse.choices import says_none
from carina.runs.prompts import NORMAL_REPORT, SPOKEN_LABELS
from carina.runs.records import Turn
from carina.trek.facts import TrekStepFacts, is_about_thing

_WHOLE: Final = Box(image="", xyxy=(0.0, 0.0, 100.0, 100.0), frame="percent")
_NAMES: Final = ("the_region", "the_finding", "the_other", "a_finding", "finding")
"""Slots that name the subject of a question."""
_TARGET: Final = stored_name(TrekStepFacts, "targets")
_ID: Final = re.compile(r"\b[a-z]\d+\b")
"""The number of a finding or device, which means nothing in another case."""
_UNNAMED: Final = "?"
_TRIED: Final = 20
"""Number of wordings of the same facts that are tried, the shortest first."""

Kind = tuple[str, ...]
Facts = tuple[tuple[str, str, str], ...]
"""Facts of an answer key, sorted: name, subject and value of each."""


@dataclass
class _Counts:
    """How often each answer was right, in one half of a benchmark."""

    offered: Counter[tuple[Kind, str]] = field(default_factory=Counter)
    right: Counter[tuple[Kind, str]] = field(default_factory=Counter)
    """Options by their text."""
    labels: defaultdict[Kind, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    facts: defaultdict[Kind, Counter[Facts]] = field(default_factory=lambda: defaultdict(Counter))
    """Free-text answers by their facts."""
    wordings: defaultdict[tuple[Kind, Facts], set[str]] = field(default_factory=lambda: defaultdict(set))
    wording: dict[Kind, str] = field(default_factory=dict)
    """The wording that was selected for a kind of question."""
    corners: defaultdict[Kind, defaultdict[int, list[list[tuple[float, ...]]]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )
    """Boxes of each answer key, by the number of boxes."""
    frames: dict[Kind, Box] = field(default_factory=dict)


class Majority:
    """Gives the answer that is most often right for each kind of question."""

    name = "builtin/majority"
    batch = 64

    def __init__(self, benchmark: Benchmark) -> None:
        self._halves = (_Counts(), _Counts())
        self._half_of: dict[str, int] = {}
        self._projections: dict[str, dict[str, str]] = {}
        for case in benchmark.without("regions"):
            half = _half(case.patient or case.id)
            self._half_of[case.id] = half
            self._projections[case.id] = _projections(case)
            # A case is counted for the other half.
            _learn(self._halves[1 - half], case)

    def answer(self, turns: Sequence[Turn], images: ImageReader) -> list[Reply]:
        """The most frequent answers; the images are not used."""
        del images
        return [Reply(text=self._answer(turn), stop="stop") for turn in turns]

    def _answer(self, turn: Turn) -> str:
        learnt, step = self._halves[self._half_of[turn.case]], turn.step
        if step.format == "choice":
            return f"Answer: {', '.join(map(str, _likeliest(learnt, step)))}"
        if step.format == "boxes":
            boxes = _mean_boxes(learnt, step, _projection(step, self._projections[turn.case]))
            return "\n".join(map(box_text, boxes))
        if step.format == "yes_no":
            return SPOKEN_LABELS[_most_frequent_label(learnt, step)]
        return _most_frequent_text(learnt, step)


def _half(name: str) -> int:
    return hashlib.sha256(name.encode()).digest()[0] & 1


# ---- learning -------------------------------------------------------------------------------------------------------


def _learn(learnt: _Counts, case: Case) -> None:
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


def _learn_boxes(learnt: _Counts, case: Case, step: Step) -> None:
    boxes = step.key.boxes
    if not boxes:
        return
    for kind in ((*_box_kind(step), case.image(boxes[0].image).view), _box_kind(step)):
        learnt.corners[kind][len(boxes)].append([box.xyxy for box in boxes])
        learnt.frames[kind] = boxes[0]


def _learn_words(learnt: _Counts, step: Step, text: str, names: Mapping[str, str]) -> None:
    key_facts = _facts(step, text, names)
    for kind in {_kind(step), _about(step)}:
        learnt.facts[kind][key_facts] += 1
        learnt.wordings[kind, key_facts].add(text)


def _facts(step: Step, text: str, names: Mapping[str, str]) -> Facts:
    """The facts of an answer key, comparable between cases: subjects by their names, not by their ids.

    What the question itself names is left out. Where facts cannot tell two answers apart, their text does.
    """
    asks_by_name = _about(step) != _kind(step)
    facts: list[tuple[str, str, str]] = []
    for fact in step.facts:
        if fact.name == _TARGET and asks_by_name:
            continue
        says = _with_names(fact.text or "", names)
        # Text that names its subjects has the id of a relation, not of a subject.
        about = _with_names(fact.about, names) if says == (fact.text or "") else ""
        facts.append((fact.name, about, says))
    if not step.facts or any(_UNNAMED in about + says for _, about, says in facts):
        facts.append(("words", "", text))
    return tuple(sorted(facts))


def _with_names(words: str, names: Mapping[str, str]) -> str:
    return _ID.sub(lambda found: names.get(found.group(), _UNNAMED), words)


def _names(case: Case) -> dict[str, str]:
    """Names of the findings and devices of a case by id, where a step about one of them alone gives the name."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for step in case.steps:
        targets = {fact.text or "" for fact in step.facts if is_about_thing(fact)}
        ids = {fact.about for fact in step.facts if _ID.fullmatch(fact.about)}
        if len(targets) == len(ids) == 1:
            found[ids.pop()] |= targets
    return {name: said.pop() for name, said in found.items() if len(said) == 1}


def _projections(case: Case) -> dict[str, str]:
    """The projection of each view with one panel."""
    of_image = {image.key: image.view for image in case.images}
    return {view.id: of_image[view.panels[0].image] for view in case.views if len(view.panels) == 1}


# ---- answering ------------------------------------------------------------------------------------------------------


def _likeliest(learnt: _Counts, step: Step) -> list[int]:
    """Numbers of the options that are most often right when they are offered; the first of equals."""
    shares = [
        learnt.right[_kind(step), option.text] / max(1, learnt.offered[_kind(step), option.text])
        for option in step.options
    ]
    best = int(np.argmax(shares)) + 1
    if not step.multiple:
        return [best]
    none = {n for n, option in enumerate(step.options, start=1) if says_none(option.text)}
    return [n for n, share in enumerate(shares, start=1) if share > 0.5 and n not in none] or [best]


def _most_frequent_label(learnt: _Counts, step: Step) -> str:
    counted = learnt.labels.get(_about(step)) or learnt.labels.get(_kind(step))
    return min(counted, key=lambda label: (-counted[label], label)) if counted else "no"


def _most_frequent_text(learnt: _Counts, step: Step) -> str:
    """Text with the most frequent facts of this kind of question about the same subject, or of this kind."""
    for kind in (_about(step), _kind(step)):
        if kind in learnt.facts:
            if kind not in learnt.wording:
                learnt.wording[kind] = _select_wording(learnt, kind)
            return learnt.wording[kind]
    return NORMAL_REPORT


def _select_wording(learnt: _Counts, kind: Kind) -> str:
    """The shortest text with the most frequent facts in which the report parser finds entities.

    Nothing depends on the order of the cases, so that the result is the same everywhere.
    """
    counted = learnt.facts[kind]
    facts = min(counted, key=lambda one: (-counted[one], one))
    shortest = sorted(learnt.wordings[kind, facts], key=lambda text: (len(text), text))
    return next((text for text in shortest[:_TRIED] if states_findings(text)), shortest[0])


def _mean_boxes(learnt: _Counts, step: Step, projection: str) -> list[Box]:
    """The most frequent number of boxes, each the mean of the boxes at its position."""
    for kind in ((*_box_kind(step), projection), _box_kind(step)):
        if kind in learnt.corners:
            by_number, frame = learnt.corners[kind], learnt.frames[kind]
            number = min(by_number, key=lambda one: (-len(by_number[one]), one))
            return [
                Box(image=frame.image, xyxy=(x1, y1, x2, y2), frame=frame.frame, name=frame.name)
                for x1, y1, x2, y2 in np.mean(by_number[number], axis=0).tolist()
            ]
    return [_WHOLE]


def _projection(step: Step, projections: Mapping[str, str]) -> str:
    """The projection on which a box is asked for: the lateral one of several only where the question says so."""
    used = sorted({projections[view] for view in step.uses if view in projections})
    wanted = [view for view in used if (view == "lateral") == ("lateral" in step.question.lower())]
    return (wanted or used or [""])[0]


# ---- kinds of questions ---------------------------------------------------------------------------------------------


def _kind(step: Step) -> Kind:
    return (str(step.stage), step.task, step.format)


def _about(step: Step) -> Kind:
    """A kind of question about one subject; for questions about projections, with the number of images."""
    named = tuple(slot.value for slot in step.slots if slot.name in _NAMES)
    return (*_kind(step), *named, str(len(step.uses))) if step.task == "view" else (*_kind(step), *named)


def _box_kind(step: Step) -> Kind:
    """The same for questions about boxes, whose wording says whether one or several are asked for."""
    return (*_about(step), (step.template or "").rpartition(".")[0])
