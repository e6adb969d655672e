"""Guards the connections of a served model: where requests may go, and how large an answer may be.

The guard replaces the transport inside the HTTP client that inspect-ai opened, so that it holds for every request of
that client, also for those that the client makes by itself when it follows a redirect:

- A redirect to another origin (scheme, host and port) is refused: the questions and images would go along with it.
- Requests to this machine never go through a proxy, whatever the environment says.
- Where data must stay on this machine, any other host is refused, and the address that a connection has reached is
  checked before anything is sent.
- An answer is read up to a number of bytes, counted after decompression, and may hold a number of values.

The clients of the OpenAI layout (`openai`, `openai-api`, `ollama`, `vllm`, `sglang`, ...), of Anthropic and of Groq can
be guarded. Those of other providers cannot: `guard_connections` says so, and restricted data is refused there.
"""

import re
import sys
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from ipaddress import ip_address
from typing import Any, Final

from carina.models.served.address import is_local_host, without_secrets
from carina.store.errors import CarinaError

LARGEST_ANSWER: Final = 8 * 2**20
"""Bytes of one answer after decompression. 128,000 tokens of text, every character escaped, take about 3 million."""
LARGEST_STREAM: Final = 32 * 2**20
"""The same for an answer that comes as a stream of events, where every token has an envelope of about 250 bytes."""
MOST_VALUES: Final = 200_000
"""Values in one answer or event, counted by commas and opening brackets. The clients take up to 2 kB for each: 8 MiB of
empty lists would become 4 GB. Text with as many commas has about 20 million characters."""
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_FLAVOURS: Final = ("httpx2", "httpx")
"""HTTP packages whose clients can be guarded; they have the same classes."""
_WITHOUT_NETWORK: Final = ("mockllm",)
"""Providers of inspect-ai that contact nobody."""
_LONGEST_ADDRESS: Final = 80
"""Characters of an address that messages show."""
_EVENT_END: Final = re.compile(rb"(?:\r\n|\r|\n){2,}")
"""An empty line, which ends an event of a stream."""
_STREAM_WANTED: Final = re.compile(rb'"stream"\s*:\s*true')
_MOST_ENCODINGS: Final = 2
"""Compressions of one answer, one over the other; each takes time."""
_GZIP_OR_ZLIB: Final = 32 + zlib.MAX_WBITS


class AnswerTooLargeError(CarinaError):
    """An answer with more bytes than `LARGEST_ANSWER`. It concerns one question and is not asked for again at once."""


class AnotherHostError(CarinaError):
    """A request that would go to another place than it was meant for. Every other request would go there too."""


def guard_connections(api: Any, *, stay_local: bool) -> bool:  # noqa: ANN401
    """Guard the HTTP client of a model of inspect-ai; may be called again for the same model.

    Args:
        api: `api` of the model of inspect-ai.
        stay_local: Whether requests to any other machine are refused.

    Returns:
        Whether all requests of the model are guarded.
    """
    if api is None or type(api).__name__.lower().startswith(_WITHOUT_NETWORK):
        return True
    client: Any = getattr(getattr(api, "client", None), "_client", None)
    flavour = _flavour(client)
    if flavour is None or not hasattr(client, "_transport") or not hasattr(client, "_mounts"):
        return False
    direct = client._transport
    if isinstance(direct, _Guard):
        direct = direct.direct
    guarded = _guard_class(flavour)
    client._mounts = {
        pattern: None if proxy is None else guarded(direct, _unguarded(proxy), stay_local=stay_local)
        for pattern, proxy in client._mounts.items()
    }
    client._transport = guarded(direct, direct, stay_local=stay_local)
    return True


def guard_on_initialize(api: Any, guard: Callable[[], bool]) -> bool:  # noqa: ANN401
    """Guard a model now, and again whenever inspect-ai opens a new client for it.

    Args:
        api: `api` of the model of inspect-ai.
        guard: Guards the client that the model has; returns whether it could.

    Returns:
        Whether all requests of the model are guarded.
    """
    initialize = getattr(api, "initialize", None)
    if callable(initialize):
        initialize = getattr(initialize, "unguarded", initialize)

        def initialize_and_guard() -> None:
            initialize()
            guard()

        initialize_and_guard.unguarded = initialize  # type: ignore[attr-defined]
        api.initialize = initialize_and_guard
    # Some start a server with their first request, and open the client then.
    return guard() or (_opens_client_later(api) and callable(initialize))


def _opens_client_later(api: Any) -> bool:  # noqa: ANN401
    """Whether a model of the OpenAI layout has no client yet."""
    return not hasattr(api, "client") and any(
        one.__name__ == "OpenAICompatibleAPI" for one in type(api).__mro__
    )


def _flavour(client: Any) -> Any:  # noqa: ANN401
    """The package of an HTTP client; None where it is another one."""
    for name in _FLAVOURS:
        package = sys.modules.get(name)
        if package is not None and isinstance(client, package.AsyncClient):
            return package
    return None


def _unguarded(transport: Any) -> Any:  # noqa: ANN401
    return transport.transport if isinstance(transport, _Guard) else transport


