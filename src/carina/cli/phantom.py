"""`carina phantom`: synthetic studies with exact truth."""

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from carina.cli.command import Command
from carina.cli.console import print_json, print_line, progress
from carina.cli.shared_options import JsonOption, SeedOption, WorkersOption
from carina.store.counts import format_count
from carina.store.errors import CarinaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from carina.phantom.options import Wording
    from carina.studies import Studies


def register(app: typer.Typer) -> None:
    app.command(name="phantom", cls=Command, no_args_is_help=True)(phantom)


def phantom(
    *,
    n: Annotated[int, typer.Option("-n", metavar="N", help="Number of studies to make.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Directory to write the study set to.")
    ],
    seed: SeedOption = 0,
    size: Annotated[int, typer.Option(metavar="PIXELS", help="Side of the square images.")] = 512,
    bits: Annotated[
        int, typer.Option(metavar="N", help="Bits of a grey value: 8, or 12 stored in 16-bit PNG.")
    ] = 8,
    monochrome1: Annotated[
        bool,
        typer.Option(
            "--monochrome1", help="Store inverted grey values, high for dark, as DICOM's MONOCHROME1 does."
        ),
    ] = False,
    conspicuity: Annotated[
        float,
        typer.Option(metavar="FACTOR", help="Contrast of lesions, up to 2: 1 is usual, 0.5 is subtle."),
    ] = 1.0,
    wording: Annotated[
        str,
        typer.Option(
            metavar="build|held-out",
            help="Wording of the reports; held-out shares no sentence with build, to test report parsers.",
        ),
    ] = "build",
    normal: Annotated[
        float, typer.Option(metavar="SHARE", help="Share of studies without a finding.")
    ] = 0.35,
    finding: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=WEIGHT",
            help="Weight of a finding among abnormal studies; repeat for several. Findings that are not named never "
            "occur.",
        ),
    ] = None,
    device: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=SHARE",
            help="How often a device occurs; repeat for several. Tubes and central venous line: share of AP studies. "
            "Pacemaker: share of patients of 60 and older. Chest tube: share of pneumothoraces in AP studies that "
            "are drained. Devices that are not named never occur.",
        ),
    ] = None,
    pa_with_lateral: Annotated[
        float, typer.Option(metavar="SHARE", help="Share of studies with a PA and a lateral image.")
    ] = 0.45,
    pa_alone: Annotated[
        float,
        typer.Option(metavar="SHARE", help="Share of studies with only a PA image; all others are AP."),
    ] = 0.15,
    with_prior: Annotated[
        float, typer.Option(metavar="SHARE", help="Share of patients with more than one study.")
    ] = 0.65,
    quality_defect: Annotated[
        float, typer.Option(metavar="SHARE", help="Share of images with a technical defect.")
    ] = 0.18,
    hedged: Annotated[
        float, typer.Option(metavar="SHARE", help="Share of findings that the report calls uncertain.")
    ] = 0.13,
    malpositioned: Annotated[
        float, typer.Option(metavar="SHARE", help="Share of devices with a misplaced tip.")
    ] = 0.15,
    format_: Annotated[
        Literal["studies", "dicom"],
        typer.Option(
            "--format",
            help="What to write: studies (a study set), or dicom (DICOM files with invented identifiers and "
            "segmentations, to show `carina import dicom`).",
        ),
    ] = "studies",
    workers: WorkersOption = None,
    json: JsonOption = False,
) -> None:
    """Make synthetic chest radiographs with exact truth.

    Studies of patients with masks, anatomy, devices, prior studies and reports, projected from a parametric thorax.
    The files depend only on the seed and the options, not on the number of workers. A larger set begins with the
    studies of a smaller one. If the command is interrupted, repeat it to resume.

    \b
    Findings:
      atelectasis, cardiomegaly, consolidation, edema, fracture, lung opacity, mass, nodule,
      pleural effusion, pneumonia, pneumothorax

    \b
    Devices:
      endotracheal tube, nasogastric tube, central venous line, pacemaker, chest tube

    \b
    Examples:
      carina phantom -n 40 --seed 7 -o studies
      carina phantom -n 1000 --size 1024 -o studies-1024
      carina phantom -n 200 --finding nodule=1 --finding mass=1 --normal 0.5 -o nodules
      carina phantom -n 100 --pa-with-lateral 1 --pa-alone 0 -o two-views
      carina phantom -n 20 --bits 12 --format dicom -o archive
    """
    from carina.phantom import make_phantoms

    make = partial(
        make_phantoms,
        n=n,
        seed=seed,
        size=size,
        bits=bits,
        monochrome1=monochrome1,
        conspicuity=conspicuity,
        wording=cast("Wording", wording),  # checked with all other options
        normal=normal,
        findings=_numbers("--finding", finding),
        devices=_numbers("--device", device),
        pa_with_lateral=pa_with_lateral,
        pa_alone=pa_alone,
        with_prior=with_prior,
        quality_defect=quality_defect,
        hedged=hedged,
        malpositioned=malpositioned,
        workers=workers,
        progress=partial(progress, quiet=json),
    )
    if format_ == "dicom":
        _write_dicom(make, out, json=json)
        return
    counts = make(out).manifest.counts
    if json:
        print_json({"studies": out, "counts": counts})
    else:
        print_line(out)
        print_line(
            f"{format_count(counts.studies, 'study', 'studies')} of {format_count(counts.patients, 'patient')}, "
            f"{format_count(counts.images, 'image')}",
            err=True,
        )


def _write_dicom(make: "Callable[[Path], Studies]", out: Path, *, json: bool) -> None:
    """Make the studies in a temporary directory, and write them as DICOM files."""
    from carina.phantom import write_dicom

    with TemporaryDirectory() as folder:
        written = write_dicom(make(Path(folder) / "studies"), out, progress=partial(progress, quiet=json))
    if json:
        counts = {
            "studies": written.studies,
            "images": written.images,
            "segmentations": written.segmentations,
        }
        print_json({"dicom": out, "counts": counts})
    else:
        print_line(out)
        print_line(
            f"{format_count(written.studies, 'study', 'studies')}, {format_count(written.images, 'image')}, "
            f"{format_count(written.segmentations, 'segmentation')}",
            err=True,
        )


def _numbers(option: str, items: list[str] | None) -> dict[str, float] | None:
    """Numbers by name from texts NAME=NUMBER; None where the option is not given."""
    if not items:
        return None
    numbers: dict[str, float] = {}
    for item in items:
        name, _, number = item.partition("=")
        try:
            numbers[name.strip()] = float(number)
        except ValueError:
            raise CarinaError(
                f"{option} {item!r}: expected a name and a number, such as nodule=0.5"
            ) from None
    return numbers
