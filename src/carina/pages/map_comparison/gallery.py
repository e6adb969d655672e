"""Pictures of maps: the best, the middle and the worst of each run, each beside the map of an absent finding."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from carina.cases import Benchmark, Case
from carina.explanations.analysis.maps_groups import MapsGroup
from carina.explanations.analysis.measures import Measure, overlap_measure, pointing_measure, shared_measures
from carina.explanations.analysis.read import MapsRun
from carina.explanations.maps import LocalisationMap
from carina.explanations.probe import read_grey_pixels, read_probe_case
from carina.pages.figures import jpeg_uri
from carina.pages.map_comparison.overlays import QUALITY, render_image, render_map
from carina.pages.run_comparison.cells import format_percent
from carina.store.errors import CarinaError

KINDS: Final = ("Best", "Middle", "Worst")
MOST: Final = 108
"""Largest number of pictures of a page: some two million bytes."""
_MOST_EACH: Final = 3
"""Largest number of maps of a kind and run."""
_PICTURES: Final = 3
"""Pictures for each map: the radiograph, the map, and the map of an absent finding."""


@dataclass(frozen=True)
class Picture:
    """One picture of the page."""

    uri: str
    alt: str
    caption: str


@dataclass(frozen=True)
class GalleryItem:
    """One map with the pictures that it is compared with."""

    kind: str
    case: str
    title: str
    facts: tuple[str, ...]
    pictures: tuple[Picture, ...]


@dataclass(frozen=True)
class Gallery:
    """The maps of one run."""

    run: MapsRun
    items: tuple[GalleryItem, ...]
    missing: int = 0
    """Number of selected maps whose image could not be read."""

    @property
    def kinds(self) -> list[tuple[str, list[GalleryItem]]]:
        return [(kind, own) for kind in KINDS if (own := [one for one in self.items if one.kind == kind])]


def make_galleries(group: MapsGroup) -> list[Gallery]:
    """Galleries of all runs but controls, with as many maps as the page has room for; none without a benchmark."""
    runs = [run for run in group.runs if not run.is_control and run.scoring.scored]
    if group.bench is None or not runs:
        return []
    each = max(1, min(_MOST_EACH, MOST // (_PICTURES * len(KINDS) * len(runs))))
    galleries = []
    for run in runs[: MOST // (_PICTURES * len(KINDS))]:
        measures = shared_measures(group.measures, [run.known_variants])
        galleries.append(_gallery(run, group.bench, select_maps(run, measures, each), measures))
    return galleries


def select_maps(run: MapsRun, measures: Sequence[Measure], each: int) -> list[tuple[str, str]]:
    """(kind, case): by the place of the peak, then by overlap, then by pixel AUROC; no case twice."""
    columns = [one.variant for one in _ranking_measures(measures) if one.variant in run.own.columns]
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


def _ranking_measures(measures: Sequence[Measure]) -> list[Measure]:
    """The measures by which maps are ordered."""
    first = [one for one in (pointing_measure(measures), overlap_measure(measures)) if one is not None]
    return first + [one for one in measures if one.metric.startswith("auroc")][:1]


def _gallery(
    run: MapsRun, bench: Benchmark, chosen: Sequence[tuple[str, str]], measures: Sequence[Measure]
) -> Gallery:
    index = run.maps.table(["id", "study", "target", "present"]).collect().sort("id")
    absent = {case: _find_absent(index, case) for _, case in chosen}
    wanted = {case for _, case in chosen} | {name for name in absent.values() if name is not None}
    maps = {one.id: one for one in run.maps.pick(sorted(wanted))}
    cases = {case.id: case for case in bench.pick(sorted(wanted))}
    items, missing = [], 0
    for kind, name in chosen:
        try:
            pictures = tuple(_pictures(bench, cases, maps, name, absent[name]))
        except CarinaError:
            missing += 1  # the image is missing, or no longer the same: a notice of the page says so
            continue
        items.append(GalleryItem(kind, name, maps[name].target, tuple(_facts(run, name, measures)), pictures))
    return Gallery(run, tuple(items), missing)


def _find_absent(index: pl.DataFrame, case: str) -> str | None:
    """The map of an absent finding: of another finding on the same study, or else of the same finding elsewhere."""
    own = index.row(by_predicate=pl.col("id") == case, named=True)
    negative = index.filter(~pl.col("present"))
    for same in ("study", "target"):
        candidates = negative.filter(pl.col(same) == own[same])["id"]
        if len(candidates):
            return str(candidates[0])
    return None


def _pictures(
    bench: Benchmark,
    cases: dict[str, Case],
    maps: dict[str, LocalisationMap],
    name: str,
    absent: str | None,
) -> Iterator[Picture]:
    case, one = cases[name], maps[name]
    image, truth = read_grey_pixels(bench, case), read_probe_case(case).truth
    target = one.target
    yield Picture(
        jpeg_uri(render_image(image, truth), quality=QUALITY),
        f"Radiograph with {target} outlined",
        f"{target}, outlined",
    )
    yield Picture(
        jpeg_uri(render_map(image, one.values, one.frame, truth), quality=QUALITY),
        f"Map of {target} over the radiograph, truth outlined",
        f"map of {target}; {_describe_values(one)}",
    )
    if absent is not None:
        other = maps[absent]
        where = "on the same study" if other.study == one.study else "on a study without it"
        drawn = render_map(read_grey_pixels(bench, cases[absent]), other.values, other.frame, None)
        yield Picture(
            jpeg_uri(drawn, quality=QUALITY),
            f"Map of {other.target}, which is absent, over the radiograph",
            f"map of {other.target}, absent, {where}; {_describe_values(other)}",
        )


def _describe_values(one: LocalisationMap) -> str:
    values = one.values
    words = f"from {np.nanmin(values):.3g} to {np.nanmax(values):.3g}"
    return words if one.recognised is None else f"{words}, score {one.recognised:.3g}"


def _facts(run: MapsRun, case: str, measures: Sequence[Measure]) -> Iterator[str]:
    row = run.own.row(by_predicate=pl.col("case") == case, named=True)
    for one in _ranking_measures(measures):
        value = row.get(one.variant)
        if value is not None:
            yield f"{one.title} {format_percent(value)}"
    yield f"truth {format_percent(row['share'])}% of the image"
