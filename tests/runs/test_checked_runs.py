"""What a run is compared with when it is read: run.json, the ranges of its columns, and the checksums of images."""

import json
import math
import shutil

import msgspec
import numpy as np
import polars as pl
import pytest
from tests.runs.conftest import CASES, SIZE, lesion_free
from typer.testing import CliRunner

from carina.cases import Provenance, open_benchmark, write_benchmark
from carina.cli import app
from carina.pages.report import report
from carina.runs import evaluate, open_run, run
from carina.runs.claim import identify_run, read_info, write_info
from carina.runs.records import Policy, RunInfo
from carina.runs.steps_table import RANGES
from carina.store.errors import CarinaError
from carina.studies import write_png


@pytest.fixture
def finished(bench, tmp_path):
    return run(bench.directory, "builtin/random", tmp_path / "runs" / "random")


def change_table(path, column, row, value):
    """Change one value, as an earlier version without checksums would read it."""
    table = pl.read_parquet(path / "steps.parquet", glob=False)
    place = pl.int_range(pl.len()) == row
    changed = pl.when(place).then(pl.lit(value, table.schema[column])).otherwise(pl.col(column))
    table.with_columns(changed.alias(column)).write_parquet(path / "steps.parquet")
    forget_checksum(path)


def forget_checksum(path):
    described = json.loads((path / "run.json").read_text()) | {"table": None}
    (path / "run.json").write_text(json.dumps(described))


# ---- the table ------------------------------------------------------------------------------------------------------


def test_run_json_states_the_table(finished):
    info = read_info(finished.path)
    content = (finished.path / "steps.parquet").read_bytes()
    assert info.table is not None
    assert (info.table.rows, info.table.bytes) == (sum(len(case.steps) for case in CASES), len(content))
    assert (info.table.cases, info.case_count) == (len(CASES), len(CASES))


@pytest.mark.parametrize(
    "use", [lambda path: open_run(path).to_frame(), lambda path: report([path], path / "out")]
)
def test_the_table_of_another_model_is_refused(bench, finished, tmp_path, use):
    other = run(bench.directory, "builtin/majority", tmp_path / "runs" / "majority")
    shutil.copy(other.path / "steps.parquet", finished.path)
    with pytest.raises(CarinaError, match=r"steps\.parquet, row 0, column 'model': holds 'builtin/majority'"):
        use(finished.path)


@pytest.mark.parametrize(("column", "value"), [("history", "gold"), ("blind", True)])
def test_a_table_of_another_history_or_with_images_is_refused(finished, column, value):
    change_table(finished.path, column, 3, value)
    with pytest.raises(CarinaError, match=rf"steps\.parquet, row 3, column '{column}': holds {value!r}"):
        open_run(finished.path).to_frame()


def test_a_changed_table_is_refused_and_repaired_by_the_next_call(bench, finished):
    path = finished.path / "steps.parquet"
    before = path.read_bytes()
    pl.read_parquet(path).with_columns(score=pl.lit(1.0)).write_parquet(path)
    with pytest.raises(
        CarinaError, match=r"steps\.parquet: its SHA-256 is not the one that run\.json states"
    ):
        open_run(finished.path).to_frame()
    run(bench.directory, "builtin/random", finished.path)
    assert path.read_bytes() == before
    assert open_run(finished.path).notices == ()


@pytest.mark.parametrize("column", sorted(RANGES))
def test_a_number_outside_its_range_is_refused(finished, column):
    low, high = RANGES[column]
    wrong = [low - 2, high * 2 + 2]
    if column in ("score", "seconds", "chance", "bertscore", "f1"):
        wrong += [math.nan, math.inf, -math.inf]
    else:
        wrong = [int(value) for value in wrong]
    original = (finished.path / "steps.parquet").read_bytes()
    for value in wrong:
        (finished.path / "steps.parquet").write_bytes(original)
        change_table(finished.path, column, 5, value)
        with pytest.raises(
            CarinaError, match=rf"steps\.parquet, row 5, column '{column}': expected a number from"
        ):
            open_run(finished.path).to_frame()


def test_a_score_of_7_5_is_not_reported(finished, tmp_path):
    change_table(finished.path, "score", 2, 7.5)
    result = CliRunner().invoke(app, ["report", str(finished.path), "-o", str(tmp_path / "report")])
    assert result.exit_code == 2
    assert "row 2, column 'score': expected a number from 0 to 1, found 7.5" in " ".join(
        result.stderr.split()
    )
    assert not (tmp_path / "report").exists()


def test_a_protocol_that_is_a_path_stays_inside_the_report(finished, tmp_path):
    table = pl.read_parquet(finished.path / "steps.parquet", glob=False)
    moved = table.with_columns(protocol=pl.lit("../../../x"))
    moved.write_parquet(finished.path / "steps.parquet")
    forget_checksum(finished.path)
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    out = tmp_path / "a" / "b" / "report"
    written = report([finished.path], out)
    new = {path for path in tmp_path.rglob("*") if path.is_file()} - before
    assert new == {*written.files, out / ".carina.files"}
    assert all(out in path.parents for path in new)
    assert any(path.name.startswith("x-") and path.suffix == ".svg" for path in new)


