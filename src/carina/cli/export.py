"""`carina export`: benchmarks for other tools."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.core import TyperCommand

from carina.cli.console import print_json, print_line, progress
from carina.cli.extension_options import build_command
from carina.cli.shared_options import BenchArgument, ImagesOption, JsonOption, WorkersOption
from carina.store.counts import format_count

if TYPE_CHECKING:
    from carina.exports import Exporter, ExportResult

_SUMMARY: Final = "Write a benchmark in the format of another tool."


class _ExportCommand(TyperCommand):
    """Has the options of the export that `--to` names, and only imports the module of that export."""

    # The class of contexts is private to typer.
    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:  # noqa: ANN401
        return _command(_named_format(args)).make_context(info_name, args, parent, **extra)

    def variants(self) -> dict[str, Any]:
        """The command without a format and with each, by what is typed after its name; for the reference."""
        from carina.exports import EXPORTS

        return {"": _command(None)} | {f"--to {name}": _command(name) for name in EXPORTS}


def register(app: typer.Typer) -> None:
    app.command(name="export", cls=_ExportCommand, help=_SUMMARY)(lambda: None)


def _named_format(arguments: Sequence[str]) -> str | None:
    """The value of `--to` among the arguments."""
    for place, argument in enumerate(arguments):
        if argument.startswith("--to="):
            return argument.removeprefix("--to=")
        if argument == "--to" and place + 1 < len(arguments):
            return arguments[place + 1]
    return None


def _command(to: str | None) -> Any:  # noqa: ANN401 - typer's class of commands is private
    """The command with the options of one export, or without such options."""
    from carina.exports import EXPORTS

    exporter = None if to is None else EXPORTS[to]
    return build_command(
        _export, exporter.options if exporter else (), name="export", help_text=_help(exporter)
    )


def _export(
    bench: BenchArgument,
    *,
    to: Annotated[
        str,
        typer.Option("--to", metavar="FORMAT", help="Format to write; `carina export --help` lists them."),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Directory to write; it must not hold anything else."
        ),
    ],
    options: dict[str, Any],
    images: ImagesOption = None,
    workers: WorkersOption = None,
    json: JsonOption = False,
) -> None:
    from carina.exports import EXPORTS, export

    EXPORTS[to].convert(options)  # before the benchmark is opened, which may take a while
    result = export(
        bench,
        out,
        to=to,
        options=options,
        images=images,
        workers=workers,
        progress=partial(progress, quiet=json),
    )
    if json:
        print_json({"export": result.path, "counts": result.counts})
    else:
        _print(result)


def _print(result: "ExportResult") -> None:
    counts = result.counts
    splits = ", ".join(f"{n} {split}" for split, n in counts.get("splits", {}).items())
    by_split = f" ({splits})" if splits else ""
    print_line(result.path)
    print_line(
        f"{format_count(counts['cases'], 'case')}{by_split}, {format_count(counts['questions'], 'question')}, "
        f"{format_count(counts['pictures'], 'picture')}",
        err=True,
    )


def _help(exporter: "Exporter | None") -> str:
    from carina.exports import EXPORTS

    if exporter is None:
        known = EXPORTS.entries()
        width = max(map(len, known), default=0) + 3
        formats = "\n".join(f"  {name:{width}} {found.title}" for name, found in known.items())
        examples = [
            f"  carina export bench --to {name} {found.examples[0] if found.examples else ''} -o DIR"
            for name, found in known.items()
        ]
        listed = f"\b\nFormats:\n{formats}\n\n`carina export --to FORMAT --help` lists the options of one.\n"
    else:
        listed = f"Format {exporter.name}: {exporter.title}.\n"
        examples = [
            f"  carina export bench --to {exporter.name} {options} -o DIR"
            for options in exporter.examples or ("",)
        ]
    example_lines = "\n".join(line.replace("  -o", " -o") for line in examples)
    return f"""{_SUMMARY}

The directory appears when it is complete. If the command is interrupted, repeat it to resume.

{listed}
\b
Examples:
{example_lines}
"""
