"""What a server on a loopback port may not do: send requests on, answer without end, count tokens without sense."""

import gzip
import json
import socket
import ssl
import sys
import threading
import zlib
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("inspect_ai", reason="the extra served is not installed")
pytest.importorskip("openai", reason="the extra served is not installed")

from tests.models import loopback
from tests.models.loopback import Answer, in_a_loop, serving

from carina.models.served import Prompt, Reply, Sampling, ServedModel
from carina.models.served.guard import (
    LARGEST_ANSWER,
    MOST_VALUES,
    AnotherHostError,
    _refuse_other_peers,
    guard_connections,
)
from carina.models.served.service import guard_model
from carina.store.errors import CarinaError

CERTIFICATE = Path(__file__).with_name("self_signed.pem")
"""Made for 127.0.0.1 and localhost with `openssl req -x509`; valid for a hundred years, protects nothing."""
PROXIES = ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.setenv("LOOPBACK_API_KEY", loopback.KEY)
    for name in (*PROXIES, "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)


def reply_of(url, *, model=loopback.MODEL, stay_local=False, retries=0, seconds=60):
    async def answer():
        served = ServedModel(
            model,
            sampling=Sampling(),
            base_url=url,
            stay_local=stay_local,
            retries=retries,
            attempt_seconds=seconds,
        )
        if hasattr(served._model.api, "client"):
            served._model.api.client.max_retries = retries
        try:
            return await served.answer(Prompt(user="a"))
        finally:
            await served.close()

    return loopback.in_a_loop(answer())


# ---- where requests go ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "localhost", "user:word@127.0.0.1"])
def test_a_redirect_to_another_address_is_refused_and_both_are_named(status, host):
    with serving(lambda _: "B") as other:
        target = other.url.replace("127.0.0.1", host)
        redirect = Answer(status=status, body="", headers={"location": f"{target}/chat/completions?key=word"})
        with serving(lambda _: redirect) as service, pytest.raises(CarinaError) as caught:
            reply_of(service.url)
        assert len(service.asked) == 1
        assert other._server.opened == []
    assert service.url in str(caught.value)
    assert other.url.replace("127.0.0.1", host.rpartition("@")[2]) in str(caught.value)
    assert "--base-url" in str(caught.value)
    assert "word" not in str(caught.value)


def test_a_redirect_within_an_address_is_followed():
    def script(asked):
        if asked.path == "/v1/chat/completions":
            return Answer(status=307, body="", headers={"location": "/v2/chat/completions"})
        return "A"

    with serving(script) as service:
        assert reply_of(service.url, stay_local=True).text == "A"
    assert [asked.path for asked in service.asked] == ["/v1/chat/completions", "/v2/chat/completions"]


def test_endless_redirects_are_an_error_of_one_prompt():
    redirect = Answer(status=307, body="", headers={"location": "/v1/chat/completions"})
    with serving(lambda _: redirect) as service:
        assert reply_of(service.url).error.startswith(f"endless redirects: {service.url}")
    assert len(service.asked) <= 21


def test_a_redirect_to_what_is_no_address_is_refused():
    redirect = Answer(status=307, body="", headers={"location": "http://[bad"})
    with serving(lambda _: redirect) as service, pytest.raises(CarinaError, match="redirects to"):
        reply_of(service.url)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
@pytest.mark.parametrize("model", [loopback.MODEL, "openai/gpt-4o", "ollama/tiny", "vllm/tiny"])
def test_requests_to_this_machine_use_no_proxy(monkeypatch, host, model):
    monkeypatch.setenv("OPENAI_API_KEY", loopback.KEY)
    monkeypatch.setenv("VLLM_API_KEY", loopback.KEY)
    with serving(lambda _: "from the proxy") as proxy, serving(lambda _: "A") as service:
        for name in PROXIES:
            monkeypatch.setenv(name, proxy.url.removesuffix("/v1"))
        url = service.url.replace("127.0.0.1", host)
        assert reply_of(url, model=model, stay_local=True).text == "A"
        assert proxy._server.opened == []


def test_requests_to_another_machine_use_the_proxy_of_the_environment(monkeypatch):
    with serving(lambda _: "from the proxy") as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/v1"))
        assert reply_of("http://somewhere.invalid/v1").text == "from the proxy"


def test_data_that_must_stay_is_not_sent_to_another_host():
    with pytest.raises(
        CarinaError, match=r"http://somewhere\.invalid/v1.*not on this machine.*--accept-terms"
    ):
        reply_of("http://somewhere.invalid/v1", stay_local=True)


@pytest.mark.parametrize(
    ("host", "is_refused"), [("127.0.0.1", False), ("::1", False), ("192.168.0.7", True), ("", True)]
)
def test_a_connection_that_reached_another_machine_is_refused_before_anything_is_sent(host, is_refused):
    stream = SimpleNamespace(get_extra_info=lambda _: (host, 80))
    checking = _refuse_other_peers("connection.connect_tcp.complete", {"return_value": stream})
    if not is_refused:
        loopback.in_a_loop(checking)
        return
    with pytest.raises(AnotherHostError, match="not to this machine"):
        loopback.in_a_loop(checking)


def test_the_address_that_a_connection_reached_is_checked(monkeypatch):
    """The HTTP package calls the check: without it, a host name could lead anywhere."""
    events = []

    async def note(event, _info):
        events.append(event)

    monkeypatch.setattr("carina.models.served.guard._refuse_other_peers", note)
    with serving(lambda _: "A") as service:
        assert reply_of(service.url, stay_local=True).text == "A"
    sent = events.index("http11.send_request_headers.started")
    assert "connection.connect_tcp.complete" in events[:sent]


def test_a_provider_that_cannot_be_guarded_gets_no_restricted_data():
    model = SimpleNamespace(api=SimpleNamespace(client=object()))
    guard_model(model, name="google/gemini", stay_local=False)
    with pytest.raises(CarinaError, match=r"google/gemini.*cannot be ensured.*--accept-terms"):
        guard_model(model, name="google/gemini", stay_local=True)


def test_a_guarded_model_may_be_guarded_again():
    with serving(lambda _: "A") as service:
        served = ServedModel(loopback.MODEL, sampling=Sampling(), base_url=service.url)
        for _ in range(3):
            assert guard_connections(served._model.api, stay_local=True)
        client = served._model.api.client._client
        assert type(client._transport.direct).__name__ == "LoopScopedTransport"


# ---- how large an answer is -----------------------------------------------------------------------------------------

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


def endless(piece, head, sent):
    """Sends pieces until the client closes the connection, up to 64 times the limit."""

    def write(connection):
        connection.sendall(head)
        while sum(sent) < 64 * LARGEST_ANSWER:
            connection.sendall(piece)
            sent.append(len(piece))

    return Answer(write=write)


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (HEAD + b"\r\n", b" " * 65536),
        (HEAD + b"transfer-encoding: chunked\r\n\r\n", b"10000\r\n" + b" " * 65536 + b"\r\n"),
        (HEAD + b"content-length: 999999999999\r\n\r\n", b" " * 65536),
        (HEAD.replace(b"200 OK", b"500 Oops") + b"\r\n", b"x" * 65536),
        (HEAD.replace(b"application/json", b"text/event-stream") + b"\r\n", b"data: {}\n\n" * 6000),
    ],
    ids=["until the end", "chunked", "with a length", "of an error", "of events"],
)
def test_an_endless_answer_is_an_error_and_not_asked_for_again(head, piece):
    sent = []
    with serving(lambda _: endless(piece, head, sent)) as service:
        reply = reply_of(service.url, retries=3)
        assert len(service.asked) == 1
    assert reply.error.startswith(f"answer too large: {service.url}")
    assert sum(sent) < 16 * LARGEST_ANSWER


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "gzip, gzip"])
def test_the_limit_counts_decompressed_bytes(encoding):
    content = b" " * (LARGEST_ANSWER + 1)
    for name in encoding.split(", "):
        content = gzip.compress(content) if name == "gzip" else zlib.compress(content)
    assert len(content) < 20_000
    with serving(lambda _: packed(content, encoding)) as service:
        assert reply_of(service.url).error.startswith("answer too large")


