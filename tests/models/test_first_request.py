"""The first request to a served model: what it sends, and what it says when a real server does not answer it."""

import base64
import io
import json
import os
import socket
import ssl
import threading
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("inspect_ai", reason="the extra served is not installed")
pytest.importorskip("openai", reason="the extra served is not installed")

from PIL import Image
from tests.models import loopback
from tests.models.loopback import KEY, SOON, Answer, failing, in_a_loop, serving

from carina.models import RequestOptions
from carina.models.served import Sampling, ServedModel, first_request
from carina.models.served.first_request import FirstReply, send_first_request
from carina.store.errors import CarinaError

CERTIFICATE = Path(__file__).with_name("self_signed.pem")
NOTHING = RequestOptions()


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.setenv("LOOPBACK_API_KEY", KEY)
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="module")
def tls():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return context


def send(
    url, *, model=loopback.MODEL, request=NOTHING, seconds=60, retries=0, stay_local=False, notify=print
):
    def open_served(options):
        return ServedModel(
            model,
            sampling=Sampling(),
            request=options,
            base_url=url,
            retries=retries,
            attempt_seconds=seconds,
            stay_local=stay_local,
        )

    return in_a_loop(
        send_first_request(open_served, request, seconds=seconds, retries=retries, notify=notify)
    )


def failure(url, **options):
    """What is said when the first request fails."""
    with pytest.raises(CarinaError) as caught:
        send(url, **options)
    sentence = str(caught.value)
    assert KEY not in sentence
    assert "\n" not in sentence
    return sentence


def has_image(asked):
    return "image_url" in json.dumps(asked.body["messages"])


# ---- what is sent ---------------------------------------------------------------------------------------------------


def test_one_request_with_a_grey_picture_and_few_tokens_is_sent():
    with serving(lambda _: "yes") as service:
        reply = send(service.url)
    (asked,) = service.asked
    assert (reply.input_tokens, reply.output_tokens) == (7, 3)
    assert (asked.body["max_tokens"], asked.body["model"]) == (16, "tiny")
    (picture,) = [part["image_url"]["url"] for part in asked.user if part["type"] == "image_url"]
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(picture.partition(",")[2]))))
    assert pixels.shape == (64, 64)
    assert set(pixels.ravel()) == {128}
    assert asked.headers["authorization"] == f"Bearer {KEY}"


def test_the_options_of_the_run_are_sent_too():
    request = RequestOptions(top_p=0.9, top_k=40, extra_body='{"min_p": 0.1}', structured=True)
    with serving(lambda _: '{"answer": "yes"}') as service:
        send(service.url, request=request)
    (asked,) = service.asked
    assert {name: asked.body[name] for name in ("top_p", "top_k", "min_p")} == {
        "top_p": 0.9,
        "top_k": 40,
        "min_p": 0.1,
    }
    assert asked.body["response_format"]["json_schema"]["schema"]["required"] == ["answer"]


@pytest.mark.parametrize(
    "answer",
    [
        "I will not.",
        "",
        Answer("ye", stop="length"),
        Answer("", stop="content_filter"),
        failing(400, "max_tokens or model output limit was reached"),
    ],
)
def test_any_answer_will_do(answer):
    with serving(lambda _: answer) as service:
        assert isinstance(send(service.url), FirstReply)
    assert len(service.asked) == 1


# ---- addresses ------------------------------------------------------------------------------------------------------


def test_a_port_where_nothing_listens_is_named_and_not_asked_again():
    with serving(lambda _: "yes") as service:
        gone = service.url
    assert f"first request failed: connection refused: nothing listens at {gone}" in failure(gone, retries=5)


def test_an_unknown_host_is_named(monkeypatch):
    async def getaddrinfo(*_args, **_options):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr("anyio._core._sockets.getaddrinfo", getaddrinfo)
    sentence = failure("http://somewhere.invalid/v1", retries=5)
    assert "unknown host: http://somewhere.invalid/v1" in sentence


def test_tls_against_a_plain_server_is_named():
    with serving(lambda _: "yes") as service:
        url = service.url.replace("http://", "https://")
        assert f"{url} does not speak TLS; write http://" in failure(url)


def test_a_plain_request_to_a_server_with_tls_is_named(tls):
    with serving(lambda _: "yes", tls=tls) as service:
        sentence = failure(service.url.replace("https://", "http://"))
    assert "connection closed" in sentence
    assert "write https:// in --base-url" in sentence


