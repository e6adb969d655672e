"""The description of a run: when, where and with which versions each call asked."""

import json
import re
from datetime import UTC, datetime
from importlib.metadata import version

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runs.test_evaluate import run

import carina
from carina.models import parse_model_name
from carina.models.served.address import served_address, without_secrets
from carina.runs import info as run_description
from carina.runs import read_info
from carina.runs.info import describe_run, start_call
from carina.runs.options import RunOptions
from carina.store.errors import CarinaError


@pytest.fixture
def clock(monkeypatch):
    """A time that passes by the hour."""
    hours = iter(range(9, 20))
    monkeypatch.setattr(run_description, "_now", lambda: f"2030-01-02T{next(hours):02d}:00:00Z")


def test_times_are_utc_to_the_second():
    now = run_description._now()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", now)
    assert abs((datetime.fromisoformat(now) - datetime.now(UTC)).total_seconds()) < 60


@pytest.mark.usefixtures("clock")
def test_each_call_with_questions_is_recorded(bench, tmp_path):
    run(bench, tmp_path / "run", limit=1)
    info = run(bench, tmp_path / "run", limit=2).info
    assert [(call.started[11:13], call.ended[11:13]) for call in info.calls] == [("09", "10"), ("11", "12")]
    assert (info.started, info.ended) == ("2030-01-02T09:00:00Z", "2030-01-02T12:00:00Z")
    assert info.calls[0].versions == {"carina": carina.__version__}
    assert info.calls[0].base_url is None
    assert read_info(tmp_path / "run") == info


@pytest.mark.usefixtures("clock")
def test_a_call_without_open_questions_changes_no_file(bench, tmp_path):
    run(bench, tmp_path / "run", limit=2)
    there = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    run(bench, tmp_path / "run", limit=2)
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == there


def test_rows_do_not_depend_on_the_time_of_the_call(bench, tmp_path, monkeypatch):
    """What was answered at another time by the same model is the same table, but for the seconds it took."""
    monkeypatch.setattr("carina.runs.in_process.time.perf_counter", lambda: 1.0)
    for year, name in (("2030", "one"), ("2040", "other")):
        monkeypatch.setattr(run_description, "_now", lambda year=year: f"{year}-01-01T00:00:00Z")
        run(bench, tmp_path / name, limit=3)
    one, other = ((tmp_path / name / "steps.parquet").read_bytes() for name in ("one", "other"))
    assert one == other


@pytest.mark.parametrize(
    ("model", "packages"),
    [
        ("builtin/reader", ()),
        ("hf:weights/vlm", ("torch", "transformers")),
        ("onnx:weights/net", ("onnxruntime",)),
        ("openai/gpt-5", ("inspect-ai",)),
    ],
)
def test_a_call_records_the_packages_that_run_the_model(bench, tmp_path, monkeypatch, model, packages):
    info = describe_run(bench, parse_model_name("builtin/oracle"), tmp_path, RunOptions())
    monkeypatch.setattr(run_description, "version", lambda name: f"1.2 of {name}")
    expected = {"carina": carina.__version__} | {name: f"1.2 of {name}" for name in packages}
    started = start_call(info, parse_model_name(model), None, cases=3, verify_images=True)
    assert started.calls[-1].versions == expected
    assert started.case_count == 3


def test_the_version_of_a_missing_package_is_not_installed():
    assert run_description._version("msgspec") == version("msgspec")
    assert run_description._version("no-such-package") == "not installed"


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (None, None),
        ("", None),
        ("http://localhost:8000/v1", "http://localhost:8000/v1"),
        ("https://user:word@vlm.example.org/v1?key=abc#top", "https://vlm.example.org/v1"),
        ("https://us@er:w@rd@vlm.example.org", "https://vlm.example.org"),
        ("http://[::1]:9/v1/", "http://[::1]:9/v1/"),
        ("localhost:8000/v1?token=abc", "localhost:8000/v1"),
        ("user:word@localhost/v1", "localhost/v1"),
        ("http://[broken/v1", None),
    ],
)
def test_an_address_is_recorded_without_credentials(address, message):
    assert without_secrets(address) == message


SECRET = st.text(alphabet=st.sampled_from("abcXYZ019-._~!$&'()*+,;=:@%/"), min_size=1).map(
    lambda text: text.replace("/", "") or "x"
)


@given(before=SECRET, query=SECRET, scheme=st.sampled_from(["http://", "https://", ""]))
def test_no_recorded_address_holds_credentials_or_a_query(before, query, scheme):
    recorded = without_secrets(f"{scheme}{before}@host.example/v1?{query}#{query}")
    assert recorded == f"{scheme}host.example/v1"


def test_the_address_of_a_model_may_come_from_the_environment(monkeypatch):
    assert served_address("openai/gpt-5", None) is None
    monkeypatch.setenv("MINE_BASE_URL", "http://localhost:1/v1")
    assert served_address("openai-api/mine/vlm", None) == "http://localhost:1/v1"
    assert served_address("openai-api/mine/vlm", "http://localhost:2/v1") == "http://localhost:2/v1"


@pytest.mark.usefixtures("clock")
def test_run_json_lists_the_calls(bench, tmp_path):
    run(bench, tmp_path / "run", limit=1)
    described = json.loads((tmp_path / "run" / "run.json").read_text())
    assert described["calls"] == [
        {
            "started": "2030-01-02T09:00:00Z",
            "ended": "2030-01-02T10:00:00Z",
            "base_url": None,
            "versions": {"carina": carina.__version__},
            "verify_images": True,
        }
    ]


@pytest.mark.parametrize(
    ("field", "value"), [("case_count", -5), ("case_count", 10**30), ("benchmark", "bench\0mark")]
)
def test_a_value_that_no_run_can_have_is_refused_with_its_field(bench, tmp_path, field, value):
    run(bench, tmp_path / "run", limit=1)
    path = tmp_path / "run" / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {field: value}))
    with pytest.raises(CarinaError, match=rf"run\.json: .*{field}"):
        read_info(tmp_path / "run")
