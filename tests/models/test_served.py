"""Served models, against a real client and a service on a loopback port that misbehaves."""

import importlib.util
import json
import logging
import subprocess
import sys
import threading

import pytest
from tests.models import loopback
from tests.models.loopback import Answer, failing, serving, wait_until

from carina.models import parse_model_option
from carina.models.served import AnswerCache, Prompt, Reply, Sampling, ask, key_of
from carina.store.errors import CarinaError

pytest.importorskip("inspect_ai", reason="the extra served is not installed")
pytest.importorskip("openai", reason="the extra served is not installed")


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("LOOPBACK_API_KEY", loopback.KEY)


def answers(service, *words, **settings):
    """Replies to these words, asked of a service."""
    prompts = [Prompt(user=word, system="Be brief.") for word in words]
    settings = {"connections": 4, "retries": 0, "base_url": service.url} | settings
    return list(ask(loopback.MODEL, prompts, **settings))


def echo(asked):
    return asked.user.upper()


def test_a_prompt_reaches_the_service_and_its_answer_returns():
    with serving(echo) as service:
        (reply,) = answers(service, "a", sampling=Sampling(temperature=0.5, max_tokens=9, seed=3))
    assert reply == Reply(text="A", stop="stop", input_tokens=7, output_tokens=3)
    (asked,) = service.asked
    assert (asked.system, asked.user) == ("Be brief.", "a")
    sent = {name: asked.body[name] for name in ("model", "temperature", "max_tokens", "seed")}
    assert sent == {"model": "tiny", "temperature": 0.5, "max_tokens": 9, "seed": 3}


def test_without_a_system_prompt_none_is_sent():
    with serving(echo) as service:
        list(ask(loopback.MODEL, [Prompt(user="a")], base_url=service.url))
    assert [message["role"] for message in service.asked[0].body["messages"]] == ["user"]


def test_an_address_may_come_from_the_environment(monkeypatch):
    with serving(echo) as service:
        monkeypatch.setenv("LOOPBACK_BASE_URL", service.url)
        assert [reply.text for reply in ask(loopback.MODEL, [Prompt(user="a")])] == ["A"]


def test_replies_come_in_the_order_of_the_prompts():
    words = [f"w{n:02}" for n in range(20)]
    with serving(lambda asked: Answer(asked.user, wait=0.08 if asked.user.endswith("0") else 0.0)) as service:
        replies = answers(service, *words)
    assert [reply.text for reply in replies] == words
    assert service.prompts != sorted(service.prompts) or service.most_at_once > 1


def test_as_many_requests_as_connections_are_in_flight():
    with serving(lambda asked: Answer(asked.user, wait=0.05)) as service:
        answers(service, *"abcdefghijkl", connections=3)
    assert service.most_at_once == 3


def test_prompts_are_read_only_as_far_ahead_as_needed():
    taken = []

    def prompts():
        for n in range(1000):
            taken.append(n)
            yield Prompt(user=str(n))

    with serving(echo) as service:
        replies = ask(loopback.MODEL, prompts(), connections=2, base_url=service.url)
        assert [next(replies).text for _ in range(3)] == ["0", "1", "2"]
        replies.close()
    assert len(taken) <= 3 + 4 * 2
    assert not [thread for thread in threading.enumerate() if thread.name == "carina-served"]


def test_a_rate_limited_request_is_retried_after_the_delay():
    def script(asked):
        if asked.attempt == 0:
            return Answer(
                status=429, body='{"error": {"message": "slow down"}}', headers={"retry-after": "1"}
            )
        return "A"

    with serving(script) as service:
        assert [reply.text for reply in answers(service, "a")] == ["A"]
    first, second = service.asked
    assert second.time - first.time >= 0.99