def packed(content, encoding):
    head = HEAD + f"content-encoding: {encoding}\r\ncontent-length: {len(content)}\r\n\r\n".encode()
    return Answer(write=lambda connection: connection.sendall(head + content))


def completion(text="A", **more):
    return json.dumps(
        {"id": "c", "model": "tiny", "choices": [{"message": {"role": "assistant", "content": text}, **more}]}
    ).encode()


@pytest.mark.parametrize(
    ("pack", "encoding"),
    [
        (gzip.compress, "gzip"),
        (gzip.compress, "X-GZip"),
        (zlib.compress, "deflate"),
        (lambda content: zlib.compress(content)[2:-4], "deflate"),
        (lambda content: content, "identity"),
    ],
)
def test_a_compressed_answer_is_read(pack, encoding):
    with serving(lambda _: packed(pack(completion()), encoding)) as service:
        assert reply_of(service.url).text == "A"


@pytest.mark.parametrize(
    ("content", "encoding"),
    [(b"no gzip", "gzip"), (gzip.compress(completion())[:-9], "gzip"), (completion(), "br"), (b"", "gzip")],
    ids=["other bytes", "cut off", "another encoding", "nothing"],
)
def test_an_answer_that_cannot_be_decompressed_is_a_transport_error(content, encoding):
    with serving(lambda _: packed(content, encoding)) as service:
        assert reply_of(service.url).error.startswith(f"damaged answer: {service.url}")


