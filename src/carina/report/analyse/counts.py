"""What else is told of a run: formats, opposing paths, how answers were read, errors by kind, what it cost."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import polars as pl

from carina.report.analyse.figures import Figure, Key, estimate, weighted
from carina.report.analyse.outcomes import Outcomes
from carina.report.read import Run
from carina.report.words import TEXT_SCORES
from carina.run.records import STATUSES

_BY_FORMAT: Final = (
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
"""Scores that any answer of their format has, where the run has them at all."""
FORMAT_METRICS: Final = tuple((name, metric) for name, metric, _ in _BY_FORMAT)


def by_format(run: Run, found: Outcomes) -> list[Figure]:
    """Each format by its own metrics; a format that the run lacks has no value."""
    made = []
    for name, metric, column in _BY_FORMAT:
        steps = found.steps.filter(pl.col("format") == name)
        if column not in steps.columns or (column in TEXT_SCORES and steps[column].is_null().all()):
            continue
        value = pl.col("value")
        if column != "value":
            # What was never reached matches nothing; whether it had entities to match is not known.
            missed = (pl.col("state") == "not_reached") & (pl.col("multiple") | (column in _ALWAYS))
            value = pl.when(missed).then(0.0).otherwise(pl.col(column))
        if metric.startswith("IoU at least"):
            value = (value >= float(metric.split()[-1])).cast(pl.Float64)
        if metric in ("balanced accuracy", "accuracy", "exact"):
            told = steps.with_columns(value=value)
        else:
            told = steps.with_columns(value=value, chance=pl.lit(None, pl.Float64)).drop_nulls("value")
        if metric == "balanced accuracy":
            # Over the answers yes and no; what is uncertain has its own figure in the tables.
            told = told.filter(pl.col("gold_label").is_in(["yes", "no"]))
            frame = (
                weighted(told, "gold_label") if told["gold_label"].n_unique() == 2 else weighted(told.head(0))
            )
        else:
            frame = weighted(told)
        made.append(estimate(run, frame, level="format", name=name, metric=metric))
    return made


def opposing(run: Run, found: Outcomes) -> list[Figure]:
    """Sensitivity and specificity of percept's two stages that ask for the path."""
    if found.protocol != "percept":
        return []
    sides = (
        (1, "sensitivity", pl.col("path") != "LF"),
        (1, "specificity", pl.col("path") == "LF"),
        (2, "sensitivity", pl.col("path") == "RR"),
        (2, "specificity", pl.col("path") == "RF"),
    )
    return [
        estimate(
            run,
            weighted(found.stages.filter((pl.col("stage") == stage) & condition)),
            level="stage",
            name=str(stage),
            metric=metric,
        )
        for stage, metric, condition in sides
    ]


def by_task(run: Run, found: Outcomes) -> list[Figure]:
    """Sub-questions: accuracy, and beside it overlap for several options, mean recall over classes for one."""
    made = []
    closed = found.closed
    order = (
        closed.group_by("task")
        .agg(pl.col("stage").min(), pl.col("number").mean())
        .sort("stage", "number", "task")
    )
    for task in order["task"]:
        steps = closed.filter(pl.col("task") == task)
        made.append(estimate(run, weighted(steps), level="task", name=task, metric="accuracy"))
        gold = steps.with_columns(key=pl.coalesce("gold_label", pl.col("gold_options").list.join("+")))
        single = gold.filter(~pl.col("multiple") & (pl.col("key") != ""))
        if not single.is_empty():
            made.append(
                estimate(
                    run, weighted(single, "key"), level="task", name=task, metric="mean recall over classes"
                )
            )
            most = max(single.group_by("key").len()["len"].to_list()) / single.height
            made.append(_plain(run, ("task", task, "best constant answer"), most, single.height))
        several = steps.filter("multiple")
        if not several.is_empty():
            asked = pl.col("state") == "answered"
            overlap = pl.when(asked).then(pl.col("overlap").fill_null(0.0)).otherwise(0.0)
            told = several.with_columns(value=overlap, chance=pl.lit(None, pl.Float64))
            made.append(estimate(run, weighted(told), level="task", name=task, metric="overlap (Jaccard)"))
    return made


