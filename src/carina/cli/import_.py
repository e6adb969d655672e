"""`carina import`: data sets as study sets, and published questions as benchmarks."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import msgspec
import typer
from typer.core import TyperGroup

from carina.cli.console import print_json, print_line, print_table, progress
from carina.cli.extension_options import build_command
from carina.cli.implausible import describe_problem, print_implausible
from carina.cli.shared_options import JsonOption, WorkersOption
from carina.cli.unknown_names import describe_unknown_names, print_unknown_names
from carina.store.counts import format_count
from carina.store.errors import CarinaError

if TYPE_CHECKING:
    from carina.sources import Imported, Source

_LISTED: Final = 20
"""Skipped records and unknown names that are printed; all are in the tables."""
_HELP: Final = """Import a data set or published questions.

A data set becomes a study set, published questions become a benchmark. Every record is checked. One that cannot be used
is left out, printed, and listed in skipped.csv. Defects of records that are used are counted, and listed in
defects.csv. Images that do not look like what the study says of them are listed in implausible.csv. Names of findings,
devices and anatomy that are not known are kept, and counted in import.json. If the command is interrupted, repeat it to
resume.

The sources are listed below; `carina import SOURCE --help` lists the options of one.

\b
Examples:
  carina import chexpercept bundle -o bench
  carina import chexpercept bundle -o bench --patients mimic-cxr-2.0.0-metadata.csv.gz
  carina import chexpercept bundle -o bench --limit 50 --on-error stop --copy-images
  carina import swift-chat sample.json -o bench --images mimic-cxr-jpg
  carina import mimic-cxr-jpg mimic-cxr-jpg -o studies --with chexmask=OriginalResolution/MIMIC-CXR-JPG.csv
"""


class _SourceGroup(TyperGroup):
    """One command a source; the module of a source is imported when its command is named."""

    def list_commands(self, _ctx: Any) -> list[str]:  # noqa: ANN401 - typer's class of contexts is private
        from carina.sources import SOURCES

        return [name for name, source in SOURCES.entries().items() if source.read is not None]

    def get_command(self, _ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401
        from carina.sources import SOURCES

        return _command(SOURCES[cmd_name])


def register(app: typer.Typer) -> None:
    sources = typer.Typer(
        cls=_SourceGroup,
        no_args_is_help=True,
        rich_markup_mode=None,
        subcommand_metavar="SOURCE PATH -o DIR",
        help=_HELP,
    )
    app.add_typer(sources, name="import")


def _command(source: "Source") -> Any:  # noqa: ANN401 - typer's class of commands is private
    """The command of one source."""

    def import_(
        path: Annotated[Path, typer.Argument(metavar="PATH", help="File or directory of the source.")],
        *,
        out: Annotated[
            Path,
            typer.Option("--out", "-o", metavar="DIR", help=f"Directory to write the {_product(source)} to."),
        ],
        options: dict[str, Any],
        with_: Annotated[
            list[str] | None,
            typer.Option(
                "--with",
                metavar="NAME=PATH",
                help="Join another source by its images, such as chexmask=MIMIC-CXR-JPG.csv. May be repeated.",
            ),
        ] = None,
        limit: Annotated[
            int | None,
            typer.Option(min=1, metavar="N", help=f"Import at most N {source.brings}.", show_default="all"),
        ] = None,
        on_error: Annotated[
            str,
            typer.Option(
                metavar="skip|stop",
                help="At a record that cannot be used: skip it and list it, or stop.",
            ),
        ] = "skip",
        copy_images: Annotated[
            bool,
            typer.Option(
                "--copy-images",
                help="Copy the images; without it, they stay where they are.",
                # A reader that writes images of its own has none to copy.
                hidden=source.image_root == "out",
            ),
        ] = False,
        implausible: Annotated[
            str,
            typer.Option(
                metavar="report|exclude|correct|ignore",
                help="Images that do not look like what the study says of them (inverted, another view, impossible "
                "lungs): list them, leave their studies out, correct what can be corrected, or open no image, which "
                "is quicker.",
            ),
        ] = "report",
        workers: WorkersOption = None,
        json: JsonOption = False,
    ) -> None:
        from carina.sources import import_source

        images = options.pop("images", None)
        imported = import_source(
            source.name,
            path,
            out,
            options=options,
            images=images,
            joins=_read_joins(with_ or []),
            on_error=cast("Any", on_error),  # checked by the function
            limit=limit,
            copy_images=copy_images,
            implausible=cast("Any", implausible),  # checked by the function
            workers=workers,
            progress=partial(progress, quiet=json),
        )
        if json:
            print_json(_counts(imported))
        else:
            _print(imported)
        if imported.is_empty:
            raise typer.Exit(1)

    declared = (*source.options, *([source.images_option] if source.images_option else ()))
    return build_command(import_, declared, name=source.name, help_text=_help(source))


def _read_joins(typed: list[str]) -> dict[str, Path]:
    """Paths by name of the source, from NAME=PATH."""
    joins: dict[str, Path] = {}
    for text in typed:
        name, separator, path = text.partition("=")
        if not (separator and name and path) or name in joins:
            raise CarinaError(f"--with: expected NAME=PATH, each name once, found {text!r}")
        joins[name] = Path(path)
    return joins


def _product(source: "Source") -> str:
    return "study set" if source.brings == "studies" else "benchmark"


def _help(source: "Source") -> str:
    address = f"\nAddress: {source.url}\n" if source.url else ""
    return f"""{source.title}.

