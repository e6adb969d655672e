"""Reading runs: what is missing or not as it should be is named in a sentence."""

import json
import shutil

import polars as pl
import pytest

from carina.errors import CarinaError
from carina.report import read_run, runs_in, write_report
from carina.report.exam import exams
from carina.report.read import read_runs


@pytest.fixture
def copied(runs, tmp_path):
    """The runs and their benchmark, to be spoilt."""
    shutil.copytree(runs[0].parent, tmp_path / "all")
    return [tmp_path / "all" / run.name for run in runs]


def test_a_run_is_read(runs):
    run = read_run(runs[0])
    assert (run.id, run.model, run.history, run.baseline, run.oracle) == (
        "alpha",
        "lab/alpha",
        "own",
        False,
        False,
    )
    assert run.steps.height == 22
    assert run.benchmark.name == "bench"
    assert [row.step for row in run.rows(["c-RF1"])] == ["1", "2", "4a", "4c"]
    assert read_run(runs[3]).baseline


def test_what_is_no_run(tmp_path):
    wanted = "expected a run as `carina run` or `carina explain` writes it"
    with pytest.raises(CarinaError, match=f"no such directory, {wanted}"):
        read_run(tmp_path / "none")
    with pytest.raises(CarinaError, match=rf"no run\.json and no maps\.json, {wanted}"):
        read_run(tmp_path)
    with pytest.raises(CarinaError, match="no runs given"):
        read_runs([])


@pytest.mark.parametrize("content", ["{", "[]", '{"kind": "run"}', "\udcff"])
def test_run_json_that_is_none(copied, content):
    (copied[0] / "run.json").write_text(content, errors="surrogateescape")
    with pytest.raises(CarinaError, match=r"run\.json: not what a run is described by"):
        read_run(copied[0])


def test_an_unfinished_run(copied):
    (copied[0] / "steps.parquet").unlink()
    with pytest.raises(CarinaError, match=r"no steps\.parquet, which is made when a run ends"):
        read_run(copied[0])


def test_a_table_that_is_none(copied):
    (copied[0] / "steps.parquet").write_bytes(b"PAR1 and nothing more")
    with pytest.raises(CarinaError, match=r"steps\.parquet: not a Parquet file"):
        read_run(copied[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.drop("path"), "no column 'path'"),
        (
            lambda table: table.with_columns(number=pl.lit("one")),
            "column 'number' holds String, expected Int64",
        ),
        (lambda table: pl.concat([table, table.head(1)]), "case 'c-RR1' has step number 0 more than once"),
    ],
)
def test_a_table_of_something_else(copied, change, message):
    path = copied[0] / "steps.parquet"
    change(pl.read_parquet(path)).write_parquet(path)
    with pytest.raises(CarinaError, match=message):
        read_run(copied[0])


def test_a_run_from_before_there_were_scores_of_words(copied):
    path = copied[0] / "steps.parquet"
    pl.read_parquet(path).drop("bertscore", "chexbert_f1", "radgraph_entity_f1", "radgraph_f1").write_parquet(
        path
    )
    assert read_run(copied[0]).steps["bertscore"].is_null().all()


def test_a_run_without_steps_belongs_to_what_its_benchmark_holds(copied):
    path = copied[0] / "steps.parquet"
    pl.read_parquet(path).head(0).write_parquet(path)
    (exam,) = exams(read_runs(copied[:1]))
    assert (exam.protocol, exam.cases, exam.answered) == ("percept", (), False)


def test_a_run_given_twice(runs):
    with pytest.raises(CarinaError, match="expected each run once"):
        read_runs([runs[0], runs[0].parent / "bench" / ".." / runs[0].name])


def test_runs_of_one_name_are_told_apart_by_their_folders(runs, tmp_path):
    for folder in ("first", "second"):
        shutil.copytree(runs[0], tmp_path / folder / "alpha")
    found = read_runs([tmp_path / "first" / "alpha", tmp_path / "second" / "alpha", runs[1]])
    assert [run.id for run in found] == ["first/alpha", "second/alpha", "alpha-gold"]
    shutil.copytree(runs[0], tmp_path / "third" / "first" / "alpha")
    with pytest.raises(CarinaError, match="several are 'first/alpha'"):
        read_runs([tmp_path / "first" / "alpha", tmp_path / "third" / "first" / "alpha"])


def test_a_benchmark_that_has_moved(copied, tmp_path):
    bench = copied[0].parent / "bench"
    moved = bench.rename(tmp_path / "elsewhere")
    with pytest.raises(CarinaError, match="--bench says where it lies now"):
        exams(read_runs(copied))
    (exam,) = exams(read_runs(copied), benchmarks=[moved])
    assert exam.bench.directory == moved


def test_another_benchmark_in_its_place(copied):
    path = copied[0] / "run.json"
    told = json.loads(path.read_text()) | {"fingerprint": "0" * 64}
    path.write_text(json.dumps(told))
    with pytest.raises(CarinaError, match="was run on benchmark 000000000000, and"):
        exams(read_runs(copied[:1]))


def test_a_case_that_the_benchmark_lacks(copied):
    path = copied[0] / "steps.parquet"
    table = pl.read_parquet(path).with_columns(case=pl.col("case").str.replace("c-RR1", "c-XX1"))
    table.write_parquet(path)
    with pytest.raises(CarinaError, match="case 'c-XX1' is not in the benchmark"):
        exams(read_runs(copied[:1]))


def test_a_file_where_the_report_should_be(runs, tmp_path):
    (tmp_path / "report").write_text("")
    with pytest.raises(CarinaError, match="is a file, expected a directory"):
        write_report(runs, tmp_path / "report")


def test_a_directory_of_runs_stands_for_all_of_them(runs):
    root = runs[0].parent
    assert runs_in([root]) == sorted(runs)
    assert runs_in([runs[0], root / "nothing"]) == [runs[0], root / "nothing"]


def test_runs_that_would_read_the_same_carry_their_names(copied, runs):
    told = read_runs([runs[0], copied[0], runs[1]])
    assert told[0].model != told[1].model
    assert told[0].model.endswith(f"({told[0].id})")
    assert told[2].model == read_run(runs[1]).model