def test_a_server_that_says_that_it_expects_tls_is_understood():
    page = Answer(status=400, body="Client sent an HTTP request to an HTTPS server.", kind="text/plain")
    with serving(lambda _: page) as service:
        sentence = failure(service.url)
    assert f"HTTP 400 from {service.url}" in sentence
    assert "write https:// in --base-url" in sentence


def test_a_certificate_that_nobody_trusts_is_named(tls):
    with serving(lambda _: "yes", tls=tls) as service:
        sentence = failure(service.url)
    assert f"the certificate of {service.url} is not trusted" in sentence


PAGE = Answer(body="<html>welcome</html>", kind="text/html")


@pytest.mark.parametrize("path", ["", "/", "/api", "/v1/chat/completions", "/v1/models"])
@pytest.mark.parametrize("wrong", [failing(404, "Not Found"), PAGE, failing(405, "Method Not Allowed")])
def test_the_address_that_works_is_suggested(path, wrong):
    right = "/v1/chat/completions"
    with serving(lambda asked: "yes" if asked.path == right else wrong, ["tiny"]) as service:
        base = service.url.removesuffix("/v1")
        sentence = failure(base + path)
        assert f"a service of models answers at {service.url}: pass it as --base-url" in sentence
        assert isinstance(send(service.url), FirstReply)


@pytest.mark.parametrize("answer", [failing(404, "Not Found"), PAGE])
def test_where_no_address_works_the_usual_form_is_named(answer):
    with serving(lambda _: answer) as service:
        sentence = failure(service.url)
    assert service.url in sentence
    assert "which usually ends in /v1" in sentence


def test_a_list_behind_a_redirect_to_another_server_is_not_followed():
    with serving(lambda _: "yes") as other, serving(lambda _: failing(404, "no")) as service:
        service._list = lambda handler: (
            handler.send_response(307),
            handler.send_header("location", f"{other.url}/models"),
            handler.send_header("content-length", "0"),
            handler.end_headers(),
        )
        failure(service.url)
        assert other._server.opened == []


# ---- keys, models, images, options ----------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_named_by_its_variable(status):
    with serving(lambda _: failing(status, f"wrong key {KEY}")) as service:
        sentence = failure(service.url, retries=5)
    assert f"HTTP {status} from {service.url}" in sentence
    assert "the key in the environment variable LOOPBACK_API_KEY is refused" in sentence
    assert len(service.asked) == 1


def test_a_missing_key_is_named_by_its_variable(monkeypatch):
    monkeypatch.delenv("LOOPBACK_API_KEY")
    with serving(lambda _: failing(401, "no key")) as service:
        sentence = failure(service.url)
    assert "a key is needed: set the environment variable LOOPBACK_API_KEY" in sentence


def test_a_key_that_another_machine_needs_is_asked_for_before_anything_is_sent(monkeypatch):
    monkeypatch.delenv("LOOPBACK_API_KEY")
    sentence = failure("https://somewhere.invalid/v1")
    assert "the key for https://somewhere.invalid/v1 is missing" in sentence
    assert "LOOPBACK_API_KEY" in sentence


def test_a_forgotten_address_is_asked_for(monkeypatch):
    monkeypatch.delenv("LOOPBACK_API_KEY")
    assert "pass --base-url, such as http://localhost:8000/v1, or set LOOPBACK_BASE_URL" in failure(None)


@pytest.mark.parametrize(("status", "message"), [(404, "no such model"), (400, "Invalid model name passed")])
def test_a_model_that_the_server_does_not_have_is_named_with_those_that_it_offers(status, message):
    offered = [f"model-{n}" for n in range(11)] + ["tiny-2"]
    with serving(lambda _: failing(status, message), offered) as service:
        sentence = failure(service.url)
    assert f"HTTP {status} from {service.url}: {message}; the server has no model 'tiny'" in sentence
    assert "it offers model-0, model-1," in sentence
    assert "model-9 and 2 more. Did you mean tiny-2?" in sentence


def test_names_of_models_cannot_command_the_terminal():
    with serving(lambda _: failing(404, "no"), ["evil\x1b[2J\n" + "x" * 1000]) as service:
        sentence = failure(service.url)
    assert sentence.isprintable()
    assert len(sentence) < 500


@pytest.mark.parametrize("status", [400, 404, 422, 500])
def test_a_model_that_takes_no_images_is_recognised(status):
    def script(asked):
        return failing(status, "unknown variant `image_url`") if has_image(asked) else "yes"

    with serving(script, ["tiny"]) as service:
        sentence = failure(service.url)
    assert f"HTTP {status} from {service.url}" in sentence
    assert "this model takes no images" in sentence
    assert "--blind sends images, too" in sentence