def test_a_transport_error_is_retried():
    with serving(lambda asked: failing(500, "oops") if asked.attempt < 2 else "A") as service:
        assert [reply.text for reply in answers(service, "a")] == ["A"]
    assert len(service.asked) == 3


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (failing(500, "the disk is full"), "HTTP 500: the disk is full"),
        (failing(429, "too many requests"), "HTTP 429: too many requests"),
        (failing(400, "what is this"), "HTTP 400: what is this"),
        (Answer(body="{not json"), "JSONDecodeError"),
        (Answer(body="<html>gateway</html>", kind="text/html"), "ChatCompletion"),
        (Answer(body="{}"), ""),
        (Answer(body='{"id": "c", "object": "chat.completion", "choices": []}'), ""),
        (Answer(body='"a bare string"'), "ChatCompletion"),
    ],
)
def test_a_transport_error_concerns_one_prompt_and_is_no_answer(broken, message, tmp_path):
    def script(asked):
        return broken if asked.user == "b" else asked.user

    with serving(script) as service, AnswerCache(tmp_path / "answers.jsonl") as cache:
        first, second, third = answers(service, "a", "b", "c", cache=cache)
        assert len(cache) == 2
    assert (first.text, third.text) == ("a", "c")
    assert second.text is None
    assert message in second.error
    assert "\n" not in second.error


@pytest.mark.parametrize("said", ["", None])
def test_an_empty_answer_is_an_answer(said):
    with serving(lambda _: Answer(said)) as service:
        (reply,) = answers(service, "a")
    assert (reply.text, reply.error) == ("", None)


def test_an_answer_that_was_cut_off_says_so():
    with serving(lambda _: Answer("and then", stop="length")) as service:
        (reply,) = answers(service, "a")
    assert (reply.text, reply.stop) == ("and then", "max_tokens")


@pytest.mark.parametrize(
    ("code", "stop"), [("context_length_exceeded", "model_length"), ("content_filter", "content_filter")]
)
def test_a_message_of_the_service_is_no_answer(code, stop):
    body = json.dumps({"error": {"message": "The pleural effusion is too long.", "code": code}})
    with serving(lambda _: Answer(status=400, body=body)) as service:
        (reply,) = answers(service, "a")
    assert reply == Reply(text="", stop=stop)


@pytest.mark.parametrize(
    ("status", "message"), [(401, "the key is refused"), (404, "there is no such model")]
)
def test_permanent_errors_end_the_requests_at_once(status, message):
    refusal = failing(status, f"no: {loopback.KEY}")
    with serving(lambda _: refusal) as service, pytest.raises(CarinaError, match=message) as caught:
        answers(service, *"abcdefghijklmnopqrstuvwxyz", connections=1)
    assert loopback.KEY not in str(caught.value)
    assert len(service.asked) < 10


def test_an_unreachable_service_ends_the_requests():
    with serving(echo) as service:
        gone = service.url
    replies = ask(
        loopback.MODEL,
        (Prompt(user=str(n)) for n in range(12)),
        base_url=gone,
        retries=0,
        connections=2,
        give_up_after=3,
    )
    seen = []
    with pytest.raises(
        CarinaError, match=r"3 prompts in a row failed, the last with connection refused: .*http://127.0.0.1"
    ):
        seen.extend(replies)
    # Even while the error is held on to, nothing runs any more.
    assert not [thread for thread in threading.enumerate() if thread.name == "carina-served"]


def test_failures_with_answers_between_them_do_not_end_the_run():
    with serving(lambda asked: failing(400, "no") if int(asked.user) % 2 else "A") as service:
        replies = answers(service, *map(str, range(12)), give_up_after=2)
    assert [reply.text for reply in replies] == ["A", None] * 6


def test_api_keys_are_in_no_message_and_no_log(caplog):
    leak = failing(400, f"Authorization: Bearer {loopback.KEY}, key={loopback.KEY}")
    with caplog.at_level(logging.DEBUG), serving(lambda _: leak) as service:
        url = service.url.replace("http://", "http://user:hidden-word@")
        (reply,) = answers(service, "a", base_url=url)
    assert reply.error.startswith("HTTP 400: Authorization: Bearer ***")
    assert loopback.KEY not in reply.error + caplog.text
    assert "hidden-word" not in reply.error


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("nobody/tiny", "model 'nobody/tiny' cannot be opened: .*nobody"),
        ("tiny", "model 'tiny' cannot be opened"),
        ("openai-api/unheard-of/tiny", "UNHEARD_OF_API_KEY"),
        ("anthropic/claude", "pip install anthropic"),
    ],
)
def test_a_model_that_cannot_be_opened_is_one_sentence(model, message):
    with pytest.raises(CarinaError, match=message) as caught:
        list(ask(model, [Prompt(user="a")]))
    assert "\n" not in str(caught.value)
    assert "[bold]" not in str(caught.value)


