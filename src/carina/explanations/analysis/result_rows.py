"""The headline of maps as rows of the tidy table of a report."""

from collections.abc import Iterator, Sequence

from carina.explanations.analysis.maps_analysis import MapsAnalysis
from carina.runs.analysis.result_rows import ResultRow


def map_result_rows(analyses: Sequence[MapsAnalysis]) -> list[ResultRow]:
    """The rows of all groups of runs of maps: by run, then by measure."""
    return [row for analysis in analyses for row in _rows_of_group(analysis)]


def _rows_of_group(analysis: MapsAnalysis) -> Iterator[ResultRow]:
    group, average = analysis.group, analysis.average
    for run in group.runs:
        for measure in group.measures:
            estimate = analysis.estimate(run, measure.variant, average=average)
            if estimate is None:
                continue
            readers = analysis.reader_estimate(measure.variant, average=average)
            control = analysis.best_control(run, measure.variant, average=average)
            yield ResultRow(
                protocol="ground",
                benchmark=group.title or "maps",
                run=run.id,
                label=run.title,
                model=run.model,
                method=run.method,
                level="maps",
                stage_name=measure.title,
                metric=measure.variant,
                n=estimate.n,
                estimate=estimate.value,
                low=estimate.low,
                high=estimate.high,
                blind_baseline=None if run.is_control else control,
                human_ceiling=None if readers is None else readers.value,
            )
