"""What the benchmark knows of cases and steps beyond the rows of a run: keys in words, order, size, severity, view."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import polars as pl

from carina.cases import Benchmark, Case, Step
from carina.report.analyse.breakdown import Dimension, bands

_MOST_FINDINGS: Final = 16
_SEVERITIES: Final = ("low", "mid", "high")
"""Ids of percept's options, in order."""


@dataclass(frozen=True, eq=False)
class Facts:
    """What some cases of a benchmark are about."""

    dimensions: tuple[Dimension, ...]
    """Every division that they allow; each with at least two labels."""
    keys: pl.DataFrame
    """`key` by `case` and `step`: the right answer in words that could be said of any case; without boxes and texts."""
    orders: Mapping[str, int]
    """How many cases are asked in order of their stages ("staged"), and how many are not ("shuffled")."""


def facts_of(bench: Benchmark, cases: Iterable[str]) -> Facts:
    gathered = _Gathered()
    for case in bench.pick(sorted(cases)):
        gathered.add(case)
    keys = pl.DataFrame(gathered.keys, dict.fromkeys(("case", "step", "key"), pl.String), orient="row")
    return Facts(tuple(gathered.dimensions()), keys, gathered.orders)


class _Gathered:
    """Facts of the cases that were seen so far."""

    def __init__(self) -> None:
        self.keys: list[tuple[str, str, str]] = []
        self.orders: Counter[str] = Counter()
        self._order: list[tuple[str, str]] = []
        self._values: dict[str, list[tuple[str, float]]] = {
            name: [] for name in ("size", "conspicuity", "contour", "agreement")
        }
        self._severity: list[tuple[str, str]] = []
        self._edits: list[tuple[str, str]] = []
        self._views: list[tuple[str, str]] = []
        self._pieces: list[tuple[str, str]] = []
        self._sides: list[tuple[str, str]] = []
        self._findings: list[tuple[str, str, str]] = []
        self._severity_texts: dict[str, str] = {}

    def add(self, case: Case) -> None:
        self.orders[case.order] += 1
        self._order.append((case.id, case.order))
        for name, fact in (
            ("size", "lesion share of image"),
            ("conspicuity", "conspicuity"),
            ("agreement", "agreement"),
        ):
            self._values[name] += [(case.id, value) for value in _numbers(case, fact)][:1]
        shown = {fact.about for fact in case.facts if fact.name == "role" and fact.text == "shown"}
        if case.path == "RR":
            overlaps = [f for f in case.facts if f.name == "iou with truth" and f.about in shown]
            self._values["contour"] += [(case.id, f.value) for f in overlaps if f.value is not None][:1]
            edits = sum(fact.name == "operation" for fact in case.facts)
            self._edits.append((case.id, str(edits)))
        self._pieces += [(case.id, "one" if value == 1 else "several") for value in _numbers(case, "pieces")]
        self._sides += [(case.id, fact.text) for fact in case.facts if fact.name == "side" and fact.text]
        current = sorted({image.view for image in case.images if image.role == "current"})
        self._views.append((case.id, " and ".join(current)))
        for step in case.steps:
            key = _key(step)
            if key:
                self.keys.append((case.id, step.id, key))
            if step.task == "severity" and len(step.key.options) == 1 and step.options:
                grade = step.key.options[0]
                if case.protocol == "percept":
                    self._severity.append((case.id, grade))
                    self._severity_texts[grade] = step.option(grade).text
            about = [fact.text for fact in step.facts if fact.name == "target" and fact.about == "finding"]
            self._findings += [(case.id, step.id, text) for text in about if text][:1]

    def dimensions(self) -> Iterator[Dimension]:
        values = {name: _frame(found, pl.Float64) for name, found in self._values.items()}
        order = sorted(self._severity_texts, key=lambda key: (key not in _SEVERITIES, _place(key), key))
        named = [(case, self._severity_texts[key]) for case, key in self._severity]
        yield from _plain("Severity", named, [self._severity_texts[key] for key in order])
        made = [
            bands(
                "Lesion size", values["size"], "%", scale=100, note="share of the image, thirds of the cases"
            ),
            bands(
                "Conspicuity", values["conspicuity"], "", note="contrast of the lesion, thirds of the cases"
            ),
            bands(
                "Contour shown",
                values["contour"],
                "",
                note="overlap (IoU) of the contour to be revised with the truth",
            ),
        ]
        agreed = bands(
            "Agreement",
            values["agreement"],
            "",
            note="overlap (IoU) of what annotators drew, thirds of the cases",
        )
        yield from (item for item in (*made, agreed) if item is not None)
        yield from _plain("Pieces", self._pieces, _told(self._pieces, ("one", "several")))
        yield from _plain("Side", self._sides, _told(self._sides, ("right", "left", "bilateral")))
        yield from _plain("Edits", self._edits, sorted({label for _, label in self._edits}))
        yield from _plain(
            "Order", self._order, [name for name in ("staged", "shuffled") if self.orders[name]]
        )
        yield from _plain("View", self._views, sorted({label for _, label in self._views}))
        often = Counter(label for _, _, label in self._findings).most_common(_MOST_FINDINGS)
        labels = tuple(sorted(label for label, _ in often))
        if len(labels) > 1:
            rows = pl.DataFrame(self._findings, ["case", "step", "part"], orient="row")
            yield Dimension(
                "Finding", labels, rows.filter(pl.col("part").is_in(labels)), "what the question is about"
            )


def _key(step: Step) -> str:
    """What would have to be said, whatever the place of the right options among the others."""
    right = sorted(option.text for option in step.options if option.id in step.key.options)
    return "; ".join(right) or (step.key.label or "")


def _numbers(case: Case, name: str) -> list[float]:
    return [fact.value for fact in case.facts if fact.name == name and fact.value is not None]


def _place(key: str) -> int:
    return _SEVERITIES.index(key) if key in _SEVERITIES else 0


def _frame(rows: list[tuple[str, float]], kind: type[pl.Float64]) -> pl.DataFrame:
    return pl.DataFrame(rows, {"case": pl.String, "value": kind}, orient="row")


def _told(rows: list[tuple[str, str]], order: tuple[str, ...]) -> list[str]:
    """Labels that come, in their order."""
    there = {label for _, label in rows}
    return [label for label in order if label in there]


def _plain(title: str, rows: list[tuple[str, str]], labels: list[str]) -> Iterator[Dimension]:
    if len(labels) > 1:
        yield Dimension(title, tuple(labels), pl.DataFrame(rows, ["case", "part"], orient="row"))
