"""Facts that an answer key rests on, laid out for readers: margins as bars, the rest as rows of a table."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from carina.cases.model import Case, Fact, Step
from carina.pages.case_facts import region_roles
from carina.pages.words import format_number

ROLE_TITLES: Final = {
    "truth": "true mask",
    "shown": "shown mask",
    "revised": "correct mask",
    "option": "mask option",
}
"""Roles that a region has in a case, as readers see them."""
_PADDING: Final = 0.18
"""Share of a bar's width that is added at an end of the range beyond which the value could lie."""
_OPEN_END: Final = 1.25
"""A range without an upper end is drawn this many times as long as the value's distance from its lower end."""


@dataclass(frozen=True, kw_only=True)
class Margin:
    """A number and the range in which the key holds, with the places of both on a bar of width 100."""

    name: str
    about: str
    value: str
    range: str
    holds: bool
    slack: float
    """Distance to the nearer end of the range, as a share of that end; a small one is nearly wrong."""
    band: tuple[float, float]
    """Left end and width."""
    tick: float
    is_open: bool
    """Whether the range has no upper end."""


@dataclass(frozen=True, kw_only=True)
class FactRow:
    """A fact that has no range."""

    name: str
    about: str
    value: str


@dataclass(frozen=True, kw_only=True)
class FactTable:
    """Facts of a step or of a case."""

    margins: tuple[Margin, ...]
    rows: tuple[FactRow, ...]

    @property
    def tightest(self) -> Margin | None:
        """The margin that is nearest to an end of its range."""
        return min(self.margins, key=lambda margin: margin.slack, default=None)


def tabulate_facts(facts: Iterable[Fact], names: Mapping[str, str]) -> FactTable:
    """Facts in their order; `names` gives readable names of the regions and options that they are about."""
    margins, rows = [], []
    for fact in facts:
        about = subject_title(fact.about, names)
        if fact.value is not None and (fact.low is not None or fact.high is not None):
            margins.append(_margin(fact, about))
        else:
            value = fact.text or ""
            if fact.value is not None:
                value = f"{value} {format_number(fact.value)}".strip()
            rows.append(FactRow(name=_fact_title(fact), about=about, value=value))
    return FactTable(margins=tuple(margins), rows=tuple(rows))


def subject_names(case: Case, step: Step | None = None) -> dict[str, str]:
    """Readable names: regions by their roles, and the options of a step by their numbers."""
    names = {region: ROLE_TITLES.get(role, role) for region, role in region_roles(case).items()}
    if step:
        names |= {option.id: f"({place})" for place, option in enumerate(step.options, start=1)}
    return names


def subject_title(about: str, names: Mapping[str, str]) -> str:
    """One name, or several that are separated by spaces where each is known; anything else unchanged."""
    if about in names:
        return names[about]
    parts = about.split()
    return " and ".join(names[part] for part in parts) if parts and all(p in names for p in parts) else about


def _fact_title(fact: Fact) -> str:
    return re.sub(r"\biou\b", "IoU", fact.name)


def _margin(fact: Fact, about: str) -> Margin:
    value = fact.value or 0.0
    low, high = _informative_ends(fact)
    start, end, is_open = _band(value, low, high)
    # A value can lie beyond an end that was stated; it cannot lie beyond a natural one (a share's 0 or 1).
    width = (end - start) or 1.0
    left = start - (_PADDING * width if low is not None else 0)
    right = end + (_PADDING * width if high is not None else 0)
    span = right - left

    def place(at: float) -> float:
        return round(100 * min(1.0, max(0.0, (at - left) / span)), 2)

    return Margin(
        name=_fact_title(fact),
        about=about,
        value=format_number(value),
        range=_range_text(low, high),
        holds=(fact.low is None or value >= fact.low) and (fact.high is None or value <= fact.high),
        slack=min(abs(value - end) / (abs(end) or 1.0) for end in (low, high) if end is not None),
        band=(place(start), round(place(end) - place(start), 2)),
        tick=place(value),
        is_open=is_open,
    )


def _informative_ends(fact: Fact) -> tuple[float | None, float | None]:
    """The ends that a value could pass, without 0 and 1 of a share, which it cannot."""
    low, high = fact.low, fact.high
    if low is not None and high is not None and 0 <= low < high <= 1:
        if low == 0:
            return None, high
        if high == 1:
            return low, None
    return low, high


def _band(value: float, low: float | None, high: float | None) -> tuple[float, float, bool]:
    """The two ends of the range on the bar, and whether the range has no upper end."""
    if low is not None and high is not None:
        return low, high, False
    if low is not None:
        if 0 <= low < 1 and value <= 1:
            return low, 1.0, False
        return low, max(low + abs(low), low + _OPEN_END * (value - low), low + 1e-9), True
    end = high if high is not None else 0.0
    return min(0.0, end - abs(end), value), end, False


def _range_text(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f"{format_number(low)} to {format_number(high)}"
    return f"at least {format_number(low)}" if low is not None else f"at most {format_number(high or 0.0)}"
