"""Maps beside boxes and answers of chat models about the same findings, against what can be worked out by hand."""

import json
from statistics import fmean

import numpy as np
import pytest
from typer.testing import CliRunner

from carina.cases import (
    Box,
    Case,
    CaseImage,
    CaseView,
    Fact,
    Key,
    Option,
    Panel,
    Step,
    open_benchmark,
    write_benchmark,
)
from carina.cases import Provenance as CasesProvenance
from carina.cli import app
from carina.explanations.analysis import answers
from carina.explanations.analysis.maps_analysis import analyse_maps
from carina.explanations.analysis.maps_groups import group_maps_runs
from carina.explanations.analysis.read import read_maps_runs
from carina.pages.report import report
from carina.runs.analysis.read import find_runs, read_runs
from carina.runs.analysis.run_groups import group_runs
from carina.studies import write_png

RIGHT = {"g-mass-a", "g-mass-b", "g-nodule-a", "g-nodule-e"}
"""Probes of findings that are there and that are answered right; all others wrong."""


def named(case, *corners):
    """Boxes by corners in pixels of eight, as thousandths."""
    return tuple(
        Box(image=case.images[0].key, xyxy=tuple(125.0 * at for at in one), frame="thousand")
        for one in corners
    )


BOXES = {
    "g-mass-a": [(2, 2, 6, 4)],
    "g-mass-b": [(2, 2, 4, 4), (0, 6, 2, 8)],
    "g-mass-c": [],
    "g-nodule-b": [(5, 5, 6, 6)],
    "g-nodule-e": [(5, 5, 6, 6)],
}
"""Mass d failed on the way; nodule a was never asked where."""


@pytest.fixture(scope="session")
def talked(small, probes):
    """A run of a chat model on the probes."""
    rows = []
    for case in probes:
        for number, step in enumerate(case.steps):
            if step.format == "boxes":
                state = {"g-mass-d": "incomplete", "g-nodule-a": "not_reached"}.get(case.id, "answered")
                more = {"boxes": named(case, *BOXES.get(case.id, [])), "score": 0.0, "correct": False}
                rows.append(
                    small.row(case, step, number, state=state, **(more if state == "answered" else {}))
                )
            else:
                rows.append(small.answered(case, step, number, right=case.id in RIGHT))
    return small.write_run(probes.directory.parent / "talk", probes, rows, "lab/chat", "own")


@pytest.fixture(scope="session")
def together(probes, explained, talked):
    (group,) = group_maps_runs(read_maps_runs(explained), {probes.manifest.fingerprint: probes})
    return analyse_maps(group, group_runs(read_runs([talked])))


def test_scores_of_boxes_equal_values_worked_out_by_hand(together):
    values = {item.metric: item.value for item in together.box_estimates}
    # Of mass b one centre of two is in the truth, 4 of 12 pixels are shared, and the better box covers half.
    assert values["box centre"] == pytest.approx(fmean([1, 1 / 2, 0, 0, 1, 1]))
    assert values["union IoU"] == pytest.approx(fmean([1, 1 / 3, 0, 0, 1, 1]))
    assert values["union Dice"] == pytest.approx(fmean([1, 1 / 2, 0, 0, 1, 1]))
    assert values["box IoU"] == pytest.approx(fmean([1, 1 / 2, 0, 0, 1, 1]))
    assert {item.n for item in together.box_estimates} == {6}


def test_maps_minus_boxes_are_paired_on_the_same_probes(together, tiny):
    gap = next(item for item in together.box_differences if (item.one, item.other) == ("good", "talk"))
    shared = [value for key, value in tiny.HITS.items() if key != ("mass", "d")]
    assert gap.n == 6
    assert gap.value == pytest.approx(fmean(shared) - fmean([1, 1 / 2, 0, 0, 1, 1]))


def test_answers_are_counted_for_hits_and_misses(together):
    good = next(one for one in together.answers if one.pointer.id == "good")
    # Hits: mass a, b and nodule a answered right, mass c and nodule b wrong. Misses: nodule e right, mass d wrong.
    assert good.counts == ((3, 2), (1, 1))
    assert [found.value for found in good.accuracy] == pytest.approx([3 / 5, 1 / 2])
    assert good.difference.value == pytest.approx(1 / 10)
    # Hits are of three patients: too few for an interval.
    assert (good.difference.low, good.difference.n) == (None, 7)
    assert not good.is_same_model
    own = next(one for one in together.answers if one.pointer.id == "talk")
    assert own.is_same_model
    # By boxes: mass a, b and nodule b, e are hits, mass c and nodule a misses.
    assert own.counts == ((3, 1), (1, 1))


