"""The tidy table of a report, labels of runs, tables for a paper, and what tells runs apart."""

import re
import shutil
from pathlib import Path

import polars as pl
import pytest
from tests.runs.analysis import small_runs as small

from carina import open_report
from carina.pages.report import report
from carina.pages.run_comparison.figures import style_runs
from carina.pages.run_comparison.labels import short_title
from carina.pages.run_comparison.table_text import escape_latex, escape_markdown
from carina.runs.analysis.read import assign_labels, read_runs
from carina.runs.analysis.run_groups import group_runs
from carina.runs.records import Policy, PromptInfo
from carina.store.errors import CarinaError


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    """One model with gold and with CheXpercept's implicit, and twice with the same setting."""
    root = tmp_path_factory.mktemp("settings")
    cases = small.bench(root / "bench")
    for name, model, policy in (
        ("a", "lab/alpha", Policy()),
        ("b", "lab/alpha", Policy()),
        ("gold", "lab/alpha", Policy(history="gold")),
        ("implicit", "lab/alpha", Policy(history="gold", scope="stage")),
        ("published", "lab/alpha", Policy(history="gold", scope="stage", profile="chexpercept")),
    ):
        answers = "alpha" if policy.history == "own" else "alpha-gold"
        prompts = PromptInfo(image_order="after" if policy.profile == "chexpercept" else "before")
        told = small.rows(cases, answers)
        small.write_run(root / name, cases, told, model, "own", policy=policy, prompts=prompts)
    return [root / name for name in ("a", "b", "gold", "implicit", "published")]


# ---- the tidy table ----


def test_a_row_has_everything_that_its_estimate_is_compared_with(written):
    frame = written.to_frame()
    assert frame.columns == [
        "protocol", "benchmark", "run", "label", "model", "method", "history", "setting", "level", "stage",
        "stage_name", "metric", "n", "estimate", "low", "high", "chance", "constant", "blind_baseline",
        "human_ceiling", "unread",
    ]  # fmt: skip
    assert frame.height == 4 * 7  # four runs; case success, four stages, mean over stages, all steps
    assert (
        frame.select(
            pl.col("protocol", "benchmark", "run", "label", "stage_name").null_count()
        ).sum_horizontal()[0]
        == 0
    )
    row = frame.row(by_predicate=(pl.col("run") == "beta") & (pl.col("stage") == 3), named=True)
    # Both of its cases that have stage 3 are wrong; one of its three answers was refused. Majority has none right.
    assert (row["stage_name"], row["metric"], row["n"]) == ("Contour revision", "accuracy", 2)
    assert (row["estimate"], row["chance"], row["blind_baseline"]) == (0, pytest.approx(1 / 32), 0)
    assert row["unread"] == pytest.approx(1 / 4)
    assert (row["history"], row["setting"], row["human_ceiling"]) == ("own", "own", None)
    whole = frame.row(by_predicate=(pl.col("run") == "beta") & (pl.col("level") == "micro"), named=True)
    assert (whole["stage"], whole["stage_name"]) == (None, "All steps")
    assert whole["unread"] == pytest.approx(1 / 19)
    # Gold has no baseline of its own: the one of another history stands in.
    gold = frame.filter((pl.col("run") == "alpha-gold") & (pl.col("level") == "micro"))
    assert gold["blind_baseline"].to_list() == pytest.approx([6 / 22])


def test_csv_and_parquet_are_the_same_and_are_opened_again(written):
    opened = open_report(written.path)
    assert opened.to_frame().equals(written.to_frame())
    assert list(opened.tables) == ["results", *sorted(set(written.tables) - {"results"})]
    for name, table in opened.tables.items():
        assert table.schema == written.tables[name].schema, name
        assert table.height == written.tables[name].height, name
    csv = pl.read_csv(written.path / "tables" / "results.csv")
    assert csv["estimate"].to_list() == pytest.approx(written.to_frame()["estimate"].to_list())
    assert set(opened.files) == set(written.files)
    assert opened.pages == written.pages


def test_a_directory_without_a_report_is_refused(tmp_path):
    with pytest.raises(CarinaError, match=r"results\.parquet"):
        open_report(tmp_path)


def test_a_damaged_table_is_refused(written, tmp_path):
    shutil.copytree(written.path, tmp_path / "copy")
    (tmp_path / "copy" / "results.parquet").write_bytes(b"no table")
    with pytest.raises(CarinaError, match=r"results\.parquet"):
        open_report(tmp_path / "copy")
    shutil.copy(written.path / "results.parquet", tmp_path / "copy" / "results.parquet")
    (tmp_path / "copy" / "tables" / "reach.csv").write_text("run,model\n1,2,3,4\n")
    with pytest.raises(CarinaError, match=r"reach\.csv"):
        open_report(tmp_path / "copy")


# ---- labels ----


def test_labels_are_in_order_or_by_run(runs):
    alpha, gold, beta, majority = runs
    in_order = assign_labels(runs, ["A", "A, corrected", "temp=0", "Blind"])
    assert in_order == {alpha: "A", gold: "A, corrected", beta: "temp=0", majority: "Blind"}
    assert assign_labels(runs, ["beta=B  =  1", f"{alpha}=A"]) == {beta: "B = 1", alpha: "A"}
    assert assign_labels(runs, []) == {}


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["one", "two"], "2 labels for 4 runs"),
        (["beta=B", "beta=C"], "two labels"),
        (["beta= "], "empty"),
        (["gamma=B"], "1 labels for 4 runs"),
    ],
)
def test_labels_that_do_not_fit_are_refused(runs, labels, message):
    with pytest.raises(CarinaError, match=message):
        assign_labels(runs, labels)


