"""`carina export`: benchmarks for others' tools."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal, cast

import typer

from carina.cli.console import print_json, progress
from carina.errors import CarinaError


@dataclass(frozen=True, kw_only=True)
class _Order:
    """What the command was asked to do."""

    bench: Path
    out: Path
    images: Path | None
    neutral_names: bool
    keys: Literal["inline", "separate"]
    workers: int
    json: bool


def register(app: typer.Typer) -> None:
    app.command(name="export", no_args_is_help=True)(export)


def export(
    bench: Annotated[Path, typer.Argument(metavar="BENCH", help="Directory of a benchmark.")],
    *,
    to: Annotated[str, typer.Option("--to", metavar="FORMAT", help="Format: chexpercept.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Where it is written.")],
    images: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where the images lie, if not where the benchmark says."),
    ] = None,
    neutral_names: Annotated[
        bool,
        typer.Option(
            "--neutral-names", help="Give files of imported bundles names that do not tell the answer."
        ),
    ] = False,
    keys: Annotated[
        str,
        typer.Option(
            help="inline: answers beside their questions; separate: in a file keys.json, to be kept back. Which blocks "
            "a record has still tells the path of its case."
        ),
    ] = "inline",
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; by default one a core.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Write a benchmark in the format of another tool, with its pictures.

    The directory gets its name when all is written; interrupted, the same command resumes.

    \b
    Formats:
      chexpercept    chexpercept.json and chexpercept/<key_id>/..., of percept cases

    \b
    Examples:
      carina export bench --to chexpercept -o bundle
      carina export bench --to chexpercept -o handout --keys separate
      carina export imported --to chexpercept -o bundle --neutral-names
    """
    if to not in _FORMATS:
        raise CarinaError(f"--to {to!r}: no such format; known: {', '.join(_FORMATS)}")
    if keys not in ("inline", "separate"):
        raise CarinaError(f"--keys {keys!r}: expected inline or separate")
    _FORMATS[to](
        _Order(
            bench=bench,
            out=out,
            images=images,
            neutral_names=neutral_names,
            keys=cast("Literal['inline', 'separate']", keys),
            workers=workers or os.cpu_count() or 1,
            json=json,
        )
    )


def _chexpercept(order: _Order) -> None:
    from carina.cases import open_benchmark
    from carina.percept.bundle import ExportOptions, export_bundle

    total = len(open_benchmark(order.bench))
    with progress("Cases", total, quiet=order.json) as advance:
        manifest = export_bundle(
            order.bench,
            order.out,
            ExportOptions(neutral_names=order.neutral_names, keys=order.keys),
            images=order.images,
            workers=min(order.workers, total),
            progress=advance,
        )
    if order.json:
        print_json({"bundle": order.out, "counts": manifest.counts})
    else:
        counts = manifest.counts
        typer.echo(order.out)
        typer.echo(
            f"{counts.cases} cases, {counts.questions} questions, {counts.pictures} pictures", err=True
        )


_FORMATS: Final[dict[str, Callable[[_Order], None]]] = {"chexpercept": _chexpercept}
"""What each format does, by name."""
