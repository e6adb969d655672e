"""Options of requests: what is sent, what is recorded, which are refused, and answers in JSON."""

import json

import msgspec
import pytest
from tests.models.loopback import MODEL, Answer
from tests.runs.conftest import CASES, talk
from tests.runs.served.scripted_model import serving_model, turn
from typer.testing import CliRunner

import carina
from carina.cases import open_benchmark
from carina.cli import app
from carina.models import RequestOptions
from carina.models.served.request_options import REQUEST_OPTIONS, request_settings
from carina.runs import open_run, read_info
from carina.runs.answer_schema import answer_schema
from carina.runs.parse import parse
from carina.store.errors import CarinaError

NAMES = [case.id for case in CASES]
ALL = {
    "top_p": 0.9,
    "top_k": 40,
    "reasoning_effort": "low",
    "extra_body": {"min_p": 0.1, "chat_template_kwargs": {"thinking": False}},
    "structured": True,
}


def ask(bench, out, scripted, **options):
    options = {"base_url": scripted.service.url, "retries": 0, "limit": 1} | options
    return carina.run(bench.directory, options.pop("model", MODEL), out, **options)


# ---- what is sent and recorded --------------------------------------------------------------------------------------


def test_options_are_sent_and_recorded_and_bind_the_directory(bench, tmp_path):
    out = tmp_path / "run"
    with serving_model(NAMES) as scripted:
        ask(bench, out, scripted, **ALL)
        for asked in scripted.service.asked:
            body = asked.body
            assert (body["top_p"], body["top_k"], body["reasoning_effort"]) == (0.9, 40, "low")
            assert (body["min_p"], body["chat_template_kwargs"]) == (0.1, {"thinking": False})
            assert body["response_format"]["type"] == "json_schema"
        assert read_info(out).request == ALL
        for name in ALL:
            with pytest.raises(CarinaError, match=f"holds another run .*{name} "):
                ask(bench, out, scripted, **{key: value for key, value in ALL.items() if key != name})
        before = len(scripted.service.asked)
        ask(bench, out, scripted, **ALL)
        assert len(scripted.service.asked) == before


def test_without_options_nothing_more_is_sent_or_recorded(bench, tmp_path):
    with serving_model(NAMES) as scripted:
        ask(bench, tmp_path / "run", scripted)
    assert set(scripted.service.asked[-1].body) == {"messages", "model", "max_tokens", "temperature"}
    assert read_info(tmp_path / "run").request == {}


def test_the_command_line_passes_every_option(bench, tmp_path):
    line = ["run", str(bench.directory), "--model", MODEL, "-o", str(tmp_path / "run"), "--limit", "1"]
    line += ["--top-p", "0.9", "--top-k", "40", "--reasoning-effort", "low", "--structured"]
    with serving_model(NAMES) as scripted:
        line += ["--base-url", scripted.service.url, "--extra-body", json.dumps(ALL["extra_body"])]
        ended = CliRunner().invoke(app, line)
    assert ended.exit_code == 0, ended.stderr
    assert read_info(tmp_path / "run").request == ALL


# ---- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"top_p": 0.0}, r"top_p 0\.0: expected more than 0"),
        ({"top_p": 1.5}, r"top_p 1\.5: expected"),
        ({"top_k": 0}, "top_k"),
        ({"reasoning_effort": "huge"}, "reasoning_effort: expected .*'xhigh'"),
        ({"reasoning_tokens": 2048}, r"reasoning_tokens 2048: expected fewer than max_tokens \(2048\)"),
        (
            {"extra_body": {"messages": [], "temperature": 1}},
            "extra_body: messages, temperature cannot be set",
        ),
        ({"extra_body": {"a": [float("nan")]}}, "extra_body: .*expected a finite number, found nan"),
        ({"extra_body": {"a": object()}}, "extra_body: expected what JSON can hold"),
        (
            {"reasoning_tokens": 100},
            "--reasoning-tokens is not supported for the provider 'openai-api'.*anthropic",
        ),
        ({"model": "builtin/oracle", "structured": True}, "--structured does not apply"),
        (
            {"model": "hf:nowhere", "structured": True, "top_p": 0.5},
            "--structured does not apply.*--top-p, --top-k",
        ),
        (
            {"model": "anthropic/claude", "extra_body": {"a": 1}},
            "--extra-body is not supported .* 'anthropic'",
        ),
        ({"model": "deepseek/chat", "structured": True}, "--structured is not supported .* 'deepseek'"),
    ],
)
def test_a_wrong_option_is_refused_and_nothing_is_sent(bench, tmp_path, given, message):
    with serving_model(NAMES) as scripted:
        with pytest.raises(CarinaError, match=message):
            ask(bench, tmp_path / "run", scripted, **given)
        assert scripted.service.asked == []
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("text", "message"), [("{min_p: 1}", "not JSON"), ("[1]", "no JSON object"), ("", "not JSON")]
)
def test_a_body_that_is_no_json_object_is_refused(bench, tmp_path, text, message):
    line = ["run", str(bench.directory), "--model", MODEL, "-o", str(tmp_path / "run"), "--extra-body", text]
    ended = CliRunner().invoke(app, line)
    assert ended.exit_code == 2
    assert ended.stderr.startswith(f"Error: --extra-body: {message}")
    assert "such as '{\"min_p\": 0.1}'" in ended.stderr


def test_every_option_has_providers_and_a_place_in_the_settings_of_inspect():
    from inspect_ai.model import GenerateConfig

    assert set(REQUEST_OPTIONS) == set(RequestOptions.__struct_fields__)
    everything = RequestOptions(top_p=0.5, top_k=3, reasoning_effort="high", extra_body='{"a":1}')
    settings = request_settings("vllm/x", everything)
    assert settings == {"top_p": 0.5, "reasoning_effort": "high", "extra_body": {"top_k": 3, "a": 1}}
    assert request_settings("google/x", RequestOptions(top_k=3)) == {"top_k": 3}
    assert set(settings) < set(GenerateConfig.model_fields)


