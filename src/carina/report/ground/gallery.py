"""Maps to look at: the best, the middle and the worst of each run, each beside a map of what is not there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from carina.cases import Benchmark, Case
from carina.errors import CarinaError
from carina.ground.explain.maps import LocalisationMap
from carina.ground.explain.probe import asked_of, grey
from carina.report.ground.analysis import Probing
from carina.report.ground.draw.heat import heat_picture, jpeg_uri, plain_picture
from carina.report.ground.measures import Measure, overlap, pointing, shared
from carina.report.ground.read import MapsRun
from carina.report.page.cells import percent

KINDS: Final = ("Best", "Middle", "Worst")
MOST: Final = 108
"""Pictures of a page: some two million bytes."""
_MOST_EACH: Final = 3
"""Maps of a kind and run."""
_PICTURES: Final = 3
"""Of a map: the radiograph, the map, and the map of what is not there."""


@dataclass(frozen=True)
class Picture:
    uri: str
    alt: str
    caption: str


@dataclass(frozen=True)
class Shown:
    """One map with what it is read beside."""

    kind: str
    case: str
    title: str
    facts: tuple[str, ...]
    pictures: tuple[Picture, ...]


@dataclass(frozen=True)
class Gallery:
    run: MapsRun
    shown: tuple[Shown, ...]
    missing: int = 0
    """Maps that were to be shown and whose image could not be read."""

    @property
    def kinds(self) -> list[tuple[str, list[Shown]]]:
        return [(kind, own) for kind in KINDS if (own := [one for one in self.shown if one.kind == kind])]


def galleries(probing: Probing) -> list[Gallery]:
    """Of all runs but controls, as many maps of each as the page has room for; none without a benchmark."""
    runs = [run for run in probing.runs if not run.control and run.scoring.scored]
    if probing.bench is None or not runs:
        return []
    each = max(1, min(_MOST_EACH, MOST // (_PICTURES * len(KINDS) * len(runs))))
    made = []
    for run in runs[: MOST // (_PICTURES * len(KINDS))]:
        told = shared(probing.measures, [run.told])
        made.append(_gallery(run, probing.bench, picked(run, told, each), told))
    return made


def picked(run: MapsRun, told: Sequence[Measure], each: int) -> list[tuple[str, str]]:
    """(kind, case): by where the peak lies, then by overlap, then by the ranks of pixels; no case twice."""
    columns = [one.variant for one in _ranked(told) if one.variant in run.own.columns]
    cases = run.own.sort([*columns, "case"], descending=[*(True for _ in columns), False], nulls_last=True)[
        "case"
    ].to_list()
    each = max(1, min(each, len(cases) // len(KINDS)))
    middle = (len(cases) - each) // 2
    places = {
        "Best": range(each),
        "Middle": range(middle, middle + each),
        "Worst": range(len(cases) - each, len(cases)),
    }
    held: dict[str, str] = {}
    for kind, own in places.items():
        for place in own:
            held.setdefault(cases[place], kind)
    return [(kind, case) for case, kind in held.items()]


def _ranked(told: Sequence[Measure]) -> list[Measure]:
    """By what maps are put in order."""
    chosen = [one for one in (pointing(told), overlap(told)) if one is not None]
    return chosen + [one for one in told if one.metric.startswith("auroc")][:1]


def _gallery(
    run: MapsRun, bench: Benchmark, chosen: Sequence[tuple[str, str]], told: Sequence[Measure]
) -> Gallery:
    index = run.maps.table(["id", "study", "target", "present"]).collect().sort("id")
    beside = {case: _absent(index, case) for _, case in chosen}
    wanted = {case for _, case in chosen} | {name for name in beside.values() if name is not None}
    maps = {one.id: one for one in run.maps.pick(sorted(wanted))}
    cases = {case.id: case for case in bench.pick(sorted(wanted))}
    shown, missing = [], 0
    for kind, name in chosen:
        try:
            pictures = tuple(_pictures(bench, cases, maps, name, beside[name]))
        except CarinaError:
            missing += 1  # the image is not there, or no longer the same: told on the page
            continue
        shown.append(Shown(kind, name, maps[name].target, tuple(_facts(run, name, told)), pictures))
    return Gallery(run, tuple(shown), missing)


def _absent(index: pl.DataFrame, case: str) -> str | None:
    """A map of what is not there: another finding on the same study, or else the same finding on another."""
    own = index.row(by_predicate=pl.col("id") == case, named=True)
    absent = index.filter(~pl.col("present"))
    for same in ("study", "target"):
        found = absent.filter(pl.col(same) == own[same])["id"]
        if len(found):
            return str(found[0])
    return None


def _pictures(
    bench: Benchmark,
    cases: dict[str, Case],
    maps: dict[str, LocalisationMap],
    name: str,
    absent: str | None,
) -> Iterator[Picture]:
    case, one = cases[name], maps[name]
    image, truth = grey(bench, case), asked_of(case).truth
    target = one.target
    yield Picture(
        jpeg_uri(plain_picture(image, truth)), f"Radiograph with {target} outlined", f"{target}, outlined"
    )
    yield Picture(
        jpeg_uri(heat_picture(image, one.values, one.frame, truth)),
        f"Map of {target} over the radiograph, truth outlined",
        f"map of {target}; {_range(one)}",
    )
    if absent is not None:
        other = maps[absent]
        where = "on the same study" if other.study == one.study else "on a study without it"
        yield Picture(
            jpeg_uri(heat_picture(grey(bench, cases[absent]), other.values, other.frame, None)),
            f"Map of {other.target}, which is not there, over the radiograph",
            f"map of {other.target}, not there, {where}; {_range(other)}",
        )


def _range(one: LocalisationMap) -> str:
    values = one.values
    told = f"from {np.nanmin(values):.3g} to {np.nanmax(values):.3g}"
    return told if one.recognised is None else f"{told}, score {one.recognised:.3g}"


def _facts(run: MapsRun, case: str, told: Sequence[Measure]) -> Iterator[str]:
    row = run.own.row(by_predicate=pl.col("case") == case, named=True)
    for one in _ranked(told):
        value = row.get(one.variant)
        if value is not None:
            yield f"{one.title} {percent(value)}"
    yield f"truth {percent(row['share'])}% of the image"
