"""`carina phantom`: synthetic studies with exact truth."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from carina.cli.console import print_json, progress
from carina.errors import CarinaError

if TYPE_CHECKING:
    from carina.phantom import Mix
    from carina.phantom.options import Wording
    from carina.studies import Manifest


def register(app: typer.Typer) -> None:
    app.command(name="phantom", no_args_is_help=True)(phantom)


def phantom(
    *,
    n: Annotated[int, typer.Option("-n", min=1, help="Number of studies.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Where the study set is written.")],
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")] = 0,
    size: Annotated[int, typer.Option(help="Side of the square images, in pixels.")] = 512,
    bits: Annotated[int, typer.Option(help="8, or 12 stored in 16-bit PNG.")] = 8,
    monochrome1: Annotated[bool, typer.Option("--monochrome1", help="Store high values for dark.")] = False,
    conspicuity: Annotated[float, typer.Option(help="Contrast of lesions: 1 as usual, 0.5 subtle.")] = 1.0,
    wording: Annotated[str, typer.Option(help="Wording of the reports: build, or held-out.")] = "build",
    normal: Annotated[
        float | None, typer.Option(help="Share of studies without a finding.", show_default="0.35")
    ] = None,
    finding: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=WEIGHT",
            help="Weight of a finding among abnormal studies; repeat for several, the others then never occur.",
        ),
    ] = None,
    pa_with_lateral: Annotated[
        float | None, typer.Option(help="Share of studies with PA and lateral view.", show_default="0.45")
    ] = None,
    pa_alone: Annotated[
        float | None, typer.Option(help="Share with a PA view alone; the rest are AP.", show_default="0.15")
    ] = None,
    with_prior: Annotated[
        float | None, typer.Option(help="Share of patients with more than one study.", show_default="0.65")
    ] = None,
    quality_defect: Annotated[
        float | None, typer.Option(help="Share of images with a technical defect.", show_default="0.18")
    ] = None,
    hedged: Annotated[
        float | None, typer.Option(help="Share of findings that the report hedges.", show_default="0.13")
    ] = None,
    malpositioned: Annotated[
        float | None, typer.Option(help="Share of devices whose tip lies wrong.", show_default="0.15")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; by default one a core.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Make synthetic chest radiographs with exact truth.

    Studies of patients with masks, anatomy, devices, priors and reports, projected from a parametric thorax.
    Bytes depend on the seed and the options alone, not on the workers; the first studies of a larger set are
    those of a smaller one. Interrupted, the same command resumes.

    \b
    Findings:
      atelectasis, cardiomegaly, consolidation, edema, fracture, lung opacity, mass, nodule,
      pleural effusion, pneumonia, pneumothorax

    \b
    Examples:
      carina phantom -n 40 --seed 7 -o studies
      carina phantom -n 1000 --size 1024 -o studies-1024
      carina phantom -n 200 --finding nodule=1 --finding mass=1 --normal 0.5 -o nodules
      carina phantom -n 100 --pa-with-lateral 1 --pa-alone 0 -o two-views
    """
    from carina.phantom import PhantomOptions, write_phantom

    mix = _mix(
        finding,
        normal=normal,
        pa_with_lateral=pa_with_lateral,
        pa_alone=pa_alone,
        with_prior=with_prior,
        quality_defect=quality_defect,
        hedged=hedged,
        malpositioned=malpositioned,
    )
    options = PhantomOptions(
        size=size,
        bits=bits,
        monochrome1=monochrome1,
        conspicuity=conspicuity,
        wording=cast("Wording", wording),  # checked by the options, like everything else
        mix=mix,
    )
    with progress("Studies", n, quiet=json) as advance:
        manifest = write_phantom(
            out, n=n, seed=seed, options=options, workers=workers or os.cpu_count() or 1, progress=advance
        )
    if json:
        print_json({"studies": out, "counts": manifest.counts})
    else:
        typer.echo(out)
        typer.echo(_summary(manifest), err=True)


def _mix(finding: list[str] | None, **shares: float | None) -> "Mix":
    """How often things occur; a share that was not given keeps its default."""
    from carina.phantom import Mix

    given: dict[str, Any] = {name: share for name, share in shares.items() if share is not None}
    if finding:
        given["findings"] = dict(_weight(item) for item in finding)
    return Mix(**given)


def _weight(item: str) -> tuple[str, float]:
    name, _, weight = item.partition("=")
    try:
        return name.strip(), float(weight)
    except ValueError:
        raise CarinaError(f"--finding {item!r}: expected NAME=WEIGHT, such as nodule=0.5") from None


def _summary(manifest: "Manifest") -> str:
    counts = manifest.counts
    return f"{counts.studies} studies of {counts.patients} patients, {counts.images} images"