def test_a_box_with_an_unknown_frame_or_an_infinite_corner_is_refused(finished):
    table = pl.read_parquet(finished.path / "steps.parquet")
    row = table.with_row_index().filter(pl.col("format") == "boxes")["index"][0]
    case = table["case"][row]
    for change, message in (
        ({"frame": "yards"}, rf"steps\.parquet, row {row}: .*yards"),
        ({"xyxy": [0.0, 0.0, math.inf, 1.0]}, rf"steps\.parquet, row {row}, column 'boxes': expected finite"),
    ):
        boxes = table["boxes"].to_list()
        boxes[row] = [
            {"image": f"{case}.png", "xyxy": [0.0, 0.0, 1.0, 1.0], "frame": "percent", "name": ""} | change
        ]
        table.with_columns(pl.Series("boxes", boxes, table.schema["boxes"])).write_parquet(
            finished.path / "steps.parquet"
        )
        forget_checksum(finished.path)
        with pytest.raises(CarinaError, match=message):
            open_run(finished.path).rows([case])


def test_a_run_of_an_earlier_version_is_read_and_said_to_be_unchecked(finished, tmp_path):
    forget_checksum(finished.path)
    (notice,) = open_run(finished.path).notices
    assert "no checksum of the table" in notice
    written = report([finished.path], tmp_path / "report")
    assert [finished.path.name in one and "no checksum" in one for one in written.notices] == [True]
    assert "no checksum of the table" in written.pages[0].read_text()


# ---- a run that was interrupted -------------------------------------------------------------------------------------