class _Guard:
    """A transport around two others: one that connects directly, and the one that the client would have used."""

    flavour: Any

    def __init__(self, direct: Any, transport: Any, *, stay_local: bool) -> None:  # noqa: ANN401
        self.direct = direct
        self.transport = transport
        self._stay_local = stay_local

    async def handle_async_request(self, request: Any) -> Any:  # noqa: ANN401
        is_local = is_local_host(request.url.host)
        if self._stay_local:
            if not is_local:
                raise AnotherHostError(
                    f"{_show(request.url)}: not on this machine; nothing was sent there. Pass --accept-terms if the "
                    "terms of the data allow sending it to this address"
                )
            request.extensions = {**request.extensions, "trace": _refuse_other_peers}
        # What cannot be decoded within bounds is not asked for.
        request.headers["accept-encoding"] = "gzip, deflate"
        response = await (self.direct if is_local else self.transport).handle_async_request(request)
        try:
            self._refuse_redirect(request, response)
            content = await self._read(request, response)
        finally:
            await response.aclose()
        headers = [
            (name, value)
            for name, value in response.headers.raw
            if name.lower() not in (b"content-encoding", b"content-length", b"transfer-encoding")
        ]
        return self.flavour.Response(
            status_code=response.status_code,
            headers=headers,
            stream=self.flavour.ByteStream(content),
            extensions={
                name: value for name, value in response.extensions.items() if name != "network_stream"
            },
        )

    async def aclose(self) -> None:
        await self.direct.aclose()
        if self.transport is not self.direct:
            await self.transport.aclose()

    def _refuse_redirect(self, request: Any, response: Any) -> None:  # noqa: ANN401
        location = response.headers.get("location")
        if response.status_code not in _REDIRECTS or location is None:
            return
        try:
            target = request.url.join(location)
        except Exception:  # the client's own classes of errors about addresses differ
            raise AnotherHostError(
                f"{_show(request.url)}: the server redirects to an address that is none ({location[:80]!r}); correct "
                "the server, or --base-url"
            ) from None
        if _origin(target) != _origin(request.url):
            raise AnotherHostError(
                f"{_show(request.url)}: the server redirects to {_show(target)}, another address; questions and images "
                "are not sent there. If you trust it, give this address with --base-url"
            )

    async def _read(self, request: Any, response: Any) -> bytes:  # noqa: ANN401
        media_type = response.headers.get("content-type", "").partition(";")[0]
        # Only where it was asked for: the client would take any other answer for one document, whatever its type.
        is_stream = media_type.strip().lower() == "text/event-stream" and _asks_for_stream(request)
        limit = LARGEST_STREAM if is_stream else LARGEST_ANSWER
        too_large = AnswerTooLargeError(
            f"answer too large: {_show(request.url)} sent more than {limit // 2**20} MiB for one question"
        )
        parts, size = [], 0
        async for part in response.stream:
            size += len(part)
            if size > limit:
                raise too_large
            parts.append(part)
        content = b"".join(parts)
        encodings = [name.strip() for name in response.headers.get("content-encoding", "").lower().split(",")]
        encodings = [name for name in encodings if name not in ("", "identity")]
        if len(encodings) > _MOST_ENCODINGS:
            raise self.flavour.DecodingError(f"the answer is encoded {len(encodings):,} times over")
        for name in reversed(encodings):
            if name not in ("gzip", "x-gzip", "deflate"):
                raise self.flavour.DecodingError(
                    f"the answer is encoded as {name[:20]!r}, which was not asked for"
                )
            try:
                content = _decompress(content, limit)
            except zlib.error as error:
                raise self.flavour.DecodingError(f"the answer is not valid {name}: {error}") from None
            if len(content) > limit:
                raise too_large
        for start, end in _event_spans(content) if is_stream else [(0, len(content))]:
            if sum(content.count(sign, start, end) for sign in (b",", b"[", b"{")) > MOST_VALUES:
                raise AnswerTooLargeError(
                    f"answer too large: {_show(request.url)} sent more than {MOST_VALUES:,} values for one question"
                )
        return content


def _asks_for_stream(request: Any) -> bool:  # noqa: ANN401
    """Whether a request asks for a stream of events, as all clients that can be guarded do it."""
    return _STREAM_WANTED.search(getattr(request, "content", b"")) is not None


def _event_spans(content: bytes) -> Iterator[tuple[int, int]]:
    """Where each event of a stream begins and ends."""
    start = 0
    for gap in _EVENT_END.finditer(content):
        yield start, gap.start()
        start = gap.end()
    yield start, len(content)


@cache
def _guard_class(flavour: Any) -> Any:  # noqa: ANN401
    """The guard as a transport of an HTTP package, which is imported by then."""
    return type("Guard", (_Guard, flavour.AsyncBaseTransport), {"flavour": flavour})


def _decompress(content: bytes, limit: int) -> bytes:
    """Decompress to at most one byte more than the limit."""
    try:
        decoder = zlib.decompressobj(_GZIP_OR_ZLIB)
        found = decoder.decompress(content, limit + 1)
    except zlib.error:
        # Some servers send "deflate" without the header of zlib.
        decoder = zlib.decompressobj(-zlib.MAX_WBITS)
        found = decoder.decompress(content, limit + 1)
    if not decoder.eof and len(found) <= limit:
        raise zlib.error("it ends too early")
    return found


async def _refuse_other_peers(event: str, info: dict[str, Any]) -> None:
    """Called by the HTTP package: refuse a connection that has reached another machine, before anything is sent."""
    if event != "connection.connect_tcp.complete":
        return
    host = str((info["return_value"].get_extra_info("server_addr") or ("",))[0])
    try:
        is_loopback = ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback:
        raise AnotherHostError(
            f"the address leads to {host or 'an unknown host'}, not to this machine; nothing was sent. Pass "
            "--accept-terms if the terms of the data allow sending it there"
        )


def _origin(url: Any) -> tuple[str, str, int | None]:  # noqa: ANN401
    port = url.port if url.port is not None else {"http": 80, "https": 443}.get(url.scheme)
    return url.scheme, url.host.lower().rstrip("."), port


def _show(url: Any) -> str:  # noqa: ANN401
    shown = without_secrets(str(url)) or "the address"
    return shown if len(shown) <= _LONGEST_ADDRESS else f"{shown[:_LONGEST_ADDRESS]}..."
