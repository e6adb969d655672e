"""One served model through inspect-ai's model layer, which knows the providers, their keys and when to retry.

Everything that touches inspect-ai is here, and it is not imported before a model is opened.
"""

import importlib.util
import io
import os
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import redirect_stdout
from typing import Any, Final

from carina.models.conversation import Reply, RequestOptions, Sampling
from carina.models.registry import SERVED, ModelName, ModelOptions, model_kind
from carina.models.served.address import is_local, key_variable, served_address, without_secrets
from carina.models.served.fast_path import disable_recording, discard_events, skip_request_checks
from carina.models.served.faults import describe_fault, find_cause
from carina.models.served.guard import (
    AnotherHostError,
    AnswerTooLargeError,
    guard_connections,
    guard_on_initialize,
)
from carina.models.served.records import ChatMessage, Prompt
from carina.models.served.request_options import REQUEST_OPTIONS, answer_config, request_settings
from carina.models.served.usage import mark_senseless_counts, read_usage
from carina.store.errors import CarinaError, install
from carina.store.text import make_printable

_LONGEST_MESSAGE: Final = 300
_PERMANENT: Final = {401: "the key is refused", 404: "there is no such model"}
"""HTTP statuses that every other prompt would get too."""
_MISREAD: Final = (TypeError, ValueError, AttributeError, LookupError, RecursionError)
"""What the clients of the providers raise about an answer with other fields or types than they expect."""
_MARKUP: Final = re.compile(r"\[/?[a-z ]+\]")
_MISSING_PACKAGE: Final = re.compile(r"Install with: pip install (\S.*)")
_MISSING_KEY: Final = re.compile(r"No ([A-Z][A-Z0-9_, or]*[A-Z0-9]) defined in the environment")
"""Sentences of inspect-ai."""
_IN_ADDRESS: Final = re.compile(r"(?<=://)[^/\s@]+@")
_BEARER: Final = re.compile(r"(?i)\bbearer\s+\S+")


class ServedModel:
    """A model by its name in inspect-ai: "openai/gpt-5", "openai-api/local/llama".

    With `stay_local`, requests to any other machine are refused, and so is a model for which this cannot be ensured.
    With `keep_reasoning`, answers begin with the reasoning that the model wrote in plain text.
    """

    def __init__(
        self,
        name: str,
        *,
        sampling: Sampling,
        request: RequestOptions | None = None,
        base_url: str | None = None,
        retries: int = 5,
        attempt_seconds: int = 300,
        connections: int | None = None,
        stay_local: bool = False,
        keep_reasoning: bool = False,
    ) -> None:
        # Before the import, which takes two seconds.
        address = served_address(name, base_url)
        settings = request_settings(name, request or RequestOptions())
        if importlib.util.find_spec("inspect_ai") is None:
            raise CarinaError(f"model {name!r}: served models need inspect-ai: {install('served')}")
        from inspect_ai.model import GenerateConfig, get_model  # noqa: PLC0415  the import takes two seconds

        self.name = name
        _refuse_missing_settings(name, address)
        self._keep_reasoning = keep_reasoning
        config = GenerateConfig(
            temperature=sampling.temperature,
            max_tokens=sampling.max_tokens,
            seed=sampling.seed,
            max_retries=retries,
            attempt_timeout=attempt_seconds,
            max_connections=connections,
            **settings,
        )
        try:
            # Inspect prints a greeting to standard output, where results go.
            with redirect_stdout(io.StringIO()):
                self._model: Any = get_model(
                    name, config=config, base_url=base_url, api_key=_key(name, address), memoize=False
                )
        except Exception as error:  # a provider may raise anything about its settings
            raise CarinaError(f"model {name!r} cannot be opened: {_describe_opening(error)}") from None
        skip_request_checks(self._model.api)
        guard_model(self._model, name=name, stay_local=stay_local)
        disable_recording(self._model)

    @property
    def model(self) -> Any:  # noqa: ANN401
        """The model of inspect-ai."""
        return self._model

    @property
    def api(self) -> Any:  # noqa: ANN401
        """The part of it that knows the provider."""
        return self._model.api

    @property
    def address(self) -> str | None:
        """Where its server is, without credentials; None where only the provider's package knows it."""
        return _address_of(self._model)

    @property
    def secret(self) -> str | None:
        """The key that is sent."""
        return getattr(self._model.api, "api_key", None)

    async def answer(self, prompt: Prompt) -> Reply:
        """The model's answer, or the error that prevented it; raises where no prompt would be answered."""
        from inspect_ai.model import ChatMessageSystem, ChatMessageUser  # noqa: PLC0415

        messages: list[Any] = [ChatMessageSystem(content=prompt.system)] if prompt.system else []
        return await self._reply([*messages, ChatMessageUser(content=prompt.user)])

    def conversation(self, system: str) -> "Conversation":
        """Start a conversation."""
        return Conversation(self._reply, system)

    async def _reply(self, messages: list[Any], schema: Mapping[str, Any] | None = None) -> Reply:
        discard_events()
        return await generate_reply(
            self._model, messages, name=self.name, schema=schema, keep_reasoning=self._keep_reasoning
        )

    async def close(self) -> None:
        await self._model.api.aclose()


