"""`carina sources`: the data sets that can be imported."""

from typing import TYPE_CHECKING, Annotated

import typer

from carina.cli.command import Command
from carina.cli.console import print_json, print_line, print_table
from carina.cli.shared_options import JsonOption

if TYPE_CHECKING:
    from carina.sources import Source


def register(app: typer.Typer) -> None:
    app.command(name="sources", cls=Command)(sources)


def sources(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Source to describe.")] = None,
    *,
    json: JsonOption = False,
) -> None:
    """List the sources of studies and questions.

    For each source: what it needs on disk, its licence, and what it knows about each study (masks, reports, ...). With
    a name, only that source, with a tree of its files, its options, and an example.

    \b
    Examples:
      carina sources
      carina sources swift-chat
      carina sources --json
    """
    from carina.sources import SOURCES, list_sources

    if name is not None:
        source = SOURCES[name]
        print_json(source.describe()) if json else _print(source)
        return
    listed = list_sources()
    if json:
        print_json([source.describe() for source in listed])
        return
    rows = [(source.name, source.needs, source.licence, ", ".join(source.truth)) for source in listed]
    print_table(("source", "needs on disk", "licence", "truth"), rows)


def _print(source: "Source") -> None:
    described = source.describe()
    for heading in ("title", "brings", "needs", "licence", "truth", "url", "citation"):
        value = described[heading]
        if value:
            print_line(f"{heading}: {', '.join(value) if isinstance(value, list) else value}")
    if source.tree:
        print_line("files:")
        for line in source.tree.splitlines():
            print_line(f"  {line}")
    if described["options"]:
        rows = [(o["option"], o["takes"], o["default"] or "", o["help"]) for o in described["options"]]
        print_table(("option", "takes", "default", "meaning"), rows)
    out = "studies" if source.brings == "studies" else "bench"
    command = source.name if source.read is None else f"import {source.name} PATH"
    print_line(f"example: carina {command} -o {out}")
