"""Runs without a single answer: the report says so, and has no empty tables and figures."""

import re
import shutil

import polars as pl
import pytest

from carina.pages.report import report as write_report


@pytest.fixture
def copied(runs, tmp_path):
    shutil.copytree(runs[0].parent, tmp_path / "all")
    return [tmp_path / "all" / run.name for run in runs]


def fail(run):
    """Nothing of it was ever answered."""
    path = run / "steps.parquet"
    table = pl.read_parquet(path)
    blank = [
        "status",
        "raw",
        "correct",
        "score",
        "overlap",
        "f1",
        "obeyed",
        "seconds",
        "input_tokens",
        "output_tokens",
    ]
    table.with_columns(
        pl.lit("incomplete").alias("state"),
        *(pl.lit(None, table.schema[name]).alias(name) for name in blank),
        pl.lit(0, pl.Int64).alias("images"),
    ).write_parquet(path)


def empty(run):
    path = run / "steps.parquet"
    pl.read_parquet(path).head(0).write_parquet(path)


def words(written):
    """The text of the page, after a look at all files for what is no number."""
    for path in written.files:
        if path.suffix == ".csv":
            assert not re.search(r"(^|,)(nan|inf|-inf)(,|$)", path.read_text(), re.MULTILINE | re.IGNORECASE)
    source = written.pages[0].read_text()
    body = source[source.index("<body>") : source.index("<script")]
    text = " ".join(re.sub(r"<[^>]+>", " ", body).split())
    assert not re.search(r"\bnan\b", text, re.IGNORECASE)
    return text


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (
            fail,
            "lab/alpha · own on percept: not one of its 22 steps was answered, so it has no results here",
        ),
        (empty, "lab/alpha · own on percept: the run holds no steps, so it has no results here."),
    ],
)
def test_a_report_of_an_unanswered_run_alone_says_so(copied, tmp_path, spoil, said):
    spoil(copied[0])
    written = write_report(copied[:1], tmp_path / "report")
    text = words(written)
    assert said in text
    assert "No step was answered, so there are no results." in text
    assert written.figures == {}
    assert "incomplete" not in re.sub(r"steps incomplete|incomplete steps", "", text.split("Methods")[0])


@pytest.mark.parametrize("spoil", [fail, empty])
def test_an_unanswered_run_does_not_hide_the_others(copied, tmp_path, spoil):
    spoil(copied[0])
    written = write_report(copied, tmp_path / "report")
    text = words(written)
    assert "lab/alpha · own on percept: " in text
    assert "Highest: lab/beta" in text
    assert 'data-key="beta|micro||accuracy"' in written.pages[0].read_text()
    assert 'data-key="alpha|micro||accuracy"' not in written.pages[0].read_text()


def test_a_model_that_failed_under_one_history_has_no_difference(copied, tmp_path):
    fail(copied[1])
    text = words(write_report(copied, tmp_path / "report"))
    assert "lab/alpha · gold on percept: not one of its 22 steps was answered" in text
    assert "own minus gold" not in text