@pytest.fixture
def grown(bench, tmp_path, monkeypatch):
    """A run of two cases whose second call, for all cases, was killed before its table was written."""
    out = tmp_path / "grown"
    run(bench.directory, "builtin/random", out, limit=2)

    def die(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(evaluate, "close_run", die)
        with pytest.raises(KeyboardInterrupt):
            run(bench.directory, "builtin/random", out)
    return out


def test_a_killed_growing_run_is_not_called_complete(grown):
    opened = open_run(grown)
    assert (opened.counts.cases, opened.counts.complete) == (len(CASES), 2)
    (notice,) = opened.notices
    assert f"{len(CASES) - 2} of its {len(CASES)} cases are missing" in notice


def test_the_report_says_what_a_killed_growing_run_lacks(bench, grown, tmp_path):
    result = CliRunner().invoke(app, ["report", str(grown), "-o", str(tmp_path / "report")])
    assert result.exit_code == 0
    said = f"{len(CASES) - 2} of its {len(CASES)} cases are missing"
    assert said in " ".join(result.stderr.split())
    assert said in (tmp_path / "report" / "report.html").read_text()
    # Of the seven percept cases none but the two first has rows: lf and rr.
    reading = pl.read_csv(tmp_path / "report" / "tables" / "reading.csv")
    complete = reading.filter((pl.col("name") == "complete") & (pl.col("level") == "state"))
    assert complete.select("value", "n").rows() == [(2, 8)]
    run(bench.directory, "builtin/random", grown)
    finished = report([grown], tmp_path / "after")
    assert finished.notices == ()


def test_a_call_that_did_not_end_is_named_although_no_case_is_missing(finished):
    info = read_info(finished.path)
    call = msgspec.structs.replace(info.calls[-1], ended=None)
    started = msgspec.structs.replace(info, calls=(*info.calls, call))
    (finished.path / "run.json").write_bytes(msgspec.json.encode(started))
    (notice,) = open_run(finished.path).notices
    assert f"its last call, of {call.started}, was interrupted" in notice


# ---- images ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def two(tmp_path):
    """A benchmark of two cases that state the checksums of their images, which have the same size."""
    folder = tmp_path / "bench"
    cases = []
    for number, name in enumerate(("a", "b")):
        pixels = np.full((SIZE, SIZE), 50 + 100 * number, np.uint8)
        digest = write_png(folder / f"{name}.png", pixels)
        case = lesion_free(name)
        cases.append(
            msgspec.structs.replace(case, images=(msgspec.structs.replace(case.images[0], sha256=digest),))
        )
    write_benchmark(folder, cases, Provenance(command="made by hand"))
    return open_benchmark(folder)


def swap(bench):
    first, second = (bench.directory / name for name in ("a.png", "b.png"))
    contents = first.read_bytes(), second.read_bytes()
    first.write_bytes(contents[1])
    second.write_bytes(contents[0])


def test_swapped_images_of_equal_size_are_not_scored(two, tmp_path):
    run(two.directory, "builtin/reader", tmp_path / "right")
    swap(two)
    with pytest.raises(CarinaError, match="no question was answered: 2 cases failed"):
        run(two.directory, "builtin/reader", tmp_path / "wrong")
    wrong = open_run(tmp_path / "wrong")
    assert (wrong.counts.answered, wrong.counts.incomplete) == (0, 2)
    assert [case for case, _ in wrong.failures] == ["a", "b"]
    for name, (_, reason) in zip(("a.png", "b.png"), wrong.failures, strict=True):
        assert f"image {name!r} is not the file that the case was made for" in reason
    with pytest.raises(CarinaError, match=r"image 'a\.png'"):
        report([tmp_path / "right"], tmp_path / "report")


def test_a_case_whose_image_was_changed_is_left_out_of_the_report(two, tmp_path):
    run(two.directory, "builtin/reader", tmp_path / "run")
    (two.directory / "b.png").write_bytes((two.directory / "a.png").read_bytes())
    written = report([tmp_path / "run"], tmp_path / "report")
    (notice,) = [notice for notice in written.notices if "case browser" in notice]
    assert "image 'b.png' is not the file" in notice
    assert "a.png" not in notice.replace("b.png", "")


def test_the_comparison_of_images_can_be_turned_off_and_is_stated(two, tmp_path):
    swap(two)
    arguments = ["run", str(two.directory), "--model", "builtin/reader", "-o", str(tmp_path / "run")]
    failed = CliRunner().invoke(app, arguments)
    assert failed.exit_code == 1
    assert "image 'a.png' is not the file" in " ".join(failed.stderr.split())
    result = CliRunner().invoke(app, [*arguments, "--no-verify-images"])
    assert result.exit_code == 0, result.stderr
    assert [call.verify_images for call in read_info(tmp_path / "run").calls][-1] is False
    written = report([tmp_path / "run"], tmp_path / "report")
    assert "not compared with the checksums" in written.notices[0]
    assert "not compared with the checksums" in written.pages[0].read_text()


# ---- the log --------------------------------------------------------------------------------------------------------


def test_a_log_of_another_run_is_refused(bench, finished, tmp_path):
    other = run(bench.directory, "builtin/oracle", tmp_path / "other" / "random")
    shutil.copy(other.path / "steps-00.jsonl", finished.path)
    with pytest.raises(CarinaError, match=r"steps-00\.jsonl, line 1: an answer of another run"):
        run(bench.directory, "builtin/random", finished.path)


def test_lines_that_state_no_run_are_refused_except_in_runs_of_earlier_versions(bench, finished):
    log = finished.path / "steps-00.jsonl"
    entries = [msgspec.json.decode(line) for line in log.read_bytes().splitlines()]
    log.write_bytes(b"".join(msgspec.json.encode(entry | {"run": ""}) + b"\n" for entry in entries))
    with pytest.raises(CarinaError, match=r"steps-00\.jsonl, line 1: an answer of another run"):
        run(bench.directory, "builtin/random", finished.path)
    write_info(finished.path, msgspec.structs.replace(read_info(finished.path), log_names_run=False))
    assert run(bench.directory, "builtin/random", finished.path).to_frame().height == len(entries)


def test_what_identifies_a_run_in_its_log_stays_as_it_is():
    info = RunInfo(
        carina="1", id="a", model="m", blind=False, policy=Policy(), system={}, max_side=None, sampling={},
        benchmark="b", benchmark_command="c", fingerprint="f", cases=None, selection={"limit": 3, "seed": 1},
    )  # fmt: skip
    # A known answer: another one would disown the logs of all runs that were begun before.
    assert identify_run(info) == "90fca93a9b4d3c59"


def test_an_impossible_number_in_the_log_is_refused(bench, finished):
    log = finished.path / "steps-00.jsonl"
    first, *others = log.read_bytes().splitlines(keepends=True)
    row = msgspec.json.decode(first)
    row["row"]["score"] = 7.5
    log.write_bytes(b"".join([msgspec.json.encode(row) + b"\n", *others]))
    with pytest.raises(CarinaError, match=r"steps-00\.jsonl, line 1: .*score is 7\.5, expected 0 to 1"):
        run(bench.directory, "builtin/random", finished.path)


def test_a_table_that_is_replaced_while_the_run_is_open_is_compared_again(bench, finished, tmp_path):
    other = run(bench.directory, "builtin/majority", tmp_path / "runs" / "majority")
    opened = open_run(finished.path)
    opened.scores()
    shutil.copy(other.path / "steps.parquet", finished.path)
    with pytest.raises(CarinaError, match=r"steps\.parquet"):
        opened.rows([CASES[0].id])


# ---- a report of several runs ---------------------------------------------------------------------------------------


def test_a_run_that_never_finished_a_call_does_not_hold_up_the_others(finished, tmp_path):
    begun = finished.path.parent / "begun"
    begun.mkdir()
    shutil.copy(finished.path / "run.json", begun)
    written = report([finished.path.parent], tmp_path / "report", cases=0)
    assert [notice for notice in written.notices if "left out" in notice] == [
        f"{begun}: left out, because no call of `carina run` has finished there"
    ]
    with pytest.raises(CarinaError, match=r"steps\.parquet: missing"):
        report([begun], tmp_path / "alone")
