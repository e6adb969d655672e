"""One model through inspect-ai's model layer, which knows the providers, their keys, and when to try again.

Everything that touches inspect-ai is here, and nothing of it is imported before a model is opened.
"""

import importlib.util
import re
from typing import Any, Final

from carina.errors import CarinaError
from carina.models.served.records import Prompt, Reply, Sampling

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
    ) -> None:
        if importlib.util.find_spec("inspect_ai") is None:
            raise CarinaError(f"model {name!r}: served models need inspect-ai: pip install 'carina[served]'")
        from inspect_ai.model import GenerateConfig, get_model  # noqa: PLC0415  the import takes two seconds

        self.name = name
        config = GenerateConfig(
            temperature=sampling.temperature,
            max_tokens=sampling.max_tokens,
            seed=sampling.seed,
            max_retries=retries,
            attempt_timeout=attempt_seconds,
        )
        try:
            self._model: Any = get_model(name, config=config, base_url=base_url, memoize=False)
        except Exception as error:  # a provider may raise anything about its settings
            raise CarinaError(f"model {name!r} cannot be opened: {_words_of(error)}") from None
        self._secret: str | None = getattr(self._model.api, "api_key", None)

    async def answer(self, prompt: Prompt) -> Reply:
        """The model's answer, or what kept it from coming; raises where no prompt would be answered."""
        from inspect_ai.model import ChatMessageSystem, ChatMessageUser  # noqa: PLC0415

        messages: list[Any] = [ChatMessageSystem(content=prompt.system)] if prompt.system else []
        messages.append(ChatMessageUser(content=prompt.user))
        try:
            output = await self._model.generate(messages)
            if output.error or not output.choices:
                return Reply(text=None, error=self._hidden(output.error or "the service sent no choices"))
        except (
            Exception
        ) as error:  # whatever a service can do wrong concerns this prompt alone, with two exceptions
            cause = _cause(error)
            status = getattr(cause, "status_code", None)
            if status in _HOPELESS:
                raise CarinaError(
                    f"model {self.name!r}: {_HOPELESS[status]}: {self._hidden(_words_of(cause))}"
                ) from None
            return Reply(text=None, error=self._hidden(_words_of(cause)))
        # A prompt that is too long or filtered comes back with the service's words in the place of the model's.
        usage = output.usage
        silent = usage is None and output.stop_reason in ("model_length", "content_filter")
        return Reply(
            text="" if silent else output.completion,
            stop=output.stop_reason,
            input_tokens=usage and usage.input_tokens,
            output_tokens=usage and usage.output_tokens,
        )

    async def close(self) -> None:
        await self._model.api.aclose()

    def _hidden(self, words: str) -> str:
        """Words of a service without what nobody may read in a log."""
        if self._secret:
            words = words.replace(self._secret, "***")
        # Cut last: half of a secret is not found any more.
        return _BEARER.sub("Bearer ***", _IN_ADDRESS.sub("***@", words))[:_LONGEST_MESSAGE]


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
