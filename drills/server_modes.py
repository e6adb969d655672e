"""What a hostile server may answer: one function a mode, from a request to what is sent back.

Everything stays on the loopback interface, and every loop ends by itself.
"""

import gzip
import json
import socket
import struct
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.models.loopback import SOON, Answer, Asked

MODEL_TEXT: Final = "I look at the picture.\nAnswer: 1"
TIMEOUT: Final = 1
"""Seconds for one attempt in the modes that keep the client waiting."""
WAIT: Final = 3.0
"""Seconds after which a server that keeps the client waiting gives up by itself."""
MOST_BYTES: Final = 256 * 2**20
"""Bytes after which an endless answer ends by itself."""
JSON_HEAD: Final = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
TOO_LARGE: Final = ("answer too large",)
DAMAGED: Final = ("damaged answer",)
TOKENS: Final = ("token counts",)
ANSI: Final = "\x1b[2J\x1b[31m\x1b]0;owned\x07\x9b5n\r\u202eall well\u2066\x00\x7f"

Reaction = Callable[[Asked, int], Answer]
"""From a request, and how often its question came before, to what is sent back."""


@dataclass(frozen=True)
class Mode:
    """One way to misbehave."""

    name: str
    react: Reaction
    is_short: bool = False
    """Whether the short version of the drill tries it."""
    timeout: int = 60
    """Seconds for one attempt."""
    ends_run: bool = False
    """Whether the run stops with an error, because every other request would fare the same."""
    shows: tuple[str, ...] = ()
    """Parts of what the command prints."""
    scheme: str = "http"


def completion(**changes: object) -> dict[str, Any]:
    """An answer in the OpenAI layout, with some fields changed."""
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "tiny",
        "choices": [choice()],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
        **changes,
    }


def choice(**changes: object) -> dict[str, Any]:
    message = {"role": "assistant", "content": MODEL_TEXT}
    return {"index": 0, "message": message, "finish_reason": "stop", **changes}


def message(**changes: object) -> dict[str, Any]:
    return completion(choices=[choice(message={"role": "assistant", "content": MODEL_TEXT, **changes})])


def usage(prompt: object, written: object, total: object, **more: object) -> dict[str, Any]:
    return completion(
        usage={"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": total, **more}
    )


def body(content: object, **options: Any) -> Reaction:
    """Always the same body with status 200."""
    text = content if isinstance(content, str) else json.dumps(content)
    return lambda _asked, _times: Answer(body=text, **options)


def raw(*pieces: bytes) -> Reaction:
    """Always the same bytes, then the end of the connection."""
    return writing(lambda connection: connection.sendall(b"".join(pieces)))


def writing(write: Callable[[socket.socket], object]) -> Reaction:
    return lambda _asked, _times: Answer(write=write)


