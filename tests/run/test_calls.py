"""When and with what a run was at work: told, and of no weight."""

import json
import re
from datetime import UTC, datetime
from importlib.metadata import version

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.run.test_examine import run

import carina
from carina.run import RunOptions, calls, read_info
from carina.run.calls import begun, without_secrets
from carina.run.examine import run_info
from carina.run.terms import served_at


@pytest.fixture
def clock(monkeypatch):
    """A time that passes by the hour."""
    hours = iter(range(9, 20))
    monkeypatch.setattr(calls, "_now", lambda: f"2030-01-02T{next(hours):02d}:00:00Z")


def test_the_time_is_that_of_greenwich_to_the_second():
    now = calls._now()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", now)
    assert abs((datetime.fromisoformat(now) - datetime.now(UTC)).total_seconds()) < 60


@pytest.mark.usefixtures("clock")
def test_each_call_that_asks_is_written_down(bench, tmp_path):
    run(bench, tmp_path / "run", limit=1)
    info = run(bench, tmp_path / "run", limit=2).info
    assert [(call.started[11:13], call.ended[11:13]) for call in info.calls] == [("09", "10"), ("11", "12")]
    assert (info.started, info.ended) == ("2030-01-02T09:00:00Z", "2030-01-02T12:00:00Z")
    assert info.calls[0].versions == {"carina": carina.__version__}
    assert info.calls[0].base_url is None
    assert read_info(tmp_path / "run") == info


@pytest.mark.usefixtures("clock")
def test_a_call_that_asks_nothing_leaves_everything_as_it_was(bench, tmp_path):
    run(bench, tmp_path / "run", limit=2)
    there = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    run(bench, tmp_path / "run", limit=2)
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == there


def test_the_time_is_in_no_row(bench, tmp_path, monkeypatch):
    """What was answered at another time by the same model is the same table, but for the seconds it took."""
    monkeypatch.setattr("carina.run.wavefront.time.perf_counter", lambda: 1.0)
    for year, name in (("2030", "one"), ("2040", "other")):
        monkeypatch.setattr(calls, "_now", lambda year=year: f"{year}-01-01T00:00:00Z")
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
def test_versions_are_those_of_what_runs_the_model(bench, tmp_path, monkeypatch, model, packages):
    info = run_info(bench, "builtin/oracle", tmp_path, RunOptions())
    monkeypatch.setattr(calls, "version", lambda name: f"1.2 of {name}")
    expected = {"carina": carina.__version__} | {name: f"1.2 of {name}" for name in packages}
    assert begun(info, model, None).calls[-1].versions == expected


def test_versions_are_looked_up_where_they_are_installed():
    assert calls._version("msgspec") == version("msgspec")
    assert calls._version("no-such-package") == "not installed"


@pytest.mark.parametrize(
    ("address", "told"),
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
def test_an_address_is_told_without_what_opens_it(address, told):
    assert without_secrets(address) == told


SECRET = st.text(alphabet=st.sampled_from("abcXYZ019-._~!$&'()*+,;=:@%/"), min_size=1).map(
    lambda text: text.replace("/", "") or "x"
)


@given(before=SECRET, query=SECRET, scheme=st.sampled_from(["http://", "https://", ""]))
def test_no_address_tells_what_stands_before_the_host_or_behind_the_path(before, query, scheme):
    told = without_secrets(f"{scheme}{before}@host.example/v1?{query}#{query}")
    assert told == f"{scheme}host.example/v1"


def test_where_a_model_is_served_may_be_in_the_environment(monkeypatch):
    assert served_at("openai/gpt-5", None) is None
    monkeypatch.setenv("MINE_BASE_URL", "http://localhost:1/v1")
    assert served_at("openai-api/mine/vlm", None) == "http://localhost:1/v1"
    assert served_at("openai-api/mine/vlm", "http://localhost:2/v1") == "http://localhost:2/v1"


@pytest.mark.usefixtures("clock")
def test_the_file_reads_well(bench, tmp_path):
    run(bench, tmp_path / "run", limit=1)
    told = json.loads((tmp_path / "run" / "run.json").read_text())
    assert told["calls"] == [
        {
            "started": "2030-01-02T09:00:00Z",
            "ended": "2030-01-02T10:00:00Z",
            "base_url": None,
            "versions": {"carina": carina.__version__},
        }
    ]
