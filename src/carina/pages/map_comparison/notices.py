"""What a reader must know before the numbers about maps: warnings and notes."""

from collections.abc import Iterator, Sequence

from carina.explanations.analysis.comparisons import RIVALS
from carina.explanations.analysis.maps_analysis import MapsAnalysis
from carina.explanations.analysis.measures import leading_measure
from carina.pages.map_comparison.gallery import Gallery
from carina.pages.run_comparison.cells import format_p, format_points, format_points_interval
from carina.pages.run_comparison.notices import Notice, sort_notices
from carina.pages.words import join_names
from carina.runs.analysis.estimates import Difference


def map_notices(analyses: Sequence[MapsAnalysis], galleries: Sequence[Sequence[Gallery]]) -> list[Notice]:
    """Notices about all groups, warnings first; where there are several groups, each notice names its own."""
    notices: dict[Notice, None] = {}
    for analysis, own in zip(analyses, galleries, strict=True):
        name = f"{analysis.group.title or 'maps'}: " if len(analyses) > 1 else ""
        for item in (*_group_notices(analysis), *_unreadable_image_notices(own)):
            notices.setdefault(Notice(item.level, f"{name}{item.text}"))
    return sort_notices(list(notices))


def _group_notices(analysis: MapsAnalysis) -> Iterator[Notice]:
    yield from _automatic_region_notices(analysis)
    yield from _probe_notices(analysis)
    yield from _control_notices(analysis)
    yield from _missing_control_notices(analysis)
    yield from _tuning_notices(analysis)
    yield from _missing_benchmark_notices(analysis)
    yield from (
        Notice("note", f"{run.title}: {text}.") for run in analysis.group.runs for text in run.unchecked
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
            yield Notice("warning" if nowhere or is_leading else "note", " ".join(sentences))


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
            f"Not all runs are scored on the same probes: {names}. Estimates are over each run's own probes; "
            "differences are over probes that both runs have.",
        )


def _automatic_region_notices(analysis: MapsAnalysis) -> Iterator[Notice]:
    if analysis.automatic:
        every = len(set().union(*(run.own["case"] for run in analysis.group.runs)))
        yield Notice(
            "warning",
            f"A program, and no person, drew {analysis.automatic:,} of the {every:,} regions: agreement with them is "
            "agreement with that program, not with readers.",
        )


def _tuning_notices(analysis: MapsAnalysis) -> Iterator[Notice]:
    untuned = [run.title for run in analysis.group.runs if run.scoring.tuned_on is None]
    if untuned and analysis.group.profile in ("carina", "chexlocalize"):
        yield Notice(
            "note",
            f"{', '.join(untuned)}: no split for tuning thresholds was given, so measures with a tuned threshold are "
            "left out. Run carina explain with --tune-on.",
        )
    splits = {run.scoring.tuned_on for run in analysis.group.runs} - {None}
    if len(splits) > 1:
        yield Notice(
            "note", f"Thresholds were tuned on different splits: {', '.join(sorted(map(str, splits)))}."
        )


def _unreadable_image_notices(galleries: Sequence[Gallery]) -> Iterator[Notice]:
    """Maps whose image could not be read."""
    missing = [f"{one.run.title} ({one.missing})" for one in galleries if one.missing]
    if missing:
        yield Notice(
            "note",
            f"Images of some maps could not be read, so they are not shown: {', '.join(missing)}. Give the folder "
            "of the images with --images.",
        )


def _missing_benchmark_notices(analysis: MapsAnalysis) -> Iterator[Notice]:
    if analysis.group.bench is None:
        yield Notice(
            "note",
            f"The benchmark of {analysis.group.runs[0].title} was not found near the run, so there are no pictures. "
            "Give its directory with --bench.",
        )
