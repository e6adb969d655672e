"""`carina export`: benchmarks for others' tools."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, cast

import typer

from carina.cli.console import print_json, progress
from carina.errors import CarinaError

if TYPE_CHECKING:
    from carina.cases.chat import ExportManifest, LayoutName, Mode


@dataclass(frozen=True, kw_only=True)
class _Order:
    """What the command was asked to do."""

    bench: Path
    out: Path
    images: Path | None
    neutral_names: bool
    keys: Literal["inline", "separate"]
    layout: "LayoutName"
    answers: bool
    pictures: "Mode | None"
    system: str | None
    workers: int
    json: bool


def register(app: typer.Typer) -> None:
    app.command(name="export", no_args_is_help=True)(export)


def export(
    bench: Annotated[Path, typer.Argument(metavar="BENCH", help="Directory of a benchmark.")],
    *,
    to: Annotated[str, typer.Option("--to", metavar="FORMAT", help="Format: chat, chexpercept or hf.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Where it is written.")],
    images: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where the images lie, if not where the benchmark says."),
    ] = None,
    layout: Annotated[
        str,
        typer.Option(help="Of chat: openai, llava, swift, or staged (the interchange form, keys of images)."),
    ] = "openai",
    answers: Annotated[str, typer.Option(help="Of chat and hf: with or without.")] = "with",
    pictures: Annotated[
        str | None,
        typer.Option(
            help="Of chat and hf: none (keys alone), copy (PNG files) or embed (in the records). By default chat "
            "copies and hf takes none: images of credentialed sources may not be handed on."
        ),
    ] = None,
    system: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Of chat: a system message before each conversation.")
    ] = None,
    neutral_names: Annotated[
        bool,
        typer.Option(
            "--neutral-names",
            help="Of chexpercept: give files of imported bundles names that do not tell the answer.",
        ),
    ] = False,
    keys: Annotated[
        str,
        typer.Option(
            help="Of chexpercept: inline: answers beside their questions; separate: in a file keys.json, to be kept "
            "back. Which blocks a record has still tells the path of its case."
        ),
    ] = "inline",
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; by default one a core.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Write a benchmark in the format of another tool, with its pictures.

    The directory gets its name when all is written; interrupted, the same command resumes.

    \b
    Formats:
      chat           conversations in JSON lines, of any benchmark: --layout openai, llava, swift or staged
      hf             a folder that datasets.load_dataset opens, with a data card and Croissant metadata
      chexpercept    chexpercept.json and chexpercept/<key_id>/..., of percept cases

    \b
    Examples:
      carina export bench --to chat --layout swift -o conversations
      carina export bench --to chat --layout openai --answers without --pictures none -o questions
      carina export bench --to hf --pictures embed -o folder
      carina export bench --to chexpercept -o bundle
      carina export bench --to chexpercept -o handout --keys separate
      carina export imported --to chexpercept -o bundle --neutral-names
    """
    if to not in _FORMATS:
        raise CarinaError(f"--to {to!r}: no such format; known: {', '.join(_FORMATS)}")
    _known("--layout", layout, ("openai", "llava", "swift", "staged"))
    _known("--answers", answers, ("with", "without"))
    _known("--keys", keys, ("inline", "separate"))
    if pictures is not None:
        _known("--pictures", pictures, ("none", "copy", "embed"))
    if to != "chexpercept" and (keys != "inline" or neutral_names):
        raise CarinaError(
            f"--keys and --neutral-names are of chexpercept; for {to} there is --answers without"
        )
    if to != "chat" and (layout != "openai" or system is not None):
        raise CarinaError(f"--layout and --system are of chat, not of {to}")
    if to == "chexpercept" and (answers != "with" or pictures is not None):
        raise CarinaError(
            "--answers and --pictures are of chat and hf; for chexpercept there is --keys separate"
        )
    _FORMATS[to](
        _Order(
            bench=bench,
            out=out,
            images=images,
            neutral_names=neutral_names,
            keys=cast("Literal['inline', 'separate']", keys),
            layout=cast("LayoutName", layout),
            answers=answers == "with",
            pictures=cast("Mode | None", pictures),
            system=system,
            workers=workers or os.cpu_count() or 1,
            json=json,
        )
    )


def _known(option: str, given: str, words: tuple[str, ...]) -> None:
    if given not in words:
        raise CarinaError(f"{option} {given!r}: expected {', '.join(words[:-1])} or {words[-1]}")


def _chat(order: _Order) -> None:
    from carina.cases import open_benchmark
    from carina.cases.chat import ChatOptions, export_chat

    options = ChatOptions(
        layout=order.layout, answers=order.answers, pictures=order.pictures, system=order.system
    )
    total = len(open_benchmark(order.bench))
    with progress("Cases", total, quiet=order.json) as advance:
        manifest = export_chat(
            order.bench,
            order.out,
            options,
            images=order.images,
            workers=_workers(order, total, drawn=options.mode != "none"),
            progress=advance,
        )
    _tell(order, manifest)


def _hub(order: _Order) -> None:
    from carina.cases import open_benchmark
    from carina.cases.hub import HubOptions, export_hub

    options = HubOptions(answers=order.answers, pictures=order.pictures or "none")
    total = len(open_benchmark(order.bench))
    with progress("Cases", total, quiet=order.json) as advance:
        manifest = export_hub(
            order.bench,
            order.out,
            options,
            images=order.images,
            workers=_workers(order, total, drawn=options.pictures != "none"),
            progress=advance,
        )
    _tell(order, manifest)


def _workers(order: _Order, total: int, *, drawn: bool) -> int:
    """Processes for drawing; text alone is written sooner than it is handed to another process."""
    return min(order.workers, total) if drawn else 1


def _tell(order: _Order, manifest: "ExportManifest") -> None:
    counts = manifest.counts
    if order.json:
        print_json({"export": order.out, "counts": counts})
        return
    typer.echo(order.out)
    splits = ", ".join(f"{n} {split}" for split, n in counts.splits.items())
    typer.echo(
        f"{counts.cases} cases ({splits}), {counts.questions} questions, {counts.pictures} pictures", err=True
    )


def _chexpercept(order: _Order) -> None:
    from carina.cases import open_benchmark
    from carina.percept.bundle import ExportOptions, export_bundle

    total = len(open_benchmark(order.bench))
    with progress("Cases", total, quiet=order.json) as advance:
        manifest = export_bundle(
            order.bench,
            order.out,
            ExportOptions(neutral_names=order.neutral_names, keys=order.keys),
            images=order.images,
            workers=min(order.workers, total),
            progress=advance,
        )
    if order.json:
        print_json({"bundle": order.out, "counts": manifest.counts})
    else:
        counts = manifest.counts
        typer.echo(order.out)
        typer.echo(
            f"{counts.cases} cases, {counts.questions} questions, {counts.pictures} pictures", err=True
        )


_FORMATS: Final[dict[str, Callable[[_Order], None]]] = {
    "chat": _chat,
    "chexpercept": _chexpercept,
    "hf": _hub,
}
"""What each format does, by name."""
