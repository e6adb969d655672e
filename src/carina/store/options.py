"""Options that an extension declares as keyword-only parameters of its function: names, types, defaults, help.

A source or an export states its options once, in the signature of its function. The command line offers them, the
documentation lists them, and `convert_options` checks what a user gives, for the command line and for Python alike.

    def read_scans(path: Path, *, floor: Annotated[float, Meta(ge=0, le=1, description="Lowest quality.")] = 0.7): ...

`Meta` is that of msgspec: `description` is the help text, and its limits (`ge`, `le`, `pattern`, ...) are checked.
"""

import inspect
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from carina.store.documents import require_finite
from carina.store.errors import CarinaError

_REQUIRED: Final = inspect.Parameter.empty
_SINGLE: Final = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    Path: "a path",
}
"""Types that one option can hold, in words."""


@dataclass(frozen=True, kw_only=True)
class Option:
    """One declared option."""

    name: str
    """As in Python, such as `copy_images`."""
    annotation: Any
    """The type as it was declared, with its limits."""
    base: type
    """The type of one value: str, int, float, bool or Path."""
    choices: tuple[str, ...] = ()
    """The allowed words, where there are only a few."""
    repeats: bool = False
    """Whether it takes several values."""
    default: Any = _REQUIRED
    help: str = ""

    @property
    def flag(self) -> str:
        """As on the command line, such as `--copy-images`."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def is_required(self) -> bool:
        return self.default is _REQUIRED

    @property
    def expected(self) -> str:
        """What it takes, in words."""
        if self.choices:
            return ", ".join(self.choices[:-1]) + f" or {self.choices[-1]}"
        return f"several of: {_SINGLE[self.base]}" if self.repeats else _SINGLE[self.base]


def declared_options(
    function: Callable[..., object], *, reserved: Collection[str] = ()
) -> tuple[Option, ...]:
    """The options of a function: its keyword-only parameters, without the reserved names.

    Raises:
        TypeError: A parameter has no annotation, or one that cannot be an option.

    Example:
        >>> def read(path: Path, *, split: Literal["train", "test"] = "train") -> None: ...
        >>> [(option.flag, option.choices) for option in declared_options(read)]
        [('--split', ('train', 'test'))]
    """
    hints = get_type_hints(function, include_extras=True)
    return tuple(
        _option(function, parameter, hints)
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and name not in reserved
    )


def convert_options(
    owner: str, declared: Sequence[Option], given: Mapping[str, object] | None
) -> dict[str, Any]:
    """The values of all options, with the declared types: those given, and the defaults of the others.

    Args:
        owner: Whose options they are, for messages, such as "source chexpercept".
        declared: What `declared_options` returned.
        given: Values by name. Text is converted, so that the command line can pass what was typed.

    Raises:
        CarinaError: An option is unknown, missing, of the wrong type or out of its range.

    Example:
        >>> def read(path: Path, *, split: Literal["train", "test"] = "train") -> None: ...
        >>> convert_options("source x", declared_options(read), {"split": "test"})
        {'split': 'test'}
    """
    known = {option.name: option for option in declared}
    for name in given or {}:
        if name not in known:
            listed = ", ".join(known) or "none"
            raise CarinaError(f"{owner} has no option {name!r}. Its options: {listed}.")
    values: dict[str, Any] = {}
    for name, option in known.items():
        if given is not None and name in given:
            values[name] = _convert(owner, option, given[name])
        elif option.is_required:
            raise CarinaError(f"{owner} needs the option {name!r} ({option.flag}): {option.help}")
        else:
            values[name] = option.default
    return values


def _option(
    function: Callable[..., object], parameter: inspect.Parameter, hints: Mapping[str, Any]
) -> Option:
    annotation = hints.get(parameter.name)
    inner = annotation
    help_text = ""
    if get_origin(inner) is Annotated:
        inner, *notes = get_args(inner)
        help_text = next((note.description or "" for note in notes if isinstance(note, msgspec.Meta)), "")
    if get_origin(inner) in (Union, UnionType):
        parts = [part for part in get_args(inner) if part is not NoneType]
        inner = parts[0] if len(parts) == 1 else inner
    repeats = get_origin(inner) is tuple
    if repeats:
        inner = get_args(inner)[0]
    choices = get_args(inner) if get_origin(inner) is Literal else ()
    base = str if choices else inner
    if base not in _SINGLE or not all(isinstance(choice, str) for choice in choices):
        raise TypeError(
            f"{function.__module__}.{function.__qualname__}: the option {parameter.name!r} has the type {annotation}; "
            "use str, int, float, bool, Path, a Literal of words, tuple[...] of one of these, or one of these | None"
        )
    return Option(
        name=parameter.name,
        annotation=annotation,
        base=base,
        choices=choices,
        repeats=repeats,
        default=parameter.default,
        help=help_text,
    )


def _convert(owner: str, option: Option, value: object) -> Any:  # noqa: ANN401 - of the type that was declared
    if isinstance(value, list):
        value = tuple(value)
    try:
        converted = msgspec.convert(value, option.annotation, strict=False, dec_hook=_decode)
    except msgspec.ValidationError as error:
        detail = "" if option.choices else f" ({error})"
        raise CarinaError(
            f"{owner}, option {option.name!r} ({option.flag}): expected {option.expected}, found {value!r}{detail}"
        ) from None
    require_finite(converted, f"{owner}, option {option.name!r} ({option.flag})")
    return converted


def _decode(kind: type, value: object) -> object:
    if kind is Path and isinstance(value, str | os.PathLike):
        return Path(value)
    raise ValueError(f"expected {_SINGLE.get(kind, kind.__name__)}")
