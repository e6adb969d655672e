"""Arguments and options that several commands have, each with one meaning and one help text."""

from pathlib import Path
from typing import Annotated, Literal

import typer

BenchArgument = Annotated[Path, typer.Argument(metavar="BENCH", help="Directory of a benchmark.")]
SetArgument = Annotated[
    Path, typer.Argument(metavar="PATH", help="Directory of a study set or of a benchmark.")
]
ImagesOption = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Directory of the images, if they have moved.")
]
VerifyImagesOption = Annotated[
    bool,
    typer.Option(
        "--verify-images/--no-verify-images",
        help="Compare every image with the SHA-256 that its case states; --no-verify-images is quicker.",
    ),
]
FilesOption = Annotated[
    bool, typer.Option("--files/--no-files", help="Open the image files; --no-files is quicker.")
]
SeedOption = Annotated[int, typer.Option(metavar="N", help="Seed for all random choices.")]
SplitOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Use only studies of this split: train, val or test.", show_default="all"
    ),
]
WorkersOption = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Number of processes.", show_default="one per core")
]
EngineOption = Annotated[
    Literal["local", "ray"],
    typer.Option(help="Where the processes run: local (on this machine) or ray (on a Ray cluster)."),
]
AddressOption = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="Address of a running Ray cluster, with --engine ray."),
]
AcceptTermsOption = Annotated[
    bool,
    typer.Option(
        "--accept-terms",
        help="Confirm that the terms of restricted sources allow sending their data to the model's provider.",
    ),
]
OpenOption = Annotated[
    bool, typer.Option("--open/--no-open", help="Open the page in the web browser when it is written.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
