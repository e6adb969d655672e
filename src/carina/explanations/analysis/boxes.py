"""Boxes that chat models name on the same probes, scored so that they can be compared with maps."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from carina.cases import Benchmark, Box, Case
from carina.cases.boxes import pixel_box
from carina.cases.draw import Size
from carina.explanations.analysis.estimates import MapEstimate, to_estimate
from carina.explanations.probe import read_probe_case
from carina.maps.boxes import Detection, score_boxes
from carina.runs.analysis.read import ComparedRun
from carina.runs.analysis.run_groups import RunGroup
from carina.runs.records import StepRow
from carina.stats import ratio_intervals
from carina.studies import Region

METRICS: Final = {
    "box centre": "share of the named boxes whose centre lies in the truth",
    "union IoU": "IoU of all named boxes together with the truth",
    "union Dice": "Dice of the same",
    "box IoU": "mean over the truth's boxes of the best IoU with a named one",
}
REPLICATES: Final = 1000


@dataclass(frozen=True, eq=False)
class BoxRun:
    """A run of a chat model on probes, with the scores of the boxes that it names."""

    run: ComparedRun
    scores: pl.DataFrame
    """`case`, `study`, `finding`, `patient`, and a column for each of `METRICS`; one row a positive probe."""

    @property
    def title(self) -> str:
        return f"{self.run.model} · boxes"


def find_box_runs(groups: Sequence[RunGroup], bench: Benchmark, scored: set[str]) -> list[BoxRun]:
    """Runs on this benchmark that name boxes, on the probes whose maps are scored."""
    box_runs = []
    for group in groups:
        if group.protocol != "ground" or group.bench.manifest.fingerprint != bench.manifest.fingerprint:
            continue
        cases = {case.id: case for case in group.bench.pick(sorted(scored & set(group.cases)))}
        for run in group.runs:
            rows = list(_score_answers(run, cases))
            if rows:
                box_runs.append(BoxRun(run, pl.DataFrame(rows, infer_schema_length=None).sort("case")))
    return box_runs


def _score_answers(run: ComparedRun, cases: dict[str, Case]) -> Iterator[dict[str, object]]:
    """Scores of every answer; steps that ended in a transport error are left out, an answer without boxes scores 0."""
    for row in run.rows(sorted(cases)):
        if row.format == "boxes" and row.state != "incomplete":
            case = cases[row.case]
            yield {
                "case": case.id,
                "study": case.study,
                "finding": case.target,
                "patient": case.patient or case.id,
                **score_answer(case, row),
            }


def score_answer(case: Case, row: StepRow) -> dict[str, float]:
    """The scores of one answer."""
    truth = read_probe_case(case).truth
    if truth is None:
        raise ValueError(f"case {case.id}: asks for boxes of a finding that is absent")
    named = [box for box in (_box_in_pixels(case, one) for one in row.boxes) if box is not None]
    right = [
        box for box in (_box_in_pixels(case, one) for one in case.step(row.step).key.boxes) if box is not None
    ]
    if not named:
        return dict.fromkeys(METRICS, 0.0)
    parts = [Region.from_box(*box, height=truth.height, width=truth.width) for box in named]
    iou = parts[0].union(*parts[1:]).iou(truth)
    hits = [truth.contains(x + width / 2, y + height / 2) for x, y, width, height in named]
    return {
        "box centre": sum(hits) / len(hits),
        "union IoU": iou,
        "union Dice": 2 * iou / (1 + iou),
        "box IoU": score_boxes([Detection(box) for box in named], right)["box_iou"] if right else 0.0,
    }


def _box_in_pixels(case: Case, box: Box) -> tuple[float, float, float, float] | None:
    """The part of a box within the image, as x, y, width and height in pixels; None where it lies outside."""
    image = case.image(box.image)
    x1, y1, x2, y2 = pixel_box(box, Size(width=image.width, height=image.height))
    left, right = (min(max(at, 0.0), float(image.width)) for at in (min(x1, x2), max(x1, x2)))
    top, bottom = (min(max(at, 0.0), float(image.height)) for at in (min(y1, y2), max(y1, y2)))
    if right <= left or bottom <= top:
        return None
    return left, top, right - left, bottom - top


def estimate_boxes(box_run: BoxRun) -> list[MapEstimate]:
    """Means over probes, with intervals over patients."""
    table = box_run.scores.select(list(METRICS)).to_numpy()
    means = ratio_intervals(table, box_run.scores["patient"].to_list(), replicates=REPLICATES)
    return [
        to_estimate(
            one,
            run=box_run.run.id,
            model=box_run.run.model,
            method="boxes",
            level="all",
            name="",
            metric=metric,
            average="micro",
        )
        for metric, one in zip(METRICS, means, strict=True)
    ]
