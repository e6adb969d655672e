"""`carina import`: data sets and benchmarks of others."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, cast

import typer

from carina.cli.console import print_json, print_table, progress
from carina.errors import CarinaError

if TYPE_CHECKING:
    from carina.percept.bundle import Imported
    from carina.trek import swift

_SHOWN: Final = 20
"""Skipped records that are told; all stand in the table."""


@dataclass(frozen=True, kw_only=True)
class _Order:
    """What the command was asked to do."""

    path: Path
    out: Path
    patients: Path | None
    images: Path | None
    limit: int | None
    on_error: Literal["skip", "stop"]
    copy_images: bool
    workers: int
    json: bool


def register(app: typer.Typer) -> None:
    app.command(name="import", no_args_is_help=True)(import_)


def import_(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="Name of the source: chexpercept or swift-chat.")
    ],
    path: Annotated[Path, typer.Argument(metavar="PATH", help="Where it lies.")],
    *,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Where the benchmark is written.")],
    patients: Annotated[
        Path | None,
        typer.Option(
            metavar="CSV",
            help="Of chexpercept: table with dicom_id or key_id, and patient or subject_id; .csv or .csv.gz.",
        ),
    ] = None,
    images: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Of swift-chat: where image files lie; without it, sizes are unknown."
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Import so many at most.")] = None,
    on_error: Annotated[
        str, typer.Option(help="skip: leave out and report what is wrong; stop: end at the first fault.")
    ] = "skip",
    copy_images: Annotated[
        bool,
        typer.Option("--copy-images", help="Of chexpercept: copy the images instead of pointing to them."),
    ] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; by default one a core.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Import published questions as a benchmark.

    Every record is checked: types, answers against options, pictures or boxes. What is wrong is left out, told, and
    listed in skipped.csv. What is only untidy is used; it is counted, and listed in defects.csv.

    \b
    Sources:
      chexpercept    a folder with chexpercept.json and chexpercept/<key_id>/...
      swift-chat     staged conversations in the ms-swift layout: a JSON array, JSON lines, or a folder of such files

    \b
    Examples:
      carina import chexpercept bundle -o bench
      carina import chexpercept bundle -o bench --patients mimic-cxr-2.0.0-metadata.csv.gz
      carina import chexpercept bundle -o bench --limit 50 --on-error stop --copy-images
      carina import swift-chat sample.json -o bench --images mimic-cxr-jpg
    """
    if source not in _SOURCES:
        raise CarinaError(f"{source!r} is no source that can be imported; known: {', '.join(_SOURCES)}")
    if on_error not in ("skip", "stop"):
        raise CarinaError(f"--on-error {on_error!r}: expected skip or stop")
    if source != "chexpercept" and (patients is not None or copy_images):
        raise CarinaError(f"--patients and --copy-images are of chexpercept, not of {source}")
    if source != "swift-chat" and images is not None:
        raise CarinaError(f"--images is of swift-chat, not of {source}")
    _SOURCES[source](
        _Order(
            path=path,
            out=out,
            patients=patients,
            images=images,
            limit=limit,
            on_error=cast("Literal['skip', 'stop']", on_error),
            copy_images=copy_images,
            workers=workers or os.cpu_count() or 1,
            json=json,
        )
    )


def _chexpercept(order: _Order) -> None:
    from carina.percept.bundle import ImportOptions, import_bundle, survey

    options = ImportOptions(
        patients=order.patients,
        limit=order.limit,
        on_error=order.on_error,
        copy_images=order.copy_images,
    )
    found = survey(order.path)
    workers = min(order.workers, found.records)
    with progress("Records", found.records, quiet=order.json) as advance:
        result = import_bundle(order.path, order.out, options, found=found, workers=workers, progress=advance)
    if order.json:
        print_json(_told(order, result))
    else:
        _print(order, result)
    if result.manifest is None:
        raise typer.Exit(1)


