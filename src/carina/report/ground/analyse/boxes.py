"""Boxes that chat models name on the same probes, scored so that they can stand beside maps."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from carina.cases import Benchmark, Box, Case
from carina.draw import Size
from carina.ground.explain.probe import asked_of
from carina.ground.score.boxes import Detection, score_boxes
from carina.report.exam import Exam
from carina.report.ground.figures import Figure, estimated
from carina.report.read import Run
from carina.run.records import StepRow
from carina.show.case_pictures import pixel_box
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
    """A run of a chat model on probes, as far as it says where findings are."""

    run: Run
    scores: pl.DataFrame
    """`case`, `study`, `finding`, `patient`, and a column for each of `METRICS`; a row a probe of what is there."""

    @property
    def title(self) -> str:
        return f"{self.run.model} · boxes"


def box_runs(exams: Sequence[Exam], bench: Benchmark, scored: set[str]) -> list[BoxRun]:
    """Runs on this benchmark that were asked for boxes, on the probes whose maps are scored."""
    made = []
    for exam in exams:
        if exam.protocol != "ground" or exam.bench.manifest.fingerprint != bench.manifest.fingerprint:
            continue
        cases = {case.id: case for case in exam.bench.pick(sorted(scored & set(exam.cases)))}
        for run in exam.runs:
            rows = list(_scored(run, cases))
            if rows:
                made.append(BoxRun(run, pl.DataFrame(rows, infer_schema_length=None).sort("case")))
    return made


def _scored(run: Run, cases: dict[str, Case]) -> Iterator[dict[str, object]]:
    """Steps that failed on the way are left out; where no box was named nothing is found."""
    for row in run.rows(sorted(cases)):
        if row.format == "boxes" and row.state != "incomplete":
            case = cases[row.case]
            yield {
                "case": case.id,
                "study": case.study,
                "finding": case.target,
                "patient": case.patient or case.id,
                **box_scores(case, row),
            }


def box_scores(case: Case, row: StepRow) -> dict[str, float]:
    """The scores of one answer."""
    truth = asked_of(case).truth
    if truth is None:
        raise ValueError(f"case {case.id}: boxes are asked of what is not there")
    named = [box for box in (_whole(case, one) for one in row.boxes) if box is not None]
    right = [box for box in (_whole(case, one) for one in case.step(row.step).key.boxes) if box is not None]
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


def _whole(case: Case, box: Box) -> tuple[float, float, float, float] | None:
    """A box within the image, as x, y, width and height in pixels; None where nothing of it is there."""
    image = case.image(box.image)
    x1, y1, x2, y2 = pixel_box(box, Size(width=image.width, height=image.height))
    left, right = (min(max(at, 0.0), float(image.width)) for at in (min(x1, x2), max(x1, x2)))
    top, bottom = (min(max(at, 0.0), float(image.height)) for at in (min(y1, y2), max(y1, y2)))
    if right <= left or bottom <= top:
        return None
    return left, top, right - left, bottom - top


def box_figures(found: BoxRun) -> list[Figure]:
    """Means over probes, with intervals over patients."""
    table = found.scores.select(list(METRICS)).to_numpy()
    means = ratio_intervals(table, found.scores["patient"].to_list(), replicates=REPLICATES)
    return [
        estimated(
            one,
            run=found.run.id,
            model=found.run.model,
            method="boxes",
            level="all",
            name="",
            metric=metric,
            average="micro",
        )
        for metric, one in zip(METRICS, means, strict=True)
    ]
