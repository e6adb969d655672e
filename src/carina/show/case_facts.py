"""What a key rests on, as a reader wants to see it: margins as bars, the rest as rows of a quiet table."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from carina.cases.model import Case, Fact, Step
from carina.show.words import number

ROLES: Final = {
    "truth": "true mask",
    "shown": "shown mask",
    "revised": "keyed mask",
    "option": "mask option",
}
"""Parts that a region plays in a case, in words."""
_PAD: Final = 0.18
"""Share of a bar's width beyond an end of the band where the value could lie outside."""
_OPEN: Final = 1.25
"""A band without an end reaches this far beyond the value, and at least to twice its beginning."""


@dataclass(frozen=True, kw_only=True)
class Margin:
    """A number and the range in which the key holds, with where both lie on a bar of width 100."""

    name: str
    about: str
    value: str
    range: str
    holds: bool
    slack: float
    """Distance to the nearer end of the range, as a share of that end: what is small is nearly wrong."""
    band: tuple[float, float]
    """Left end and width."""
    tick: float
    opens: bool
    """Whether the range has no upper end."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A fact that is no margin."""

    name: str
    about: str
    value: str


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Facts of a step or of a case, margins apart."""

    margins: tuple[Margin, ...]
    rows: tuple[Row, ...]

    @property
    def tightest(self) -> Margin | None:
        """The margin that is nearest to its end."""
        return min(self.margins, key=lambda margin: margin.slack, default=None)


def facts_of(facts: Iterable[Fact], names: Mapping[str, str]) -> Facts:
    """Facts in their order; `names` says what the things are called that they are about."""
    margins, rows = [], []
    for fact in facts:
        about = about_words(fact.about, names)
        if fact.value is not None and (fact.low is not None or fact.high is not None):
            margins.append(_margin(fact, about))
        else:
            value = fact.text or ""
            if fact.value is not None:
                value = f"{value} {number(fact.value)}".strip()
            rows.append(Row(name=_name(fact), about=about, value=value))
    return Facts(margins=tuple(margins), rows=tuple(rows))


def names_in(case: Case, step: Step | None = None) -> dict[str, str]:
    """What regions and options are called on the page: by their part, and by their number."""
    names = {region: ROLES.get(role, role) for region, role in roles(case).items()}
    if step:
        names |= {option.id: f"({place})" for place, option in enumerate(step.options, start=1)}
    return names


def about_words(about: str, names: Mapping[str, str]) -> str:
    """One name, or several apart by spaces where each is known; anything else as it stands."""
    if about in names:
        return names[about]
    parts = about.split()
    return " and ".join(names[part] for part in parts) if parts and all(p in names for p in parts) else about


def roles(case: Case) -> dict[str, str]:
    """Region to its part in the case."""
    return {fact.about: fact.text for fact in case.facts if fact.name == "role" and fact.text}


def grouped(facts: Sequence[Fact]) -> dict[str, tuple[Fact, ...]]:
    """Facts by what they are about, in the order of first mention."""
    order = {about: place for place, about in enumerate(dict.fromkeys(fact.about for fact in facts))}
    ranked = sorted(facts, key=lambda fact: order[fact.about])
    return {about: tuple(members) for about, members in groupby(ranked, key=lambda fact: fact.about)}


def _name(fact: Fact) -> str:
    return re.sub(r"\biou\b", "IoU", fact.name)


def _margin(fact: Fact, about: str) -> Margin:
    value = fact.value or 0.0
    low, high = _stated(fact)
    start, end, opens = _band(value, low, high)
    # A value can lie beyond an end that was stated; it cannot lie beyond a natural one (a share's 0 or 1).
    width = (end - start) or 1.0
    left = start - (_PAD * width if low is not None else 0)
    right = end + (_PAD * width if high is not None else 0)
    span = right - left

    def place(at: float) -> float:
        return round(100 * min(1.0, max(0.0, (at - left) / span)), 2)

    return Margin(
        name=_name(fact),
        about=about,
        value=number(value),
        range=_range(low, high),
        holds=(fact.low is None or value >= fact.low) and (fact.high is None or value <= fact.high),
        slack=min(abs(value - end) / (abs(end) or 1.0) for end in (low, high) if end is not None),
        band=(place(start), round(place(end) - place(start), 2)),
        tick=place(value),
        opens=opens,
    )


def _stated(fact: Fact) -> tuple[float | None, float | None]:
    """The ends that a value could pass: that a share is at least 0 and at most 1 says nothing of the key."""
    low, high = fact.low, fact.high
    if low is not None and high is not None and 0 <= low < high <= 1:
        if low == 0:
            return None, high
        if high == 1:
            return low, None
    return low, high


def _band(value: float, low: float | None, high: float | None) -> tuple[float, float, bool]:
    """The two ends of the range, and whether the upper one stands for none."""
    if low is not None and high is not None:
        return low, high, False
    if low is not None:
        if 0 <= low < 1 and value <= 1:
            return low, 1.0, False
        return low, max(low + abs(low), low + _OPEN * (value - low), low + 1e-9), True
    end = high if high is not None else 0.0
    return min(0.0, end - abs(end), value), end, False


def _range(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f"{number(low)} to {number(high)}"
    return f"at least {number(low)}" if low is not None else f"at most {number(high or 0.0)}"
