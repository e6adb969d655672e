"""A run of some cases grows into one of more, and into nothing else."""

import msgspec
import pytest
from tests.runs.conftest import CASES
from tests.runs.test_evaluate import Failing, timeless

from carina.runs import Policy, claim, open_run, read_info, shards
from carina.runs.evaluate import run_model
from carina.runs.options import RunOptions
from carina.store.errors import CarinaError

NAMES = [case.id for case in CASES]


def run(bench, out, model="builtin/random", **options):
    notices = []
    run_model(bench.directory, model, out, RunOptions(**options), notify=notices.append)
    return notices


@pytest.fixture
def asked(bench, monkeypatch):
    """Questions that are asked from now on."""
    model = Failing(bench)
    monkeypatch.setattr(shards, "_open_once", lambda *_: model)
    return model.asked


@pytest.mark.parametrize(
    ("few", "many"),
    [
        ({"limit": 2}, {"limit": 5}),
        ({"limit": 2}, {}),
        ({"sample_per_stratum": 1, "seed": 3}, {"sample_per_stratum": 2, "seed": 3}),
        ({"sample_per_stratum": 2, "limit": 2}, {"sample_per_stratum": 4, "limit": 7}),
        ({"sample_per_stratum": 1}, {}),
        ({"limit": 2, "policy": Policy(history="gold")}, {"limit": 3, "policy": Policy(history="gold")}),
    ],
)
def test_an_extended_run_equals_one_that_asked_all_cases_at_once(bench, tmp_path, few, many):
    run(bench, tmp_path / "grown", **few)
    before = {row.case for row in open_run(tmp_path / "grown").rows()}
    notices = run(bench, tmp_path / "grown", **many)
    assert run(bench, tmp_path / "whole", **many) == []
    rows = open_run(tmp_path / "whole").rows()
    after = {row.case for row in rows}
    assert notices == [f"{tmp_path / 'grown'}: extended from {len(before)} to {len(after)} cases"]
    assert before < after
    assert timeless(open_run(tmp_path / "grown").rows()) == timeless(rows)
    grown, whole = (read_info(tmp_path / name) for name in ("grown", "whole"))
    assert (grown.cases, grown.selection) == (whole.cases, whole.selection)
    assert (len(grown.calls), len(whole.calls)) == (2, 1)


def test_an_extended_run_asks_only_new_cases(bench, tmp_path, asked):
    run(bench, tmp_path / "run", "builtin/oracle", limit=2)
    del asked[:]
    run(bench, tmp_path / "run", "builtin/oracle", limit=4)
    assert sorted(asked) == [("lf-0", "1"), *(("talk", f"t{n}") for n in range(1, 6))]


def test_an_interrupted_extension_resumes(bench, tmp_path, monkeypatch):
    run(bench, tmp_path / "run", "builtin/oracle", limit=2)
    monkeypatch.setattr(shards, "_open_once", lambda *_: Failing(bench, turns=3))
    with pytest.raises(KeyboardInterrupt):
        run(bench, tmp_path / "run", "builtin/oracle", limit=6)
    assert [call.ended is None for call in read_info(tmp_path / "run").calls] == [False, True]
    monkeypatch.undo()
    assert run(bench, tmp_path / "run", "builtin/oracle", limit=6) == []
    assert {row.case for row in open_run(tmp_path / "run").rows()} == set(NAMES[:6])


def test_the_same_cases_selected_otherwise_are_the_same_run(bench, tmp_path, asked):
    run(bench, tmp_path / "run", "builtin/oracle")
    there = (tmp_path / "run" / "run.json").read_bytes()
    del asked[:]
    assert run(bench, tmp_path / "run", "builtin/oracle", limit=len(CASES) + 1) == []
    assert asked == []
    assert (tmp_path / "run" / "run.json").read_bytes() == there


@pytest.mark.parametrize(
    ("before", "now", "message"),
    [
        ({"limit": 5}, {"limit": 3}, "holds a run of 5 cases, more than the 3 that are "
         r"selected now.*\(--limit 5\)"),
        ({}, {"sample_per_stratum": 1}, r"holds a run of 12 cases, more than the 3 .*select as before \(no --limit\)"),
        ({"limit": 2}, {"sample_per_stratum": 3, "limit": 3, "seed": 0}, "holds a run of 2 cases, . of which are not "
         r"among the 3 .*select more than before \(--limit 2\)"),
        ({"sample_per_stratum": 1, "seed": 1}, {"sample_per_stratum": 4, "seed": 2},
         r"holds another run \(seed 1, not 2\)"),
        ({"limit": 2}, {"limit": 4, "blind": True}, r"holds another run \(blind False, not True\)"),
    ],
)  # fmt: skip
def test_a_run_that_cannot_be_extended_is_refused_and_unchanged(bench, tmp_path, before, now, message):
    run(bench, tmp_path / "run", **before)
    there = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    with pytest.raises(CarinaError, match=message):
        run(bench, tmp_path / "run", **now)
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == there


def test_a_run_of_another_version_resumes_with_a_notice(bench, tmp_path):
    out = tmp_path / "run"
    run(bench, out, limit=1)
    info = read_info(out)
    claim.write_info(out, msgspec.structs.replace(info, carina="0.0.1"))
    notices = run(bench, out, limit=2)
    assert notices[0].startswith(f"{out}: started with carina 0.0.1, continues with {info.carina}; ")
    assert read_info(out).carina == "0.0.1"
    assert [call.versions["carina"] for call in read_info(out).calls] == [info.carina, info.carina]


def test_a_newer_schema_is_refused(bench, tmp_path):
    out = tmp_path / "run"
    run(bench, out, limit=1)
    claim.write_info(out, msgspec.structs.replace(read_info(out), schema="3.0"))
    with pytest.raises(
        CarinaError, match=r"run\.json: written with schema 3\.0; this Carina .* reads up to 2\.x"
    ):
        run(bench, out, limit=1)


def test_a_run_of_schema_1_resumes(bench, tmp_path):
    """`calls` and `weights` came with 2.0, and `seen_sha256` was called `history` before."""
    out = tmp_path / "run"
    run(bench, out, limit=1)
    log = out / "steps-00.jsonl"
    log.write_text(log.read_text().replace('"seen_sha256"', '"history"'))
    plain = msgspec.to_builtins(read_info(out)) | {"schema": "1.0"}
    later = ("calls", "weights", "table", "case_count")
    old = {name: value for name, value in plain.items() if name not in later}
    (out / "run.json").write_bytes(msgspec.json.encode(old))
    assert read_info(out).started is None
    run(bench, out, limit=2)
    assert (read_info(out).schema, len(read_info(out).calls)) == ("2.1", 1)
    assert {row.case: row.seen_sha256 is None for row in open_run(out).rows()} == {"lf": True, "rr": False}
