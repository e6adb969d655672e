"""Reading runs: errors name the file and what is wrong with it."""

import json
import shutil

import msgspec
import polars as pl
import pytest

from carina.pages.report import report
from carina.runs.analysis.histories import pair_with_corrected
from carina.runs.analysis.read import describe_request, find_runs, read_run, read_runs
from carina.runs.analysis.run_groups import group_runs
from carina.store.errors import CarinaError


@pytest.fixture
def copied(runs, tmp_path):
    """The runs and their benchmark, to be spoilt."""
    shutil.copytree(runs[0].parent, tmp_path / "all")
    return [tmp_path / "all" / run.name for run in runs]


def test_a_run_is_read_with_model_history_and_steps(runs):
    run = read_run(runs[0])
    assert (run.id, run.model, run.history, run.is_baseline, run.is_oracle) == (
        "alpha",
        "lab/alpha",
        "own",
        False,
        False,
    )
    assert run.read_steps().height == 22
    assert run.benchmark.name == "bench"
    assert [row.step for row in run.rows(["c-RF1"])] == ["1", "2", "4a", "4c"]
    assert read_run(runs[3]).is_baseline


def test_a_run_says_how_its_model_was_asked_where_that_is_not_usual(runs):
    info = read_run(runs[0]).info
    assert describe_request(info) == ""
    unusual = msgspec.structs.replace(
        info,
        sampling={"temperature": 0.7, "max_tokens": 2048, "seed": None},
        request={"top_p": 0.9, "reasoning_effort": "low", "extra_body": {"min_p": 0.1}, "structured": True},
    )
    assert describe_request(unusual) == (
        'temperature 0.7, top p 0.9, reasoning effort low, extra body {"min_p":0.1}, structured answers'
    )
    assert describe_request(msgspec.structs.replace(info, sampling={"temperature": None})) == (
        "temperature of the model"
    )


def test_runs_that_were_asked_otherwise_are_not_taken_for_one_model(copied, tmp_path):
    path = copied[1] / "run.json"
    assert read_run(copied[1]).history == "gold"
    assert len(pair_with_corrected(read_runs(copied[:2]))) == 1
    path.write_text(json.dumps(json.loads(path.read_text()) | {"request": {"top_p": 0.9}}))
    assert pair_with_corrected(read_runs(copied[:2])) == []
    (page, *_) = report(copied[:2], tmp_path / "page").path.glob("report.html")
    assert ", top p 0.9; benchmark" in page.read_text()


def test_a_directory_without_a_run_is_refused(tmp_path):
    with pytest.raises(CarinaError, match="none: no such directory"):
        read_run(tmp_path / "none")
    with pytest.raises(CarinaError, match=r"no run\.json and no maps\.json"):
        read_run(tmp_path)
    with pytest.raises(CarinaError, match="no runs given"):
        read_runs([])


@pytest.mark.parametrize("content", ["{", "[]", '{"kind": "run"}', "\udcff"])
def test_an_invalid_run_json_is_refused(copied, content):
    (copied[0] / "run.json").write_text(content, errors="surrogateescape")
    with pytest.raises(CarinaError, match=r"run\.json: "):
        read_run(copied[0])


def test_a_run_of_a_newer_schema_is_refused(copied):
    path = copied[0] / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema": "99.0"}))
    with pytest.raises(CarinaError, match=r"run\.json: .*schema 99\.0"):
        read_run(copied[0])


def test_an_unfinished_run_is_refused(copied):
    (copied[0] / "steps.parquet").unlink()
    with pytest.raises(CarinaError, match=r"steps\.parquet: missing"):
        read_run(copied[0])