@pytest.mark.parametrize(
    ("values", "kind", "is_refused"),
    [
        ("[],", "application/json", True),
        ("{},", "application/json", True),
        ("1,", "application/json", True),
        ("[", "application/json", True),
        ("[],", "text/event-stream", True),
        ("[],\n", "text/event-stream", True),
        ("[],\r", "text/event-stream", True),
        ("[],\n\n", "text/event-stream", True),
        ("[],\n\n", "text/event-stream+json", True),
    ],
)
def test_an_answer_of_too_many_values_is_refused_before_it_is_parsed(values, kind, is_refused):
    with serving(lambda _: Answer(body=values * (MOST_VALUES + 1), kind=kind)) as service:
        assert reply_of(service.url).error.startswith("answer too large") is is_refused


@pytest.mark.parametrize("is_wanted", [True, False])
def test_a_stream_may_have_more_values_where_it_was_asked_for(is_wanted):
    asked = {"model": "tiny", "messages": [{"role": "user", "content": "a"}]}

    async def ask(url):
        async with sys.modules["httpx"].AsyncClient() as client:
            api = SimpleNamespace(client=SimpleNamespace(_client=client))
            assert guard_connections(api, stay_local=True)
            await client.post(f"{url}/chat/completions", json=asked | {"stream": is_wanted})

    answer = Answer(body="[],\n\n" * (MOST_VALUES + 1), kind="text/event-stream")
    with serving(lambda _: answer) as service, nullcontext() if is_wanted else pytest.raises(CarinaError):
        in_a_loop(ask(service.url))


def test_an_answer_that_is_compressed_again_and_again_is_refused():
    with serving(lambda _: packed(b"{}", "gzip, gzip, gzip")) as service:
        assert "encoded 3 times over" in reply_of(service.url).error


def test_endless_headers_are_a_transport_error():
    def write(connection):
        connection.sendall(HEAD)
        for number in range(100_000):
            connection.sendall(b"x-%d: %s\r\n" % (number, b"y" * 1000))

    with serving(lambda _: Answer(write=write)) as service:
        assert reply_of(service.url).error.startswith("damaged answer")


# ---- token counts ---------------------------------------------------------------------------------------------------