def _told(order: _Order, result: "Imported") -> dict[str, object]:
    return {
        "benchmark": order.out if result.manifest else None,
        "records": result.records,
        "cases": result.cells.total(),
        "cells": {"/".join(cell): n for cell, n in sorted(result.cells.items())},
        "without_patient": result.without_patient,
        "skipped": [
            {"key_id": item.key_id, "field": item.field, "reason": item.reason, "message": item.message}
            for item in result.skipped
        ],
    }


def _print(order: _Order, result: "Imported") -> None:
    for item in result.skipped[:_SHOWN]:
        typer.echo(f"Skipped: {item.message}", err=True)
    if len(result.skipped) > _SHOWN:
        typer.echo(f"... and {len(result.skipped) - _SHOWN} more", err=True)
    paths = sorted({path for _, path in result.cells})
    lesions = sorted({lesion for lesion, _ in result.cells})
    if lesions:
        rows = [(lesion, *(str(result.cells[lesion, path]) for path in paths)) for lesion in lesions]
        print_table(("lesion", *paths), rows)
    cases = result.cells.total()
    typer.echo(f"{cases} cases of {result.records} records, {len(result.skipped)} skipped", err=True)
    if cases and result.without_patient:
        typer.echo(
            f"{result.without_patient} cases are of no known patient: their intervals will be by case (--patients)",
            err=True,
        )
    if result.manifest:
        typer.echo(order.out)


def _swift(order: _Order) -> None:
    from carina.trek.swift import ImportOptions, files_of, import_swift

    options = ImportOptions(images=order.images, limit=order.limit, on_error=order.on_error)
    size = sum(file.stat().st_size for file in files_of(order.path))
    with progress("Bytes", size, quiet=order.json) as advance:
        result = import_swift(order.path, order.out, options, workers=order.workers, progress=advance)
    if order.json:
        print_json(_swift_told(order, result))
    else:
        _swift_print(order, result)
    if result.manifest is None:
        raise typer.Exit(1)


def _swift_told(order: _Order, result: "swift.Imported") -> dict[str, object]:
    from carina.trek.swift import REMEDIES

    return {
        "benchmark": order.out if result.manifest else None,
        "records": result.records,
        "cases": result.cases,
        "questions": result.questions,
        "stages": {str(stage): n for stage, n in sorted(result.stages.items())},
        "formats": dict(sorted(result.formats.items())),
        "without_patient": result.without_patient,
        "defects": [
            {
                "defect": defect,
                "times": tally.times,
                "records": tally.records,
                "first_record": tally.first,
                "what_was_done": REMEDIES[defect],
            }
            for defect, tally in result.defects
        ],
        "unmapped_fields": dict(sorted(result.defects.fields.items())),
        "skipped": [
            {"file": item.file, "record": item.number, "field": item.field, "message": item.message}
            for item in result.skipped
        ],
    }


def _swift_print(order: _Order, result: "swift.Imported") -> None:
    from carina.trek.swift import REMEDIES

    for item in result.skipped[:_SHOWN]:
        typer.echo(f"Skipped: {item.message}", err=True)
    if len(result.skipped) > _SHOWN:
        typer.echo(f"... and {len(result.skipped) - _SHOWN} more", err=True)
    rows = [
        (defect, str(tally.times), str(tally.records), str(tally.first), REMEDIES[defect])
        for defect, tally in result.defects
    ]
    if rows:
        print_table(("defect", "times", "records", "first record", "what was done"), rows)
    if result.defects.fields:
        typer.echo(f"Unmapped fields: {', '.join(sorted(result.defects.fields))}", err=True)
    typer.echo(
        f"{result.cases} cases with {result.questions} questions of {result.records} records, "
        f"{len(result.skipped)} skipped",
        err=True,
    )
    if result.manifest:
        typer.echo(order.out)


_SOURCES: Final[dict[str, Callable[[_Order], None]]] = {"chexpercept": _chexpercept, "swift-chat": _swift}
"""What each source does, by name."""
