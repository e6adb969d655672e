"""Runs of which nothing came: a report that says so, without a figure made of nothing."""

import re
import shutil

import polars as pl
import pytest

from carina.report import write_report


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
    for path in written.tables:
        if path.suffix == ".csv":
            assert not re.search(r"(^|,)(nan|inf|-inf)(,|$)", path.read_text(), re.MULTILINE | re.IGNORECASE)
    source = written.html.read_text()
    body = source[source.index("<body>") : source.index("<script")]
    text = " ".join(re.sub(r"<[^>]+>", " ", body).split())
    assert not re.search(r"\bnan\b", text, re.IGNORECASE)
    return text


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (
            fail,
            "lab/alpha · own on percept: not one of its 22 steps was answered, so it has no figures of its own",
        ),
        (empty, "lab/alpha · own on percept: the run holds no steps, so it has no figures here."),
    ],
)
def test_alone(copied, tmp_path, spoil, said):
    spoil(copied[0])
    written = write_report(copied[:1], tmp_path / "report")
    text = words(written)
    assert said in text
    assert "Nothing was answered, so there are no figures." in text
    assert written.figures == ()
    assert "incomplete" not in re.sub(r"steps incomplete|incomplete steps", "", text.split("Methods")[0])


@pytest.mark.parametrize("spoil", [fail, empty])
def test_beside_others(copied, tmp_path, spoil):
    spoil(copied[0])
    written = write_report(copied, tmp_path / "report")
    text = words(written)
    assert "lab/alpha · own on percept: " in text
    assert "Highest: lab/beta" in text
    assert 'data-key="beta|micro||accuracy"' in written.html.read_text()
    assert 'data-key="alpha|micro||accuracy"' not in written.html.read_text()


def test_one_model_that_failed_under_one_history(copied, tmp_path):
    fail(copied[1])
    text = words(write_report(copied, tmp_path / "report"))
    assert "lab/alpha · gold on percept: not one of its 22 steps was answered" in text
    assert "own less gold" not in text
