"""What is asked of a served model, how, and what comes back."""

import hashlib
from typing import Final, Literal

import msgspec

_SCHEME: Final = 1
"""Of the keys: raised when a prompt is sent otherwise than before, so that old answers are not taken for new ones."""


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """One question of its own, with no history."""

    user: str
    system: str = ""


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a conversation."""

    role: Literal["user", "assistant"]
    text: str
    pictures: tuple[str, ...] = ()
    """As data URIs, before the text."""


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
    """What decides an answer beside model and prompt."""

    temperature: float | None = 0.0
    """None leaves it to the model: some refuse to be told."""
    max_tokens: int = 2048
    seed: int | None = None


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What a model answered, or why it did not: a failure on the way is never an answer."""

    text: str | None
    """None where there was no answer; "" where the model said nothing, or a filter or the length of the prompt
    kept it from saying anything."""
    stop: str = ""
    """Why it stopped, in inspect-ai's words: "stop", "max_tokens", "model_length", "content_filter"."""
    error: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached: bool = False
    """Whether it was paid for on an earlier occasion."""


def key_of(model: str, prompt: Prompt, sampling: Sampling) -> str:
    """Names the answer to one prompt. Where a model is served changes, what it is does not: no address is in it."""
    asked = msgspec.json.encode([_SCHEME, model, prompt, sampling], order="deterministic")
    return hashlib.sha256(asked).hexdigest()
