"""Runs as they are read: one object with tables and counts, and refusals that name file, column and row."""

import json

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.runs.conftest import CASES

from carina.runs import Policy, StepRow, open_run, run
from carina.store.errors import CarinaError

STEPS = sum(len(case.steps) for case in CASES)


@pytest.fixture(scope="module")
def finished(bench, tmp_path_factory):
    return run(bench.directory, "builtin/random", tmp_path_factory.mktemp("runs") / "random", history="gold")


@pytest.fixture
def copy(finished, tmp_path):
    """A run whose table a test may change: `copy(table)` writes the changed table."""
    path = tmp_path / "copy"
    path.mkdir()
    # As in runs of earlier versions, so that the change itself is found, and not only that there is one.
    described = json.loads((finished.path / "run.json").read_text()) | {"table": None}
    (path / "run.json").write_text(json.dumps(described))

    def write(change):
        pq.write_table(change(pq.read_table(finished.path / "steps.parquet")), path / "steps.parquet")
        return open_run(path)

    return write


def changed(column, row, value):
    """A change of one value of a table."""

    def change(table):
        values = table.column(column).to_pylist()
        values[row] = value
        field = table.schema.field(column).with_nullable(True)
        array = pa.array(values, field.type)
        return table.set_column(table.schema.get_field_index(column), field, array)

    return change


def test_a_run_that_is_opened_equals_the_one_that_was_returned(finished):
    opened = open_run(finished.path)
    assert opened.path == finished.path
    assert opened.info == finished.info
    assert opened.info.policy == Policy(history="gold")
    assert opened.counts == finished.counts
    assert opened.failures == finished.failures == ()
    assert opened.to_frame().equals(finished.to_frame())


def test_a_run_is_opened_by_text_path_or_object(finished):
    for location in (str(finished.path), finished.path, finished):
        assert open_run(location).path == finished.path


def test_the_frame_has_a_row_per_step_and_says_which_run_it_is(finished):
    frame = finished.to_frame()
    assert frame.columns == ["model", "history", "blind", *StepRow.__struct_fields__]
    assert frame.select("case", "number").rows() == [
        (case.id, number) for case in CASES for number in range(len(case.steps))
    ]
    assert frame.select("model", "history", "blind").unique().rows() == [("builtin/random", "gold", False)]
    assert [row.case for row in finished.rows(["rr"])] == ["rr"] * 7


def test_scores_are_means_by_stage_with_n(finished):
    scores = finished.scores()
    assert scores.columns == [
        *("protocol", "stage", "title", "n", "judged", "accuracy", "score", "chance", "unparsed")
    ]
    frame = finished.to_frame().filter(pl.col("protocol") == "percept", pl.col("stage") == 1)
    first = scores.row(0, named=True)
    assert (first["protocol"], first["stage"], first["n"]) == ("percept", 1, len(frame))
    assert first["accuracy"] == pytest.approx(sum(frame["correct"]) / len(frame))
    assert first["chance"] == 0.5
    assert scores["n"].sum() == STEPS


def test_the_share_of_answers_that_could_not_be_read_is_a_column_of_its_own(copy):
    def unread(table):
        status = table.column("status").to_pylist()
        first = [n for n, stage in enumerate(table.column("stage").to_pylist()) if stage == 1]
        for n, kind in zip(first, ("refusal", "ambiguous"), strict=False):
            status[n] = kind
        return table.set_column(
            table.schema.get_field_index("status"), table.schema.field("status"), [status]
        )

    scores = copy(unread).scores()
    unparsed = {(row["protocol"], row["stage"]): row["unparsed"] * row["n"] for row in scores.to_dicts()}
    assert sum(unparsed[key] for key in unparsed if key[1] == 1) == pytest.approx(2)
    assert all(number == 0 for key, number in unparsed.items() if key[1] != 1)


def test_a_run_describes_itself_in_one_line_and_in_a_notebook(finished):
    assert repr(finished) == (
        f"Run({str(finished.path)!r}, model='builtin/random', history='gold', cases={len(CASES)}, "
        f"answered='{STEPS} of {STEPS} steps')"
    )
    assert "<th style='text-align:left'>model</th>" in finished._repr_html_()


def test_brackets_in_a_path_are_not_read_as_a_pattern(bench, tmp_path):
    written = run(bench.directory, "builtin/oracle", tmp_path / "run [a-z]*", limit=1)
    assert len(open_run(written.path).to_frame()) == 1


def test_a_table_of_schema_1_is_read(copy):
    def older(table):
        table = table.drop_columns(["model", "history", "blind", "bertscore", "radgraph_f1"])
        return table.rename_columns(
            ["history" if name == "seen_sha256" else name for name in table.column_names]
        )

    frame = copy(older).to_frame()
    assert set(frame["history"]) == {"gold"}
    assert frame["seen_sha256"].str.len_chars().unique().to_list() == [64]
    assert frame["bertscore"].null_count() == STEPS


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.drop_columns(["stage"]), r"steps\.parquet, column 'stage': missing"),
        (lambda table: table.set_column(table.schema.get_field_index("stage"), "stage",
                                        table.column("stage").cast(pa.string())),
         r"steps\.parquet, column 'stage': expected Int64, found String"),
        (changed("case", 4, None), r"steps\.parquet, row 4, column 'case': expected a value, found null"),
        (changed("state", 7, "lost"), r"steps\.parquet, row 7, column 'state': expected one of .*found 'lost'"),
        (changed("status", 2, "fine"), r"steps\.parquet, row 2, column 'status': expected one of .*ok.*found 'fine'"),
        (changed("number", 3, 1), r"steps\.parquet, row 2, column 'number': case 'rr' has step 1 more than once"),
    ],
)  # fmt: skip
def test_a_damaged_table_is_refused_with_file_column_and_row(copy, change, message):
    with pytest.raises(CarinaError, match=message):
        copy(change).to_frame()


def test_a_file_that_is_no_table_is_refused(finished, tmp_path):
    (tmp_path / "run.json").write_bytes((finished.path / "run.json").read_bytes())
    (tmp_path / "steps.parquet").write_bytes(b"nothing")
    with pytest.raises(CarinaError, match=r"steps\.parquet: not a Parquet file"):
        open_run(tmp_path).to_frame()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "3.0"}, r"run\.json: written with schema 3\.0; .* reads up to 2\.x"),
        ({"schema": "new"}, r"run\.json: schema 'new' is not a version"),
        ({"kind": "benchmark"}, r"run\.json: holds 'benchmark', expected 'run'"),
        ({"policy": 3}, r"run\.json: .*policy"),
    ],
)
def test_a_description_that_cannot_be_read_is_refused(finished, tmp_path, change, message):
    described = json.loads((finished.path / "run.json").read_text()) | change
    (tmp_path / "run.json").write_text(json.dumps(described))
    with pytest.raises(CarinaError, match=message):
        open_run(tmp_path)
