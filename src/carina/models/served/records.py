"""What is sent to a served model."""

import hashlib
from typing import Final, Literal

import msgspec

from carina.models.conversation import Sampling

_SCHEME: Final = 1
"""Version of the keys: raised when prompts are sent in another way, so that old answers are not taken for new ones."""


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """One question on its own, without a history."""

    user: str
    system: str = ""


class ChatMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a conversation."""

    role: Literal["user", "assistant"]
    text: str
    images: tuple[str, ...] = ()
    """Data URIs."""
    are_images_last: bool = False
    """Whether the images stand after the text."""
    detail: Literal["auto", "low", "high"] = "auto"
    """Resolution at which the service is asked to look at the images."""


def key_of(model: str, prompt: Prompt, sampling: Sampling) -> str:
    """Key of the answer to one prompt. It holds no address: a model may move to another server."""
    request = msgspec.json.encode([_SCHEME, model, prompt, sampling], order="deterministic")
    return hashlib.sha256(request).hexdigest()
