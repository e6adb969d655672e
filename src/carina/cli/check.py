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
    from carina.studies.collection import PatientInSplits

_MOST_PATIENTS: Final = 20
"""Patients in several splits that are printed."""


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
    json: JsonOption = False,
) -> None:
    """Check a study set or benchmark for damage.

    Reads every part and row, and opens every image. Prints one line per problem, and exits with code 1 if there are
    any. Names of findings, devices and anatomy that are not known are listed with the nearest known name, and are no
    problem; nor are patients whose studies are in different splits, nor images of studies that look implausible,
    unless --implausible fail is given. `carina run`, `explain` and `export` refuse a benchmark in which --no-files
    finds a problem, and `carina audit` fails. `carina build` leaves out studies that it cannot use, and lists them.

    \b
    Examples:
      carina check my-studies
      carina check my-studies --no-files       quick, for a set with many images
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
        on_problem=None if json else lambda problem: print_line(problem.message),
    )
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
        print_unknown_names(result.unknown_names)
        if implausible == "report":
            print_implausible([each.message for each in result.implausible])
        _print_patients(result.patients_in_several_splits)
        if result.is_sound:
            print_line(f"{format_count(result.records, record, result.noun)}: nothing wrong", err=True)
    if not result.is_sound:
        raise typer.Exit(1)


def _print_patients(patients: Sequence["PatientInSplits"]) -> None:
    for each in patients[:_MOST_PATIENTS]:
        print_line(f"Notice: {each.message}", err=True)
    if len(patients) > _MOST_PATIENTS:
        print_line(
            f"... and {len(patients) - _MOST_PATIENTS} more patients in several splits; --json lists all of them",
            err=True,
        )