# ---- answers in JSON ------------------------------------------------------------------------------------------------


def values(schema):
    """Every answer of one option or label that a schema allows."""
    return schema["items"]["enum"] if schema["type"] == "array" else schema["enum"]


def check_schema(step):
    """Every answer in the schema of a step is read as the option or label that it names."""
    schema = answer_schema(step)
    assert schema["required"] == ["reasoning", "answer"]
    wanted = schema["properties"]["answer"]
    allowed = values(wanted)
    found = []
    for value in allowed:
        answer = [value] if wanted["type"] == "array" else value
        reply = json.dumps({"reasoning": "Option 1 is not right; no, it is uncertain.", "answer": answer})
        parsed = parse(step, reply)
        assert parsed.status == "ok", (step.question, reply)
        found += parsed.options if step.format == "choice" else [parsed.label]
    expected = (
        [option.id for option in step.options] if step.format == "choice" else ["yes", "no", "uncertain"]
    )
    assert found == expected, step.question
    if wanted["type"] == "array" and len(allowed) > 2:
        both = parse(step, json.dumps({"reasoning": "", "answer": allowed[:2]}))
        assert both.options == tuple(expected[:2])


def test_every_answer_in_a_schema_is_read_as_what_it_says():
    steps = [step for case in CASES for step in case.steps if step.format in ("choice", "yes_no")]
    for step in steps:
        check_schema(step)


@pytest.mark.parametrize(
    ("format_", "is_asked"), [("open", False), ("report", False), ("boxes", True), ("yes_no", True)]
)
def test_free_text_is_asked_for_as_usual(format_, is_asked):
    step = next(step for step in talk().steps if step.format == format_)
    assert (answer_schema(step) is not None) is is_asked


def test_boxes_in_a_schema_are_read():
    step = next(step for step in talk().steps if step.format == "boxes")
    reply = json.dumps({"reasoning": "", "answer": [[25, 50, 75, 75], [1, 2, 3, 4]]})
    parsed = parse(step, reply, images={"talk.png": (32, 32)})
    assert [box.xyxy for box in parsed.boxes] == [(25, 50, 75, 75), (1, 2, 3, 4)]
    assert {box.frame for box in parsed.boxes} == {"percent"}


def test_the_answer_key_is_not_in_a_schema():
    for case in CASES:
        for step in case.steps:
            other = msgspec.structs.replace(
                step, key=msgspec.structs.replace(step.key, options=(), label=None)
            )
            assert answer_schema(step) == answer_schema(other)


def test_answers_in_json_are_asked_for_step_by_step_and_scored(bench, tmp_path):
    def key_as_json(asked):
        case = next(one for one in CASES if one.id == scripted.case(asked))
        step = case.steps[turn(asked)]
        if step.format != "choice":
            assert ("response_format" in asked.body) is (step.format in ("yes_no", "boxes"))
            return "This is a PA view."
        schema = asked.body["response_format"]["json_schema"]
        assert (schema["name"], schema["strict"]) == ("answer", True)
        wanted = schema["schema"]["properties"]["answer"]
        chosen = [
            value
            for value, option in zip(values(wanted), step.options, strict=True)
            if option.id in step.key.options
        ]
        return Answer(json.dumps({"reasoning": "", "answer": chosen if step.multiple else chosen[0]}))

    with serving_model(NAMES) as scripted:
        scripted.service._script = key_as_json
        ask(bench, tmp_path / "run", scripted, limit=3, structured=True, first_request=False)
    rows = [row for row in open_run(tmp_path / "run").rows() if row.format == "choice"]
    assert {(row.status, row.correct) for row in rows} == {("ok", True)}
    assert len(rows) == 9


@pytest.mark.parametrize("build", ["build_percept", "build_trek"])
def test_answers_in_the_schemas_of_built_benchmarks_are_read(build, phantom_benchmarks):
    steps = {
        (step.question, step.options): step
        for case in open_benchmark(phantom_benchmarks[build])
        for step in case.steps
        if step.format in ("choice", "yes_no")
    }
    assert len(steps) > 3
    for step in steps.values():
        check_schema(step)


@pytest.fixture(scope="module")
def phantom_benchmarks(tmp_path_factory):
    root = tmp_path_factory.mktemp("schemas")
    studies = carina.make_phantoms(root / "studies", n=6, seed=2, size=64)
    return {
        name: getattr(carina, name)(studies, root / name).path for name in ("build_percept", "build_trek")
    }


@pytest.mark.parametrize("other", [{"profile": "chexpercept"}, {"history": "gold"}, {"examples": "bench"}])
def test_answers_in_json_do_not_go_together_with_answers_in_words(bench, tmp_path, other):
    others = {name: bench.directory if name == "examples" else value for name, value in other.items()}
    with pytest.raises(CarinaError, match=r"structured: .* has answers in words"):
        carina.run(
            bench, MODEL, tmp_path / "run", base_url="http://127.0.0.1:9/v1", structured=True, **others
        )
    assert not (tmp_path / "run").exists()


def test_fields_of_the_body_that_are_named_as_those_of_a_run_bind_it_too(bench, tmp_path):
    with serving_model(NAMES) as scripted:
        ask(bench, tmp_path / "run", scripted, extra_body={"limit": 1, "id": "a"}, first_request=False)
        with pytest.raises(CarinaError, match="extra_body"):
            ask(bench, tmp_path / "run", scripted, extra_body={"limit": 2, "id": "b"}, first_request=False)