def status(code: int, text: str = "no", **headers: str) -> Reaction:
    """Always the same error; with `retry-after` in the headers as given, or a delay of a few milliseconds."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    content = json.dumps({"error": {"message": text, "type": "error", "code": None}})
    return lambda _asked, _times: Answer(status=code, body=content, headers=names or SOON)


def at_first(times: int, hostile: Reaction) -> Reaction:
    """Hostile at first, then a usual answer."""
    return lambda asked, before: hostile(asked, before) if before < times else Answer(MODEL_TEXT)


def endless(head: bytes, piece: bytes) -> Reaction:
    def write(connection: socket.socket) -> None:
        connection.sendall(head)
        for _ in range(MOST_BYTES // len(piece)):
            connection.sendall(piece)

    return writing(write)


def slowly(pieces: Iterator[bytes] | Sequence[bytes]) -> Reaction:
    """A few bytes at a time, for longer than the client waits."""

    def write(connection: socket.socket) -> None:
        end = time.monotonic() + WAIT
        for piece in pieces:
            if time.monotonic() > end:
                return
            connection.sendall(piece)
            time.sleep(0.1)

    return writing(write)


def reset(*pieces: bytes) -> Reaction:
    """Some bytes, then the connection is reset instead of closed."""

    def write(connection: socket.socket) -> None:
        connection.sendall(b"".join(pieces))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    return writing(write)


def packed(content: bytes, encoding: str) -> Reaction:
    return raw(
        JSON_HEAD, f"content-encoding: {encoding}\r\ncontent-length: {len(content)}\r\n\r\n".encode(), content
    )


def redirect(code: int, location: str | None) -> Reaction:
    headers = {} if location is None else {"location": location}
    return lambda _asked, _times: Answer(status=code, body="", headers=headers)


USUAL: Final = json.dumps(completion()).encode()
BOMB: Final = gzip.compress(b" " * (64 * 2**20))
CHUNKED: Final = JSON_HEAD + b"transfer-encoding: chunked\r\n\r\n"
LENGTH: Final = b"content-length: %d\r\n\r\n" % len(USUAL)


def hostile_modes(other: str) -> list[Mode]:
    """All modes; `other` is the address of another server on this machine, which must never be asked."""
    to_other = ("redirects to", other)
    tool_call = {"id": "t", "type": "function", "function": {"name": "delete", "arguments": "{}"}}
    return [
        # ---- bodies that are no answer
        Mode("bad JSON", body("{not json"), is_short=True),
        Mode("truncated JSON", body(USUAL.decode()[: len(USUAL) // 2]), is_short=True),
        Mode("empty body", body("")),
        Mode("null", body("null")),
        Mode("an array", body("[]")),
        Mode("a number", body("7")),
        Mode("a bare string", body('"yes"')),
        Mode("HTML page with status 200", body("<html>gateway</html>", kind="text/html"), is_short=True),
        Mode("wrong content type", body(completion(), kind="text/plain")),
        Mode("invalid UTF-8", raw(JSON_HEAD, LENGTH, USUAL.replace(b"picture", b"pict\xff\xfe\x80"))),
        Mode("UTF-16", packed(USUAL.decode().encode("utf-16"), "identity")),
        Mode("deep nesting", body("[" * 100_000 + "]" * 100_000), is_short=True),
        Mode("deep nesting in a field", body('{"choices":' + '{"a":' * 50_000 + "1" + "}" * 50_000 + "}")),
        Mode("millions of lists", body('{"choices": [' + "[]," * 2_500_000 + "[]]}"), shows=TOO_LARGE, is_short=True),
        Mode("many lists", body('{"choices": [' + "[]," * 90_000 + "[]]}")),
        Mode("a number of 100,000 digits", body('{"created": ' + "9" * 100_000 + "}")),
        # ---- fields
        Mode("no choices", body(completion(choices=[]))),
        Mode("choices are missing", body({"id": "c1", "model": "tiny"}), is_short=True),
        Mode("choices are null", body(completion(choices=None))),
        Mode("choices are text", body(completion(choices="yes"))),
        Mode("choices are numbers", body(completion(choices=[1, 2]))),
        Mode("no message", body(completion(choices=[{"index": 0, "finish_reason": "stop"}]))),
        Mode("message is null", body(completion(choices=[choice(message=None)])), is_short=True),
        Mode("message is text", body(completion(choices=[choice(message="yes")]))),
        Mode("content is null", body(message(content=None)), is_short=True),
        Mode("content is a number", body(message(content=7))),
        Mode("content is an object", body(message(content={"text": "yes"}))),
        Mode("content is a list of parts", body(message(content=[{"type": "text", "text": MODEL_TEXT}]))),
        Mode("content of 4 MB", body(message(content="The heart is large. " * 200_000))),
        Mode("content of 12 MB", body(message(content="x" * 12_000_000)), shows=TOO_LARGE),
        Mode("unknown role", body(message(role="admin"))),
        Mode("tool calls in the place of text", body(message(content=None, tool_calls=[tool_call])), is_short=True),
        Mode("tool calls of the wrong type", body(message(tool_calls="all"))),
        Mode("refusal", body(message(content=None, refusal="I will not."))),
        Mode("two answers", body(completion(choices=[choice(), choice(index=1)])), is_short=True),
        Mode("duplicate keys", body('{"choices": 7, ' + USUAL.decode()[1:])),
        Mode("identifiers of wrong types", body(completion(id=7, object=None, created="now", model=None))),
        Mode("unknown fields", body(completion(extra={"a": [1, {"b": None}]}, service_tier=7))),
        Mode("an error with status 200", body({"error": {"message": "overloaded", "code": 500}})),
        Mode("finish reason is unknown", body(completion(choices=[choice(finish_reason="bored")]))),
        Mode("finish reason is a number", body(completion(choices=[choice(finish_reason=7)]))),
        Mode("content filter", body(completion(choices=[choice(finish_reason="content_filter")])), is_short=True),
        Mode("stopped at the length", body(completion(choices=[choice(finish_reason="length")]))),
        Mode("escape sequences in the text", body(message(content=f"{ANSI}\nAnswer: 1")), is_short=True),
        Mode("half of a character in the text", body(message(content="\ud800\nAnswer: 1"))),
        # ---- token counts
        Mode("negative token counts", body(usage(-7, -3, -10)), is_short=True, shows=TOKENS),
        Mode("token counts without end", body(usage(10**30, 10**30, 10**31)), shows=TOKENS),
        Mode("token counts are NaN", body(usage(float("nan"), float("inf"), 1)), shows=TOKENS),
        Mode("token counts are text", body(usage("many", "few", None)), shows=TOKENS),
        Mode("token counts are fractions", body(usage(7.5, 0.5, 8)), shows=TOKENS),
        Mode("token counts contradict", body(usage(7, 3, 4)), shows=TOKENS),
        Mode("token counts are a list", body(completion(usage=[1, 2, 3])), shows=TOKENS),
        # ---- statuses
        Mode("429 without a delay", status(429, "slow down", x_none="1"), is_short=True),
        Mode("429 with a delay, then an answer", at_first(2, status(429)), is_short=True),
        Mode("429 with a delay of 30 years", status(429, retry_after="1000000000")),
        Mode("429 with a delay of 100 s", status(429, retry_after="100"), timeout=TIMEOUT, shows=("timeout:",)),
        Mode("429 with a delay that is none", status(429, retry_after="-inf nan tomorrow")),
        Mode("500 twice, then an answer", at_first(2, status(500)), is_short=True),
        Mode("500 for ever", status(500, "the disk is full"), shows=("HTTP 500: the disk is full",)),
        Mode("503 with a page", body("<html>later</html>", status=503, kind="text/html", headers=SOON)),
        Mode("400", status(400, "what is this"), shows=("HTTP 400: what is this",)),
        Mode("401", status(401), ends_run=True, shows=("the key is refused",), is_short=True),
        Mode("403", status(403)),
        Mode("404", status(404), ends_run=True, shows=("there is no such model",)),
        Mode("408", status(408)),
        Mode("413", status(413)),
        Mode("418", status(418)),
        Mode("204 without content", raw(b"HTTP/1.1 204 No Content\r\n\r\n")),
        Mode("escape sequences in an error", status(400, f"no {ANSI}"), is_short=True, shows=(r"\x1b[2J",)),
        Mode("half of a character in an error", status(400, "no \ud800")),
        Mode("an error of 1 MB", status(400, "no " * 350_000)),
        Mode("status 999", raw(b"HTTP/1.1 999 Odd\r\ncontent-length: 2\r\n\r\n{}")),
        # ---- redirects
        Mode("redirect to another host", redirect(307, other), ends_run=True, shows=to_other, is_short=True),
        Mode("redirect to another host by 302", redirect(302, other), ends_run=True, shows=to_other),
        Mode("redirect to a file", redirect(307, "file:///etc/passwd"), ends_run=True, shows=("redirects to",)),
        Mode("endless redirects", redirect(308, "/v1/chat/completions"), shows=("endless redirects",), is_short=True),
        Mode("one redirect within the server", at_first(1, redirect(307, "/v1/again"))),
        Mode("redirect without an address", redirect(302, None)),
        # ---- size
        Mode("endless body", endless(JSON_HEAD + b"\r\n", b" " * 65536), shows=TOO_LARGE, is_short=True),
        Mode("endless chunks", endless(CHUNKED, b"10000\r\n" + b" " * 65536 + b"\r\n"), shows=TOO_LARGE),
        Mode("endless error", endless(b"HTTP/1.1 400 No\r\n\r\n", b"x" * 65536), shows=TOO_LARGE),
        Mode("gzip bomb", packed(BOMB, "gzip"), shows=TOO_LARGE, is_short=True),
        Mode("gzip bomb in gzip", packed(gzip.compress(BOMB), "gzip, gzip"), shows=TOO_LARGE),
        Mode("deflate bomb", packed(zlib.compress(b" " * (64 * 2**20)), "deflate"), shows=TOO_LARGE),
        Mode("gzip that is none", packed(USUAL, "gzip"), shows=DAMAGED),
        Mode("gzip cut off", packed(gzip.compress(USUAL)[:-12], "gzip"), shows=DAMAGED),
        Mode("unknown encoding", packed(USUAL, "br"), shows=DAMAGED),
        Mode("endless headers", endless(JSON_HEAD, b"x: " + b"y" * 99 + b"\r\n"), shows=DAMAGED, is_short=True),
        Mode("a header of 1 MB", raw(JSON_HEAD, b"x-long: " + b"y" * 1_000_000, b"\r\n", LENGTH, USUAL)),
        # ---- time
        Mode("no answer", slowly(b"" for _ in range(1000)), timeout=TIMEOUT, shows=("timeout:",), is_short=True),
        Mode("headers byte by byte", slowly(bytes([one]) for one in JSON_HEAD), timeout=TIMEOUT, shows=("timeout:",)),
        Mode("body byte by byte", slowly([JSON_HEAD + b"\r\n", *[b" "] * 1000]), timeout=TIMEOUT, shows=("timeout:",)),
        Mode(
            "endless interim answers",
            slowly([b"HTTP/1.1 100 Continue\r\n\r\n"] * 1000),
            timeout=TIMEOUT,
            shows=("timeout:",),
        ),
        # ---- connections
        Mode("closed without an answer", raw(b""), shows=("connection closed",), is_short=True),
        Mode("reset without an answer", reset(b""), shows=("connection closed",)),
        Mode("reset in the middle", reset(JSON_HEAD, LENGTH, USUAL[:50]), shows=("connection closed",), is_short=True),
        Mode("closed in the middle", raw(JSON_HEAD, LENGTH, USUAL[:50]), shows=("connection closed",)),
        Mode("length is too small", raw(JSON_HEAD, b"content-length: 20\r\n\r\n", USUAL)),
        Mode("length is negative", raw(JSON_HEAD, b"content-length: -5\r\n\r\n", USUAL)),
        Mode("two lengths", raw(JSON_HEAD, b"content-length: 5\r\n", LENGTH, USUAL), is_short=True),
        Mode("chunk of a wrong size", raw(CHUNKED, b"zz\r\n", USUAL)),
        Mode("chunks without an end", raw(CHUNKED, b"%x\r\n" % len(USUAL), USUAL, b"\r\n")),
        Mode("two answers to one request", raw(JSON_HEAD, LENGTH, USUAL, JSON_HEAD, LENGTH, USUAL)),
        Mode("closed although kept alive", raw(JSON_HEAD, b"connection: keep-alive\r\n", LENGTH, USUAL)),
        Mode("no length, closed at the end", raw(JSON_HEAD, b"\r\n", USUAL)),
        Mode("HTTP/0.9", raw(USUAL, b"\r\n\r\n"), shows=DAMAGED, is_short=True),
        Mode("HTTP/2", raw(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00" + b"\x00" * 18)),
        Mode("101 switching protocols", raw(b"HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n", USUAL)),
        Mode("TLS on a plain port", raw(b"\x15\x03\x03\x00\x02\x02\x46"), shows=("https://",), is_short=True),
        Mode("escape sequences in headers", raw(JSON_HEAD, b"x-evil\x1b[2J: 1\r\n", LENGTH, USUAL)),
        Mode(
            "no TLS on a TLS port",
            raw(USUAL),
            scheme="https",
            ends_run=True,
            shows=("TLS failure", "http://"),
            is_short=True,
        ),
    ]  # fmt: skip