def reading(run: Run, found: Outcomes) -> list[Figure]:
    """How many steps there were, what became of each, and how the words of the answers were read."""
    rows = found.all_steps
    states = {
        state: rows.filter(pl.col("state") == state).height
        for state in ("answered", "not_reached", "incomplete")
    }
    made = [_plain(run, ("state", state, "steps"), count, rows.height) for state, count in states.items()]
    cases = rows["case"].n_unique()
    made.append(_plain(run, ("state", "complete", "cases"), len(found.complete), cases))
    answered = rows.filter(pl.col("state") == "answered")
    for status in STATUSES:
        count = answered.filter(pl.col("status") == status).height
        made.append(_plain(run, ("status", status, "answers"), count, answered.height))
    failed = answered.filter(pl.col("status") != "ok").height
    share = failed / answered.height if answered.height else None
    made.append(_plain(run, ("status", "not read", "share of answers"), share, answered.height))
    told = answered.drop_nulls("obeyed").select(
        cluster=pl.coalesce("patient", "case"),
        unit=pl.concat_str("case", pl.lit("/"), "step"),
        value=pl.col("obeyed").cast(pl.Float64),
        chance=pl.lit(None, pl.Float64),
    )
    made.append(estimate(run, weighted(told), level="form", name="obeyed", metric="share of answers"))
    return made


def chosen_kinds(run: Run, found: Outcomes) -> list[Figure]:
    """Of wrong answers to a question, how many chose an option of each kind of error."""
    wrong = found.closed.filter((pl.col("value") < 1.0) & (pl.col("state") == "answered"))
    listed = wrong.explode("kinds").drop_nulls("kinds").unique(["unit", "kinds"])
    totals = dict(wrong.group_by("task").len().iter_rows())
    counted = listed.group_by("task", "kinds").len().sort("task", "kinds")
    return [
        _plain(run, (f"kind, {task}", kind, "share of wrong answers"), count / totals[task], totals[task])
        for task, kind, count in counted.iter_rows()
    ]


def cost(run: Run, found: Outcomes, price: tuple[float, float] | None) -> list[Figure]:
    """Tokens, pictures and time, and dollars where a price (a million tokens in, and out) is known."""
    rows = found.all_steps.filter(pl.col("state") == "answered")
    made = []
    for name, metric, column in (
        ("input tokens", "sum", "input_tokens"),
        ("output tokens", "sum", "output_tokens"),
        ("seconds", "sum", "seconds"),
    ):
        known = rows[column].drop_nulls()
        made.append(
            _plain(run, ("cost", name, metric), float(known.sum()) if len(known) else None, len(known))
        )
    if price is not None and all(item.value is not None for item in made[:2]):
        dollars = sum(rate * (item.value or 0.0) for rate, item in zip(price, made, strict=False)) / 1e6
        made.append(_plain(run, ("cost", "dollars", "at list price"), dollars, rows.height))
    made.append(_plain(run, ("cost", "image sends", "sum"), float(rows["images"].sum()), rows.height))
    seconds = rows["seconds"].drop_nulls().to_numpy()
    median = float(np.median(seconds)) if len(seconds) else None
    made.append(_plain(run, ("cost", "seconds", "median of a step"), median, len(seconds)))
    return made


def all_kinds(figures: Sequence[Figure]) -> list[tuple[str, str]]:
    """Tasks and kinds of error that any run chose."""
    return sorted({(item.level.removeprefix("kind, "), item.name) for item in figures})


def _plain(run: Run, key: Key, value: float | None, n: int) -> Figure:
    level, name, metric = key
    return Figure(
        run=run.id,
        model=run.model,
        history=run.history,
        level=level,
        name=name,
        metric=metric,
        value=None if value is None else float(value),
        n=n,
    )
