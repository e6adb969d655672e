"""`carina convert-pickles`, `carina convert-checkpoint`: convert pickled files without running their code."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from carina.cli.command import Command
from carina.cli.console import print_json, print_line, progress
from carina.cli.shared_options import JsonOption
from carina.store.counts import format_count


def register(app: typer.Typer) -> None:
    app.command(name="convert-pickles", cls=Command, no_args_is_help=True)(convert_pickles)
    app.command(name="convert-checkpoint", cls=Command, no_args_is_help=True)(convert_checkpoint)


def convert_pickles(
    source: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="Directory of pickled maps, <image>_<finding>_map.pkl."),
    ],
    *,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Directory to write the .npz files to.")
    ],
    json: JsonOption = False,
) -> None:
    """Convert pickled maps to .npz.

    For maps as CheXlocalize publishes them. The code that pickles may contain is not run: a separate process with
    limits on memory, time and size rebuilds arrays and tensors from their bytes and refuses everything else. Exits
    with code 1 if a file is refused.

    \b
    Examples:
      carina convert-pickles gradcam_maps_val -o maps
    """
    from carina.maps import convert_pickles as convert

    converted = convert(source, out, progress=partial(progress, quiet=json))
    if json:
        print_json({"written": converted.written, "refused": converted.refused})
    else:
        print_line(f"{format_count(len(converted.written), 'map')} written to {out}")
        for path, reason in converted.refused.items():
            print_line(f"{path}: {reason}", err=True)
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
            "--out", "-o", metavar="DIR", help="Directory of the model, or a file that ends in .safetensors."
        ),
    ],
) -> None:
    """Convert a checkpoint to safetensors.

    For checkpoints of CLIP-style models. The code that a pickled checkpoint may contain is not run: the weights are
    read with torch's restricted loader. Settings and vocabularies in the same directory are copied. Needs
    carina[torch].

    \b
    Examples:
      carina convert-checkpoint carzero_best_model.ckpt --kind carzero -o weights/carzero
      carina convert-checkpoint pytorch_model.bin --kind bert -o weights/medklip/text.safetensors
    """
    from carina.models.clip.convert import convert_checkpoint as convert

    print_line(convert(checkpoint, out, kind).path)
