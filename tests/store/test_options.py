"""Options that a function declares: what is read from its signature, and what is accepted for them."""

from pathlib import Path
from typing import Annotated, Literal

import pytest
from msgspec import Meta

from carina.store.errors import CarinaError
from carina.store.options import convert_options, declared_options


def example(
    path: Path,
    *,
    size: Annotated[int, Meta(ge=1, description="Side, in pixels.")],
    table: Path | None = None,
    split: Literal["train", "test"] = "train",
    labels: tuple[str, ...] = (),
    share: float = 0.5,
    copy_all: bool = False,
    advance: object = None,
) -> None: ...


DECLARED = declared_options(example, reserved=("advance",))


def test_options_are_the_keyword_only_parameters_with_type_default_and_help():
    found = {option.name: option for option in DECLARED}
    assert list(found) == ["size", "table", "split", "labels", "share", "copy_all"]
    assert (found["size"].base, found["size"].help, found["size"].is_required) == (
        int,
        "Side, in pixels.",
        True,
    )
    assert (found["table"].base, found["table"].default) == (Path, None)
    assert found["split"].choices == ("train", "test")
    assert found["labels"].repeats
    assert found["copy_all"].flag == "--copy-all"


def test_text_is_converted_and_defaults_are_filled_in():
    given = {"size": "8", "table": "a.csv", "labels": ["x", "y"], "share": "0.25", "copy_all": True}
    assert convert_options("source x", DECLARED, given) == {
        "size": 8,
        "table": Path("a.csv"),
        "split": "train",
        "labels": ("x", "y"),
        "share": 0.25,
        "copy_all": True,
    }


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        ({}, ("source x", "--size", "Side, in pixels.")),
        ({"size": 0}, ("source x", "--size", "0", ">= 1")),
        ({"size": "large"}, ("source x", "--size", "a whole number", "'large'")),
        ({"size": 1, "sizes": 2}, ("source x", "'sizes'", "size, table, split")),
        ({"size": 1, "table": 5}, ("source x", "--table", "a path", "5")),
        ({"size": 1, "split": "val"}, ("source x", "--split", "train or test", "'val'")),
        ({"size": 1, "labels": 5}, ("source x", "--labels", "5")),
        ({"size": 1, "share": "half"}, ("source x", "--share", "a number", "'half'")),
    ],
)
def test_a_wrong_value_is_refused_with_owner_option_and_value(given, parts):
    with pytest.raises(CarinaError) as raised:
        convert_options("source x", DECLARED, given)
    for part in parts:
        assert part in str(raised.value)


def test_a_type_that_cannot_be_an_option_is_a_fault_of_the_function():
    def wrong(*, when: dict[str, int]) -> None: ...

    with pytest.raises(TypeError, match="'when'"):
        declared_options(wrong)
