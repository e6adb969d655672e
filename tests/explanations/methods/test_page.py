"""docs/reference/ground-methods.md says of every method what the registry does."""

import dataclasses
import importlib.util
import json
import re
import typing
from pathlib import Path

import pytest

from carina.explanations.methods import METHODS, Need

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "ground-methods.md").read_text(encoding="utf-8")
GRID = (14, 14)
"""For which the page tells passes."""
VARIANTS = {"medclip-resnet": "`medclip` (ResNet)", "medclip-swin": "`medclip` (Swin)"}
NOT_NAMED = {"openai", "open_clip", "chexzero-320", "kad-224"}
"""Further layouts and sizes of kinds that the page has a row of."""


def section(title: str) -> str:
    return re.split(rf"^#+ {re.escape(title)}$", PAGE, flags=re.MULTILINE)[1].partition("\n#")[0]


def rows(text: str) -> list[list[str]]:
    """Cells of the rows of its tables, headings left out."""
    lines = re.findall(r"^\| (.*) \|$", text, re.MULTILINE)
    return [line.split(" | ") for line in lines if line.startswith("`")]


def written(value: object) -> str:
    """A default as `--option` takes it."""
    return value if isinstance(value, str) else json.dumps(value)


def test_methods_are_listed_by_name() -> None:
    told = rows(section("Explanation methods"))
    assert [(name, source) for name, _, source in told] == [
        (f"`{method.name}`", method.publication) for method in METHODS.entries().values()
    ]


def test_needs_and_costs_are_those_of_the_registry() -> None:
    told = rows(section("What they need and cost"))
    methods, needs = told[: len(METHODS.names())], told[len(METHODS.names()) :]
    for method, cells in zip(METHODS.entries().values(), methods, strict=True):
        cost = method.cost(method.options(), GRID)
        needed = ", ".join(f"`{need}`" for need in method.needs) or "nothing"
        assert cells == [f"`{method.name}`", needed, str(cost.forwards), str(cost.backwards)]
    assert [name for name, _ in needs] == [f"`{need}`" for need in typing.get_args(Need)]


@pytest.mark.parametrize("name", METHODS)
def test_the_page_lists_options_with_defaults_and_choices(name: str) -> None:
    kind = METHODS[name].options
    told = rows(section(name))
    assert [cells[:2] for cells in told] == [
        [f"`{field.name}`", f"`{written(field.default)}`"] for field in dataclasses.fields(kind)
    ]
    choices = typing.get_type_hints(kind)
    for option, _, meaning in told:
        allowed = choices[option.strip("`")]
        if typing.get_origin(allowed) is typing.Literal and meaning != "as for `rise`":
            assert all(f"`{choice}`" in meaning for choice in typing.get_args(allowed))


def test_the_page_lists_the_methods_of_each_model() -> None:
    """Those that another test finds on tiny weights of every kind."""
    spec = importlib.util.spec_from_file_location("serving", Path(__file__).with_name("test_adapters.py"))
    serving = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(serving)
    table = {cells[0]: cells[1:] for cells in rows(section("Which models they serve")) if len(cells) > 2}
    kinds = {kind: VARIANTS.get(kind, f"`{kind}`") for kind in serving.SERVES if kind not in NOT_NAMED}
    assert set(table) == set(kinds.values())
    for kind, label in kinds.items():
        marked = dict(zip(METHODS, table[label], strict=True))
        assert {name for name, mark in marked.items() if mark in ("yes", "own")} == serving.SERVES[kind]
        assert list(marked.values()).count("own") == 1
        assert set(marked.values()) <= {"yes", "own", "-"}
