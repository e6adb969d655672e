"""What a chat model takes and gives: turns of conversations with images in, replies out.

A chat model runs in this process (`ChatModel`) or is served (`carina.models.served`). The turns of `carina.runs` have
the form that is described here. Needs no extra.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

import msgspec

ImageReader = Callable[[str, str], bytes]
"""Gives the PNG of a rendered view, by the ids of the case and the view."""


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
    """How an answer is drawn from a model."""

    temperature: float | None = 0.0
    """0 takes the likeliest token; None leaves it to the model, for models that refuse a temperature."""
    max_tokens: int = 2048
    """Longest answer, reasoning included, in tokens."""
    seed: int | None = None


ReasoningEffort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
"""How much a model reasons before it answers, in inspect-ai's words; few models know all of them."""


class RequestOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a request asks for beyond `Sampling`; None and False leave it to the model."""

    top_p: float | None = None
    """Share of probability from which the next token is drawn."""
    top_k: int | None = None
    """Number of likeliest tokens from which the next one is drawn."""
    reasoning_effort: ReasoningEffort | None = None
    reasoning_tokens: int | None = None
    """Most tokens of reasoning before an answer."""
    extra_body: str | None = None
    """Further fields of the body of a request, as the JSON text of an object."""
    structured: bool = False
    """Whether the answer to a question with options, labels or boxes is to be JSON in the schema of the question."""

    @property
    def body(self) -> dict[str, Any]:
        """The further fields of the body."""
        fields: dict[str, Any] = {} if self.extra_body is None else msgspec.json.decode(self.extra_body)
        return fields

    def to_record(self) -> dict[str, Any]:
        """The options that are given, by name, as `run.json` records them.

        Example:
            >>> RequestOptions(top_p=0.9, extra_body='{"min_p": 0.1}').to_record()
            {'top_p': 0.9, 'extra_body': {'min_p': 0.1}}
        """
        record: dict[str, Any] = msgspec.to_builtins(self)
        return record if self.extra_body is None else record | {"extra_body": self.body}


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """A model's answer, or the error that prevented it. A transport error is never an answer."""

    text: str | None
    """None after an error; "" where the model said nothing, or where a filter or the length of the prompt prevented
    an answer."""
    stop: str = ""
    """Why the model stopped, in inspect-ai's words: "stop", "max_tokens", "model_length", "content_filter"."""
    error: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    is_usage_refused: bool = False
    """Whether the service sent token counts that make no sense; the counts are None then."""
    cached: bool = False
    """Whether the answer was paid for by an earlier call."""


class TurnMessage(Protocol):
    """One message of a turn."""

    @property
    def role(self) -> Literal["user", "assistant"]: ...
    @property
    def text(self) -> str: ...
    @property
    def shows(self) -> tuple[str, ...]:
        """Ids of the views whose images come with the text."""


class TurnStep(Protocol):
    """The question of a turn."""

    @property
    def id(self) -> str: ...


class TurnExample(Protocol):
    """A case with right answers, shown before the case in question."""

    @property
    def case(self) -> str:
        """Name by which its images are read."""

    @property
    def messages(self) -> Sequence[TurnMessage]: ...


class ChatTurn(Protocol):
    """One question with the whole conversation before it."""

    @property
    def case(self) -> str: ...
    @property
    def step(self) -> TurnStep: ...
    @property
    def system(self) -> str: ...
    @property
    def messages(self) -> Sequence[TurnMessage]: ...
    @property
    def examples(self) -> Sequence[TurnExample]:
        """Conversations about other patients that come before the messages; none unless the user asks for them."""

    @property
    def image_order(self) -> Literal["before", "after"]:
        """Whether the images of a message stand before its text or after it."""


class ChatModel(Protocol):
    """A chat model in this process."""

    name: str
    """Kind and folder, as in "hf:medgemma-4b": says nothing about the machine."""
    batch: int
    """How many turns `answer` should get at a time."""

    def answer(self, turns: Sequence[ChatTurn], images: ImageReader) -> list[Reply]:
        """Answer each turn.

        Args:
            turns: Questions, each with its conversation.
            images: Gives the PNG of a view that a message shows.

        Returns:
            One reply per turn, in order. A turn that cannot be answered gets a reply with an error.
        """
