"""The first request to a served model: one tiny picture, a few tokens, before a run begins.

It finds out within seconds what would stop every question: a wrong address, a key that is refused, a model that the
server does not have, images or options that it does not take. When it fails, further tiny requests to the same server
find out why. None of them holds anything of the benchmark, and all go through the guard of the connections.
"""

import asyncio
import io
import math
import os
import re
import time
from base64 import b64encode
from collections.abc import Callable, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import cache
from typing import Any, Final, NamedTuple

from PIL import Image

from carina.models.conversation import RequestOptions
from carina.models.registry import name_options
from carina.models.served.address import without_secrets
from carina.models.served.fast_path import discard_events
from carina.models.served.faults import find_cause
from carina.models.served.guard import AnotherHostError
from carina.models.served.records import ChatMessage
from carina.models.served.request_options import answer_config, object_schema
from carina.models.served.service import (
    ServedModel,
    describe_failure,
    hide_secrets,
    last_cause,
    to_inspect_message,
)
from carina.models.served.usage import read_usage
from carina.store.errors import CarinaError
from carina.store.text import make_printable

SYSTEM: Final = "You answer in one word."
QUESTION: Final = "This tests the connection. Answer with the word yes."
_SIDE: Final = 64
"""Pixels: some models refuse pictures below 28 pixels a side."""
_ANSWER_TOKENS: Final = 16
"""The least that OpenAI accepts as the longest answer."""
_SCHEMA: Final = object_schema({"answer": {"type": "string"}})
_CONNECT_SECONDS: Final = 8.0
_PROBE_SECONDS: Final = 5.0
_PATIENCE: Final = 10.0
"""Seconds without an answer after which a sentence says what is waited for."""
_TELL_WAIT: Final = 2.0
"""Seconds of a wait for which a server asks, from which on a sentence says so."""
_LONGEST_BACKOFF: Final = 30.0
_BUSY: Final = frozenset({429, 503, 529})
"""HTTP statuses of a server that will answer later, or that is still loading a model."""
_REFUSED: Final = frozenset({401, 403})
_NO_SERVICE: Final = frozenset({404, 405, 501})
_SERVER_FAILURE: Final = 500
_LISTED: Final = 10
"""Names of models that a message lists."""
_LONGEST_NAME: Final = 80
_PATHS: Final = re.compile(r"/(?:chat/completions|completions|responses|models)$")
"""Ends of addresses that the client adds by itself."""
_HTTPS_EXPECTED: Final = re.compile(r"HTTPS (?:port|server)", re.IGNORECASE)
_TOO_SHORT: Final = re.compile(r"max_tokens or model output limit was reached")
"""How a model that reasons says that it works, but had no room for an answer."""

Notify = Callable[[str], object]
Open = Callable[[RequestOptions], ServedModel]


class FirstReply(NamedTuple):
    """What the first request took."""

    seconds: float
    input_tokens: int | None
    output_tokens: int | None


class _Failure(Exception):  # noqa: N818 - holds the error of a provider
    """An exchange that gave no answer."""

    def __init__(self, cause: BaseException | None, reason: str) -> None:
        super().__init__(reason)
        self.cause = cause
        self.reason = reason

    @property
    def status(self) -> int | None:
        """HTTP status; None where the server did not answer, or answered with something else than its layout."""
        return getattr(self.cause, "status_code", None)

    @property
    def is_no_service(self) -> bool:
        """Whether there may be no service of models at the address: its answer is of another kind, or there is none."""
        return self.status in _NO_SERVICE or (
            self.status is None and self.reason.startswith("damaged answer")
        )


