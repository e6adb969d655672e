"""Further numbers about a run: formats, opposing paths, how answers were parsed, kinds of errors, cost and time."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import polars as pl

from carina.cases.protocol import find_protocol
from carina.runs.analysis.estimates import Estimate, Key, estimate_share, weight_groups
from carina.runs.analysis.outcomes import Outcomes
from carina.runs.analysis.read import TEXT_SCORES, ComparedRun
from carina.runs.records import STATUSES

_FORMAT_SCORES: Final = (
    ("yes_no", "accuracy", "value"),
    ("yes_no", "balanced accuracy", "value"),
    ("choice", "exact", "value"),
    ("choice", "set F1", "f1"),
    ("boxes", "mean IoU", "iou"),
    ("boxes", "IoU at least 0.5", "iou"),
    ("boxes", "IoU at least 0.25", "iou"),
    *(
        (name, metric, column)
        for name in ("open", "report")
        for metric, column in (
            ("entity F1", "entity_f1"),
            ("attribute F1", "attribute_f1"),
            ("ROUGE-L", "rouge"),
            *((metric, column) for column, metric in TEXT_SCORES.items()),
        )
    ),
)
_ALWAYS: Final = ("iou", "rouge", "bertscore")
"""Scores that every answer of their format has, where the run has them at all."""
UNPARSED: Final = "not read"
"""Name of the share of answers that could not be parsed."""
FORMAT_METRICS: Final = tuple((name, metric) for name, metric, _ in _FORMAT_SCORES)


def estimate_formats(run: ComparedRun, outcomes: Outcomes) -> list[Estimate]:
    """Each format by its own metrics; without a value where the run has no such format."""
    estimates = []
    for name, metric, column in _FORMAT_SCORES:
        steps = outcomes.steps.filter(pl.col("format") == name)
        if column in TEXT_SCORES and (column not in steps.columns or steps[column].is_null().all()):
            continue
        value = pl.col("value")
        if column != "value":
            # A step that was not reached matches nothing; whether its key has entities to match is not known.
            missed = (pl.col("state") == "not_reached") & (pl.col("multiple") | (column in _ALWAYS))
            value = pl.when(missed).then(0.0).otherwise(outcomes.score(column))
        if metric.startswith("IoU at least"):
            value = (value >= float(metric.split()[-1])).cast(pl.Float64)
        if metric in ("balanced accuracy", "accuracy", "exact"):
            rows = steps.with_columns(value=value)
        else:
            rows = steps.with_columns(value=value, chance=pl.lit(None, pl.Float64)).drop_nulls("value")
        if metric == "balanced accuracy":
            # Over the keys yes and no; uncertain keys count in the plain accuracy.
            rows = rows.filter(pl.col("gold_label").is_in(["yes", "no"]))
            frame = (
                weight_groups(rows, "gold_label")
                if rows["gold_label"].n_unique() == 2
                else weight_groups(rows.head(0))
            )
        else:
            frame = weight_groups(rows)
        estimates.append(estimate_share(run, frame, level="format", name=name, metric=metric))
    return estimates


def estimate_opposing_paths(run: ComparedRun, outcomes: Outcomes) -> list[Estimate]:
    """Sensitivity and specificity of the stages that have positive and negative paths."""
    return [
        estimate_share(
            run,
            weight_groups(
                outcomes.stages.filter(pl.col("stage") == stage.number, pl.col("path").is_in(paths))
            ),
            level="stage",
            name=str(stage.number),
            metric=metric,
        )
        for stage in find_protocol(outcomes.protocol).stages
        if stage.is_opposed
        for metric, paths in (("sensitivity", stage.positive_paths), ("specificity", stage.negative_paths))
    ]


def estimate_tasks(run: ComparedRun, outcomes: Outcomes) -> list[Estimate]:
    """Accuracy by task; also overlap for several options, mean recall over classes for one option."""
    estimates = []
    closed = outcomes.closed
    order = (
        closed.group_by("task")
        .agg(pl.col("stage").min(), pl.col("number").mean())
        .sort("stage", "number", "task")
    )
    for task in order["task"]:
        steps = closed.filter(pl.col("task") == task)
        estimates.append(
            estimate_share(run, weight_groups(steps), level="task", name=task, metric="accuracy")
        )
        single = steps.filter(~pl.col("multiple") & (pl.col("gold") != ""))
        if not single.is_empty():
            estimates.append(
                estimate_share(
                    run,
                    weight_groups(single, "gold"),
                    level="task",
                    name=task,
                    metric="mean recall over classes",
                )
            )
            most = max(single.group_by("gold").len()["len"].to_list()) / single.height
            estimates.append(_count(run, ("task", task, "best constant answer"), most, single.height))
        several = steps.filter("multiple")
        if not several.is_empty():
            is_answered = pl.col("state") == "answered"
            overlap = pl.when(is_answered).then(outcomes.score("overlap").fill_null(0.0)).otherwise(0.0)
            rows = several.with_columns(value=overlap, chance=pl.lit(None, pl.Float64))
            estimates.append(
                estimate_share(run, weight_groups(rows), level="task", name=task, metric="overlap (Jaccard)")
            )
    return estimates


def count_parsing(run: ComparedRun, outcomes: Outcomes) -> list[Estimate]:
    """Number of steps by state, and of answers by the result of parsing them."""
    rows = outcomes.all_steps
    states = {
        state: rows.filter(pl.col("state") == state).height
        for state in ("answered", "not_reached", "incomplete")
    }
    estimates = [
        _count(run, ("state", state, "steps"), count, rows.height) for state, count in states.items()
    ]
    cases = rows["case"].n_unique() + run.missing.get(outcomes.protocol, 0)
    estimates.append(_count(run, ("state", "complete", "cases"), len(outcomes.complete), cases))
    answered = rows.filter(pl.col("state") == "answered")
    for status in STATUSES:
        count = answered.filter(pl.col("status") == status).height
        estimates.append(_count(run, ("status", status, "answers"), count, answered.height))
    failed = answered.filter(pl.col("status") != "ok").height
    share = failed / answered.height if answered.height else None
    estimates.append(_count(run, ("status", UNPARSED, "share of answers"), share, answered.height))
    rows = answered.drop_nulls("obeyed").select(
        cluster=pl.coalesce("patient", "case"),
        unit=pl.concat_str("case", pl.lit("/"), "step"),
        value=pl.col("obeyed").cast(pl.Float64),
        chance=pl.lit(None, pl.Float64),
    )
    estimates.append(
        estimate_share(run, weight_groups(rows), level="form", name="obeyed", metric="share of answers")
    )
    return estimates


def count_error_kinds(run: ComparedRun, outcomes: Outcomes) -> list[Estimate]:
    """Of the wrong answers to a task, the share that chose an option of each kind of error."""
    wrong = outcomes.closed.filter((pl.col("value") < 1.0) & (pl.col("state") == "answered"))
    listed = wrong.explode("kinds").drop_nulls("kinds").unique(["unit", "kinds"])
    totals = dict(wrong.group_by("task").len().iter_rows())
    counted = listed.group_by("task", "kinds").len().sort("task", "kinds")
    return [
        _count(run, (f"kind, {task}", kind, "share of wrong answers"), count / totals[task], totals[task])
        for task, kind, count in counted.iter_rows()
    ]


def sum_cost(run: ComparedRun, outcomes: Outcomes, price: tuple[float, float] | None) -> list[Estimate]:
    """Tokens, images and time; dollars where the price of a million input and output tokens is known."""
    rows = outcomes.all_steps.filter(pl.col("state") == "answered")
    estimates = []
    for name, metric, column in (
        ("input tokens", "sum", "input_tokens"),
        ("output tokens", "sum", "output_tokens"),
        ("seconds", "sum", "seconds"),
    ):
        known = rows[column].drop_nulls()
        estimates.append(
            _count(run, ("cost", name, metric), float(known.sum()) if len(known) else None, len(known))
        )
    if price is not None and all(item.value is not None for item in estimates[:2]):
        dollars = sum(rate * (item.value or 0.0) for rate, item in zip(price, estimates, strict=False)) / 1e6
        estimates.append(_count(run, ("cost", "dollars", "at list price"), dollars, rows.height))
    estimates.append(_count(run, ("cost", "image sends", "sum"), float(rows["images"].sum()), rows.height))
    seconds = rows["seconds"].drop_nulls().to_numpy()
    median = float(np.median(seconds)) if len(seconds) else None
    estimates.append(_count(run, ("cost", "seconds", "median of a step"), median, len(seconds)))
    return estimates


def list_error_kinds(estimates: Sequence[Estimate]) -> list[tuple[str, str]]:
    """Tasks and kinds of error that occur in any run."""
    return sorted({(item.level.removeprefix("kind, "), item.name) for item in estimates})


def _count(run: ComparedRun, key: Key, value: float | None, n: int) -> Estimate:
    level, name, metric = key
    return Estimate(
        run=run.id,
        model=run.model,
        history=run.history,
        level=level,
        name=name,
        metric=metric,
        value=None if value is None else float(value),
        n=n,
    )
