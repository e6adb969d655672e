"""Sentence templates with slots, and the phrases they give: text with the facts it states.

`{slot}` must be filled; `[ ... {slot} ...]` is included at random, if all its slots can be filled. A fact may have
several slots (an adjective, a clause): a sentence uses at most one slot of each family.
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
    **dict.fromkeys(("appearance", "with"), "appearance"),
    "distribution": "distribution",
    "tip": "tip",
}
"""Slots of one family state the same fact; using one of them avoids "new effusion, new since the prior"."""

PROBABILITY: Final[Mapping[str, float]] = {
    "location": 0.95,
    "severity": 0.85,
    "trend": 0.75,
    "measure": 0.65,
    "appearance": 0.6,
    "distribution": 0.4,
    "tip": 0.9,
}
"""Probability that an optional part is included, by family; 0.5 for parts without a family."""

_TOKEN: Final = re.compile(r"\{([^{}]*)\}|(\[)|(\])")


@dataclass(frozen=True, slots=True)
class Slot:
    name: str


@dataclass(frozen=True, slots=True)
class OptionalPart:
    parts: tuple["str | Slot", ...]
    slots: tuple[str, ...]
    families: frozenset[str]
    probability: float


class Template:
    """A sentence or phrase with slots, parsed once; ValueError if brackets or braces are not balanced."""

    __slots__ = ("families", "parts", "required_slots", "slots", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.parts = _parse(text)
        self.required_slots = tuple(part.name for part in self.parts if isinstance(part, Slot))
        """Slots outside the optional parts."""
        inner = (part.slots for part in self.parts if isinstance(part, OptionalPart))
        self.slots = frozenset(self.required_slots).union(*inner)
        """All slots, required or optional."""
        self.families = _list_families(self.required_slots)
        """Families of the required slots, which optional parts must not use again."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """Text, and the facts that it states."""

    text: str
    statements: tuple[Statement, ...] = ()


Fillers = dict[str, Callable[[], Phrase]]
"""Functions that fill slots, by slot."""


@dataclass(frozen=True, slots=True)
class Slots:
    """What can be written about one subject."""

    fillers: Fillers = field(default_factory=dict)
    base: tuple[Statement, ...] = ()
    """Statements of every sentence about the subject, independent of the slots used."""
    used_families: set[str] = field(default_factory=set)
    """Families that the current sentence has used."""
    required_families: frozenset[str] = frozenset()
    """Families that are always included if the template has a part for them."""

    def select_fitting(self, templates: Sequence[Template]) -> list[Template]:
        """The templates whose required slots can all be filled."""
        return [
            template
            for template in templates
            if all(slot in self.fillers for slot in template.required_slots)
        ]


class Sampler:
    """Random choices of one report; templates that it has used are avoided while others fit."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._random = rng.random
        self._used: set[str] = set()

    def bernoulli(self, probability: float) -> bool:
        """Return True with this probability."""
        return self._random() < probability

    def pick(self, choices: Sequence[T]) -> T:
        return choices[int(self._random() * len(choices))]

    def pick_weighted(self, weights: Mapping[str, float]) -> str:
        remaining = self._random() * sum(weights.values())
        for name, weight in weights.items():
            remaining -= weight
            if remaining < 0:
                return name
        return next(reversed(list(weights)))

    def pick_several(self, items: Sequence[T], count: int) -> list[T]:
        """`count` of the items (or all, if there are fewer), in their order."""
        ranks = {index: self._random() for index in range(len(items))}
        chosen = sorted(ranks, key=lambda index: ranks[index])[:count]
        return [items[index] for index in sorted(chosen)]

    def pick_template(self, templates: Sequence[Template], slots: Slots) -> Template | None:
        """A template that these slots can fill; None if there is none."""
        fitting = slots.select_fitting(templates)
        if not fitting:
            return None
        fresh = [template for template in fitting if template.text not in self._used]
        chosen = self.pick(fresh or fitting)
        self._used.add(chosen.text)
        return chosen


def _parse(text: str) -> tuple[str | Slot | OptionalPart, ...]:
    outer: list[str | Slot | OptionalPart] = []
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
            outer.append(_make_optional_part(inner))
            inner = None
        else:
            (outer if inner is None else inner).append(Slot(token[1]))
    _append_text(outer, text[end:])
    if inner is not None:
        raise ValueError("'[' without ']'")
    return tuple(outer)


def _append_text(parts: list[str | Slot | OptionalPart] | list[str | Slot], text: str) -> None:
    if "{" in text or "}" in text:
        raise ValueError("unbalanced braces")
    if text:
        parts.append(text)


def _make_optional_part(parts: list[str | Slot]) -> OptionalPart:
    slots = tuple(part.name for part in parts if isinstance(part, Slot))
    families = _list_families(slots)
    probability = min((PROBABILITY.get(family, 0.5) for family in families), default=0.5)
    return OptionalPart(parts=tuple(parts), slots=slots, families=families, probability=probability)


def _list_families(slots: Iterable[str]) -> frozenset[str]:
    return frozenset(FAMILY[slot] for slot in slots if slot in FAMILY)


def render_template(template: Template, slots: Slots, sampler: Sampler) -> Phrase:
    """Fill a template; see `grammar.polish_sentence` for capital letters, articles and spaces."""
    words: list[str] = []
    statements: list[Statement] = list(slots.base)
    slots.used_families.update(template.families)

    def add(parts: Iterable[str | Slot]) -> None:
        for part in parts:
            if isinstance(part, str):
                words.append(part)
            else:
                filled = slots.fillers[part.name]()
                words.append(filled.text)
                statements.extend(filled.statements)

    for part in template.parts:
        if not isinstance(part, OptionalPart):
            add((part,))
        elif _is_included(part, slots, sampler):
            slots.used_families.update(part.families)
            add(part.parts)
    return Phrase("".join(words), merge_statements(statements))


def _is_included(part: OptionalPart, slots: Slots, sampler: Sampler) -> bool:
    fitting = all(slot in slots.fillers for slot in part.slots)
    if not fitting or part.families & slots.used_families:
        return False
    return bool(part.families & slots.required_families) or sampler.bernoulli(part.probability)


def merge_statements(statements: Iterable[Statement]) -> tuple[Statement, ...]:
    """Merge statements about the same fact into one, in the order of first mention."""
    merged: dict[tuple[str, str], Statement] = {}
    for statement in statements:
        key = (statement.kind, statement.about)
        if key in merged:
            fields = {name: value for name, value in msgspec.structs.asdict(statement).items() if value}
            merged[key] = msgspec.structs.replace(merged[key], **fields)
        else:
            merged[key] = statement
    return tuple(merged.values())
