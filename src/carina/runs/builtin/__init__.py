"""Models that come with Carina and need no weights: baselines, the answer key, and a classical image reader.

Each registers itself as `builtin/NAME`.
"""

from typing import TYPE_CHECKING, Final

from carina.models import ModelName, ModelOptions, model_kind
from carina.runs.builtin.majority import Majority
from carina.runs.builtin.oracle import Oracle
from carina.runs.builtin.random_answers import RandomAnswers

if TYPE_CHECKING:
    from carina.runs.builtin.reader import AnchoredReader, Reader

__all__ = ["NAMES", "Majority", "Oracle", "RandomAnswers"]

NAMES: Final = tuple(f"builtin/{name}" for name in ("random", "majority", "oracle", "reader", "anchored"))
"""Names of the built-in models that answer questions, baselines first."""


@model_kind("builtin/random", capabilities=["chat"])
def open_random(_name: ModelName, options: ModelOptions) -> RandomAnswers:
    """Random choice among the admissible answers: chance level."""
    return RandomAnswers(options.seed)


@model_kind("builtin/majority", capabilities=["chat"])
def open_majority(_name: ModelName, options: ModelOptions) -> Majority:
    """The most frequent answer to each kind of question, learnt by cross-validation: the blind baseline."""
    return Majority(options.benchmark)


@model_kind("builtin/oracle", capabilities=["chat"])
def open_oracle(_name: ModelName, options: ModelOptions) -> Oracle:
    """The answer key: tests parser, scores and benchmark."""
    return Oracle(options.benchmark)


@model_kind("builtin/reader", capabilities=["chat"])
def open_reader(_name: ModelName, _options: ModelOptions) -> "Reader":
    """Classical image processing, which ignores earlier turns."""
    from carina.runs.builtin.reader import Reader  # noqa: PLC0415 - image processing that the others do not need

    return Reader()


@model_kind("builtin/anchored", capabilities=["chat"])
def open_anchored(_name: ModelName, _options: ModelOptions) -> "AnchoredReader":
    """The reader, which believes the earlier turns of the conversation."""
    from carina.runs.builtin.reader import AnchoredReader  # noqa: PLC0415

    return AnchoredReader()
