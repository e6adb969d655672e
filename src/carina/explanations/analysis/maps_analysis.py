"""Everything that a report says about a group of runs of maps, computed once."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from carina.explanations.analysis.answers import (
    PointingAndAnswers,
    answer_estimates,
    join_answers,
    point_by_boxes,
    point_by_maps,
)
from carina.explanations.analysis.boxes import BoxRun, estimate_boxes, find_box_runs
from carina.explanations.analysis.calibration import Calibration, calibrate, calibration_estimates
from carina.explanations.analysis.checks import RunChecks, summarise_checks
from carina.explanations.analysis.comparisons import (
    RIVALS,
    AgainstControls,
    compare_runs,
    compare_with_controls,
    paired_scores,
)
from carina.explanations.analysis.correlation import (
    Relation,
    correlation_estimate,
    relate_findings,
    relate_models,
    same_probes,
)
from carina.explanations.analysis.estimates import MapEstimate, summary_estimates
from carina.explanations.analysis.lesions import estimate_lesions, lesion_dimensions
from carina.explanations.analysis.maps_groups import MapsGroup
from carina.explanations.analysis.measures import (
    WHOLE_CELLS,
    Measure,
    overlap_measure,
    pointing_measure,
    shared_measures,
)
from carina.explanations.analysis.pretraining import Pretraining, compare_pretraining
from carina.explanations.analysis.read import MapsRun
from carina.explanations.analysis.readers import count_automatic_regions, estimate_readers
from carina.explanations.analysis.recognition import AUROC, estimate_recognition, separable_findings
from carina.explanations.analysis.thresholds import ThresholdCurve, threshold_curves, threshold_estimates
from carina.explanations.scoring import MODEL
from carina.runs.analysis.breakdown import Dimension
from carina.runs.analysis.estimates import Difference, apply_holm
from carina.runs.analysis.readers import READERS
from carina.runs.analysis.run_groups import RunGroup

Key = tuple[str, str, str, str, str, str]
"""Run, source, level, name, metric and average."""


@dataclass(frozen=True, eq=False)
class MapsAnalysis:
    """All estimates and differences of a group of runs of maps."""

    group: MapsGroup
    estimates: tuple[MapEstimate, ...]
    """Means of scores: of all images, by finding, by size, by properties of the lesion."""
    recognition: tuple[MapEstimate, ...]
    controls: tuple[AgainstControls, ...]
    differences: tuple[Difference, ...]
    relations: tuple[Relation, ...]
    """Recognition against grounding: over the findings of each run, then over models."""
    threshold_curves: tuple[ThresholdCurve, ...]
    calibrations: tuple[Calibration, ...]
    boxes: tuple[BoxRun, ...]
    box_estimates: tuple[MapEstimate, ...]
    box_differences: tuple[Difference, ...]
    """Maps minus boxes on the same probes; p after Holm's correction over the pairs of a measure."""
    answers: tuple[PointingAndAnswers, ...]
    pretraining: Pretraining | None
    dimensions: tuple[Dimension, ...]
    """Divisions of the scored probes by properties of their lesions."""
    checks: tuple[RunChecks, ...]
    """Whether maps depend on image, text and weights, of runs that were checked."""
    readers: tuple[MapEstimate, ...] = ()
    """Readers against readers on the scored probes, where the benchmark has several."""
    automatic: int = 0
    """Scored probes whose region a program drew, and no person."""

    @cached_property
    def _by_key(self) -> dict[Key, MapEstimate]:
        return {
            (one.run, one.source, one.level, one.name, one.metric, one.average): one
            for one in (*self.estimates, *self.recognition)
        }

    def estimate(
        self,
        run: MapsRun,
        metric: str,
        *,
        source: str = MODEL,
        level: str = "all",
        name: str = "",
        average: str = "micro",
    ) -> MapEstimate | None:
        """One estimate, or None where there is none."""
        return self._by_key.get((run.id, source, level, name, metric, average))

    @cached_property
    def average(self) -> str:
        """Average of the headline: micro, or macro where the profile reports findings only."""
        averages = {one.average for one in self.estimates if one.level == "all"}
        return "macro" if averages == {"macro"} else "micro"

    def mean_auroc(self, run: MapsRun) -> MapEstimate | None:
        """The mean AUROC of recognition over findings."""
        return self.estimate(run, AUROC, level="recognition", average="macro")

    def reader_estimate(self, metric: str, *, name: str = "", average: str = "micro") -> MapEstimate | None:
        """How readers do against each other in a measure, over all probes or those of one finding."""
        return next(
            (one for one in self.readers if (one.metric, one.name, one.average) == (metric, name, average)),
            None,
        )

    def best_control(self, run: MapsRun, metric: str, **about: str) -> float | None:
        """The best of the controls that a model has to exceed, on the run's own frames and grid."""
        known = [self.estimate(run, metric, source=source, **about) for source in RIVALS]
        return max((one.value for one in known if one and one.value is not None), default=None)

    def whole_cells(self, run: MapsRun, **about: str) -> float | None:
        """The IoU that the best set of whole cells of the run's grid reaches."""
        estimate = self.estimate(run, WHOLE_CELLS.variant, **about)
        return None if estimate is None else estimate.value

    @property
    def tables(self) -> dict[str, list[MapEstimate]]:
        """Estimates by the table that they belong to: all variants for all images, those of the page for groups."""
        reported = {WHOLE_CELLS.variant, *(one.variant for one in self.group.measures)}
        return {
            "headline": [one for one in self.estimates if one.level == "all"],
            "breakdown": [one for one in self.estimates if one.level != "all" and one.metric in reported],
            "recognition": list(self.recognition),
            "correlation": [correlation_estimate(one, self.group.runs[0]) for one in self.relations],
            "thresholds": [item for one in self.threshold_curves for item in threshold_estimates(one)],
            "boxes": list(self.box_estimates),
            "answers": [item for one in self.answers for item in answer_estimates(one)],
            "pretraining": [] if self.pretraining is None else list(self.pretraining.estimates),
            "calibration": [item for one in self.calibrations for item in calibration_estimates(one)],
            "checks": [item for one in self.checks for item in one.estimates],
            READERS: list(self.readers),
        }

    @property
    def difference_tables(self) -> dict[str, list[Difference]]:
        """Differences by the table that they belong to."""
        return {
            "controls": [one for item in self.controls for one in item.differences],
            "comparison": list(self.differences),
            "maps-and-boxes": list(self.box_differences),
            "checks-less-random": [one for item in self.checks for one in item.differences],
            "pretraining-comparison": [] if self.pretraining is None else list(self.pretraining.differences),
        }


