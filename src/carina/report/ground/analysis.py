"""All that is told of explain runs on one benchmark, computed once: tables, figures and page are made from it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from carina.cases import Benchmark
from carina.ground.explain.scoring import MODEL
from carina.report.analyse.breakdown import Dimension
from carina.report.analyse.figures import Contrast, corrected
from carina.report.exam import Exam
from carina.report.ground.analyse.answers import Joint, by_boxes, by_maps, joined, joint_figures
from carina.report.ground.analyse.boxes import BoxRun, box_figures, box_runs
from carina.report.ground.analyse.calibration import Calibration, calibration, calibration_figures
from carina.report.ground.analyse.checks import RunChecks, run_checks
from carina.report.ground.analyse.compare import (
    RIVALS,
    AgainstControls,
    against_controls,
    between,
    difference,
)
from carina.report.ground.analyse.correlation import (
    Relation,
    correlation_figure,
    over_findings,
    over_models,
    same_probes,
)
from carina.report.ground.analyse.lesions import divisions, lesion_figures
from carina.report.ground.analyse.pretraining import Pretraining, pretraining
from carina.report.ground.analyse.recognition import AUROC, recognition, told_apart
from carina.report.ground.analyse.sensitivity import Sensitivity, sensitivities, sensitivity_figures
from carina.report.ground.figures import Figure, summed
from carina.report.ground.measures import WHOLE_CELLS, Measure, measures, overlap, pointing, shared
from carina.report.ground.read import MapsRun

Key = tuple[str, str, str, str, str, str]
"""Run, source, level, name, metric and average."""


@dataclass(frozen=True, eq=False)
class Probing:
    """Runs that explain one benchmark and are scored by one profile: what belongs into the same tables."""

    runs: tuple[MapsRun, ...]
    """As given; models before controls, the oracle last."""
    bench: Benchmark | None
    """None where it was not found."""
    measures: tuple[Measure, ...]

    @property
    def profile(self) -> str:
        return self.runs[0].scoring.profile

    @cached_property
    def area(self) -> Measure | None:
        """The overlap of areas that all runs have, so that they can be compared by it; any where there is none."""
        held = [run.told for run in self.runs if run.scoring.scored]
        return overlap(shared(self.measures, held)) or overlap(self.measures)

    @property
    def title(self) -> str:
        command = self.runs[0].manifest.command.split()
        name = command[2] if self.bench is None and len(command) > 2 else ""
        name = self.bench.directory.resolve().name if self.bench is not None else name
        return " · ".join(part for part in (name, "" if self.profile == "carina" else self.profile) if part)


@dataclass(frozen=True, eq=False)
class GroundAnalysis:
    probing: Probing
    figures: tuple[Figure, ...]
    """All means of all runs and their controls: as each run's own summary has them, then by what lesions are like."""
    recognition: tuple[Figure, ...]
    controls: tuple[AgainstControls, ...]
    contrasts: tuple[Contrast, ...]
    relations: tuple[Relation, ...]
    """Recognition against grounding: over findings by run, then over models."""
    sensitivities: tuple[Sensitivity, ...]
    calibrations: tuple[Calibration, ...]
    boxes: tuple[BoxRun, ...]
    """Chat models on the same probes."""
    box_figures: tuple[Figure, ...]
    box_contrasts: tuple[Contrast, ...]
    """Maps less boxes on the same probes; p after Holm's correction over the pairs of a measure."""
    joints: tuple[Joint, ...]
    pretraining: Pretraining | None
    divisions: tuple[Dimension, ...]
    """Of the scored probes, by what their lesions are like."""
    checks: tuple[RunChecks, ...]
    """Whether maps depend on image, text and weights, of runs that were checked."""

    @cached_property
    def found(self) -> dict[Key, Figure]:
        """Figures by what they are."""
        return {
            (one.run, one.source, one.level, one.name, one.metric, one.average): one
            for one in (*self.figures, *self.recognition)
        }

    def figure(
        self,
        run: MapsRun,
        metric: str,
        *,
        source: str = MODEL,
        level: str = "all",
        name: str = "",
        average: str = "micro",
    ) -> Figure | None:
        return self.found.get((run.id, source, level, name, metric, average))

    @cached_property
    def average(self) -> str:
        """What the headline tells: micro, or macro where the profile tells findings alone."""
        whole = {one.average for one in self.figures if one.level == "all"}
        return "macro" if whole == {"macro"} else "micro"

    def mean_auroc(self, run: MapsRun) -> Figure | None:
        """Over findings."""
        return self.figure(run, AUROC, level="recognition", average="macro")

    def rival(self, run: MapsRun, metric: str, **about: str) -> float | None:
        """The best of the controls that a model has to be above, on the run's own frames and grid."""
        known = [self.figure(run, metric, source=source, **about) for source in RIVALS]
        return max((one.value for one in known if one and one.value is not None), default=None)

    @property
    def tables(self) -> dict[str, list[Figure]]:
        """Figures by the table that they stand in: all variants for all images, those of the page for groups."""
        told = {WHOLE_CELLS.variant, *(one.variant for one in self.probing.measures)}
        return {
            "headline": [one for one in self.figures if one.level == "all"],
            "breakdown": [one for one in self.figures if one.level != "all" and one.metric in told],
            "recognition": list(self.recognition),
            "correlation": [correlation_figure(one, self.probing.runs[0]) for one in self.relations],
            "thresholds": [item for one in self.sensitivities for item in sensitivity_figures(one)],
            "boxes": list(self.box_figures),
            "answers": [item for one in self.joints for item in joint_figures(one)],
            "pretraining": [] if self.pretraining is None else list(self.pretraining.figures),
            "calibration": [item for one in self.calibrations for item in calibration_figures(one)],
            "checks": [item for one in self.checks for item in one.figures],
        }

    @property
    def others(self) -> list[Figure]:
        """Figures that are not means of scores."""
        return [
            item
            for name, items in self.tables.items()
            if name not in ("headline", "breakdown")
            for item in items
        ]

    @property
    def differences(self) -> dict[str, list[Contrast]]:
        return {
            "controls": [one for item in self.controls for one in item.differences],
            "comparison": list(self.contrasts),
            "maps-and-boxes": list(self.box_contrasts),
            "checks-less-random": [one for item in self.checks for one in item.differences],
            "pretraining-comparison": [] if self.pretraining is None else list(self.pretraining.differences),
        }

    def whole_cells(self, run: MapsRun, **about: str) -> float | None:
        """The IoU that the best set of whole cells of the run's grid reaches."""
        found = self.figure(run, WHOLE_CELLS.variant, **about)
        return None if found is None else found.value


