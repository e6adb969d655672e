"""One model through inspect-ai's model layer, which knows the providers, their keys, and when to try again.

Everything that touches inspect-ai is here, and nothing of it is imported before a model is opened.
"""

import importlib.util
import io
import os
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import redirect_stdout
from typing import Any, Final

from carina.errors import CarinaError, install
from carina.models.served.address import is_local, key_variable
from carina.models.served.lean import as_it_is, nowhere, unlogged
from carina.models.served.records import Prompt, Reply, Said, Sampling

_LONGEST_MESSAGE: Final = 300
_HOPELESS: Final = {401: "the key is refused", 404: "there is no such model"}
"""Answers of a service that every other prompt would get too."""
_MARKUP: Final = re.compile(r"\[/?[a-z ]+\]")
_IN_ADDRESS: Final = re.compile(r"(?<=://)[^/\s@]+@")
_BEARER: Final = re.compile(r"(?i)\bbearer\s+\S+")


class ServedModel:
    """A model by its name in inspect-ai: "openai/gpt-5", "openai-api/local/llama"."""

    def __init__(
        self,
        name: str,
        *,
        sampling: Sampling,
        base_url: str | None = None,
        retries: int = 5,
        attempt_seconds: int = 300,
        connections: int | None = None,
    ) -> None:
        if importlib.util.find_spec("inspect_ai") is None:
            raise CarinaError(f"model {name!r}: served models need inspect-ai: {install('served')}")
        from inspect_ai.model import GenerateConfig, get_model  # noqa: PLC0415  the import takes two seconds

        self.name = name
        config = GenerateConfig(
            temperature=sampling.temperature,
            max_tokens=sampling.max_tokens,
            seed=sampling.seed,
            max_retries=retries,
            attempt_timeout=attempt_seconds,
            max_connections=connections,
        )
        try:
            # Inspect greets on standard output, where results go, whoever has not called for it.
            with redirect_stdout(io.StringIO()):
                self._model: Any = get_model(
                    name, config=config, base_url=base_url, api_key=_key(name, base_url), memoize=False
                )
        except Exception as error:  # a provider may raise anything about its settings
            raise CarinaError(f"model {name!r} cannot be opened: {_words_of(error)}") from None
        as_it_is(self._model.api)
        unlogged(self._model)

    async def answer(self, prompt: Prompt) -> Reply:
        """The model's answer, or what kept it from coming; raises where no prompt would be answered."""
        from inspect_ai.model import ChatMessageSystem, ChatMessageUser  # noqa: PLC0415

        messages: list[Any] = [ChatMessageSystem(content=prompt.system)] if prompt.system else []
        return await self._reply([*messages, ChatMessageUser(content=prompt.user)])

    def conversation(self, system: str) -> "Conversation":
        """Ready for the first question of a conversation."""
        return Conversation(self._reply, system)

    async def _reply(self, messages: list[Any]) -> Reply:
        nowhere()
        return await generated(self._model, messages, name=self.name)

    async def close(self) -> None:
        await self._model.api.aclose()


async def generated(model: Any, messages: list[Any], *, name: str) -> Reply:  # noqa: ANN401
    """What an opened model of inspect-ai answers, or what kept it from it; raises where nothing would be answered."""
    from inspect_ai.util import LimitExceededError  # noqa: PLC0415

    secret = getattr(model.api, "api_key", None)
    try:
        output = await model.generate(messages)
        if output.error or not output.choices:
            return Reply(text=None, error=_hidden(output.error or "the service sent no choices", secret))
    except LimitExceededError:  # of an evaluation that this call is part of
        raise
    except (
        Exception
    ) as error:  # whatever a service can do wrong concerns this prompt alone, with two exceptions
        cause = _cause(error)
        told = _hidden(_words_of(cause), secret)
        status = getattr(cause, "status_code", None)
        if status in _HOPELESS:
            raise CarinaError(f"model {name!r}: {_HOPELESS[status]}: {told}") from None
        return Reply(text=None, error=told)
    # A prompt that is too long or filtered comes back with the service's words in the place of the model's.
    usage = output.usage
    silent = usage is None and output.stop_reason in ("model_length", "content_filter")
    return Reply(
        text="" if silent else output.completion,
        stop=output.stop_reason,
        input_tokens=usage and usage.input_tokens,
        output_tokens=usage and usage.output_tokens,
    )


def _hidden(words: str, secret: str | None) -> str:
    """Words of a service without what nobody may read in a log."""
    if secret:
        words = words.replace(secret, "***")
    # Cut last: half of a secret is not found any more.
    return _BEARER.sub("Bearer ***", _IN_ADDRESS.sub("***@", words))[:_LONGEST_MESSAGE]


class Conversation:
    """Turns of one conversation. What was said before is handed on as it was, not made anew for each turn."""

    def __init__(self, reply: Callable[[list[Any]], Awaitable[Reply]], system: str) -> None:
        from inspect_ai.model import ChatMessageSystem  # noqa: PLC0415

        self._reply = reply
        self._head: list[Any] = [ChatMessageSystem(content=system)] if system else []
        self._made: list[tuple[Said, Any]] = []

    async def answer(self, said: Sequence[Said]) -> Reply:
        """The model's next answer, when this was said so far; earlier words may differ from those of the last turn."""
        made = [
            (
                one,
                self._made[place][1]
                if place < len(self._made) and self._made[place][0] == one
                else message(one),
            )
            for place, one in enumerate(said)
        ]
        self._made = made
        return await self._reply([*self._head, *(message for _, message in made)])


def message(one: Said) -> Any:  # noqa: ANN401
    """A message of a conversation as inspect-ai takes it."""
    from inspect_ai.model import (  # noqa: PLC0415
        ChatMessageAssistant,
        ChatMessageUser,
        ContentImage,
        ContentText,
    )

    if one.role == "assistant":
        return ChatMessageAssistant(content=one.text)
    if not one.pictures:
        return ChatMessageUser(content=one.text)
    pictures = [ContentImage(image=uri) for uri in one.pictures]
    return ChatMessageUser(content=[*pictures, ContentText(text=one.text)])


def _cause(error: BaseException) -> BaseException:
    """What went wrong at the last of several attempts."""
    last = getattr(error, "last_attempt", None)
    error = (last.exception() or error) if last is not None else error
    # inspect-ai tells the whole request in its own error, and keeps the service's words in the one that led to it.
    return (error.__cause__ or error) if hasattr(error, "provider_message") else error


def _words_of(error: BaseException) -> str:
    """One line for a person: kind, status and message, without the request."""
    status = getattr(error, "status_code", None)
    body = getattr(error, "body", None)
    told = body.get("message") if isinstance(body, dict) else None
    told = told or getattr(error, "message", None) or str(error)
    line = " ".join(_MARKUP.sub("", str(told)).split()).removeprefix("ERROR: ")
    kind = f"HTTP {status}" if status else type(error).__name__
    return f"{kind}: {line}" if line else kind


def _key(name: str, base_url: str | None) -> str | None:
    """A key for a server on this machine where none is set: it usually asks for none, but its client does."""
    variable = key_variable(name)
    if variable is None or base_url is None or not is_local(base_url) or os.environ.get(variable):
        return None
    return "no-key-is-needed"