def test_pages_and_tables_have_labels(runs, tmp_path):
    written = report(runs, tmp_path, labels=["Ours", "Ours", "Theirs & co", "Words"], cases=0)
    page = " ".join(written.pages[0].read_text().split())
    assert "<h1>Ours and Theirs &amp; co</h1>" in page
    assert "Theirs &amp; co · own: 1 of 6 percept cases are incomplete." in page
    assert "<title>Report: Ours and Theirs &amp; co" in page
    frame = written.to_frame()
    assert dict(frame.select("run", "label").unique().iter_rows()) == {
        "alpha": "Ours",
        "alpha-gold": "Ours",
        "beta": "Theirs & co",
        "majority": "Words",
    }
    assert set(frame["model"]) == {"lab/alpha", "lab/beta", "builtin/majority"}


def test_equal_labels_of_one_setting_are_told_apart(settings):
    runs = read_runs(settings[:3], dict.fromkeys(settings[:3], "Same"))
    assert [run.name for run in runs] == ["Same (a)", "Same (b)", "Same"]
    assert [run.model for run in runs] == ["lab/alpha"] * 3


@pytest.mark.parametrize(
    ("names", "title"),
    [
        (["lab/alpha"], "lab/alpha"),
        (["lab/alpha", "lab/beta"], "lab/alpha and lab/beta"),
        (["a" * 40, "b" * 40], "2 models on percept and trek"),
        (["a", "b", "c"], "3 models on percept and trek"),
    ],
)
def test_titles_are_short(names, title):
    assert short_title(names, ["percept", "trek"]) == title


# ---- settings ----


def test_gold_and_implicit_are_told_apart_everywhere(settings, tmp_path):
    runs = read_runs(settings[1:])
    assert [(run.history, run.setting) for run in runs] == [
        ("own", "own"),
        ("gold", "gold"),
        ("implicit", "implicit"),
        ("implicit", "implicit, profile chexpercept"),
    ]
    # No two share a name and a setting, so none needs its directory to be told apart.
    assert {run.name for run in runs} == {"lab/alpha"}
    (group,) = group_runs(runs)
    styles = style_runs(group.runs)
    assert len({style.name for style in styles.values()}) == 4
    assert {run.history: styles[run.id].fill for run in group.runs} == {
        "own": "full",
        "gold": "hollow",
        "implicit": "bottom",
    }
    written = report(settings[1:], tmp_path, cases=0)
    page = written.pages[0].read_text()
    assert "History gold: wrong answers replaced by right ones" in page
    assert "History implicit: wrong answers replaced by right ones when a new stage begins" in page
    assert "own minus gold" in page
    assert "own minus implicit" in page
    assert written.tables["histories"]["other"].unique().sort().to_list() == ["gold", "implicit"]


def test_runs_of_models_differ_in_line_and_shape(analysis):
    styles = style_runs(analysis.group.runs)
    alpha, beta, majority = (styles[name] for name in ("alpha", "beta", "majority"))
    assert len({one.shape for one in (alpha, beta, majority)}) == 3
    assert len({one.dash for one in (alpha, beta, majority)}) == 3


# ---- tables for a paper ----

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize(("name", "ending"), [("latex", "tex"), ("markdown", "md")])
def test_the_table_for_a_paper(runs, tmp_path, name, ending):
    written = report(runs[:1], tmp_path, labels=["50% & [A_1]"], cases=0, table=name)
    path = tmp_path / "tables" / f"headline.{ending}"
    assert path in written.files
    # Bounds of the bootstrap are not worked out by hand.
    assert re.sub(r"\(\d[\d.]*(?:--|–)[\d.]+\)", "(<>)", path.read_text()) == (GOLDEN / path.name).read_text()


NASTY = '\\ { } & % $ # _ ~ ^ < > | " ` [x] * -- – − · × … é\nnew'


def test_latex_has_no_letter_left_that_means_something():
    text = escape_latex(NASTY)
    assert "\n" not in text
    assert text.isascii() or set(text) - set(map(chr, range(128))) == {"é"}
    bare = re.sub(r"\\(?:[&%$#_{}]|[a-z]+\{\})|\$(?:-|\\cdot|\\times)\$|\{[][*]\}|-\{\}-", "", text)
    assert not set(bare) & set('\\{}&%$#_~^<>|"`[]*')
    without = re.sub(r"\\[{}]", "", text)
    assert without.count("{") == without.count("}")


def test_markdown_has_no_letter_left_that_means_something():
    text = escape_markdown(NASTY)
    assert "\n" not in text
    assert not re.search(r"(?<!\\)[`*_{}\[\]<>#|~$]", text.replace("\\\\", ""))


def test_the_tables_of_a_report_are_read_from_a_directory_with_a_pattern_in_its_name(settings, tmp_path):
    written = report(settings[1:2], tmp_path / "r[1]", cases=0)
    report(settings[3:4], tmp_path / "r1", cases=0)
    opened = open_report(tmp_path / "r[1]")
    ours = ["run", "history", "n"]
    assert opened.tables["headline"][ours].equals(written.tables["headline"][ours])
    table = tmp_path / "r[1]" / "tables" / "headline.csv"
    first, *_ = table.read_text().splitlines()
    table.write_text(f"{first}\n{','.join('x' for _ in first.split(','))}\n")
    with pytest.raises(CarinaError, match=r"headline\.csv: cannot be read: .*; write the report again"):
        open_report(tmp_path / "r[1]")
