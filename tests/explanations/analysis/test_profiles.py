"""Runs scored by other profiles, without a split to tune on, without controls, or with nothing to score."""

import re
from statistics import fmean

import msgspec
import polars as pl
import pytest

from carina.cases import open_benchmark
from carina.explanations.analysis.maps_groups import find_benchmark
from carina.explanations.analysis.read import read_maps_run
from carina.explanations.map_run import open_map_run
from carina.explanations.scoring import read_scoring
from carina.pages.report import report
from carina.store.errors import CarinaError
from carina.store.files import sha256


def text_of(written):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", written.pages[0].read_text(encoding="utf-8")))


def test_a_run_by_another_profile_has_a_page_of_its_own_measures(explained, probes, tiny, tmp_path):
    other = tiny.explained(
        tmp_path / "medklip", probes, profile_name="medklip", tune_on=None, controls=("centre",)
    )
    written = report([explained[0], other], tmp_path / "out", benchmarks=[probes.directory])
    text = text_of(written)
    assert "bench · medklip" in text
    assert "nearest_224 any_max positives per_image" in text
    # Two profiles are two sections, whose figures are not compared.
    assert set(written.figures) >= {"ground-1-headline", "ground-2-headline"}
    assert "minus lab/good" not in text


def test_without_tuning_and_controls_a_reader_is_warned(probes, tiny, tmp_path):
    bare = tiny.explained(tmp_path / "bare", probes, tune_on=None, controls=(), scored=False)
    text = text_of(report([bare], tmp_path / "out"))
    assert "lab/good · similarity: scored without controls" in text
    assert "no split for tuning thresholds was given" in text
    assert "The benchmark of lab/good · similarity was not found" in text
    assert "IoU, Otsu" in text
    assert "IoU, tuned" not in text
    # Nothing was tuned: neither columns nor a triangle tell of it.
    assert "Best threshold" in text
    assert "Tuned threshold" not in text
    assert "The triangle is the threshold" not in text
    assert "Recognition and grounding" not in text


def rescored(run, **changes):
    """The scoring of tables that were changed on purpose."""
    sums = {name: sha256(run / name) for name in ("scores.parquet", "summary.parquet")}
    made = msgspec.structs.replace(read_scoring(run), tables=sums, **changes)
    (run / "scoring.json").write_bytes(msgspec.json.encode(made))