def test_the_interval_is_that_of_drawn_patients(together, monkeypatch):
    monkeypatch.setattr(answers, "ENOUGH", 2)
    good = next(one for one in together.answers if one.pointer.id == "good")
    (again,) = answers.join_answers([good.pointer], [good.group])
    rows = [("a", 1, 1), ("b", 1, 1), ("c", 1, 0), ("d", 0, 0), ("a", 1, 1), ("b", 1, 0), ("e", 0, 1)]
    chance = np.random.default_rng(3)
    drawn = []
    for _ in range(4000):
        chosen = [row for name in chance.choice(list("abcde"), 5) for row in rows if row[0] == str(name)]
        sides = [[right for _, hit, right in chosen if hit == side] for side in (1, 0)]
        if all(sides):
            drawn.append(fmean(sides[0]) - fmean(sides[1]))
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert again.difference.low == pytest.approx(low, abs=0.05)
    assert again.difference.high == pytest.approx(high, abs=0.05)


def talk(source):
    """A conversation about patient d, whose mass was missed: a question about it, and one about a heart."""
    options = (Option(id="yes", text="Yes"), Option(id="no", text="No"))
    steps = tuple(
        Step(id=f"t{place}", stage=2, task="presence", format="choice", question="Is it?\n(1) Yes\n(2) No",
             options=options, shows=("v",) if place == 1 else (), uses=("v",), key=Key(options=("yes",)),
             facts=(Fact(name="target", about=kind, text=name),))
        for place, (kind, name) in enumerate([("finding", "mass"), ("anatomy", "heart"), ("finding", "mass")], 1)
    )  # fmt: skip
    return Case(
        id="talk-d", protocol="trek", study="s-d", patient="d", source=source,
        images=(CaseImage(key="images/d.png", width=8, height=8),),
        views=(CaseView(id="v", panels=(Panel(image="images/d.png"),)),), steps=steps,
    )  # fmt: skip


@pytest.mark.parametrize(("source", "joined"), [("made", ((0, 0), (1, 1))), ("elsewhere", None)])
def test_questions_of_a_conversation_are_joined_by_study_and_finding(
    explained, probes, small, tmp_path, *, source, joined
):
    write_png(tmp_path / "talks" / "images" / "d.png", np.zeros((8, 8), np.uint8))
    write_benchmark(tmp_path / "talks", [talk(source)], CasesProvenance(command="test"))
    bench = open_benchmark(tmp_path / "talks")
    (case,) = bench
    rows = [small.answered(case, step, n, right=n == 0) for n, step in enumerate(case.steps)]
    run = small.write_run(tmp_path / "talk", bench, rows, "lab/chat", "own")
    (group,) = group_maps_runs(read_maps_runs(explained[:1]), {probes.manifest.fingerprint: probes})
    found = analyse_maps(group, group_runs(read_runs([run]))).answers
    assert [one.counts for one in found] == ([] if joined is None else [joined])


def test_one_report_compares_answers_and_maps(explained, talked, tmp_path):
    written = report([*explained, talked], tmp_path / "both")
    assert written.pages[0] == tmp_path / "both" / "report.html"
    assert written.map_page == tmp_path / "both" / "ground.html"
    page = written.map_page.read_text(encoding="utf-8")
    assert "Do models that point at a finding also answer right?" in page
    assert "lab/chat · boxes" in page
    # Two maps and the boxes of the chat model itself beside its answers: a table of three rows, which is open.
    section = page[page.index("Do models that point at a finding also answer right?") :].partition(
        "</section>"
    )[0]
    assert "<details open><summary><h4>Pointing and answering" in section
    assert "two different models, unless a row says “same model”" in section
    names = {path.name for path in written.files}
    assert {"ground-answers.csv", "ground-boxes.csv", "headline.csv"} <= names
    alone = report(explained, tmp_path / "alone")
    assert alone.pages == (tmp_path / "alone" / "ground.html",)
    assert not (tmp_path / "alone" / "report.html").exists()


def test_a_directory_stands_for_runs_of_both_kinds(explained, talked):
    assert find_runs([talked.parent]) == [talked]
    assert find_runs([explained[0].parent]) == explained
    assert find_runs([explained[0]]) == [explained[0]]


def test_the_command_prints_both_pages(explained, talked, tmp_path):
    given = [str(explained[0]), str(talked), "-o", str(tmp_path)]
    told = CliRunner().invoke(app, ["report", *given, "--json"])
    assert told.exit_code == 0, told.output
    found = json.loads(told.stdout)
    assert found["ground"].endswith("ground.html")
    assert found["html"].endswith("report.html")
