"""Tables of a page as text for a paper: LaTeX and Markdown."""

import re
from collections.abc import Callable, Sequence
from typing import Final, Literal

from carina.pages.run_comparison.cells import MINUS, Cell, Heading, Table

TableFormat = Literal["latex", "markdown"]
ENDINGS: Final[dict[TableFormat, str]] = {"latex": "tex", "markdown": "md"}
"""Ending of the file of each format."""
_LATEX: Final = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    # After the end of a row these would be read as its option.
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    "–": "--",
    MINUS: "$-$",
    "·": r"$\cdot$",
    "×": r"$\times$",
    "…": r"\dots{}",
}
"""Letters that mean something to LaTeX, or that older engines do not print, and how they are written."""
_MARKDOWN: Final = re.compile(r"([\\`*_{}\[\]<>#|~$])")


def escape_latex(text: str) -> str:
    """Text that LaTeX prints as it stands, on one line.

    Example:
        >>> escape_latex("50% of A_1 & B")
        '50\\\\% of A\\\\_1 \\\\& B'
    """
    # Two hyphens would be printed as a dash.
    joined = " ".join(text.split()).replace("--", "-{}-")
    return re.sub(r"-\{\}-|.", lambda one: one[0] if len(one[0]) > 1 else _LATEX.get(one[0], one[0]), joined)


def escape_markdown(text: str) -> str:
    """Text that Markdown prints as it stands, on one line, in a cell of a table.

    Example:
        >>> escape_markdown("a_b | c")
        'a\\\\_b \\\\| c'
    """
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def write_latex(tables: Sequence[tuple[str, Table]]) -> str:
    """Tables with their captions as LaTeX, each in a float of its own; needs the package booktabs."""
    return "% Needs \\usepackage{booktabs}.\n" + "\n".join(_latex_table(*one) for one in tables)


def _latex_table(caption: str, table: Table) -> str:
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape_latex(f'{caption}. {table.note}')}}}",
        rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
        r"\toprule",
        rf"{' & '.join(escape_latex(text) for text in _headings(table))} \\",
    ]
    for group, rows in table.groups:
        lines.append(r"\midrule")
        if group:
            lines.append(rf"\multicolumn{{{len(table.columns) + 1}}}{{l}}{{{escape_latex(group)}}} \\")
        for row in rows:
            cells = [_cell(cell, escape_latex, r"\textbf{{{}}}") for cell in row.cells]
            lines.append(rf"{' & '.join([escape_latex(_name(row.heading)), *cells])} \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def write_markdown(tables: Sequence[tuple[str, Table]]) -> str:
    """Tables with their captions as Markdown."""
    return "\n".join(_markdown_table(*one) for one in tables)


def _markdown_table(caption: str, table: Table) -> str:
    lines = [
        f"**{escape_markdown(caption)}**",
        "",
        f"| {' | '.join(escape_markdown(text) for text in _headings(table))} |",
        f"|---|{'---:|' * len(table.columns)}",
    ]
    for group, rows in table.groups:
        if group:
            lines.append(f"| *{escape_markdown(group)}* |{' |' * len(table.columns)}")
        for row in rows:
            cells = [_cell(cell, escape_markdown, "**{}**") for cell in row.cells]
            lines.append(f"| {' | '.join([escape_markdown(_name(row.heading)), *cells])} |")
    return "\n".join([*lines, "", escape_markdown(table.note), ""])


def _headings(table: Table) -> list[str]:
    return [table.corner, *(_name(column) for column in table.columns)]


def _name(heading: Heading) -> str:
    is_said = heading.note.lower() in ("", heading.text.lower())
    return heading.text if is_said else f"{heading.text} ({heading.note})"


def _cell(cell: Cell, escape: Callable[[str], str], bold: str) -> str:
    """The value, bold where it is the best, and its interval."""
    value = escape(cell.text)
    value = bold.format(value) if cell.is_bold else value
    return f"{value} ({escape(cell.sub)})" if cell.sub else value
