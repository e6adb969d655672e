"""The command line. One module a command; each imports what it needs when it runs, so that help is quick.

`carina.program` starts it. Bad input or wrong usage exits with 2, a failure with 1, an interrupt with 130.
"""

import errno
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from carina.cli import (
    audit,
    build,
    check,
    convert,
    demo,
    explain,
    export,
    import_,
    phantom,
    report,
    run,
    score_maps,
    show,
    sources,
)
from carina.cli.console import print_line
from carina.store.errors import CarinaError
from carina.store.files import NOT_WRITABLE, explain_os_error
from carina.version import __version__

_COMMANDS = (
    demo,
    sources,
    phantom,
    import_,
    build,
    show,
    check,
    audit,
    run,
    explain,
    score_maps,
    report,
    export,
    convert,
)
"""Modules with a function `register(app)`, in the order in which help lists them."""

_RENAMED = {
    "score": "score-maps",
    "compare": "compare-profiles",
    "variants": "list-metrics",
    "convert-pickles": "convert-pickles",
    "convert-checkpoint": "convert-checkpoint",
}
"""Commands of the former group `carina ground`, and their names today."""


_WRONG_PLACE = NOT_WRITABLE | {
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EEXIST,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.ENOTEMPTY,
}
"""Errors of the operating system about a path that a user has chosen; others, such as a full disk, are failures."""


class _Commands(TyperGroup):
    """Turns what a command raises into a sentence and an exit code, for the program and for tests alike."""

    # The base class of the context is private to typer.
    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        """Names in the order of `_COMMANDS`; typer puts commands that have subcommands last."""
        return sorted(super().list_commands(ctx), key=_order.index)

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> Any:  # type: ignore[override]  # noqa: ANN401
        """Find the command; one of the former group `ground` is refused with its name of today."""
        if args[0] == "ground":
            former = " ".join(args[:2])
            current = [_RENAMED[name] for name in args[1:2] if name in _RENAMED] or _RENAMED.values()
            names = ", ".join(f"`carina {name}`" for name in current)
            raise CarinaError(f"there is no command `carina {former}`; use {names}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: typer.Context) -> object:  # type: ignore[override]
        try:
            return super().invoke(ctx)
        except CarinaError as error:
            print_line(f"Error: {error}", fg=typer.colors.RED, err=True)
            raise typer.Exit(error.exit_code) from None
        except BrokenPipeError:
            raise typer.Exit(1) from None
        except OSError as error:
            print_line(f"Error: {explain_os_error(error)}", fg=typer.colors.RED, err=True)
            raise typer.Exit(2 if error.errno in _WRONG_PLACE else 1) from None
        except KeyboardInterrupt:
            print_line(
                "\nInterrupted. Run the same command again to finish; what is complete is kept.", err=True
            )
            raise typer.Exit(130) from None


app = typer.Typer(
    cls=_Commands,
    name="carina",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print_line(f"carina {__version__}")
        raise typer.Exit


@app.callback()
def _program(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Does a vision-language model see what a radiologist sees in a chest X-ray, and can it show where?

    \b
    Examples:
      carina demo
      carina phantom -n 40 --seed 7 -o studies
      carina show studies -o pages
      carina build percept studies -o percept --per-cell 2
      carina run percept --model builtin/reader -o runs/reader
      carina build ground studies -o probes
      carina explain probes --model builtin/asymmetry -o runs/asymmetry
      carina report runs -o report
      carina run --help
    """


_order: list[str | None] = []
for _module in _COMMANDS:
    _before = len(app.registered_commands), len(app.registered_groups)
    _module.register(app)
    _order += [command.name for command in app.registered_commands[_before[0] :]]
    _order += [group.name for group in app.registered_groups[_before[1] :]]
