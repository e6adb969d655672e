"""`carina sources`: where studies and benchmarks can come from."""

from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import typer

from carina.cli.console import print_json, print_table

if TYPE_CHECKING:
    from carina.studies.sources import Source

PROVIDERS = ("carina.phantom:SOURCE", "carina.percept.bundle:SOURCE", "carina.trek.swift:SOURCE")
"""Where the constants are that describe sources; imported when they are asked for: readers are heavy."""


def register(app: typer.Typer) -> None:
    app.command(name="sources")(sources)


def sources(*, json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False) -> None:
    """List where studies and benchmarks can come from.

    For each source: what it needs on disk, its licence, and the truth it carries.

    \b
    Examples:
      carina sources
      carina sources --json
    """
    found = find_sources(PROVIDERS)
    if json:
        print_json(found)
        return
    rows = [(source.name, source.needs, source.licence, ", ".join(source.truth)) for source in found]
    print_table(("source", "needs on disk", "licence", "truth"), rows)


def find_sources(providers: tuple[str, ...]) -> list["Source"]:
    """The sources in order of name; a provider without its constant is not there yet and is left out."""
    from carina.studies.sources import catalogue

    found = []
    for provider in providers:
        module, _, attribute = provider.partition(":")
        source: Source | None = getattr(import_module(module), attribute, None)
        if source is not None:
            found.append(source)
    return list(catalogue(found).values())