async def send_first_request(
    open_served: Open,
    request: RequestOptions,
    *,
    seconds: int,
    retries: int,
    notify: Notify,
) -> FirstReply:
    """Send a tiny request to a model, and say what to change where it gets no answer.

    Args:
        open_served: Opens the model with some options of requests.
        request: The options of the run.
        seconds: Time limit. Whatever fails at once fails at once; a server that is busy or silent gets this long.
        retries: Retries where the server is busy.
        notify: Called with a sentence where it takes long.

    Raises:
        CarinaError: The server gave no answer; the message names its address, what it said, and what to change.
    """
    served = open_served(request)
    try:
        _fail_quickly(served, seconds)
        began = time.monotonic()
        try:
            usage = await _try_again(served, request, end=began + seconds, retries=retries, notify=notify)
        except _Failure as failure:
            sentence = await _Diagnosis(served, open_served, request, failure).explain()
            raise CarinaError(f"model {served.name!r}: the first request failed: {sentence}") from None
        return FirstReply(round(time.monotonic() - began, 2), *(usage or (None, None)))
    finally:
        await served.close()


def _fail_quickly(served: ServedModel, seconds: float) -> None:
    """Let the client report a failure instead of trying again in silence, and a missing host within seconds."""
    client = getattr(served.api, "client", None)
    if hasattr(client, "max_retries"):
        client.max_retries = 0  # type: ignore[union-attr]
    timeout = getattr(client, "timeout", None)
    if hasattr(timeout, "connect"):
        kind: Any = type(timeout)
        client.timeout = kind(seconds, connect=min(seconds, _CONNECT_SECONDS))  # type: ignore[union-attr]


async def _try_again(
    served: ServedModel, request: RequestOptions, *, end: float, retries: int, notify: Notify
) -> tuple[int, int] | None:
    """Send the request until it is answered, as long as waiting may help."""
    for attempt in range(retries + 1):
        try:
            return await _exchange(served, request, seconds=end - time.monotonic(), notify=notify)
        except _Failure as failure:
            wait = _waiting_time(failure, attempt)
            if attempt == retries or wait is None or time.monotonic() + wait >= end:
                raise
            if wait >= _TELL_WAIT:
                notify(f"{served.name}: {failure.reason}; trying again in {wait:.0f} s")
            await asyncio.sleep(wait)
    raise AssertionError("the last attempt returns or raises")


def _waiting_time(failure: _Failure, attempt: int) -> float | None:
    """Seconds after which to try again; None where that would not help."""
    status = failure.status
    if status in _BUSY and getattr(failure.cause, "code", None) != "insufficient_quota":
        wanted = _wanted_delay(failure.cause)
        return min(2.0**attempt, _LONGEST_BACKOFF) if wanted is None else wanted
    # Once more where the connection broke, or the server stumbled.
    is_broken = status is not None and status >= _SERVER_FAILURE
    is_broken = is_broken or failure.reason.startswith("connection closed")
    return 0.2 if is_broken and attempt == 0 else None


def _wanted_delay(error: BaseException | None) -> float | None:
    """Seconds for which a server asks in the headers of an error."""
    headers = getattr(getattr(error, "response", None), "headers", {})
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        with suppress(TypeError, ValueError):
            delay = float(str(headers.get(name))) * unit
            if math.isfinite(delay) and delay >= 0:
                return delay
    return None


# ---- one exchange ---------------------------------------------------------------------------------------------------


async def _exchange(
    served: ServedModel,
    request: RequestOptions,
    *,
    seconds: float,
    notify: Notify = lambda _sentence: None,
    has_image: bool = True,
) -> tuple[int, int] | None:
    """Send the question once; returns the tokens that were sent and written, where the server counts them.

    Raises:
        _Failure: There was no answer.
        CarinaError: The request would go to another address.
    """
    limit = max(1, math.ceil(seconds))
    place = served.address or "the provider"
    waiting = asyncio.get_running_loop().call_later(
        _PATIENCE,
        notify,
        f"{served.name}: waiting for the first answer from {place}; a server that is loading a model may need minutes. "
        f"Given up after {limit} s (--timeout)",
    )
    discard_events()
    try:
        output = await served.model.generate(_messages(has_image=has_image), **_config(request, limit))
    except Exception as error:  # whatever a provider raises is explained
        elsewhere = find_cause(error, AnotherHostError)
        if elsewhere is not None:
            raise CarinaError(f"model {served.name!r}: {elsewhere}") from None
        cause = last_cause(error)
        if _TOO_SHORT.search(str(cause)):
            return None
        reason = hide_secrets(describe_failure(cause, served.model, limit), served.secret)
        raise _Failure(cause, reason) from None
    finally:
        waiting.cancel()
    if output.error or not output.choices:
        raise _Failure(None, hide_secrets(output.error or f"{place} sent no choices", served.secret))
    return None if output.usage is None else read_usage(output.usage)


