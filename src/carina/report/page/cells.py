"""Tables of the page: heads, cells, and how numbers are written."""

from dataclasses import dataclass
from itertools import groupby

from carina.report.analyse.figures import Contrast, Figure

MINUS = "−"


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One figure; blank where there is none."""

    text: str = ""
    sub: str = ""
    """Its interval, or what else stands below it."""
    n: str = ""
    p: str = ""
    bold: bool = False
    bar: float | None = None
    """Length of the bar below it, in percent."""
    chance: float | None = None
    """Where chance lies on the bar."""
    constant: float | None = None
    """Where the best constant answer lies on it."""
    key: str = ""
    """Which row of the tables it is: run, level, name and metric."""
    title: str = ""
    """What it means, for those who rest on it."""


@dataclass(frozen=True, kw_only=True)
class Head:
    """Of a row or a column."""

    text: str
    note: str = ""
    mark: str = ""
    """Drawing of the run that it stands for."""
    title: str = ""
    """What a code in it means, for those who rest on it."""


@dataclass(frozen=True, kw_only=True)
class Row:
    head: Head
    cells: tuple[Cell, ...]
    group: str = ""
    """A line above the first row of each group."""


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A table with a title."""

    title: str
    corner: str
    columns: tuple[Head, ...]
    rows: tuple[Row, ...]
    note: str = ""
    open: bool = True

    @property
    def groups(self) -> list[tuple[str, list[Row]]]:
        """Rows by group, neighbours of one group together."""
        return [(name, list(rows)) for name, rows in groupby(self.rows, key=lambda row: row.group)]

    @property
    def empty(self) -> bool:
        return not any(cell.text for row in self.rows for cell in row.cells)


def percent(value: float) -> str:
    """A share in percent with one digit: 72.1."""
    return f"{100 * value:.1f}"


def points(value: float) -> str:
    """A difference in points with its sign: +3.2, −1.0."""
    text = f"{100 * value:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", MINUS)


def spread(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{percent(low)}–{percent(high)}"


def p_value(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def share(figure: Figure | None, *, bold: bool = False, bar: bool = True) -> Cell:
    """A figure between 0 and 1."""
    if figure is None or figure.value is None:
        return Cell()
    beside = [
        f", {name} {percent(value)}"
        for name, value in (("chance", figure.chance), ("best constant answer", figure.constant))
        if value is not None
    ]
    return Cell(
        text=percent(figure.value),
        sub=spread(figure.low, figure.high),
        n=f"n {figure.n:,}",
        bold=bold,
        bar=100 * figure.value if bar else None,
        chance=None if figure.chance is None or not bar else 100 * figure.chance,
        constant=None if figure.constant is None or not bar else 100 * figure.constant,
        key=key_of(figure),
        title=f"{figure.metric}, n = {figure.n:,}{''.join(beside)}",
    )


def number(figure: Figure | None, *, digits: int = 0, of: bool = False) -> Cell:
    """A count or a quantity."""
    if figure is None or figure.value is None:
        return Cell()
    part = f"{percent(figure.value / figure.n)}%" if of and figure.n and figure.value else ""
    return Cell(text=f"{figure.value:,.{digits}f}", sub=part, key=key_of(figure))


def gap(item: Contrast | None) -> Cell:
    """A paired difference with its interval and p after Holm's correction."""
    if item is None:
        return Cell()
    low, high = ("" if bound is None else points(bound) for bound in (item.low, item.high))
    return Cell(
        text=points(item.value),
        sub=f"{low} to {high}" if low and high else "",
        p=p_value(item.adjusted),
        bold=item.sure,
        key="|".join((item.one, item.other, item.level, item.name, item.metric)),
        title=f"n = {item.n}, p = {item.p:.4f} before and {item.adjusted:.4f} after Holm's correction",
    )


def key_of(figure: Figure) -> str:
    return "|".join((figure.run, figure.level, figure.name, figure.metric))
