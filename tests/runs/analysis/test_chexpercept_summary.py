"""`chexpercept.csv`: accuracy by stage and depth, path by path, worked out from `small_runs.py` by hand."""

import csv

import polars as pl
import pytest

from carina.runs.analysis.chexpercept import summarise_paths
from carina.runs.analysis.outcomes import derive_outcomes
from carina.runs.analysis.read import read_run

LF, RF, RR = "lesion_free", "revision_free", "revision_required"
WANTED = {
    # Stages 1 to 4, depth, n.
    ("alpha", LF, "end_to_end"): (1 / 2, None, None, None, 1 / 2, 2),
    ("alpha", LF, "oracle_passed"): (1 / 2, None, None, None, 1 / 2, 2),
    # RF1 passes all three stages, RF2 the first.
    ("alpha", RF, "end_to_end"): (1, 1 / 2, None, 1 / 2, 2, 2),
    ("alpha", RF, "oracle_passed"): (1, 1 / 2, None, 1 / 2, 2, 2),
    # RR1 passes four, RR2 two; but RR2's attributes are right.
    ("alpha", RR, "end_to_end"): (1, 1, 1 / 2, 1 / 2, 3, 2),
    ("alpha", RR, "oracle_passed"): (1, 1, 1 / 2, 1, 3, 2),
    # RF2 failed on the way and is left out.
    ("beta", RF, "end_to_end"): (0, 0, None, 0, 0, 1),
    ("beta", RF, "oracle_passed"): (0, 1, None, 0, 0, 1),
    ("beta", RR, "end_to_end"): (1 / 2, 0, 0, 0, 1 / 2, 2),
    ("beta", RR, "oracle_passed"): (1 / 2, 0, 0, 0, 1 / 2, 2),
}


@pytest.fixture(scope="module")
def rows(written):
    (path,) = [path for path in written.files if path.name == "chexpercept.csv"]
    return list(csv.DictReader(path.read_text().splitlines()))


def test_the_table_has_the_columns_of_the_publication(rows):
    assert list(rows[0]) == [
        "path", "model", "setting", "acc(stage1)", "acc(stage2)", "acc(stage3)", "acc(stage4)", "depth",
        "history", "run", "n",
    ]  # fmt: skip
    # Four runs, three paths, two views.
    assert len(rows) == 24
    assert {(row["model"], row["history"]) for row in rows} == {
        ("lab/alpha", "own"), ("lab/alpha", "gold"), ("lab/beta", "own"), ("builtin/majority", "own"),
    }  # fmt: skip


@pytest.mark.parametrize("key", WANTED)
def test_accuracies_and_depth_equal_those_worked_out_by_hand(rows, key):
    (row,) = [row for row in rows if (row["run"], row["path"], row["setting"]) == key]
    names = ("acc(stage1)", "acc(stage2)", "acc(stage3)", "acc(stage4)", "depth", "n")
    found = [float(row[name]) if row[name] else None for name in names]
    assert found == [None if one is None else pytest.approx(one) for one in WANTED[key]]


def test_a_case_without_attributes_is_as_deep_as_the_others(runs, keys):
    # As with cardiomegaly: RR1 has three stages, all right, and counts as four; RR2 breaks at the third.
    run = read_run(runs[0])
    steps = run.read_steps()
    bare = steps.filter((pl.col("stage") != 4) & (pl.col("path") == "RR"))
    told = summarise_paths(run, derive_outcomes(bare, "percept", keys))
    assert [(row.depth, row.stage3, row.stage4) for row in told] == [(3.0, 0.5, None)] * 2
    # What ends after detection by its nature gets nothing for that.
    healthy = steps.filter(pl.col("case") == "c-LF1")
    assert summarise_paths(run, derive_outcomes(healthy, "percept", keys))[0].depth == 1.0
