"""The class of every command: plain words in usage lines, lists of options, and errors of usage."""

import re
from typing import Any, Final

import typer
from typer.core import TyperCommand

_PLAIN_ERRORS: Final = {
    r"^Value error, ": "",
    r"^Input should be a valid integer.*": "expected a whole number",
    r"^Input should be a valid number.*": "expected a number",
    r"^Input should be greater than or equal to (\S+)$": r"expected \1 or more",
    r"^Input should be less than or equal to (\S+)$": r"expected \1 or less",
}
"""Patterns of messages that typer passes on from the library that checks values, and what Carina says instead."""
_PLAIN_HELP: Final = {
    r"\[default: \(([^()]*)\)": r"[default: \1",
    r"([\d.]+)<=x<=([\d.]+)\b": r"\1 to \2",
    r"\bx>=([\d.]+)": r"\1 or more",
}
"""The same for defaults and ranges of options."""


class Command(TyperCommand):
    """A command of `carina`; without it, usage lines hold braces and Python types: `{RUN}...`, `<list[Path]>`."""

    # The classes of contexts, formatters and parameters are private to typer.
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            message, separator, words = error.message.partition(" is not one of ")
            error.message = _replace(_PLAIN_ERRORS, message) + separator + re.sub(r"'|\.$", "", words)
            raise

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ANN401
        arguments = [param for param in self.get_params(ctx) if param.param_type_name == "argument"]
        names = [_argument_name(argument) for argument in arguments]
        return [
            "[OPTIONS]",
            *(name if a.required else f"[{name}]" for a, name in zip(arguments, names, strict=True)),
        ]

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        rows: dict[str, list[tuple[str, str]]] = {"argument": [], "option": []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                name = _argument_name(param) if param.param_type_name == "argument" else record[0]
                # Typer puts the words that an option accepts in brackets.
                rows[param.param_type_name].append(
                    (re.sub(r"[<>]|\blist\[|\]", "", name), _replace(_PLAIN_HELP, record[1]))
                )
        for title, listed in (("Arguments", rows["argument"]), ("Options", rows["option"])):
            if listed:
                with formatter.section(title):
                    formatter.write_dl(listed)


def _argument_name(argument: Any) -> str:  # noqa: ANN401
    name = argument.metavar or argument.name.upper()
    return name if argument.nargs == 1 else f"{name}..."


def _replace(patterns: dict[str, str], text: str) -> str:
    for pattern, plain in patterns.items():
        text = re.sub(pattern, plain, text)
    return text