def counts(prompt, written, total, **more):
    return {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": total, **more}


@pytest.mark.parametrize(
    "usage",
    [
        counts(-5, 3, 10),
        counts(7, -3, 10),
        counts(7.5, 3, 10.5),
        counts("many", "few", "all"),
        counts(None, None, None),
        counts(True, True, True),
        counts(float("nan"), 3, 10),
        counts(float("inf"), 3, 10),
        counts(10**15, 3, 10**15 + 3),
        counts(7, 3, 4),
        counts([7], {"a": 3}, 10),
        counts(7, 3, 10, prompt_tokens_details={"cached_tokens": 8}),
        counts(7, 3, 10, prompt_tokens_details={"cached_tokens": "all"}),
        counts(7, 3, 10, completion_tokens_details="none"),
        "seven",
        [7, 3, 10],
        {},
        7,
    ],
    ids=str,
)
def test_token_counts_without_sense_are_not_reported_and_the_answer_is_kept(usage):
    with serving(lambda _: Answer("A", usage=usage)) as service:
        reply = reply_of(service.url)
    assert reply == Reply(text="A", stop="stop", is_usage_refused=True)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (counts(7, 3, 10), (7, 3)),
        (counts(7, 3, 0), (7, 3)),
        (counts(7, 3, 25), (7, 3)),
        (counts(0, 0, 0), (0, 0)),
        (counts(7, 3, 10, prompt_tokens_details={"cached_tokens": 5}), (2, 3)),
        (counts(7, 3, 10, prompt_tokens_details=None, completion_tokens_details={}), (7, 3)),
    ],
)
def test_token_counts_that_can_be_true_are_reported(usage, expected):
    with serving(lambda _: Answer("A", usage=usage)) as service:
        reply = reply_of(service.url)
    assert (reply.input_tokens, reply.output_tokens, reply.is_usage_refused) == (*expected, False)


# ---- what went wrong ------------------------------------------------------------------------------------------------


@contextmanager
def listening(act):
    """A port of this machine where every connection is handed to a function; gives HOST:PORT."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection, suppress(OSError):
                    act(connection)

        threading.Thread(target=accept, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


@pytest.fixture(scope="module")
def tls():
    """A server's TLS settings, with a certificate that it has signed itself and that nobody trusts."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return context


def test_a_refused_connection_is_named_with_its_address():
    with serving(lambda _: "A") as service:
        gone = service.url
    assert reply_of(gone).error == (
        f"connection refused: nothing listens at {gone}; start the server, or correct --base-url"
    )


def test_a_certificate_that_is_not_trusted_is_named_with_its_address(tls):
    with listening(lambda connection: tls.wrap_socket(connection, server_side=True)) as place:
        error = reply_of(f"https://{place}/v1").error
    assert error.startswith(f"TLS failure: the certificate of https://{place}/v1 is not trusted (self-signed")
    assert "SSL_CERT_FILE" in error


def test_a_server_without_tls_is_named_with_what_to_change():
    with serving(lambda _: "A") as service:
        url = service.url.replace("http://", "https://")
        assert reply_of(url).error.startswith(f"TLS failure: {url} does not speak TLS; write http://")


def test_a_server_with_tls_is_named_with_what_to_change(tls):
    with listening(lambda connection: tls.wrap_socket(connection, server_side=True)) as place:
        error = reply_of(f"http://{place}/v1").error
    assert error.startswith(f"connection closed: http://{place}/v1")
    assert "write https://" in error


def test_an_unknown_host_is_named(monkeypatch):
    async def getaddrinfo(*_args, **_options):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr("anyio._core._sockets.getaddrinfo", getaddrinfo)
    error = reply_of("http://somewhere.invalid/v1").error
    assert error.startswith("unknown host: http://somewhere.invalid/v1: the name cannot be resolved")


def test_what_is_no_http_is_named():
    def greet(connection):
        connection.recv(65536)
        connection.sendall(b"220 mail\x1b[2J ready\r\n\r\n")

    with listening(greet) as place:
        error = reply_of(f"http://{place}/v1").error
    assert error.startswith(f"damaged answer: what http://{place}/v1 sent is no HTTP answer")
    assert "\x1b" not in error


def test_messages_of_a_server_have_no_control_characters_and_one_line():
    message = "no\x1b[2J\x1b]0;title\x07\r\nError: \u202eall well\x9b31m\ud800"
    with serving(lambda _: loopback.failing(400, message)) as service:
        error = reply_of(service.url).error
    assert error.isprintable()
    assert "\\x1b[2J" in error
