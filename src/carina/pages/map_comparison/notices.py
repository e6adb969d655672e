"""What a reader must know of the numbers about maps: warnings and notes."""

from collections.abc import Iterator, Sequence

from carina.explanations.analysis.comparisons import RIVALS
from carina.explanations.analysis.maps_analysis import MapsAnalysis
from carina.explanations.analysis.measures import leading_measure
from carina.pages.map_comparison.gallery import Gallery
from carina.pages.run_comparison.cells import format_p, format_points, format_points_interval
from carina.pages.run_comparison.notices import Level, Notice
from carina.pages.words import join_names
from carina.runs.analysis.estimates import Difference


def map_notices(analysis: MapsAnalysis, galleries: Sequence[Gallery]) -> Iterator[Notice]:
    """Notices about a group of runs of maps."""
    yield from _automatic_region_notices(analysis)
    yield from _probe_notices(analysis)
    yield from _control_notices(analysis)
    yield from _missing_control_notices(analysis)
    yield from _tuning_notices(analysis)
    yield from _missing_benchmark_notices(analysis)
    yield from _unreadable_image_notices(galleries)
    yield from (
        Notice("note", "Not compared with checksums", f"{run.title}: {text}.")
        for run in analysis.group.runs
        for text in run.unchecked
    )


def _control_notices(analysis: MapsAnalysis) -> Iterator[Notice]:
    """One notice a run: the controls that it exceeds in no measure, then those that it exceeds in some only."""
    leading = leading_measure(analysis.group.measures)
    titles = {one.variant: one.title for one in analysis.group.measures}
    for item in analysis.controls:
        nowhere, somewhere, is_leading = [], [], False
        for source in RIVALS:
            own = [one for one in item.differences if one.other == source]
            short = [one for one in own if one in item.not_above]
            if own and len(short) == len(own):
                nowhere.append(source)
            elif short:
                is_leading |= leading is not None and leading.variant in [one.metric for one in short]
                somewhere.append(
                    f"{source} in {', '.join(f'{titles[one.metric]} ({_describe_difference(one)})' for one in short)}"
                )
        sentences = []
        if nowhere:
            sentences.append(
                f"{item.run.title} is not significantly above {join_names(nowhere)} in any measure. Nothing "
                "here shows that its maps owe more to the image."
            )
        if somewhere:
            who = "Nor is it" if nowhere else f"{item.run.title} is not"
            sentences.append(f"{who} significantly above {'; '.join(somewhere)}.")
        if sentences:
            level: Level = "warning" if nowhere or is_leading else "note"
            yield Notice(level, "Not above the controls", " ".join(sentences))


def _describe_difference(item: Difference) -> str:
    bounds = format_points_interval(item.low, item.high)
    # An interval may exclude zero although the difference is not significant after the correction.
    p = f", {format_p(item.adjusted)} after Holm's correction"
    return f"{format_points(item.value)} points" + (f", {bounds}" if bounds else "") + p


def _missing_control_notices(analysis: MapsAnalysis) -> Iterator[Notice]:
    compared = {item.run.id for item in analysis.controls}
    uncompared = [run.title for run in analysis.group.runs if not run.is_control and run.id not in compared]
    if uncompared:
        yield Notice(
            "warning",
            "Scored without controls",
            f"{', '.join(uncompared)}: scored without controls, so there is nothing to compare the scores with. Run "
            "carina explain with --controls.",
        )


def _probe_notices(analysis: MapsAnalysis) -> Iterator[Notice]:
    held = {run.id: set(run.own["case"]) for run in analysis.group.runs}
    every = set().union(*held.values())
    partial = [run for run in analysis.group.runs if held[run.id] != every]
    if partial:
        names = ", ".join(f"{run.title} ({len(held[run.id])} of {len(every)})" for run in partial)
        yield Notice(
            "warning",
            "Different probes",
            f"Not all runs are scored on the same probes: {names}. Estimates are over each run's own probes; "
            "differences are over probes that both runs have.",
        )


def _automatic_region_notices(analysis: MapsAnalysis) -> Iterator[Notice]:
    if analysis.automatic:
        every = len(set().union(*(run.own["case"] for run in analysis.group.runs)))
        yield Notice(
            "warning",
            "Regions by a program",
            f"A program, and no person, drew {analysis.automatic:,} of the {every:,} regions: agreement with them is "
            "agreement with that program, not with readers.",
        )


def _tuning_notices(analysis: MapsAnalysis) -> Iterator[Notice]:
    untuned = [run.title for run in analysis.group.runs if run.scoring.tuned_on is None]
    if untuned and analysis.group.profile in ("carina", "chexlocalize"):
        yield Notice(
            "note",
            "Thresholds",
            f"{', '.join(untuned)}: no split for tuning thresholds was given, so measures with a tuned threshold are "
            "left out. Run carina explain with --tune-on.",
        )
    splits = {run.scoring.tuned_on for run in analysis.group.runs} - {None}
    if len(splits) > 1:
        yield Notice(
            "note",
            "Thresholds",
            f"Thresholds were tuned on different splits: {', '.join(sorted(map(str, splits)))}.",
        )


def _unreadable_image_notices(galleries: Sequence[Gallery]) -> Iterator[Notice]:
    """Maps whose image could not be read."""
    missing = [f"{one.run.title} ({one.missing})" for one in galleries if one.missing]
    if missing:
        yield Notice(
            "note",
            "Images that cannot be read",
            f"Images of some maps could not be read, so they are not shown: {', '.join(missing)}. Give the folder "
            "of the images with --images.",
        )


def _missing_benchmark_notices(analysis: MapsAnalysis) -> Iterator[Notice]:
    if analysis.group.bench is None:
        yield Notice(
            "note",
            "Benchmark not found",
            f"The benchmark of {analysis.group.runs[0].title} was not found near the run, so there are no pictures. "
            "Give its directory with --bench.",
        )
