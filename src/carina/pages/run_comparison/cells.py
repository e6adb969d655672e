"""Tables of a page: headings, cells, and how numbers are written."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Final

from markupsafe import Markup, escape

from carina.explanations.analysis.estimates import MapEstimate
from carina.runs.analysis.estimates import Difference, Estimate

MINUS: Final = "−"
_LONG_WORD: Final = 24
"""Letters from which a word may be broken after a slash; shorter ones, such as builtin/asymmetry, stay whole."""
MOST_COLUMNS: Final = 12
"""Columns of one part of a table."""
_MOST_WIDE_COLUMNS: Final = 7
_BREAK: Final = Markup("/<wbr>")


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One value; blank where there is none."""

    text: str = ""
    sub: str = ""
    """Second line: its interval, for example."""
    n: str = ""
    p: str = ""
    is_bold: bool = False
    bar: float | None = None
    """Length of the bar below it, in percent."""
    chance: float | None = None
    """Position of chance on the bar."""
    constant: float | None = None
    """Position of the best constant answer on the bar."""
    key: str = ""
    """Row of the tables that it shows: run, level, name and metric."""
    title: str = ""
    """Tooltip."""


@dataclass(frozen=True, kw_only=True)
class Heading:
    """Of a row or a column."""

    text: str
    note: str = ""
    mark: str = ""
    """Id of the run or control whose mark stands before the text."""
    title: str = ""
    """Tooltip."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row with its heading."""

    heading: Heading
    cells: tuple[Cell, ...]
    group: str = ""
    """Line above the first row of each group."""

    @property
    def is_empty(self) -> bool:
        return not any(cell.text for cell in self.cells)


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table with a title."""

    title: str
    corner: str
    """Heading of the first column."""
    columns: tuple[Heading, ...]
    rows: tuple[Row, ...]
    note: str = ""

    @property
    def groups(self) -> list[tuple[str, list[Row]]]:
        """Neighbouring rows of one group together."""
        return [(name, list(rows)) for name, rows in groupby(self.rows, key=lambda row: row.group)]

    @property
    def is_empty(self) -> bool:
        return all(row.is_empty for row in self.rows)

    @property
    def parts(self) -> "list[Table]":
        """The table in parts of at most `MOST_COLUMNS` columns, which fit a page and a sheet of paper."""
        count = -(-len(self.columns) // MOST_COLUMNS) or 1
        ends = [len(self.columns) * place // count for place in range(count + 1)]
        return [
            replace(
                self,
                columns=self.columns[start:end],
                rows=tuple(replace(row, cells=row.cells[start:end]) for row in self.rows),
            )
            for start, end in pairwise(ends)
        ]

    @property
    def is_dense(self) -> bool:
        """Whether it has so many columns that they have to be narrow."""
        return len(self.columns) > _MOST_WIDE_COLUMNS


def format_percent(value: float) -> str:
    """A share in percent with one digit: 72.1."""
    return f"{100 * value:.1f}"


def format_points(value: float) -> str:
    """A difference in percentage points with its sign: +3.2, −1.0."""
    text = f"{100 * value:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", MINUS)


def format_interval(low: float | None, high: float | None) -> str:
    """Bounds in percent: 60.0–80.0; blank where there are none."""
    return "" if low is None or high is None else f"{format_percent(low)}–{format_percent(high)}"


def format_points_interval(low: float | None, high: float | None) -> str:
    """Bounds in percentage points: −3.0 to +1.2; blank where there are none."""
    return "" if low is None or high is None else f"{format_points(low)} to {format_points(high)}"


def format_p(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def share_cell(estimate: Estimate | None, *, is_bold: bool = False) -> Cell:
    """An estimate between 0 and 1, with a bar."""
    if estimate is None:
        return Cell()
    references = {"chance": estimate.chance, "best constant answer": estimate.constant}
    count = f"n = {estimate.n:,}"
    return bar_cell(estimate, references, key=_estimate_key(estimate), count=count, is_bold=is_bold)


def bar_cell(
    estimate: Estimate | MapEstimate,
    references: Mapping[str, float | None],
    *,
    key: str,
    count: str,
    is_bold: bool = False,
) -> Cell:
    """An estimate with a bar, and two references by name: the first is a line on the bar, the second a triangle."""
    if estimate.value is None:
        return Cell()
    line, triangle = references.values()
    texts = [f", {name} {format_percent(value)}" for name, value in references.items() if value is not None]
    return Cell(
        text=format_percent(estimate.value),
        sub=format_interval(estimate.low, estimate.high),
        n=f"n {estimate.n:,}",
        is_bold=is_bold,
        bar=100 * estimate.value,
        chance=None if line is None else 100 * line,
        constant=None if triangle is None else 100 * triangle,
        key=key,
        title=f"{estimate.metric}, {count}{''.join(texts)}",
    )


def number_cell(estimate: Estimate | None, *, digits: int = 0, has_share: bool = False) -> Cell:
    """A count or a quantity, with its share of n where that is wanted."""
    if estimate is None or estimate.value is None:
        return Cell()
    share = (
        f"{format_percent(estimate.value / estimate.n)}%"
        if has_share and estimate.n and estimate.value
        else ""
    )
    return Cell(text=f"{estimate.value:,.{digits}f}", sub=share, key=_estimate_key(estimate))


def difference_cell(item: Difference | None) -> Cell:
    """A paired difference with its interval and p after Holm's correction."""
    if item is None:
        return Cell()
    return Cell(
        text=format_points(item.value),
        sub=format_points_interval(item.low, item.high),
        p=format_p(item.adjusted),
        is_bold=item.is_significant,
        key=difference_key(item),
        title=f"n = {item.n}, p = {item.p:.4f} before and {item.adjusted:.4f} after Holm's correction",
    )


def difference_key(item: Difference) -> str:
    """Names the row of a table of differences."""
    return "|".join((item.one, item.other, item.level, item.name, item.metric))


def _estimate_key(estimate: Estimate) -> str:
    return "|".join((estimate.run, estimate.level, estimate.name, estimate.metric))


def break_long_words(text: str) -> Markup:
    """The text, escaped, with places to break in long words."""
    words = text.split(" ")
    return Markup(" ").join(
        escape(word).replace("/", _BREAK) if len(word) > _LONG_WORD else escape(word) for word in words
    )