def probings(runs: Sequence[MapsRun], benches: dict[str, Benchmark | None]) -> list[Probing]:
    """Runs by benchmark and profile, in order of their first run."""
    made = []
    for key in dict.fromkeys((run.benchmark, run.scoring.profile) for run in runs):
        here = [run for run in runs if (run.benchmark, run.scoring.profile) == key]
        ordered = sorted(here, key=lambda run: (run.oracle, run.control, run.baseline))
        variants = {name: words for run in here for name, words in run.scoring.variants.items()}
        told = measures(variants.items(), known=sorted({name for run in here for name in run.told}))
        made.append(Probing(tuple(ordered), benches.get(key[0]), tuple(told)))
    return made


def analyse(
    probing: Probing, exams: Sequence[Exam] = (), progress: Callable[[], None] = lambda: None
) -> GroundAnalysis:
    """All figures of some runs, joined with what chat models answered; `progress` is told after every run."""
    figures: list[Figure] = []
    recognised: list[Figure] = []
    controls = []
    divided = divisions(probing.bench, probing.runs)
    for run in probing.runs:
        figures += summed(run)
        figures += lesion_figures(run, probing.measures, divided)
        recognised += recognition(run)
        found = against_controls(run, probing.measures)
        if found is not None:
            controls.append(found)
        progress()
    first = pointing(probing.measures)
    scored = {case for run in probing.runs for case in run.own["case"]}
    boxes = [] if probing.bench is None else box_runs(exams, probing.bench, scored)
    pointers = [] if first is None else [by_maps(run, first) for run in probing.runs if not run.oracle]
    pointers += [by_boxes(one) for one in boxes if not one.run.oracle]
    return GroundAnalysis(
        probing=probing,
        figures=tuple(figures),
        recognition=tuple(recognised),
        controls=tuple(controls),
        contrasts=tuple(between(probing.runs, probing.measures)),
        relations=tuple(_relations(probing, figures, recognised)),
        sensitivities=tuple(found for run in probing.runs for found in sensitivities(run)),
        calibrations=tuple(made for run in probing.runs if (made := calibration(run)) is not None),
        boxes=tuple(boxes),
        box_figures=tuple(item for one in boxes for item in box_figures(one)),
        box_contrasts=tuple(_maps_less_boxes(probing, boxes)),
        joints=tuple(joined(pointers, exams)),
        pretraining=pretraining(probing.runs, probing.measures),
        divisions=tuple(divided),
        checks=tuple(item for item in map(run_checks, probing.runs) if item is not None),
    )


def _maps_less_boxes(probing: Probing, boxes: Sequence[BoxRun]) -> Iterator[Contrast]:
    """Peaks against centres of boxes, and areas of maps against those of boxes."""
    for measure, metric in (
        (pointing(probing.measures), "box centre"),
        (probing.area, "union IoU"),
    ):
        if measure is None or measure.metric not in ("hit", "iou"):
            continue
        pairs = [
            difference((run.id, run.own), (one.run.id, one.scores.rename({metric: measure.variant})), measure)
            for run in probing.runs
            if not run.oracle
            for one in boxes
            if not one.run.oracle
        ]
        yield from corrected([item for item in pairs if item is not None])


def _relations(
    probing: Probing, figures: Sequence[Figure], recognised: Sequence[Figure]
) -> Iterator[Relation]:
    """Over the findings of each run, then over models; by where peaks lie and by overlap."""
    for run in probing.runs:
        names = told_apart(run)
        known = [one for one in recognised if one.run == run.id and one.name in names]
        own = [one for one in figures if one.run == run.id]
        for measure in _two(shared(probing.measures, [run.told])):
            made = over_findings(run, measure, known, own)
            if made.places:
                yield made
    auroc = {run: _first(recognised, run, AUROC) for run in probing.runs}
    alike, left = same_probes([run for run, one in auroc.items() if one is not None])
    whole = [one for one in figures if (one.source, one.level) == (MODEL, "all")]
    for measure in _two(shared(probing.measures, [run.told for run in alike])):
        points = [(run, auroc[run], _first(whole, run, measure.variant)) for run in alike]
        over = over_models(measure, points, left)
        if over.places:
            yield over


def _two(told: Sequence[Measure]) -> list[Measure]:
    """Where peaks lie, and how areas overlap."""
    return [one for one in (pointing(told), overlap(told)) if one is not None]


def _first(figures: Sequence[Figure], run: MapsRun, metric: str) -> Figure | None:
    """The mean over findings, where it has a value."""
    wanted = (run.id, metric, "macro")
    return next(
        (one for one in figures if (one.run, one.metric, one.average) == wanted and one.value is not None),
        None,
    )