def test_an_invalid_parquet_file_is_refused(copied):
    (copied[0] / "steps.parquet").write_bytes(b"PAR1 and nothing more")
    with pytest.raises(CarinaError, match=r"steps\.parquet: not a Parquet file"):
        read_run(copied[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.drop("path"), r"steps\.parquet, column 'path': missing"),
        (
            lambda table: table.with_columns(number=pl.lit("one")),
            r"steps\.parquet, column 'number': expected Int64, found String",
        ),
        (lambda table: pl.concat([table, table.head(1)]), "case 'c-RR1' has step 0 more than once"),
    ],
)
def test_a_table_with_other_columns_is_refused(copied, change, message):
    path = copied[0] / "steps.parquet"
    change(pl.read_parquet(path)).write_parquet(path)
    with pytest.raises(CarinaError, match=message):
        read_run(copied[0])


def test_a_run_without_columns_of_text_scores_is_read(copied):
    path = copied[0] / "steps.parquet"
    pl.read_parquet(path).drop("bertscore", "chexbert_f1", "radgraph_entity_f1", "radgraph_f1").write_parquet(
        path
    )
    assert read_run(copied[0]).read_steps()["bertscore"].is_null().all()


def test_a_run_without_steps_has_the_protocol_of_its_benchmark(copied):
    path = copied[0] / "steps.parquet"
    pl.read_parquet(path).head(0).write_parquet(path)
    (group,) = group_runs(read_runs(copied[:1]))
    assert (group.protocol, group.cases, group.has_answers) == ("percept", (), False)


def test_a_run_that_is_given_twice_is_refused(runs):
    with pytest.raises(CarinaError, match="expected each run once"):
        read_runs([runs[0], runs[0].parent / "bench" / ".." / runs[0].name])


def test_runs_of_one_name_get_ids_with_their_folders(runs, tmp_path):
    for folder in ("first", "second"):
        shutil.copytree(runs[0], tmp_path / folder / "alpha")
    found = read_runs([tmp_path / "first" / "alpha", tmp_path / "second" / "alpha", runs[1]])
    assert [run.id for run in found] == ["first/alpha", "second/alpha", "alpha-gold"]
    shutil.copytree(runs[0], tmp_path / "third" / "first" / "alpha")
    with pytest.raises(CarinaError, match="several have the id 'first/alpha'"):
        read_runs([tmp_path / "first" / "alpha", tmp_path / "third" / "first" / "alpha"])


def test_a_moved_benchmark_is_found_where_it_is_named(copied, tmp_path):
    bench = copied[0].parent / "bench"
    moved = bench.rename(tmp_path / "elsewhere")
    with pytest.raises(CarinaError, match=r"alpha: its benchmark is not at .*--bench"):
        group_runs(read_runs(copied))
    (group,) = group_runs(read_runs(copied), benchmarks=[moved])
    assert group.bench.directory == moved


def test_a_changed_benchmark_is_refused(copied):
    path = copied[0] / "run.json"
    told = json.loads(path.read_text()) | {"fingerprint": "0" * 64}
    path.write_text(json.dumps(told))
    with pytest.raises(CarinaError, match="alpha: was run on benchmark 000000000000"):
        group_runs(read_runs(copied[:1]))


def test_a_case_that_the_benchmark_lacks_is_refused(copied):
    path = copied[0] / "steps.parquet"
    table = pl.read_parquet(path).with_columns(case=pl.col("case").str.replace("c-RR1", "c-XX1"))
    table.write_parquet(path)
    with pytest.raises(CarinaError, match="case 'c-XX1' is not in the benchmark"):
        group_runs(read_runs(copied[:1]))


def test_a_file_in_place_of_the_output_directory_is_refused(runs, tmp_path):
    (tmp_path / "report").write_text("")
    with pytest.raises(CarinaError, match="is a file, expected a directory"):
        report(runs, tmp_path / "report")


def test_a_directory_of_runs_stands_for_all_of_them(runs):
    root = runs[0].parent
    assert find_runs([root]) == sorted(runs)
    assert find_runs([runs[0], root / "nothing"]) == [runs[0], root / "nothing"]


def test_runs_with_the_same_model_and_history_get_a_suffix(copied, runs):
    told = read_runs([runs[0], copied[0], runs[1]])
    assert told[0].model != told[1].model
    assert told[0].model.endswith(f"({told[0].id})")
    assert told[2].model == read_run(runs[1]).model
