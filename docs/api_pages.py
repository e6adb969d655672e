"""The public names of a module, or a function or class, as Markdown: what `<!-- carina: api NAME -->` asks for."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import griffe

SOURCE = Path(__file__).parents[1] / "src"
LEVEL = 3
"""Level of the headings of public names."""


def describe_api(name: str) -> str:
    """A module with everything that it exports, or one function or class."""
    found = _load()[name.removeprefix("carina.")]
    target = found.final_target if found.is_alias else found
    if not target.is_module:
        return "\n\n".join(_object(target.name, target, LEVEL))
    parts = [*_docstring(target)]
    for member in _exported(target):
        own = target[member]
        own = own.final_target if own.is_alias else own
        if not own.is_module:
            parts += _object(member, own, LEVEL)
    return "\n\n".join(part for part in parts if part)


@cache
def _load() -> Any:  # noqa: ANN401 - griffe has no public type for what it loads
    return griffe.load("carina", search_paths=[str(SOURCE)], docstring_parser="google")


def _exported(module: Any) -> list[str]:  # noqa: ANN401
    """Names in `__all__`; without it, public names that the module itself defines."""
    if module.exports is not None:
        return [str(name) for name in module.exports if str(name) in module.members]
    return [name for name, one in module.members.items() if not name.startswith("_") and not one.is_alias]


def _object(name: str, one: Any, level: int) -> Iterator[str]:  # noqa: ANN401
    yield f"{'#' * level} {name}"
    if one.is_attribute:
        if one.annotation is not None:
            yield f"```text\n{name}: {one.annotation}\n```"
        yield from _docstring(one)
        return
    if one.is_function:
        yield f"```text\n{_signature(name, one)}\n```"
        yield from _docstring(one)
        return
    fields = [own for own in one.members.values() if own.is_attribute and "property" not in own.labels]
    shown = [own for own in fields if not own.name.startswith("_")]
    yield f"```text\nclass {name}({', '.join(str(base) for base in one.bases)})\n```"
    yield from _docstring(one)
    if shown:
        rows = [f"| `{own.name}` | {_type(own.annotation)} | {_cell(_first(own))} |" for own in shown]
        yield "\n".join(["| attribute | type | meaning |", "|---|---|---|", *rows])
    for own in one.members.values():
        if own.name.startswith("_") or own.is_alias or own in fields or own.docstring is None:
            continue
        if own.is_attribute:
            yield f"{'#' * (level + 1)} {name}.{own.name}"
            yield from _docstring(own)
        elif own.is_function:
            yield from _object(f"{name}.{own.name}", own, level + 1)


def _signature(name: str, one: Any) -> str:  # noqa: ANN401
    parts, has_star = [], False
    for parameter in one.parameters:
        if parameter.name in ("self", "cls"):
            continue
        kind = str(parameter.kind.value)
        star = {"variadic positional": "*", "variadic keyword": "**"}.get(kind, "")
        if kind == "keyword-only" and not has_star:
            parts.append("*")
            has_star = True
        has_star = has_star or star == "*"
        typed = f": {parameter.annotation}" if parameter.annotation is not None else ""
        default = f" = {parameter.default}" if parameter.default is not None and not star else ""
        parts.append(f"{star}{parameter.name}{typed}{default}")
    returned = f" -> {one.returns}" if one.returns is not None else ""
    line = f"{name}({', '.join(parts)}){returned}"
    if len(line) <= 100:
        return line
    return "\n".join([f"{name}(", *(f"    {part}," for part in parts), f"){returned}"])


def _docstring(one: Any) -> Iterator[str]:  # noqa: ANN401
    if one.docstring is None:
        return
    for section in one.docstring.parse("google"):
        kind = section.kind.value
        if kind == "text":
            yield section.value
        elif kind in ("parameters", "other parameters", "attributes"):
            rows = [
                f"| `{item.name}` | {_type(item.annotation)} | {_cell(item.description)} |"
                for item in section.value
            ]
            yield "\n".join(["| argument | type | meaning |", "|---|---|---|", *rows])
        elif kind in ("returns", "yields"):
            yield f"{kind.capitalize()}: {' '.join(_cell(item.description) for item in section.value)}"
        elif kind == "raises":
            yield "\n".join(f"- `{item.annotation}`: {_cell(item.description)}" for item in section.value)
        elif kind == "examples":
            yield "\n\n".join(_example(text) for _, text in section.value)
        elif kind == "admonition":
            yield _example(section.value.description)


def _example(text: str) -> str:
    return f"```text\n{text.strip()}\n```" if ">>>" in text else text


def _first(one: Any) -> str:  # noqa: ANN401
    return one.docstring.value if one.docstring is not None else ""


def _type(annotation: Any) -> str:  # noqa: ANN401
    return f"`{_cell(str(annotation))}`" if annotation is not None else ""


def _cell(text: str) -> str:
    """One line that a table can hold."""
    return re.sub(r"(?<!\\)\|", r"\\|", " ".join(text.split()))