def test_a_run_with_nothing_to_score_is_refused(probes, tiny, tmp_path):
    run = tiny.explained(tmp_path / "none", probes, tune_on=None, controls=())
    for name in ("scores", "summary"):
        pl.DataFrame([]).write_parquet(run / f"{name}.parquet")
    rescored(run, scored=0, sensitivity=())
    with pytest.raises(CarinaError, match="none: none of its maps is of a present finding"):
        report([run], tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
@pytest.mark.parametrize("place", [("scores", "share"), ("summary", "high")])
def test_a_number_that_is_not_finite_is_refused(probes, tiny, tmp_path, place, value):
    table, column = place
    run = tiny.explained(tmp_path / "run", probes, controls=())
    path = run / f"{table}.parquet"
    changed = pl.when(pl.int_range(pl.len()) == 1).then(value).otherwise(pl.col(column)).alias(column)
    pl.read_parquet(path).with_columns(changed).write_parquet(path)
    rescored(run)
    with pytest.raises(
        CarinaError, match=rf"{table}\.parquet, row 1, column '{column}': expected a finite number"
    ):
        report([run], tmp_path / "out")


def test_scores_of_another_model_are_refused(probes, tiny, tmp_path):
    run = tiny.explained(tmp_path / "run", probes, controls=())
    rescored(run, model="lab/other")
    with pytest.raises(
        CarinaError, match=r"scoring\.json: is about lab/other, .* but maps\.json about lab/good"
    ):
        read_maps_run(run)


def test_the_scores_of_the_run_itself_are_read_whatever_its_name(probes, tiny, tmp_path):
    """As a pattern, `m[1]` stands for `m1`, and `a*b` for `a-b`."""
    names = ("m1", "m[1]", "a-b", "a*b", "qq", "q?")
    runs = []
    for number, name in enumerate(names):
        run = tiny.explained(tmp_path / name, probes, controls=())
        for table, column in (("scores", "share"), ("summary", "value")):
            path = run / f"{table}.parquet"
            pl.read_parquet(path, glob=False).with_columns(pl.lit(number / 10).alias(column)).write_parquet(
                path
            )
        rescored(run)
        runs.append(run)
    for number, run in enumerate(runs):
        read, opened = read_maps_run(run), open_map_run(run)
        for scores in (read.scores, opened.to_frame()):
            assert scores["share"].unique().to_list() == [number / 10]
        for summary in (read.summary, opened.summary()):
            assert summary["value"].unique().to_list() == [number / 10]
        assert len(opened.maps.table(["id"]).collect()) == len(opened.maps)
        assert len(opened.maps.sql("SELECT id FROM maps").pl()) == len(opened.maps)


def test_tables_that_lack_a_column_are_refused(probes, tiny, tmp_path):
    run = tiny.explained(tmp_path / "run", probes, controls=())
    scores = pl.read_parquet(run / "scores.parquet")
    scores.drop("share").write_parquet(run / "scores.parquet")
    rescored(run)
    with pytest.raises(CarinaError, match=r"scores.parquet: no column 'share'"):
        read_maps_run(run)


def test_scores_of_other_maps_or_other_tables_are_refused(probes, tiny, tmp_path):
    said = "run: maps or tables were changed after scoring"
    run = tiny.explained(tmp_path / "run", probes, controls=())
    scores = pl.read_parquet(run / "scores.parquet")
    scores.with_columns(share=pl.lit(0.5)).write_parquet(run / "scores.parquet")
    with pytest.raises(CarinaError, match=said):
        read_maps_run(run)
    rescored(run)
    assert read_maps_run(run).own["share"].unique().to_list() == [0.5]
    # Maps of the same recipe, such as those of images that could not be read before.
    rescored(run, parts=("0" * 64,))
    with pytest.raises(CarinaError, match=said):
        read_maps_run(run)


def test_a_profile_of_findings_alone_has_their_mean_for_headline(explained, probes, tiny, tmp_path):
    run = tiny.explained(tmp_path / "chx", probes, profile_name="chexlocalize", controls=("centre",))
    assert set(read_maps_run(run).summary["level"]) == {"finding"}
    written = report([explained[0], run], tmp_path / "out", benchmarks=[probes.directory])
    page = written.pages[0].read_text(encoding="utf-8")
    headline = page[page.index('id="maps-2"') :].partition("</table>")[0]
    drawn = headline.partition("</svg>")[0]
    assert drawn.count("lab/good · similarity") >= 1
    assert "mean over findings" in headline
    rows = pl.read_csv(tmp_path / "out" / "tables" / "ground-headline.csv").filter(pl.col("run") == "chx")
    parts = pl.read_csv(tmp_path / "out" / "tables" / "ground-breakdown.csv").filter(
        (pl.col("run") == "chx") & (pl.col("level") == "finding")
    )
    assert rows.filter(pl.col("value").is_not_null()).height
    for source, metric, average, value, low, n in rows.select(
        "source", "metric", "average", "value", "low", "n"
    ).iter_rows():
        own = parts.filter((pl.col("source") == source) & (pl.col("metric") == metric))
        if own.height:
            assert value == pytest.approx(fmean(own["value"].drop_nulls()))
            assert (average, low, n) == ("macro", None, own["n"].sum())
    key = f'data-key="chx|model|all||{parts["metric"][0]}|macro"'
    assert key in headline
    # Each of the two has warnings of its own.
    titles = ("Warnings and notes, bench", "Warnings and notes, bench · chexlocalize")
    assert re.findall(r'aria-label="(Warnings and notes, [^"]*)"', page) == list(titles)


def test_a_benchmark_is_found_beside_its_runs_or_where_it_is_named(explained, probes, tmp_path):
    wanted = probes.manifest.fingerprint
    assert find_benchmark(wanted, explained[0], []).directory.resolve() == probes.directory.resolve()
    assert find_benchmark("another", explained[0], []) is None
    named = open_benchmark(probes.directory)
    assert find_benchmark(wanted, tmp_path, [named]) is named
    assert find_benchmark(wanted, tmp_path / "far" / "away" / "run", []) is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"scored": 1_000_000_000}, "counts more maps"),
        ({"scored": -1}, "scored"),
        ({"profile": "../../x"}, "profile '../../x': unknown"),
    ],
)
def test_a_scoring_that_contradicts_the_maps_is_refused(probes, tiny, tmp_path, changes, words):
    run = tiny.explained(tmp_path / "run", probes, tune_on=None, controls=())
    rescored(run, **changes)
    with pytest.raises(CarinaError, match=rf"scoring\.json: .*{words}"):
        read_maps_run(run)