def test_options_that_a_server_refuses_are_recognised():
    def script(asked):
        return failing(400, "Extra inputs are not permitted") if "min_p" in asked.body else "yes"

    with serving(script, ["tiny"]) as service:
        sentence = failure(service.url, request=RequestOptions(extra_body='{"min_p": 0.1}', top_p=0.5))
    assert "it answers without --top-p, --extra-body" in sentence


def test_a_request_that_is_refused_anyhow_is_passed_on():
    with serving(lambda _: failing(400, "context too short"), ["tiny"]) as service:
        sentence = failure(service.url)
    assert f"HTTP 400 from {service.url}: context too short; the server refuses such requests" in sentence


# ---- servers that are busy, slow or broken --------------------------------------------------------------------------


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_is_waited_for(status):
    with serving(lambda asked: failing(status, "later") if asked.attempt < 3 else "yes") as service:
        send(service.url, retries=3)
    assert len(service.asked) == 4


def test_a_server_that_stays_busy_is_named():
    with serving(lambda _: failing(429, "too many requests")) as service:
        sentence = failure(service.url, retries=2)
    assert f"HTTP 429 from {service.url}: too many requests; try again later" in sentence
    assert len(service.asked) == 3


def test_a_delay_beyond_the_time_limit_is_not_waited_for():
    busy = Answer(status=429, body='{"error": {"message": "x"}}', headers={"retry-after": "1000000000"})
    with serving(lambda _: busy) as service:
        assert "HTTP 429" in failure(service.url, retries=5)
    assert len(service.asked) == 1


def test_an_empty_account_is_not_waited_for():
    body = json.dumps({"error": {"message": "check your plan", "code": "insufficient_quota"}})
    with serving(lambda _: Answer(status=429, body=body, headers=SOON)) as service:
        assert "check your plan" in failure(service.url, retries=5)
    assert len(service.asked) == 1


def test_a_delay_is_announced(monkeypatch):
    said = []
    monkeypatch.setattr(first_request, "_TELL_WAIT", 0.0)
    with serving(lambda asked: failing(429, "slow down") if asked.attempt == 0 else "yes") as service:
        send(service.url, retries=1, notify=said.append)
    assert said == [f"{loopback.MODEL}: HTTP 429: slow down; trying again in 0 s"]


@pytest.mark.parametrize("answer", [failing(500, "the disk is full"), Answer(cut=0.0)])
def test_a_broken_exchange_is_tried_once_more(answer):
    with serving(lambda asked: answer if asked.attempt == 0 else "yes") as service:
        send(service.url, retries=5)
    assert len(service.asked) == 2


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(status=404, body='{"detail": "Not Found"}'), "HTTP 404 from {}: Not Found; "),
        (
            Answer(status=502, body="<html>gateway</html>", kind="text/html"),
            "HTTP 502 from {}: an HTML page; ",
        ),
        (Answer(status=500, body="out of memory", kind="text/plain"), "HTTP 500 from {}: out of memory; "),
        (Answer(status=418, body="{}"), "HTTP 418 from {}: Error code: 418; "),
    ],
)
def test_what_a_server_says_is_passed_on_in_any_layout(answer, said):
    with serving(lambda _: answer) as service:
        assert said.format(service.url) in failure(service.url)


def test_a_server_that_fails_is_named():
    with serving(lambda _: failing(500, "the disk is full")) as service:
        sentence = failure(service.url)
    assert f"HTTP 500 from {service.url}: the disk is full; the server failed: its log says why" in sentence


def test_a_silent_server_is_given_up_and_a_sentence_says_what_is_waited_for(monkeypatch):
    said, released = [], threading.Event()
    monkeypatch.setattr(first_request, "_PATIENCE", 0.0)
    with serving(lambda _: released.wait() and "yes") as service:
        sentence = failure(service.url, seconds=1, retries=5, notify=said.append)
        released.set()
    assert f"timeout: no complete answer from {service.url} within 1 s; raise --timeout" in sentence
    assert len(said) == 1
    assert f"waiting for the first answer from {service.url}" in said[0]
    assert "Given up after 1 s (--timeout)" in said[0]


# ---- restricted data ------------------------------------------------------------------------------------------------


def test_where_data_must_stay_nothing_is_sent_to_another_host():
    assert "not on this machine" in failure("http://192.0.2.1/v1", stay_local=True)


def test_a_redirect_to_another_address_is_refused():
    with serving(lambda _: "yes") as other:
        answer = Answer(status=307, body="", headers={"location": f"{other.url}/chat/completions"})
        with serving(lambda _: answer) as service:
            assert f"redirects to {other.url}" in failure(service.url)
        assert other._server.opened == []