def guard_model(model: Any, *, name: str, stay_local: bool) -> None:  # noqa: ANN401
    """Guard an opened model of inspect-ai against what servers may do; may be called again for the same model.

    Args:
        model: Model of inspect-ai.
        name: Its name, for messages.
        stay_local: Whether requests to any other machine are refused.

    Raises:
        CarinaError: Requests must stay on this machine, and the client of this provider cannot be held to it.
    """
    api = model.api

    def guard() -> bool:
        mark_senseless_counts(api)
        return guard_connections(api, stay_local=stay_local)

    if not guard_on_initialize(api, guard) and stay_local:
        raise CarinaError(
            f"model {name!r}: whether its requests stay on this machine cannot be ensured for this provider, and the "
            "data is restricted; use openai-api/NAME/MODEL with --base-url, or pass --accept-terms if the terms allow "
            "sending the data to others"
        )


async def generate_reply(
    model: Any,  # noqa: ANN401
    messages: list[Any],
    *,
    name: str,
    schema: Mapping[str, Any] | None = None,
    keep_reasoning: bool = False,
) -> Reply:
    """The answer of an opened model of inspect-ai, or the error that prevented it.

    Args:
        model: Model of inspect-ai.
        messages: The conversation.
        name: Its name, for messages.
        schema: JSON schema of the answer; None for an answer in words.
        keep_reasoning: Whether the text begins with the reasoning that the model wrote in plain text, between <think>
            and </think>; inspect-ai keeps it apart from the answer. Summaries and encrypted reasoning stay out.

    Raises:
        CarinaError: No prompt would be answered: the key is refused, there is no such model, or the server sends
            requests on to another address.
    """
    from inspect_ai.util import LimitExceededError  # noqa: PLC0415

    secret = getattr(model.api, "api_key", None)
    try:
        output = await model.generate(messages, **answer_config(schema))
        if output.error or not output.choices:
            return Reply(text=None, error=hide_secrets(output.error or "the service sent no choices", secret))
    except LimitExceededError:  # of an evaluation that this call is part of
        raise
    except (
        Exception
    ) as error:  # whatever a service can do wrong concerns this prompt alone, with two exceptions
        elsewhere = find_cause(error, AnotherHostError)
        if elsewhere is not None:
            raise CarinaError(f"model {name!r}: {hide_secrets(str(elsewhere), secret)}") from None
        cause = last_cause(error)
        reason = hide_secrets(describe_failure(cause, model), secret)
        status = getattr(cause, "status_code", None)
        if status in _PERMANENT:
            raise CarinaError(f"model {name!r}: {_PERMANENT[status]}: {reason}") from None
        return Reply(text=None, error=reason)
    # A prompt that is too long or filtered comes back with the service's message in the place of the model's.
    usage = output.usage
    has_no_answer = usage is None and output.stop_reason in ("model_length", "content_filter")
    tokens = None if usage is None else read_usage(usage)
    return Reply(
        text=""
        if has_no_answer
        else (_written_reasoning(output) if keep_reasoning else "") + output.completion,
        stop=output.stop_reason,
        input_tokens=tokens and tokens[0],
        output_tokens=tokens and tokens[1],
        is_usage_refused=usage is not None and tokens is None,
    )


def _written_reasoning(output: Any) -> str:  # noqa: ANN401
    content = output.message.content
    parts = [] if isinstance(content, str) else [part for part in content if part.type == "reasoning"]
    written = [part.reasoning for part in parts if not part.redacted and part.signature is None]
    return "".join(f"<think>{text}</think>\n" for text in written)


def describe_failure(error: BaseException, model: Any, seconds: int | None = None) -> str:  # noqa: ANN401
    """Describe what a service did wrong in one line.

    Args:
        error: What the client raised.
        model: The model of inspect-ai.
        seconds: Time limit of the attempt; None for that of the model.
    """
    too_large = find_cause(error, AnswerTooLargeError)
    if too_large is not None:
        return str(too_large)
    place = _address_of(model)
    seconds = seconds or getattr(getattr(model, "config", None), "attempt_timeout", None)
    if getattr(error, "status_code", None):
        return _describe(error)
    fault = describe_fault(error, place, seconds)
    if fault is None and (isinstance(error, _MISREAD) or "ChatCompletion" in str(error)):
        where = place or "the server"
        return f"damaged answer: {where} sent no answer in the layout of its provider ({_describe(error)})"
    return fault or _describe(error)


def _address_of(model: Any) -> str | None:  # noqa: ANN401
    """Where the server of a model is, without credentials."""
    client = getattr(model.api, "client", None)
    address = getattr(client, "base_url", None) or getattr(model.api, "base_url", None)
    return without_secrets(address and str(address).rstrip("/"))


def hide_secrets(message: str, secret: str | None) -> str:
    """A message of a service without keys and credentials."""
    if secret:
        message = message.replace(secret, "***")
    # Cut last: half of a secret is not found any more.
    message = make_printable(message)
    return _BEARER.sub("Bearer ***", _IN_ADDRESS.sub("***@", message))[:_LONGEST_MESSAGE]


