"""One model under two histories: differences, or a sentence where there is none to show."""

from carina.report.analysis import Analysis
from carina.report.page.cells import Grid, Head, Row, gap
from carina.report.words import COMPARISONS


def histories(told: Analysis) -> Grid:
    """Comparisons as groups, models as rows; without models that answer the same under both."""
    every = (*told.measures, *told.word_measures)
    columns = [
        Head(
            text=measure.title, note=f"{measure.metric}{' in words' if measure in told.word_measures else ''}"
        )
        for measure in every
    ]
    rows = []
    for pair in told.histories:
        if pair.alike is not None:
            continue
        by_key = {(item.level, item.name, item.metric): item for item in pair.differences}
        words, meaning = COMPARISONS[pair.histories]
        rows.append(
            Row(
                head=Head(text=pair.own.model, mark=pair.own.id),
                cells=tuple(gap(by_key.get(measure.key)) for measure in every),
                group=f"{words}: {meaning}",
            )
        )
    return Grid(
        title="Differences between histories",
        corner="Model",
        columns=tuple(columns),
        rows=tuple(rows),
        note="Percentage points, paired on the same cases, with 95% interval over patients and p after Holm's "
        "correction over the figures of a row. Bold with a star: p below 0.05. Own less gold below zero: the model's "
        "own earlier errors cost it accuracy. Own less none above zero: the conversation helps. Hint less own above "
        "zero: being told of an error helps with what follows.",
    )


def same_under_both(told: Analysis) -> list[str]:
    """A sentence for every model whose answers are the same under histories that are compared."""
    alike: dict[str, list[str]] = {}
    for pair in told.histories:
        if pair.alike is not None:
            other = next(name for name in pair.histories if name != "own")
            alike.setdefault(f"{pair.own.model}: all {pair.alike:,} answers", []).append(other)
    return [
        f"{answers} are the same with history own as with {_joined(others)}: what went before does not reach "
        "this model, and there is no difference to show."
        for answers, others in alike.items()
    ]


def _joined(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
