"""What a reader must know before the figures of maps."""

from collections.abc import Iterator, Sequence

from carina.report.analyse.figures import Contrast
from carina.report.ground.analyse.compare import RIVALS, AgainstControls
from carina.report.ground.analysis import GroundAnalysis
from carina.report.ground.gallery import Gallery
from carina.report.ground.measures import lead
from carina.report.page.cells import points
from carina.report.page.remarks import Remark


def remarks(analyses: Sequence[GroundAnalysis], shown: Sequence[Sequence[Gallery]]) -> list[Remark]:
    """Of all benchmarks and profiles, gravest first; where there are several, each says which it is about."""
    found: dict[Remark, None] = {}
    for told, pictures in zip(analyses, shown, strict=True):
        name = f"{told.probing.title or 'maps'}: " if len(analyses) > 1 else ""
        for item in (*_of_one(told), *_unreadable(pictures)):
            found.setdefault(Remark(item.level, f"{name}{item.text}"))
    return sorted(found, key=lambda item: item.level != "grave")


def _of_one(told: GroundAnalysis) -> Iterator[Remark]:
    yield from _cases(told)
    yield from _not_above(told)
    yield from _without_controls(told)
    yield from _tuning(told)
    yield from _bench(told)


def _not_above(told: GroundAnalysis) -> Iterator[Remark]:
    """One remark a run: controls that it is above in no figure, then those that it is above in some alone."""
    first = lead(told.probing.measures)
    titles = {one.variant: one.title for one in told.probing.measures}
    for item in told.controls:
        nowhere, somewhere, leads = [], [], False
        for source in RIVALS:
            own = _less(item, source)
            short = [one for one in own if one in item.not_above]
            if own and len(short) == len(own):
                nowhere.append(source)
            elif short:
                leads |= first is not None and first.variant in [one.metric for one in short]
                somewhere.append(
                    f"{source} in {', '.join(f'{titles[one.metric]} ({_range(one)})' for one in short)}"
                )
        said = []
        if nowhere:
            said.append(
                f"{item.run.title} is not surely above {_listed(nowhere)} in any figure. Nothing here shows that its "
                "maps owe more to the image."
            )
        if somewhere:
            who = "Nor is it" if nowhere else f"{item.run.title} is not"
            said.append(f"{who} surely above {'; '.join(somewhere)}.")
        if said:
            yield Remark("grave" if nowhere or leads else "note", " ".join(said))


def _less(item: AgainstControls, source: str) -> list[Contrast]:
    return [one for one in item.differences if one.other == source]


def _listed(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _range(item: Contrast) -> str:
    if item.low is None or item.high is None:
        return f"{points(item.value)} points"
    return f"{points(item.value)} points, {points(item.low)} to {points(item.high)}"


def _without_controls(told: GroundAnalysis) -> Iterator[Remark]:
    beside = {item.run.id for item in told.controls}
    alone = [run.title for run in told.probing.runs if not run.control and run.id not in beside]
    if alone:
        yield Remark(
            "grave",
            f"{', '.join(alone)}: scored without controls, so nothing tells what its figures are worth. Run carina "
            "explain with --controls.",
        )


def _cases(told: GroundAnalysis) -> Iterator[Remark]:
    held = {run.id: set(run.own["case"]) for run in told.probing.runs}
    everything = set().union(*held.values())
    partial = [run for run in told.probing.runs if held[run.id] != everything]
    if partial:
        names = ", ".join(f"{run.title} ({len(held[run.id])} of {len(everything)})" for run in partial)
        yield Remark(
            "grave",
            f"Not all runs are scored on the same probes: {names}. Figures are each run's own; differences are over "
            "probes that both have.",
        )


def _tuning(told: GroundAnalysis) -> Iterator[Remark]:
    untuned = [run.title for run in told.probing.runs if run.scoring.tuned_on is None]
    if untuned and told.probing.profile in ("carina", "chexlocalize"):
        yield Remark(
            "note",
            f"{', '.join(untuned)}: no split to tune thresholds on was named, so figures with a tuned threshold are "
            "left out. Run carina explain with --tune-on.",
        )
    splits = {run.scoring.tuned_on for run in told.probing.runs} - {None}
    if len(splits) > 1:
        yield Remark(
            "note", f"Thresholds were tuned on different splits: {', '.join(sorted(map(str, splits)))}."
        )


def _unreadable(shown: Sequence[Gallery]) -> Iterator[Remark]:
    """Maps without a picture."""
    lost = [f"{one.run.title} ({one.missing})" for one in shown if one.missing]
    if lost:
        yield Remark(
            "note",
            f"Images of some maps could not be read, so they are not shown: {', '.join(lost)}. --images says where "
            "images lie.",
        )


def _bench(told: GroundAnalysis) -> Iterator[Remark]:
    if told.probing.bench is None:
        yield Remark(
            "note",
            f"The benchmark of {told.probing.runs[0].title} was not found beside its run, so there are no pictures. "
            "--bench says where it lies.",
        )
