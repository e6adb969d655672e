"""A service in the OpenAI layout on a loopback port, that answers as a test tells it to, also badly.

The client is the real one. A script is a function from a request to what is sent back: a string is an answer, an
`Answer` anything else that a service can do.
"""

import asyncio
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODEL = "openai-api/loopback/tiny"
KEY = "sk-secret-of-the-test"


@dataclass(frozen=True)
class Asked:
    """One request as it came in."""

    system: str
    user: str
    body: dict
    time: float
    attempt: int
    """How often this prompt came in before."""
    raw: bytes = b""
    """The body as it came."""
    path: str = ""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """What goes back: by default a completion."""

    text: str | None = "yes"
    status: int = 200
    body: str | None = None
    """In the place of a completion."""
    headers: dict[str, str] = field(default_factory=dict)
    stop: str = "stop"
    wait: float = 0.0
    kind: str = "application/json"
    cut: float | None = None
    """Share of the answer after which the connection is cut; 0 sends nothing at all."""
    write: Callable[[socket.socket], object] | None = None
    """Writes to the connection in the place of everything else; then the connection is closed."""
    usage: object = None
    """Token counts in the place of the usual ones."""


_PAGE = b"<html><body>nothing here</body></html>"
HANG = 300.0
"""Seconds after which a test that waits gives up; no test depends on how fast the machine is."""


def in_a_loop(work: Coroutine):
    """What a coroutine returns, on a thread of its own: a browser's loop may be running on this one."""
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(asyncio.run, work).result()


def wait_until(condition: Callable[[], bool]) -> None:
    """Return when a condition holds; fail if that never happens."""
    end = time.monotonic() + HANG
    while not condition():
        assert time.monotonic() < end, f"waited {HANG:.0f} s in vain"
        time.sleep(0.01)


SOON = {"retry-after-ms": "5"}
"""Lets the client try again at once."""


def failing(status: int, message: str, **headers: str) -> Answer:
    """An error in the layout of the service."""
    body = json.dumps({"error": {"message": message, "type": "error", "code": None}})
    return Answer(status=status, body=body, headers=SOON | headers)


class _Server(ThreadingHTTPServer):
    """Remembers the addresses of connections, when they are accepted and when they end."""

    daemon_threads = True

    def __init__(self, *args) -> None:
        super().__init__(*args)
        self.opened: list[tuple[str, int]] = []
        self.closed: list[tuple[str, int]] = []

    def process_request(self, request, client_address) -> None:
        self.opened.append(client_address)
        super().process_request(request, client_address)

    def process_request_thread(self, request, client_address) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.closed.append(client_address)


class Service:
    """The server, and what it was asked."""

    def __init__(
        self,
        script: Callable[[Asked], str | Answer],
        models: Sequence[str] | None = None,
        *,
        tls: ssl.SSLContext | None = None,
        root: str = "/v1",
    ) -> None:
        self.asked: list[Asked] = []
        self.listed: list[str] = []
        """Paths of requests for a list."""
        self.most_at_once = 0
        self._at_once = 0
        self._lock = threading.Lock()
        self._script = script
        self._models = models
        self._root = root
        self._scheme = "http" if tls is None else "https"
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                service._serve(self, self.rfile.read(int(self.headers["content-length"])))

            def do_GET(self):
                service._list(self)

            def log_message(self, *_):
                pass

        self._server = _Server(("127.0.0.1", 0), Handler)
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        # Whoever has lost patience with a slow answer does not read it.
        self._server.handle_error = lambda *_: None
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._server.server_address[1]}{self._root}"

    @property
    def prompts(self) -> list[str]:
        return [asked.user for asked in self.asked]

    def wait_until_idle(self) -> None:
        """Return when every request that was sent has been read; to be called when the clients have ended."""
        server = self._server
        # Connections are accepted in order: when this one has ended, every earlier one was accepted.
        with socket.create_connection(server.server_address) as last:
            address = last.getsockname()
        wait_until(lambda: address in server.closed and len(server.closed) == len(server.opened))

    def _list(self, handler) -> None:
        """The list of models at its usual place, if there is one."""
        self.listed.append(handler.path)
        has_list = self._models is not None and handler.path == f"{self._root}/models"
        names = [{"id": name, "object": "model"} for name in self._models or ()]
        content = json.dumps({"object": "list", "data": names}).encode() if has_list else _PAGE
        handler.send_response(200 if has_list else 404)
        handler.send_header("content-type", "application/json" if has_list else "text/html")
        handler.send_header("content-length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    def _serve(self, handler, raw) -> None:
        body = json.loads(raw)
        said = {message["role"]: message["content"] for message in body["messages"]}
        with self._lock:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            asked = Asked(
                system=said.get("system", ""),
                user=said["user"],
                body=body,
                time=time.monotonic(),
                attempt=self.prompts.count(said["user"]),
                raw=raw,
                path=handler.path,
                headers={name.lower(): value for name, value in handler.headers.items()},
            )
            self.asked.append(asked)
        answer = self._script(asked)
        answer = answer if isinstance(answer, Answer) else Answer(text=answer)
        time.sleep(answer.wait)
        with self._lock:
            self._at_once -= 1
        if answer.write is not None:
            handler.close_connection = True
            answer.write(handler.connection)
            return
        content = (_completion(answer) if answer.body is None else answer.body).encode()
        if answer.cut is not None:
            handler.close_connection = True
        if answer.cut == 0:
            return
        handler.send_response(answer.status)
        for name, value in {
            "content-type": answer.kind,
            "content-length": str(len(content)),
            **answer.headers,
        }.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(content[: round(len(content) * (1 if answer.cut is None else answer.cut))])


@contextmanager
def serving(
    script: Callable[[Asked], str | Answer],
    models: Sequence[str] | None = None,
    *,
    tls: ssl.SSLContext | None = None,
    root: str = "/v1",
) -> Iterator[Service]:
    """A running service.

    Args:
        script: What it answers.
        models: Names that it lists; None for a service without a list.
        tls: Settings of a service with TLS.
        root: Path at which it lists its models; questions are answered at any path.
    """
    service = Service(script, models, tls=tls, root=root)
    service._thread.start()
    try:
        yield service
    finally:
        service._server.shutdown()
        service._server.server_close()
        service._thread.join()


def _completion(answer: Answer) -> str:
    message = {"role": "assistant", "content": answer.text}
    usual = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    return json.dumps(
        {
            "id": "c1",
            "object": "chat.completion",
            "created": 1,
            "model": "tiny",
            "choices": [{"index": 0, "message": message, "finish_reason": answer.stop}],
            "usage": usual if answer.usage is None else answer.usage,
        }
    )
