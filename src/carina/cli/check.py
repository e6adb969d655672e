"""`carina check`: checks a study set or a benchmark."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from carina.cli.command import Command
from carina.cli.console import print_json, print_line
from carina.cli.implausible import describe_problem, print_implausible
from carina.cli.shared_options import FilesOption, ImagesOption, JsonOption, SetArgument
from carina.cli.unknown_names import describe_unknown_names, print_unknown_names
from carina.store.counts import format_count
from carina.store.errors import CarinaError

if TYPE_CHECKING:
    from carina.store import Problem
    from carina.studies.collection import PatientInSplits

_MOST: Final = 20
"""Problems that are printed, and notices of each kind."""


def register(app: typer.Typer) -> None:
    app.command(name="check", cls=Command, no_args_is_help=True)(check)


def check(
    path: SetArgument,
    *,
    images: ImagesOption = None,
    files: FilesOption = True,
    implausible: Annotated[
        str,
        typer.Option(
            metavar="report|fail|ignore",
            help="Images of studies that do not look like what the study says of them (inverted, another view, "
            "impossible lungs): list them, count them as problems, or do not look.",
        ),
    ] = "report",
    all_: Annotated[
        bool,
        typer.Option("--all", help="Print all problems and notices, not only the first 20 of each kind."),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Check a study set or benchmark for damage.

    Reads every part and row, and decodes every image. Prints the first 20 problems, and exits with code 1 if there are
    any. Names of findings, devices and anatomy that are not known are listed with the nearest known name, and are no
    problem; nor are patients whose studies are in different splits, nor images of studies that look implausible,
    unless --implausible fail is given. `carina run`, `explain` and `export` refuse a benchmark in which --no-files
    finds a problem, and `carina audit` fails. `carina build` leaves out studies that it cannot use, and lists them.

    \b
    Examples:
      carina check my-studies
      carina check my-studies --no-files       quick, for a set with many images
      carina check my-studies --all            all problems, for a set with many
      carina check my-benchmark --images elsewhere/images --json
    """
    from carina.cases import check as check_set

    if not files and images is not None:
        raise CarinaError(
            "--images names the directory of the images, --no-files opens none; give one of the two"
        )
    result = check_set(
        path,
        images=images,
        files=files,
        implausible=cast("Any", implausible),  # checked by the function
        on_problem=None if json else _ProblemPrinter(None if all_ else _MOST).print_problem,
    )
    limit, others = (None if all_ else _MOST), "--all prints all of them"
    record = {"studies": "study", "cases": "case"}[result.noun]
    if json:
        problems = [{"message": each.message, record: each.record} for each in result.problems]
        of_studies = {
            "unknown_names": describe_unknown_names(result.unknown_names),
            "implausible": [describe_problem(each) for each in result.implausible],
            "patients_in_several_splits": [
                {"patient": each.patient, "studies": each.studies}
                for each in result.patients_in_several_splits
            ],
        }
        listed = of_studies if record == "study" else {}
        print_json({result.noun: result.records, "problems": problems, **listed})
    else:
        if limit is not None and len(result.problems) > limit:
            print_line(f"... and {len(result.problems) - limit} more problems; {others}")
        print_unknown_names(result.unknown_names, limit=limit, more=f"the set; {others}")
        if implausible == "report":
            print_implausible([each.message for each in result.implausible], limit=limit, more=others)
        _print_patients(result.patients_in_several_splits, limit)
        if result.is_sound:
            print_line(f"{format_count(result.records, record, result.noun)}: nothing wrong", err=True)
    if not result.is_sound:
        raise typer.Exit(1)


class _ProblemPrinter:
    """Prints problems as they are found, up to a number of them; None for all."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._found = 0

    def print_problem(self, problem: "Problem") -> None:
        self._found += 1
        if self._limit is None or self._found <= self._limit:
            print_line(problem.message)


def _print_patients(patients: Sequence["PatientInSplits"], limit: int | None) -> None:
    for each in patients[:limit]:
        print_line(f"Notice: {each.message}", err=True)
    if limit is not None and len(patients) > limit:
        print_line(
            f"... and {len(patients) - limit} more patients in several splits; --all prints all of them",
            err=True,
        )