class Conversation:
    """One conversation. Messages of earlier turns are kept, not made anew for each turn."""

    def __init__(
        self, reply: Callable[[list[Any], Mapping[str, Any] | None], Awaitable[Reply]], system: str
    ) -> None:
        from inspect_ai.model import ChatMessageSystem  # noqa: PLC0415

        self._reply = reply
        self._head: list[Any] = [ChatMessageSystem(content=system)] if system else []
        self._sent: list[tuple[ChatMessage, Any]] = []

    async def answer(self, messages: Sequence[ChatMessage], schema: Mapping[str, Any] | None = None) -> Reply:
        """The model's next answer after these messages; earlier ones may differ from those of the last turn.

        With a JSON schema, the answer is asked for as JSON.
        """
        sent = [
            (
                one,
                self._sent[place][1]
                if place < len(self._sent) and self._sent[place][0] == one
                else to_inspect_message(one),
            )
            for place, one in enumerate(messages)
        ]
        self._sent = sent
        return await self._reply([*self._head, *(message for _, message in sent)], schema)


def to_inspect_message(one: ChatMessage) -> Any:  # noqa: ANN401
    """A message of a conversation as inspect-ai takes it."""
    from inspect_ai.model import (  # noqa: PLC0415
        ChatMessageAssistant,
        ChatMessageUser,
        ContentImage,
        ContentText,
    )

    if one.role == "assistant":
        return ChatMessageAssistant(content=one.text)
    if not one.images:
        return ChatMessageUser(content=one.text)
    images = [ContentImage(image=uri, detail=one.detail) for uri in one.images]
    text = ContentText(text=one.text)
    return ChatMessageUser(content=[text, *images] if one.are_images_last else [*images, text])


def last_cause(error: BaseException) -> BaseException:
    """The error of the last of several attempts."""
    last = getattr(error, "last_attempt", None)
    error = (last.exception() or error) if last is not None else error
    # inspect-ai's own error holds the whole request; the service's message is in its cause.
    return (error.__cause__ or error) if hasattr(error, "provider_message") else error


def _describe(error: BaseException) -> str:
    """Describe an error in one line: kind, status and message, without the request."""
    status = getattr(error, "status_code", None)
    text = _stated_reason(getattr(error, "body", None)) or getattr(error, "message", None) or str(error)
    line = " ".join(_MARKUP.sub("", str(text)).split()).removeprefix("ERROR: ")
    kind = f"HTTP {status}" if status else type(error).__name__
    return f"{kind}: {line}" if line else kind


def _stated_reason(body: object) -> str | None:
    """What a service says in the body of an error: in the layout of OpenAI, of FastAPI, or in plain text."""
    if isinstance(body, dict):
        return next(
            (text for key in ("message", "detail") if isinstance(text := body.get(key), str) and text), None
        )
    if isinstance(body, str) and body.strip():
        return "an HTML page" if body.lstrip().startswith("<") else body
    return None


def _refuse_missing_settings(name: str, address: str | None) -> None:
    """Refuse a model of a server in OpenAI's layout whose address or key is missing.

    Raises:
        CarinaError: One is missing; the message says which option or environment variable gives it.
    """
    variable = key_variable(name)
    if variable is None:
        return
    if address is None:
        service = variable.removesuffix("_API_KEY")
        raise CarinaError(
            f"model {name!r}: the address of its server is missing; pass --base-url, such as "
            f"http://localhost:8000/v1, or set {service}_BASE_URL. A key, if it needs one, is read from {variable}"
        )
    if not os.environ.get(variable) and not is_local(address):
        raise CarinaError(
            f"model {name!r}: the key for {without_secrets(address)} is missing; set the environment variable "
            f"{variable} (to any word, where the server needs none)"
        )


def _describe_opening(error: Exception) -> str:
    """Why inspect-ai did not open a model: a package or a key is missing, or what else it says."""
    said = _describe(error)
    package = _MISSING_PACKAGE.search(said)
    if package:
        return f"its provider needs a package that is not installed: pip install {package[1]}"
    key = _MISSING_KEY.search(said)
    return f"its key is missing: set the environment variable {key[1]}" if key else said


def _key(name: str, address: str | None) -> str | None:
    """A placeholder key for a server on this machine: the server usually needs none, but its client does."""
    variable = key_variable(name)
    if variable is None or address is None or not is_local(address) or os.environ.get(variable):
        return None
    return "no-key-is-needed"


@model_kind(
    SERVED,
    capabilities=["chat", "text"],
    form="PROVIDER/NAME",
    extra="served",
    packages=("inspect-ai",),
    request_options=REQUEST_OPTIONS,
    takes_examples=True,
)
def open_served(name: ModelName, options: ModelOptions) -> ServedModel:
    """Model of any provider of inspect-ai: openai/gpt-5, anthropic/..., ollama/..., openai-api/SERVICE/NAME."""
    return ServedModel(
        name.location,
        sampling=options.sampling,
        request=options.request,
        base_url=options.base_url,
        retries=options.retries,
        attempt_seconds=options.timeout,
        connections=options.connections,
    )
