"""`carina convert-pickles`, `carina convert-checkpoint`: convert pickled files without running their code."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from carina.cli.console import print_json, progress


def register(app: typer.Typer) -> None:
    app.command(name="convert-pickles", no_args_is_help=True)(convert_pickles)
    app.command(name="convert-checkpoint", no_args_is_help=True)(convert_checkpoint)


def convert_pickles(
    source: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="Directory of pickled maps, <image>_<finding>_map.pkl."),
    ],
    *,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Directory for the .npz files.")],
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Convert pickled maps, as cheXlocalize publishes them, to .npz without running the code that pickles can hold.

    A separate process with limits on memory, time and size rebuilds arrays and tensors from their bytes and refuses
    everything else. Exits with 1 if a file is refused.

    \b
    Examples:
      carina convert-pickles gradcam_maps_val -o maps
    """
    from carina.maps import convert_pickles as convert

    converted = convert(source, out, progress=partial(progress, quiet=json))
    if json:
        print_json({"written": converted.written, "refused": converted.refused})
    else:
        typer.echo(f"{len(converted.written)} maps written to {out}")
        for path, reason in converted.refused.items():
            typer.echo(f"{path}: {reason}", err=True)
    if converted.refused:
        raise typer.Exit(1)


def convert_checkpoint(
    checkpoint: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A pickled checkpoint: .pt, .pth, .bin, .ckpt, or a zip of one."),
    ],
    *,
    kind: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help="Kind of model: a CLIP-style kind of carina explain, or bert for a text tower.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Folder of the model, or a file that ends in .safetensors."
        ),
    ],
) -> None:
    """Convert a pickled checkpoint of a CLIP-style model to safetensors without running the code that it can hold.

    Reads the weights with torch's restricted loader and writes them as safetensors, with the settings and vocabularies
    that lie beside them. Needs carina[torch].

    \b
    Examples:
      carina convert-checkpoint carzero_best_model.ckpt --kind carzero -o weights/carzero
      carina convert-checkpoint pytorch_model.bin --kind bert -o weights/medklip/text.safetensors
    """
    from carina.models.clip.convert import convert_checkpoint as convert

    typer.echo(convert(checkpoint, out, kind).path)
