"""Attributes of one fact as a model told them: kept where a cited sentence bears them out, else dropped and counted."""

from collections import Counter
from typing import TypeVar

from carina.studies.vocabulary import ZONES, Side, Trend
from carina.trek.reports_by_model.support import Support, key_of

_V = TypeVar("_V", bound=str)


class Attributes:
    """Checks the attributes of a fact against the sentences that it rests on."""

    def __init__(self, support: Support, evidence: tuple[int, ...], dropped: Counter[str]) -> None:
        self._support = support
        self._evidence = evidence
        self._dropped = dropped

    def said(self, kind: str, value: _V | None) -> _V | None:
        """A severity, a distribution: where a word for it stands there."""
        return self._kept(value, borne_out=value is not None and self._any_says(kind, value))

    def judged(self, kind: str, value: _V | None) -> _V | None:
        """A position: where it is judged at all; the words may have to be turned around."""
        return self._kept(value, borne_out=any(self._support.says_any(n, kind) for n in self._evidence))

    def side(self, side: Side | None) -> Side | None:
        return self._kept(side, borne_out=any(side in self._support.sides(n) for n in self._evidence))

    def trend(self, trend: Trend | None) -> Trend | None:
        told = trend is not None and any(self._support.trend(n, trend) for n in self._evidence)
        return self._kept(trend, borne_out=told)

    def site(self, site: str | None) -> str | None:
        if site is None or not site.strip():
            return None
        return self._kept(site, borne_out=any(self._support.quotes(n, site) for n in self._evidence))

    def zones(self, zones: tuple[str, ...]) -> tuple[str, ...]:
        spoken = frozenset[str]().union(*(self._support.zones(n) for n in self._evidence))
        kept = tuple(zone for zone in ZONES if zone in zones and zone in spoken)
        self._drop(len(set(zones)) - len(kept))
        return kept

    def looks(self, looks: tuple[str, ...]) -> tuple[str, ...]:
        keys = dict.fromkeys(key_of("look", look) for look in looks)
        kept = tuple(key for key in keys if key is not None and self._any_says("look", key))
        self._drop(len(keys) - len(kept))
        return kept

    def _any_says(self, kind: str, value: str) -> bool:
        return any(self._support.says(n, kind, value) for n in self._evidence)

    def _kept(self, value: _V | None, *, borne_out: bool) -> _V | None:
        if value is not None and not borne_out:
            self._drop(1)
            return None
        return value

    def _drop(self, number: int) -> None:
        if number:
            self._dropped["attribute"] += number