def _config(request: RequestOptions, seconds: int) -> dict[str, Any]:
    from inspect_ai.model import GenerateConfig  # noqa: PLC0415

    limits = GenerateConfig(
        # The tokens of reasoning are part of the answer.
        max_tokens=_ANSWER_TOKENS + (request.reasoning_tokens or 0),
        max_retries=0,
        attempt_timeout=seconds,
    )
    asked: dict[str, Any] = answer_config(_SCHEMA if request.structured else None)
    return {"config": limits.merge(asked["config"]) if asked else limits}


def _messages(*, has_image: bool) -> list[Any]:
    from inspect_ai.model import ChatMessageSystem  # noqa: PLC0415

    images = (_picture(),) if has_image else ()
    question = ChatMessage(role="user", text=QUESTION, images=images)
    return [ChatMessageSystem(content=SYSTEM), to_inspect_message(question)]


@cache
def _picture() -> str:
    """A grey square as a data URI."""
    content = io.BytesIO()
    Image.new("L", (_SIDE, _SIDE), 128).save(content, "PNG")
    return f"data:image/png;base64,{b64encode(content.getvalue()).decode()}"


# ---- why it failed --------------------------------------------------------------------------------------------------


class _Diagnosis:
    """Finds out why the first request failed, by what the server says and by further tiny requests to it."""

    def __init__(
        self, served: ServedModel, open_served: Open, request: RequestOptions, failure: _Failure
    ) -> None:
        self._served = served
        self._open = open_served
        self._request = request
        self._failure = failure
        self._place = served.address or "the provider"

    async def explain(self) -> str:
        """One sentence: what the server said, and what to change."""
        status, reason = self._failure.status, self._with_place(self._failure.reason)
        if status is None and not self._failure.is_no_service:
            return reason  # which says itself what to change
        return f"{reason}; {self._explain_by_answer(reason) or await self._explain_by_requests()}"

    def _explain_by_answer(self, reason: str) -> str | None:
        """What to change, where the answer of the server suffices to say it."""
        if _HTTPS_EXPECTED.search(reason):
            return "it expects TLS: write https:// in --base-url"
        if self._failure.status in _REFUSED:
            return self._explain_key()
        if self._failure.status in _BUSY:
            return "try again later, or raise --retries or --timeout"
        return None

    async def _explain_by_requests(self) -> str:
        """What to change, by further requests: where models are listed, and whether a simpler question is answered."""
        offers = await self._find_models()
        own = offers.get(self._base)
        if self._failure.is_no_service:
            if own is None:
                return self._explain_address(list(offers))
            if self._model not in own:
                return self._explain_model(own)
        return await self._explain_by_simpler_requests() or (
            self._explain_status() if own is None or self._model in own else self._explain_model(own)
        )

    async def _explain_by_simpler_requests(self) -> str | None:
        if self._failure.status is None:
            return None
        if await self._is_answered(self._request, has_image=False):
            return "this model takes no images: choose one that reads them (--blind sends images, too)"
        given = self._request.to_record()
        if given and await self._is_answered(RequestOptions(), has_image=True):
            return f"it answers without {name_options(list(given))}: leave out what it does not take"
        return None

    @property
    def _base(self) -> str:
        return str(getattr(self._client, "base_url", "")).rstrip("/")

    @property
    def _client(self) -> Any:  # noqa: ANN401
        return getattr(self._served.api, "client", None)

    @property
    def _model(self) -> str:
        """The name by which the server is asked."""
        name = getattr(self._served.api, "service_model_name", None)
        return str(name() if callable(name) else self._served.name.partition("/")[2])

    def _with_place(self, reason: str) -> str:
        """What the server said, with its address."""
        if self._place in reason:
            return reason
        kind, _, said = reason.partition(": ")
        return f"{kind} from {self._place}: {said}" if said else f"{reason} from {self._place}"

    def _explain_key(self) -> str:
        variables: Sequence[str] = getattr(self._served.api, "api_key_vars", None) or ()
        present = [name for name in variables if os.environ.get(name)]
        if present:
            return f"the key in the environment variable {present[0]} is refused: correct it, or choose another model"
        named = f"set the environment variable {variables[0]}" if variables else "set the key of the provider"
        return f"a key is needed: {named}"

    def _explain_address(self, others: Sequence[str]) -> str:
        if others:
            return f"a service of models answers at {without_secrets(others[0])}: pass it as --base-url"
        return (
            "no service of models answers there; give the address that its documentation names as --base-url, which "
            "usually ends in /v1"
        )

    def _explain_model(self, offered: Sequence[str]) -> str:
        shown = [make_printable(name)[:_LONGEST_NAME] for name in offered]
        wanted = make_printable(self._model)
        close = get_close_matches(wanted, shown, n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        more = f" and {len(shown) - _LISTED} more" if len(shown) > _LISTED else ""
        return f"the server has no model {wanted!r}; it offers {', '.join(shown[:_LISTED]) or 'none'}{more}.{hint}"

    def _explain_status(self) -> str:
        status = self._failure.status
        if status is None:
            return "check the server, and --base-url"
        if status >= _SERVER_FAILURE:
            return "the server failed: its log says why"
        if status in _NO_SERVICE:
            return "there is no such model, or no service of models at this address; check both"
        return "the server refuses such requests: check the model's name, its settings and --max-tokens"

    async def _is_answered(self, request: RequestOptions, *, has_image: bool) -> bool:
        """Whether another tiny request is answered."""
        served = self._open(request)
        try:
            _fail_quickly(served, _PROBE_SECONDS)
            await _exchange(served, request, seconds=_PROBE_SECONDS, has_image=has_image)
        except _Failure:
            return False
        finally:
            await served.close()
        return True

    async def _find_models(self) -> dict[str, list[str]]:
        """Names of the models that are listed at the address, and at addresses that may be meant, the likeliest first.

        Only servers in OpenAI's layout are asked; an address that lists none is left out.
        """
        web: Any = getattr(self._client, "_client", None)
        if not hasattr(getattr(self._client, "chat", None), "completions") or not hasattr(web, "get"):
            return {}
        addresses = _likely_addresses(self._base)
        found = await asyncio.gather(*(self._list_models(web, address) for address in addresses))
        return {address: names for address, names in zip(addresses, found, strict=True) if names is not None}

    async def _list_models(self, web: Any, address: str) -> list[str] | None:  # noqa: ANN401
        headers = {"authorization": f"Bearer {self._served.secret or ''}", "accept": "application/json"}
        try:
            response = await web.get(f"{address}/models", headers=headers, timeout=_PROBE_SECONDS)
            listed = response.json()["data"] if response.is_success else None
            return None if listed is None else [str(one["id"]) for one in listed]
        except Exception:  # whatever goes wrong here is not what the user asked about
            return None


def _likely_addresses(base: str) -> list[str]:
    """An address, and others on the same server that may be meant.

    Example:
        >>> _likely_addresses("http://localhost:8000")
        ['http://localhost:8000', 'http://localhost:8000/v1']
        >>> _likely_addresses("http://localhost:8000/v1/chat/completions")[1]
        'http://localhost:8000/v1'
    """
    scheme, _, rest = base.partition("://")
    origin = f"{scheme}://{rest.partition('/')[0]}"
    shorter = _PATHS.sub("", base)
    found = (base, shorter, f"{shorter}/v1", f"{origin}/v1", origin)
    return [address for address in dict.fromkeys(found) if not address.endswith("/v1/v1")]
