"""Commands whose options are declared by a source or an export, in place of the parameter `options` of a function."""

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.main import get_command

from carina.cli.command import Command

if TYPE_CHECKING:
    from carina.store.options import Option

_METAVARS: Final = {str: "TEXT", int: "N", float: "NUMBER", Path: "PATH"}
"""What help shows for the value of an option, by its type."""


def build_command(
    function: Callable[..., None], declared: "Sequence[Option]", *, name: str, help_text: str
) -> Any:  # noqa: ANN401 - typer's class of commands is private
    """A command with the parameters of a function, and the declared options where the function has `options`.

    Args:
        function: Called with what was typed; `options` gets the values of the declared options by name.
        declared: The options of a source or an export.
        name: Name of the command.
        help_text: Its help.
    """
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        if parameter.name == "options":
            parameters.extend(_parameter(option) for option in declared)
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    def call(**typed: Any) -> None:  # noqa: ANN401 - as typer has parsed it
        values = {option.name: typed.pop(option.name) for option in declared}
        # None and no values stand for an option that was not typed; its default is the reader's business.
        function(**typed, options={name: value for name, value in values.items() if value not in (None, [])})

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__doc__ = help_text
    app = typer.Typer(
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.command(name=name, cls=Command, no_args_is_help=True)(call)
    return get_command(app)


def _parameter(option: "Option") -> inspect.Parameter:
    one: Any = option.base
    kind: Any = one
    default = option.default
    if option.repeats:
        kind, default = list[one], default if option.is_required else list(default or [])
    elif default is None:
        kind = one | None
    declaration = typer.Option(
        option.flag if option.base is not bool or not default else f"{option.flag}/--no-{option.flag[2:]}",
        help=option.help,
        metavar="|".join(option.choices) or _METAVARS.get(option.base),
        show_default=option.base is not bool and default not in (None, []),
    )
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind, declaration],
    )
