"""Checks of what callers pass to public functions, by the types that the functions declare."""

import functools
import inspect
import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, ParamSpec, TypeAlias, TypeVar, Union, get_args, get_origin

import msgspec

from carina.store.documents import require_finite
from carina.store.errors import CarinaError

P = ParamSpec("P")
R = TypeVar("R")

PositiveInt: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
"""A number of things, at least one."""
Share: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1)]
"""A share between 0 and 1."""

_SCALARS: Final = (int, float, str, bool, types.NoneType)
_LISTS: Final = (list, tuple, Sequence, Collection)
_MAPPINGS: Final = (dict, Mapping)
_NOUNS: Final = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "True or False",
    types.NoneType: "None",
}


def check_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Have a function check its arguments before it does anything.

    Checks arguments whose declared type is a number, text, a boolean, a `Literal`, or a list, dictionary or union of
    these. Other arguments are for the function to check. Scalars of numpy become Python's.

    Args:
        function: A function with annotations.

    Returns:
        The function, which raises `CarinaError` if an argument is of another type or outside its range. The message
        names the argument, what is expected, and what was given.

    Example:
        >>> @check_arguments
        ... def sample(n: PositiveInt, split: Literal["train", "test"] = "test") -> int:
        ...     return n
        >>> sample(3)
        3
        >>> sample(0)
        Traceback (most recent call last):
        carina.store.errors.CarinaError: n: expected a whole number of at least 1, found 0
        >>> sample(3, split="dev")
        Traceback (most recent call last):
        carina.store.errors.CarinaError: split: expected 'train' or 'test', found 'dev'
    """
    signature = inspect.signature(function)

    checked_types = {
        name: parameter.annotation
        for name, parameter in signature.parameters.items()
        if not isinstance(parameter.annotation, str) and _is_simple(parameter.annotation)
    }

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{function.__qualname__}(): {error}") from None
        for name, expected in checked_types.items():
            if name in bound.arguments:
                bound.arguments[name] = _check(name, bound.arguments[name], expected)
        return function(*bound.args, **bound.kwargs)

    return call


def _check(name: str, value: object, expected: Any) -> object:  # noqa: ANN401 - a type
    value = value.item() if type(value).__module__ == "numpy" and getattr(value, "ndim", 1) == 0 else value  # type: ignore[attr-defined]
    require_finite(value, name)
    try:
        msgspec.convert(value, _for_msgspec(expected))
    except msgspec.ValidationError:
        hint = f"; write [{value!r}]" if isinstance(value, str) and _is_list(expected) else ""
        raise CarinaError(f"{name}: expected {_describe(expected)}, found {value!r}{hint}") from None
    return value


def _members(expected: Any) -> Iterator[Any]:  # noqa: ANN401 - types
    """The types of a union; a type that is no union is its only member."""
    if get_origin(expected) in (Union, types.UnionType):
        for member in get_args(expected):
            yield from _members(member)
    else:
        yield expected


def _is_simple(expected: Any) -> bool:  # noqa: ANN401 - a type
    for member in _members(expected):
        origin = get_origin(member)
        if origin is Annotated:
            if not _is_simple(get_args(member)[0]):
                return False
        elif origin in (*_LISTS, *_MAPPINGS):
            if not all(inner is Ellipsis or _is_simple(inner) for inner in get_args(member)):
                return False
        elif origin is not Literal and member not in _SCALARS:
            return False
    return True


def _is_list(expected: Any) -> bool:  # noqa: ANN401 - a type
    return any(get_origin(member) in _LISTS for member in _members(expected))


def _for_msgspec(expected: Any) -> Any:  # noqa: ANN401 - types
    """The same type with `list` and `dict` for every kind of sequence and mapping, to which msgspec converts others."""
    members: list[Any] = []
    for member in _members(expected):
        origin, inner = get_origin(member), get_args(member)
        members.append(
            list[_for_msgspec(inner[0])]  # type: ignore[misc]
            if origin in _LISTS
            else dict[inner[0], _for_msgspec(inner[1])]  # type: ignore[misc, valid-type]
            if origin in _MAPPINGS
            else member
        )
    return Union[tuple(members)]  # noqa: UP007 - made from a list


def _describe(expected: Any) -> str:  # noqa: ANN401 - a type
    names: list[str] = []
    for member in _members(expected):
        origin = get_origin(member)
        if origin is Literal:
            names += [repr(value) for value in get_args(member)]
        elif origin in _LISTS:
            names.append(f"a list (of {_describe(get_args(member)[0])})")
        elif origin in _MAPPINGS:
            names.append(f"a dictionary (of {' to '.join(map(_describe, get_args(member)))})")
        elif origin is Annotated:
            names.append(_describe(get_args(member)[0]) + _describe_range(get_args(member)[1:]))
        else:
            names.append(_NOUNS[member])
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _describe_range(constraints: Sequence[Any]) -> str:
    bounds = [bound for bound in constraints if isinstance(bound, msgspec.Meta)]
    words = [
        *(f"at least {bound.ge:g}" for bound in bounds if bound.ge is not None),
        *(f"at most {bound.le:g}" for bound in bounds if bound.le is not None),
    ]
    return f" of {' and '.join(words)}" if words else ""