Needs: {source.needs}

Licence: {source.licence}
{address}
\b
Example:
  carina import {source.name} PATH -o {"studies" if source.brings == "studies" else "bench"}
"""


def _counts(imported: "Imported") -> dict[str, object]:
    """What is printed with --json."""
    counts = imported.counts
    found: dict[str, object] = {
        "benchmark" if imported.source.brings == "cases" else "studies": None
        if imported.is_empty
        else imported.path,
        "records": counts.records,
        imported.source.brings: counts.kept,
    }
    if imported.source.brings == "cases":
        found |= {
            "questions": counts.questions,
            "cells": dict(sorted(counts.cells.items())),
            "stages": dict(sorted(counts.stages.items())),
            "formats": dict(sorted(counts.formats.items())),
        }
    else:
        found["unknown_names"] = describe_unknown_names(imported.unknown_names)
        found["images_looked_at"] = counts.images_looked_at
        found["undecided"] = dict(sorted(counts.undecided.items()))
        found["implausible"] = [
            {**describe_problem(each.problem), "what_was_done": each.done} for each in imported.implausible
        ]
    if counts.joins:
        found["joins"] = {name: msgspec.structs.asdict(count) for name, count in counts.joins.items()}
    return found | {
        "plan": list(imported.plan.lines),
        "notices": list(imported.notices),
        "images": counts.images,
        "without_patient": counts.without_patient,
        "defects": [
            {
                "defect": defect,
                "times": count.times,
                "records": count.records,
                "first_record": count.first,
                "what_was_done": done,
            }
            for defect, count, done in imported.defects
        ],
        "unmapped_fields": dict(sorted(counts.unmapped.items())),
        "skipped": [
            {"place": item.place, "field": item.field, "reason": item.kind, "message": item.message}
            for item in imported.skipped
        ],
    }


def _print(imported: "Imported") -> None:
    counts, source = imported.counts, imported.source
    for line in imported.plan.lines:
        print_line(line, err=True)
    for item in imported.skipped[:_LISTED]:
        print_line(f"Skipped: {item.message}", err=True)
    if len(imported.skipped) > _LISTED:
        print_line(f"... and {len(imported.skipped) - _LISTED} more, listed in skipped.csv", err=True)
    _print_cells(imported)
    rows = [
        (defect, str(count.times), str(count.records), str(count.first), done)
        for defect, count, done in imported.defects
    ]
    if rows:
        print_table(("defect", "times", "records", "first record", "what was done"), rows)
    if counts.unmapped:
        print_line(f"Unmapped fields: {', '.join(sorted(counts.unmapped))}", err=True)
    print_unknown_names(
        imported.unknown_names, limit=_LISTED, more="import.json", remedy=_explain_mapping(source)
    )
    print_implausible(
        [f"{each.problem.message}; {each.done}" for each in imported.implausible],
        limit=_LISTED,
        more=f"listed in {imported.path / 'implausible.csv'}",
    )
    for name, join in counts.joins.items():
        others = "".join(f", {times} left out ({reason})" for reason, times in join.left_out.items())
        joined_rows = format_count(join.joined, "row")
        print_line(
            f"{name}: {joined_rows} of {join.rows} joined to {format_count(join.images, 'image')}, "
            f"{format_count(join.images_without, 'image')} without{others}",
            err=True,
        )
    record = "study" if source.brings == "studies" else "case"
    kept = format_count(counts.kept, record, source.brings)
    questions = f" with {format_count(counts.questions, 'question')}" if source.brings == "cases" else ""
    print_line(
        f"{kept}{questions} of {format_count(counts.records, 'record')}, {len(imported.skipped)} skipped",
        err=True,
    )
    if counts.without_patient:
        hint = " (--patients)" if any(option.name == "patients" for option in source.options) else ""
        print_line(
            f"{format_count(counts.without_patient, record, source.brings)} without a known patient: confidence "
            f"intervals will be by case{hint}",
            err=True,
        )
    if not imported.is_empty:
        print_line(imported.path)
    for notice in imported.notices:
        print_line(notice, err=True)


def _explain_mapping(source: "Source") -> str:
    """How the user says what names mean that are not known; empty for sources that take no map of names."""
    if not any(option.name == "categories" for option in source.options):
        return ""
    also = ", or with `names:` in a copy of columns.yaml (--columns)" if source.plan is not None else ""
    return f"say what such names mean with --categories FILE{also}"


def _print_cells(imported: "Imported") -> None:
    """Cases by target and path, for sources whose cases have them."""
    cells = {tuple(name.rsplit("/", 1)): n for name, n in imported.counts.cells.items()}
    targets = sorted({target for target, _ in cells if target})
    if not targets:
        return
    paths = sorted({path for _, path in cells})
    rows = [(target, *(str(cells.get((target, path), 0)) for path in paths)) for target in targets]
    print_table(("target", *paths), rows)