def test_without_the_extra_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(CarinaError, match=r"pip install 'carina\[served\]'"):
        list(ask(loopback.MODEL, [Prompt(user="a")]))


def test_fewer_than_one_connection_is_refused():
    with pytest.raises(CarinaError, match=r"connections: .* 0"):
        ask(loopback.MODEL, [], connections=0)


def test_nothing_of_the_extra_is_imported_before_it_is_needed():
    code = (
        "import sys, carina.models.served; sys.exit('inspect_ai' in sys.modules or 'openai' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ---- answers that were paid for ------------------------------------------------------------------------------------


def test_a_cached_answer_is_not_requested_again(tmp_path):
    path = tmp_path / "deep" / "answers.jsonl"
    with serving(echo) as service:
        with AnswerCache(path) as cache:
            first = answers(service, "a", "b", "a", cache=cache)
        with AnswerCache(path) as cache:
            second = answers(service, "b", "a", "c", cache=cache)
    assert [reply.text for reply in first] == ["A", "B", "A"]
    assert [(reply.text, reply.cached) for reply in second] == [("B", True), ("A", True), ("C", False)]
    assert sorted(service.prompts) == ["a", "b", "c"]


def test_equal_prompts_in_flight_share_one_request(tmp_path):
    with serving(lambda asked: Answer(asked.user, wait=0.1)) as service, AnswerCache(tmp_path / "x") as cache:
        replies = answers(service, "a", "a", "a", cache=cache)
    assert [reply.text for reply in replies] == ["a"] * 3
    assert service.prompts == ["a"]


def test_cached_answers_need_neither_key_nor_service(tmp_path, monkeypatch):
    with AnswerCache(tmp_path / "x") as cache:
        with serving(echo) as service:
            answers(service, "a", "b", cache=cache)
        monkeypatch.delenv("LOOPBACK_API_KEY")
        prompts = [Prompt(user=word, system="Be brief.") for word in "ba"]
        replies = list(ask(loopback.MODEL, prompts, cache=cache))
    assert [reply.text for reply in replies] == ["B", "A"]


def test_an_answer_is_cached_when_it_arrives(tmp_path):
    arrived, released = threading.Event(), threading.Event()

    def script(asked):
        if asked.user == "slow":
            arrived.set()
            released.wait()
        return asked.user

    path = tmp_path / "x"
    with serving(script) as service:
        with AnswerCache(path) as cache:
            prompts = [Prompt(user=word) for word in ("first", "slow", "c", "d")]
            replies = ask(loopback.MODEL, prompts, cache=cache, base_url=service.url, connections=4)
            assert next(replies).text == "first"
            wait_until(lambda: len(cache) == 3 and arrived.is_set())
            replies.close()
        released.set()
        with AnswerCache(path) as cache:
            texts = [r.text for r in ask(loopback.MODEL, prompts, cache=cache, base_url=service.url)]
    assert texts == ["first", "slow", "c", "d"]
    assert sorted(service.prompts) == ["c", "d", "first", "slow", "slow"]


def test_after_a_kill_only_requests_in_flight_are_sent_again(tmp_path):
    path = tmp_path / "answers.jsonl"
    code = (
        "import sys; from pathlib import Path\n"
        "from carina.models.served import AnswerCache, Prompt, ask\n"
        "with AnswerCache(Path(sys.argv[1])) as cache:\n"
        "    prompts = (Prompt(user=str(n)) for n in range(30))\n"
        "    for reply in ask(sys.argv[2], prompts, cache=cache, base_url=sys.argv[3], connections=2):\n"
        "        print(reply.text, flush=True)\n"
    )
    with serving(lambda asked: Answer(asked.user, wait=0.02)) as service:
        command = [sys.executable, "-c", code, str(path), loopback.MODEL, service.url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for _ in range(8):
                process.stdout.readline()
            process.kill()
        with AnswerCache(path) as cache:
            before = len(cache)
            prompts = (Prompt(user=str(n)) for n in range(30))
            replies = list(ask(loopback.MODEL, prompts, cache=cache, base_url=service.url, connections=2))
    assert [reply.text for reply in replies] == [str(n) for n in range(30)]
    assert [reply.cached for reply in replies].count(True) == before >= 8
    again = len(service.asked) - len(set(service.prompts))
    assert again <= 2, "no more than the connections"


def test_a_cache_key_depends_on_model_prompt_and_sampling():
    prompt, sampling = Prompt(user="a", system="b"), Sampling()
    keys = {
        key_of("p/m", prompt, sampling),
        key_of("p/n", prompt, sampling),
        key_of("p/m", Prompt(user="a"), sampling),
        key_of("p/m", Prompt(user="b", system="a"), sampling),
        key_of("p/m", prompt, Sampling(temperature=1.0)),
        key_of("p/m", prompt, Sampling(max_tokens=1)),
        key_of("p/m", prompt, Sampling(seed=1)),
    }
    assert len(keys) == 7
    # A new version of this program must find the answers of an older one.
    assert (
        key_of("p/m", prompt, sampling) == "c3d4cf80ada69c14dbf2fb521df47fcfd645d88ce35d9cdf6c287a966e2707bc"
    )


def kept(path, *words):
    with AnswerCache(path) as cache:
        for word in words:
            cache.add(
                key_of("p/m", Prompt(user=word), Sampling()), "p/m", Reply(text=word.upper(), stop="stop")
            )


def test_a_log_truncated_anywhere_keeps_the_answers_before(tmp_path):
    path = tmp_path / "answers.jsonl"
    kept(path, "a", "bé")
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for end in range(len(whole) + 1):
        path.write_bytes(whole[:end])
        with AnswerCache(path) as cache:
            assert len(cache) == (end >= first) + (end == len(whole))
        kept(path, "c")
        with AnswerCache(path) as cache:
            assert cache.get(key_of("p/m", Prompt(user="c"), Sampling())).text == "C"


def test_a_cache_with_other_content_is_refused_by_line(tmp_path):
    path = tmp_path / "answers.jsonl"
    kept(path, "a")
    with path.open("a") as file:
        file.write('{"key": "zz"}\n')
    with pytest.raises(CarinaError, match=r"answers\.jsonl, line 2: not an answer"):
        AnswerCache(path)
    path.write_text("")
    AnswerCache(path).close()


def test_a_transport_error_is_not_cached(tmp_path):
    with AnswerCache(tmp_path / "x") as cache:
        cache.add("00", "p/m", Reply(text=None, error="HTTP 500"))
        assert cache.get("00") is None


def test_a_cache_has_one_writer_at_a_time(tmp_path):
    path = tmp_path / "x"
    with AnswerCache(path), pytest.raises(CarinaError, match="another process"):
        AnswerCache(path)
    AnswerCache(path).close()


def test_prompts_are_not_stored_in_the_cache(tmp_path):
    with serving(lambda _: "fine") as service, AnswerCache(tmp_path / "x") as cache:
        answers(service, "the report of a patient", cache=cache)
    assert "patient" not in (tmp_path / "x").read_text()


# ---- names ---------------------------------------------------------------------------------------------------------


def test_an_option_names_a_served_model():
    parsed = parse_model_option("model:openai-api/local/tiny", "--extractor")
    assert (parsed.is_served, parsed.location) == (True, "openai-api/local/tiny")


@pytest.mark.parametrize(
    "value", ["rules", "openai/gpt-5", "model:", "model:gpt-5", "model:/", "", "model:hf:weights"]
)
def test_an_option_refuses_other_names_and_lists_what_it_takes(value):
    with pytest.raises(CarinaError, match=rf"--extractor {value!r}.*(PROVIDER/NAME|expected model:NAME)"):
        parse_model_option(value, "--extractor")
