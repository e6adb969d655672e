"""The scores at the end of `carina run` are those of a report."""

from pathlib import Path

import msgspec
import polars as pl
import pytest

import carina
from carina.runs.analysis.stage_scores import find_blind_run, summarise_run

COLUMNS = ["level", "name", "metric", "value", "low", "high", "n", "chance"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two benchmarks of phantoms, each with a reader, its blind run and the majority baseline beside it."""
    top = tmp_path_factory.mktemp("scores")
    studies = carina.make_phantoms(top / "studies", n=24, seed=5, size=64, workers=1)
    benches = {
        "percept": carina.build_percept(studies, top / "percept", per_cell=1, workers=1),
        "trek": carina.build_trek(studies, top / "trek", workers=1),
    }
    for name, bench in benches.items():
        for run, model in (("reader", "builtin/reader"), ("majority", "builtin/majority")):
            carina.run(bench, model, top / name / run, limit=12)
    return top, benches


@pytest.mark.parametrize("protocol", ["percept", "trek"])
def test_the_scores_equal_the_tables_of_a_report(made, tmp_path, protocol):
    top, _ = made
    runs = [top / protocol / name for name in ("reader", "majority")]
    tables = carina.report(runs, tmp_path / "report", cases=0).tables
    for path in runs:
        summary = carina.open_run(path).summary()
        expected = tables["headline"].filter(
            (pl.col("run") == path.name) & ~pl.col("metric").is_in(["sensitivity", "specificity"])
        )
        assert summary.select(COLUMNS).equals(expected.select(COLUMNS))
        assert summary.height > 4
        found = summarise_run(path)
        parsing = tables["reading"].filter((pl.col("run") == path.name) & (pl.col("name") == "not read"))
        assert parsing.select("value", "n").row(0) == (found.not_read, found.answers)


@pytest.mark.parametrize("protocol", ["percept", "trek"])
def test_the_blind_column_is_the_majority_run_beside_it_or_the_best_constant_answer(made, tmp_path, protocol):
    top, _ = made
    runs = [top / protocol / name for name in ("reader", "majority")]
    headline = carina.report(runs, tmp_path / "report", cases=0).tables["headline"]
    headline = headline.filter(~pl.col("metric").is_in(["sensitivity", "specificity"]))
    reader, majority = (carina.open_run(path).summary() for path in runs)
    assert set(reader["blind_source"]) == {"builtin/majority"}
    assert reader["blind"].to_list() == headline.filter(run="majority")["value"].to_list()
    assert set(majority["blind_source"]) == {"best constant answer"}
    assert majority["blind"].to_list() == headline.filter(run="majority")["constant"].to_list()


def blind_run(bench, out, **options):
    return carina.run(bench, "builtin/reader", out, blind=True, **options).path


def test_a_blind_run_of_the_same_model_and_cases_comes_first(made, tmp_path):
    bench = made[1]["percept"]
    own = carina.run(bench, "builtin/reader", tmp_path / "own", limit=3).path
    assert find_blind_run(own) is None
    blind_run(bench, tmp_path / "fewer", limit=2)
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "run.json").write_text("{")
    assert find_blind_run(own) is None
    carina.run(bench, "builtin/majority", tmp_path / "a-majority", limit=3)
    assert find_blind_run(own) == tmp_path / "a-majority"
    gold = blind_run(bench, tmp_path / "b-blind-gold", limit=3, history="gold")
    assert find_blind_run(own) == gold
    same = blind_run(bench, tmp_path / "c-blind-own", limit=3)
    assert find_blind_run(own) == same
    assert find_blind_run(same) == tmp_path / "a-majority"
    assert set(carina.open_run(own).summary()["blind_source"]) == {"builtin/reader (blind)"}


def test_of_two_blind_runs_the_one_that_was_asked_alike_is_taken(made, tmp_path):
    bench = made[1]["percept"]
    own = carina.run(bench, "builtin/reader", tmp_path / "z-own", limit=3).path
    blind_run(bench, tmp_path / "a-blind", limit=3, prompt_style="answer")
    blind_run(bench, tmp_path / "b-blind", limit=3, max_side=16)
    alike = blind_run(bench, tmp_path / "c-blind", limit=3)
    assert find_blind_run(own) == alike


def test_a_run_has_its_scores_by_any_name_of_its_directory_and_beside_damaged_ones(
    made, tmp_path, monkeypatch
):
    bench = made[1]["percept"]
    carina.run(bench, "builtin/majority", tmp_path / "real" / "majority", limit=3)
    own = carina.run(bench, "builtin/reader", tmp_path / "real" / "own", limit=3).path
    expected = summarise_run(own).to_frame()
    assert summarise_run(own).baseline.run == tmp_path / "real" / "majority"
    (tmp_path / "elsewhere").symlink_to(own)
    monkeypatch.chdir(own)
    for name in (Path(), tmp_path / "elsewhere"):
        assert summarise_run(name).to_frame().equals(expected)
    (tmp_path / "real" / "majority" / "steps.parquet").unlink()
    assert summarise_run(own).baseline.run is None


def test_an_interrupted_blind_run_is_not_compared_with(made, tmp_path):
    bench = made[1]["percept"]
    own = carina.run(bench, "builtin/reader", tmp_path / "own", limit=3).path
    blind = blind_run(bench, tmp_path / "blind", limit=3)
    info = carina.runs.read_info(blind)
    interrupted = msgspec.structs.replace(info, case_count=4)
    (blind / "run.json").write_bytes(msgspec.json.encode(interrupted))
    assert find_blind_run(own) is None


def test_a_run_without_answers_has_no_values(made, tmp_path):
    bench = made[1]["percept"]

    def fails(_messages):
        raise ValueError("no")

    # One answer keeps the run from ending at once; all the others fail.
    answers = iter(["nothing to read"])

    def once(messages):
        return next(answers, None) or fails(messages)

    found = summarise_run(carina.run(bench, once, tmp_path / "run", limit=1).path)
    assert {score.value for score in found.scores} <= {0.0, None}
    assert (found.not_read, found.answers) == (1.0, 1)
