"""Python functions as models: `carina.run(bench, answer, out)`, or `function:MODULE.NAME` where only a name can stand.

A function runs in this process. What it may do with the images, and whom it may send them to, is the caller's matter.
"""

import importlib
import inspect
import io
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from carina.models.conversation import ChatTurn, ImageReader, Reply
from carina.models.registry import Capability, ModelName, ModelOptions, model_kind
from carina.store.arguments import PositiveInt, check_arguments
from carina.store.errors import CarinaError

FUNCTION: Final = "function"
"""The kind of models that are Python functions."""
GIVE_UP_AFTER: Final = 20
"""Failed turns, with none that was answered, after which the others would fail too."""


@dataclass(frozen=True)
class Message:
    """One message of a conversation, as a Python function gets it.

    Example:
        >>> Message("user", "Is an effusion present?").images
        ()
    """

    role: Literal["system", "user", "assistant"]
    """Who speaks: "system" (instructions, the first message where there are any), "user" (a question) or "assistant"
    (an answer to an earlier question, the model's own or one that the history policy puts in its place)."""
    text: str
    images: tuple[NDArray[np.uint8], ...] = ()
    """Images that stand before the text, in order: arrays of 8-bit RGB values, (height, width, 3)."""


ChatFunction: TypeAlias = Callable[[list[Message]], str] | Callable[[list[Message]], Awaitable[str]]
"""A function, plain or async, that answers the last message of a conversation."""


class BatchedFunction:
    """A function that answers several conversations in one call; made by `batched`."""

    def __init__(self, function: Callable[[list[list[Message]]], Sequence[str]], size: int) -> None:
        self.function = function
        self.size = size

    def __call__(self, conversations: list[list[Message]]) -> Sequence[str]:
        return self.function(conversations)


@check_arguments
def batched(
    function: Callable[[list[list[Message]]], Sequence[str]], *, size: PositiveInt = 8
) -> BatchedFunction:
    """Mark a function that answers several conversations in one call, to evaluate it with `run`.

    Args:
        function: Takes a list of conversations, each a list of `Message`, and returns one answer for each, in order.
        size: Number of conversations that it gets at a time; the last calls may have fewer.

    Returns:
        The function in a form that `run` takes as its model.

    Raises:
        CarinaError: The function is async, or the size is below 1.

    Example:
        >>> def answer_all(conversations):
        ...     return ["Answer: 1" for messages in conversations]
        >>> import carina
        >>> carina.run("bench", batched(answer_all, size=4), "runs/batched").counts.answered
        82
    """
    if not callable(function):
        raise CarinaError(f"batched: expected a function, found {function!r}")
    if is_async(function):
        raise CarinaError(
            f"batched: {_own_name(function) or 'the function'} is async; pass it to run as it is, with connections="
        )
    return BatchedFunction(function, size)


class FunctionStopped(Exception):  # noqa: N818 - not an error of a single turn, which alone would fail
    """A function cannot go on: its results are of a wrong type, or every turn failed."""


def name_function(model: object, label: str | None, *, needs: Capability) -> ModelName | None:
    """The name of a function that was given in the place of a model's name; None for the name of a model.

    Args:
        model: What the caller gave as the model.
        label: Name that the caller wants for the function; None for its own.
        needs: What the function must be able to do.

    Raises:
        CarinaError: The function has no name of its own and no label was given, the label could be taken for the name
            of a model, a model's name has a label, or the model is neither text nor a function.
    """
    if isinstance(model, str):
        if label is not None:
            raise CarinaError(
                f"label {label!r}: is for functions, and model {model!r} has a name of its own; leave it out"
            )
        return None
    if not callable(model):
        raise CarinaError(f"model: expected the name of a model or a function, found {model!r}")
    if label is not None and (not label.strip() or not label.isprintable() or ":" in label or "/" in label):
        raise CarinaError(
            f"label {label!r}: expected text without '/' and ':', which mark the names of other models"
        )
    name = label or _own_name(model)
    if name is None:
        raise CarinaError(f"model: {model!r} has no name of its own; give it one with label=")
    return ModelName(text=name, kind=FUNCTION, capabilities=(needs,), function=model)


def _own_name(function: object) -> str | None:
    """The qualified name of a function, below the function that holds it; None for a lambda, which has none."""
    inner = function.function if isinstance(function, BatchedFunction) else function
    name: str = getattr(inner, "__qualname__", "").rpartition("<locals>.")[2]
    return None if name in ("", "<lambda>") else name


def is_async(function: object) -> bool:
    """Whether calling it gives something that must be awaited."""
    # An object with an async __call__ is async too.
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - the method itself is looked at
    )


def find_function(name: ModelName) -> Callable[..., Any]:
    """The function of a parsed name: the one that was given, or the one that `function:MODULE.NAME` names.

    Raises:
        CarinaError: There is no such module, or no such function in it.
    """
    if name.function is not None:
        found: Callable[..., Any] = name.function
        return found
    module, _, attribute = name.location.rpartition(".")
    if not module:
        raise CarinaError(
            f"model {name.text!r}: expected function:MODULE.NAME, such as function:my_models.answer"
        )
    try:
        with _working_directory_importable():
            imported = importlib.import_module(module)
    except ImportError as error:
        raise CarinaError(f"model {name.text!r}: module {module} cannot be imported: {error}") from error
    imported_function = getattr(imported, attribute, None)
    if not callable(imported_function):
        raise CarinaError(f"model {name.text!r}: {module} has no function {attribute}")
    return imported_function  # type: ignore[no-any-return]