def analyse_maps(
    group: MapsGroup, run_groups: Sequence[RunGroup] = (), progress: Callable[[], None] = lambda: None
) -> MapsAnalysis:
    """Compute all estimates of a group of runs of maps.

    Args:
        group: Runs that are compared.
        run_groups: Runs of chat models, whose answers about the same studies are joined.
        progress: Called after every run.
    """
    estimates: list[MapEstimate] = []
    recognition: list[MapEstimate] = []
    controls = []
    dimensions = lesion_dimensions(group.bench, group.runs)
    for run in group.runs:
        estimates += summary_estimates(run)
        estimates += estimate_lesions(run, group.measures, dimensions)
        recognition += estimate_recognition(run)
        against = compare_with_controls(run, group.measures)
        if against is not None:
            controls.append(against)
        progress()
    pointing = pointing_measure(group.measures)
    scored = {case for run in group.runs for case in run.own["case"]}
    boxes = [] if group.bench is None else find_box_runs(run_groups, group.bench, scored)
    pointers = (
        [] if pointing is None else [point_by_maps(run, pointing) for run in group.runs if not run.is_oracle]
    )
    pointers += [point_by_boxes(one) for one in boxes if not one.run.is_oracle]
    return MapsAnalysis(
        group=group,
        estimates=tuple(estimates),
        recognition=tuple(recognition),
        controls=tuple(controls),
        differences=tuple(compare_runs(group.runs, group.measures)),
        relations=tuple(_relations(group, estimates, recognition)),
        threshold_curves=tuple(curve for run in group.runs for curve in threshold_curves(run)),
        calibrations=tuple(one for run in group.runs if (one := calibrate(run)) is not None),
        boxes=tuple(boxes),
        box_estimates=tuple(item for one in boxes for item in estimate_boxes(one)),
        box_differences=tuple(_maps_minus_boxes(group, boxes)),
        answers=tuple(join_answers(pointers, run_groups)),
        pretraining=compare_pretraining(group.runs, group.measures),
        dimensions=tuple(dimensions),
        checks=tuple(item for item in map(summarise_checks, group.runs) if item is not None),
        readers=tuple(estimate_readers(group, scored)),
        automatic=count_automatic_regions(group, scored),
    )


def _maps_minus_boxes(group: MapsGroup, boxes: Sequence[BoxRun]) -> Iterator[Difference]:
    """Peaks minus centres of boxes, and areas of maps minus areas of boxes."""
    for measure, metric in (
        (pointing_measure(group.measures), "box centre"),
        (group.overlap, "union IoU"),
    ):
        if measure is None or measure.metric not in ("hit", "iou"):
            continue
        pairs = [
            paired_scores(
                (run.id, run.own), (one.run.id, one.scores.rename({metric: measure.variant})), measure
            )
            for run in group.runs
            if not run.is_oracle
            for one in boxes
            if not one.run.is_oracle
        ]
        yield from apply_holm([item for item in pairs if item is not None])


def _relations(
    group: MapsGroup, estimates: Sequence[MapEstimate], recognition: Sequence[MapEstimate]
) -> Iterator[Relation]:
    """Over the findings of each run, then over models; by the place of peaks and by overlap."""
    for run in group.runs:
        names = separable_findings(run)
        known = [one for one in recognition if one.run == run.id and one.name in names]
        own = [one for one in estimates if one.run == run.id]
        for measure in _pointing_and_overlap(shared_measures(group.measures, [run.known_variants])):
            relation = relate_findings(run, measure, known, own)
            if relation.points:
                yield relation
    auroc = {run: _mean_over_findings(recognition, run, AUROC) for run in group.runs}
    same, left_out = same_probes([run for run, one in auroc.items() if one is not None])
    whole = [one for one in estimates if (one.source, one.level) == (MODEL, "all")]
    for measure in _pointing_and_overlap(
        shared_measures(group.measures, [run.known_variants for run in same])
    ):
        candidates = [(run, auroc[run], _mean_over_findings(whole, run, measure.variant)) for run in same]
        relation = relate_models(measure, candidates, left_out)
        if relation.points:
            yield relation


def _pointing_and_overlap(measures: Sequence[Measure]) -> list[Measure]:
    return [one for one in (pointing_measure(measures), overlap_measure(measures)) if one is not None]


def _mean_over_findings(estimates: Sequence[MapEstimate], run: MapsRun, metric: str) -> MapEstimate | None:
    """The mean over findings, where it has a value."""
    key = (run.id, metric, "macro")
    return next(
        (one for one in estimates if (one.run, one.metric, one.average) == key and one.value is not None),
        None,
    )
