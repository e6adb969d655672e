"""Sentence frames with slots, and what comes out when they are filled: words plus the facts they state.

`{slot}` must be filled; `[ ... {slot} ...]` is said by chance, where all its slots can be filled. A fact has
several slots (an adjective, a clause): a frame says each family of slots once at most.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

import msgspec
import numpy as np

from carina.studies.model import Statement

T = TypeVar("T")

FAMILY: Final[Mapping[str, str]] = {
    **dict.fromkeys(("side", "zone", "place", "flank", "area", "angles", "site"), "location"),
    **dict.fromkeys(("severity", "degree"), "severity"),
    **dict.fromkeys(("size", "measure"), "measure"),
    **dict.fromkeys(("trend", "tail", "since"), "trend"),
    **dict.fromkeys(("look", "with"), "look"),
    "distribution": "distribution",
    "tip": "tip",
}
"""Slots of one family tell the same fact, so "new effusion, new since the prior" cannot come out."""

CHANCE: Final[Mapping[str, float]] = {
    "location": 0.95,
    "severity": 0.85,
    "trend": 0.75,
    "measure": 0.65,
    "look": 0.6,
    "distribution": 0.4,
    "tip": 0.9,
}
"""How often an optional part is said; parts without a fact of their own are said half the time."""

_TOKEN: Final = re.compile(r"\{([^{}]*)\}|(\[)|(\])")


@dataclass(frozen=True, slots=True)
class Slot:
    name: str


@dataclass(frozen=True, slots=True)
class Optional:
    parts: tuple["str | Slot", ...]
    slots: tuple[str, ...]
    families: frozenset[str]
    chance: float


class Frame:
    """A sentence or phrase with slots, parsed once; ValueError where brackets or braces do not pair."""

    __slots__ = ("families", "needs", "parts", "slots", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.parts = _parse(text)
        self.needs = tuple(part.name for part in self.parts if isinstance(part, Slot))
        """Slots outside the optional parts."""
        inner = (part.slots for part in self.parts if isinstance(part, Optional))
        self.slots = frozenset(self.needs).union(*inner)
        """All slots, needed or not."""
        self.families = _families(self.needs)
        """Families of the needed slots, which optional parts must then leave alone."""


@dataclass(frozen=True, slots=True)
class Said:
    """Words, and the facts that they state."""

    text: str
    states: tuple[Statement, ...] = ()


@dataclass(frozen=True, slots=True)
class Slots:
    """What can be said about one subject: a slot that is not in `fill` cannot be filled."""

    fill: dict[str, Callable[[], Said]]
    base: tuple[Statement, ...] = ()
    """Stated by any sentence about the subject, whatever its slots."""
    said: set[str] = field(default_factory=set)
    """Families already used by the sentence under way."""
    always: frozenset[str] = frozenset()
    """Families that are said wherever the frame has a part for them, never left to chance."""


class Draw:
    """Random choices of one report; frames already used in it are avoided while others are left."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._random = rng.random
        self._used: set[str] = set()

    def chance(self, probability: float) -> bool:
        return self._random() < probability

    def pick(self, choices: Sequence[T]) -> T:
        return choices[int(self._random() * len(choices))]

    def weighted(self, weights: Mapping[str, float]) -> str:
        left = self._random() * sum(weights.values())
        for name, weight in weights.items():
            left -= weight
            if left < 0:
                return name
        return next(reversed(list(weights)))

    def some(self, items: Sequence[T], count: int) -> list[T]:
        """`count` of the items (or all, when there are fewer), in their own order."""
        ranks = {index: self._random() for index in range(len(items))}
        chosen = sorted(ranks, key=lambda index: ranks[index])[:count]
        return [items[index] for index in sorted(chosen)]

    def frame(self, frames: Sequence[Frame], slots: Slots) -> Frame | None:
        """A frame that these slots can fill; None where no frame fits."""
        able = [frame for frame in frames if all(need in slots.fill for need in frame.needs)]
        if not able:
            return None
        fresh = [frame for frame in able if frame.text not in self._used]
        chosen = self.pick(fresh or able)
        self._used.add(chosen.text)
        return chosen


def _parse(text: str) -> tuple[str | Slot | Optional, ...]:
    outer: list[str | Slot | Optional] = []
    inner: list[str | Slot] | None = None
    end = 0
    for token in _TOKEN.finditer(text):
        _append_text(outer if inner is None else inner, text[end : token.start()])
        end = token.end()
        if token[2]:
            if inner is not None:
                raise ValueError("optional parts cannot be nested")
            inner = []
        elif token[3]:
            if inner is None:
                raise ValueError("']' without '['")
            outer.append(_optional(inner))
            inner = None
        else:
            (outer if inner is None else inner).append(Slot(token[1]))
    _append_text(outer, text[end:])
    if inner is not None:
        raise ValueError("'[' without ']'")
    return tuple(outer)


def _append_text(parts: list[str | Slot | Optional] | list[str | Slot], text: str) -> None:
    if "{" in text or "}" in text:
        raise ValueError("unbalanced braces")
    if text:
        parts.append(text)


def _optional(parts: list[str | Slot]) -> Optional:
    slots = tuple(part.name for part in parts if isinstance(part, Slot))
    families = _families(slots)
    chance = min((CHANCE.get(family, 0.5) for family in families), default=0.5)
    return Optional(parts=tuple(parts), slots=slots, families=families, chance=chance)


def _families(slots: Iterable[str]) -> frozenset[str]:
    return frozenset(FAMILY[slot] for slot in slots if slot in FAMILY)


def render(frame: Frame, slots: Slots, draw: Draw) -> Said:
    """The frame's words (not yet polished: see `grammar.polish`) and all that they state."""
    words: list[str] = []
    states: list[Statement] = list(slots.base)
    slots.said.update(frame.families)

    def add(parts: Iterable[str | Slot]) -> None:
        for part in parts:
            if isinstance(part, str):
                words.append(part)
            else:
                filled = slots.fill[part.name]()
                words.append(filled.text)
                states.extend(filled.states)

    for part in frame.parts:
        if not isinstance(part, Optional):
            add((part,))
        elif _is_said(part, slots, draw):
            slots.said.update(part.families)
            add(part.parts)
    return Said("".join(words), merge(states))


def _is_said(part: Optional, slots: Slots, draw: Draw) -> bool:
    able = all(slot in slots.fill for slot in part.slots)
    if not able or part.families & slots.said:
        return False
    return bool(part.families & slots.always) or draw.chance(part.chance)


def merge(states: Iterable[Statement]) -> tuple[Statement, ...]:
    """One statement for each thing spoken of, with the fields of all its parts, in order of mention."""
    merged: dict[tuple[str, str], Statement] = {}
    for state in states:
        key = (state.kind, state.about)
        if key in merged:
            said = {name: value for name, value in msgspec.structs.asdict(state).items() if value}
            merged[key] = msgspec.structs.replace(merged[key], **said)
        else:
            merged[key] = state
    return tuple(merged.values())