@contextmanager
def _working_directory_importable() -> Iterator[None]:
    """Modules beside the caller can be imported, as by `python -m`; a command has only its own directory."""
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        yield
    finally:
        sys.path.remove(here)


# ---- answers --------------------------------------------------------------------------------------------------------


class Outcomes:
    """Counts the turns of a function that were answered, and stops it where every one fails."""

    def __init__(self, name: str, *, answered: bool = False) -> None:
        self.name = name
        self._answered = answered
        self._failed = 0
        self._last: Exception | None = None

    def reply(self, result: object) -> Reply:
        """The reply that a result of the function is.

        Raises:
            FunctionStopped: It is no text.
        """
        if not isinstance(result, str):
            raise FunctionStopped(
                f"{self.name}: expected text (str) as the answer, found {_describe(result)}; return '' where there is "
                "no answer"
            )
        self._answered = True
        return Reply(text=result, stop="stop")

    def failure(self, error: Exception) -> Reply:
        """The reply of a turn in which the function raised an error.

        Raises:
            FunctionStopped: So many turns failed, and none was answered.
        """
        self._failed += 1
        self._last = error
        if self._failed >= GIVE_UP_AFTER:
            self.require_any()
        return Reply(text=None, error=describe_error(error))

    def require_any(self) -> None:
        """Refuse a call of which every turn failed.

        Raises:
            FunctionStopped: No turn was answered, in this call or an earlier one.
        """
        if self._last is not None and not self._answered:
            raise FunctionStopped(
                f"{self.name}: all {self._failed} turns failed, the last with {describe_error(self._last)}"
            ) from self._last


def _describe(result: object) -> str:
    return "None" if result is None else f"{type(result).__name__} {result!r:.60}"


def describe_error(error: BaseException) -> str:
    """An error of a function in one line, with its type."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


class FunctionModel:
    """A plain or a batched function as a model in this process."""

    def __init__(self, function: Callable[..., Any], outcomes: Outcomes) -> None:
        self.name = outcomes.name
        self.batch = function.size if isinstance(function, BatchedFunction) else 1
        self._function = function
        self._outcomes = outcomes

    def answer(self, turns: Sequence[ChatTurn], images: ImageReader) -> list[Reply]:
        """One reply per turn, in order; an error of a batched function is that of each turn, asked on its own."""
        conversations = [make_messages(turn, images) for turn in turns]
        if not isinstance(self._function, BatchedFunction):
            return [self._answer_one(messages) for messages in conversations]
        return self._answer_batch(conversations)

    def _answer_one(self, messages: list[Message]) -> Reply:
        try:
            result = self._function(messages)
        except Exception as error:
            return self._outcomes.failure(error)
        return self._outcomes.reply(result)

    def _answer_batch(self, conversations: list[list[Message]]) -> list[Reply]:
        try:
            results = self._function(conversations)
        except Exception as error:
            if len(conversations) == 1:
                return [self._outcomes.failure(error)]
            results = None
        else:
            self._check_number(results, len(conversations))
        if results is None:
            return [reply for one in conversations for reply in self._answer_batch([one])]
        return [self._outcomes.reply(result) for result in results]

    def _check_number(self, results: object, number: int) -> None:
        if isinstance(results, str) or not isinstance(results, Sequence):
            raise FunctionStopped(
                f"{self.name}: expected a list of {number} answers, found {_describe(results)}"
            )
        if len(results) != number:
            raise FunctionStopped(
                f"{self.name}: expected {number} answers, one per conversation, found {len(results)}"
            )


def make_messages(turn: ChatTurn, images: ImageReader) -> list[Message]:
    """The conversation of a turn, with its images decoded; the question comes last."""
    head = [Message("system", turn.system)] if turn.system else []
    said = [(example.case, one) for example in turn.examples for one in example.messages]
    said += [(turn.case, one) for one in turn.messages]
    return head + [
        Message(one.role, one.text, tuple(decode_png(images(case, view)) for view in one.shows))
        for case, one in said
    ]


def decode_png(png: bytes) -> NDArray[np.uint8]:
    """The pixels of a PNG as RGB."""
    with Image.open(io.BytesIO(png)) as image:
        # A copy that the function may change.
        return np.array(image.convert("RGB"), np.uint8)


@model_kind(FUNCTION, capabilities=["chat", "maps"], form="function:MODULE.NAME", takes_examples=True)
def open_function(name: ModelName, options: ModelOptions) -> object:
    """Python function, in this process."""
    function = find_function(name)
    if options.needs == "maps":
        return function
    if is_async(function):
        raise CarinaError(f"model {name.text!r}: an async function; evaluate it with carina.run")
    return FunctionModel(function, Outcomes(name.name))
