"""Figures of conversations: formats by their own metrics, words apart from right and wrong. Worked out by hand."""

import polars as pl
import pytest

from carina.cases.protocol import ALL_STEPS, CASE_SUCCESS, ProtocolInfo
from carina.runs.analysis import measures
from carina.runs.analysis.counts import estimate_formats
from carina.runs.analysis.measures import free_text_measures, headline_measures
from carina.runs.analysis.outcomes import derive_outcomes
from carina.runs.analysis.read import read_run
from carina.runs.records import StepRow
from carina.store.tables import to_table

COMMON = {
    "study": "s", "protocol": "trek", "source": "phantom", "target": None, "path": None, "multiple": False,
    "options": 0, "state": "answered", "status": "ok",
}  # fmt: skip
ROWS = [
    # case, patient, stage, format, what came of it
    ("a", "A", 1, "open", {"task": "view", "correct": True, "score": 1.0, "rouge": 0.8}),
    ("a", "A", 2, "yes_no", {"correct": True, "score": 1.0, "gold_label": "yes", "chance": 0.5}),
    ("a", "A", 2, "yes_no", {"correct": False, "score": 0.0, "gold_label": "no", "chance": 0.5}),
    ("a", "A", 2, "open", {"correct": None, "score": 0.6, "entity_f1": 0.6, "rouge": 0.4}),
    ("a", "A", 3, "choice", {"correct": False, "score": 0.0, "multiple": True, "f1": 0.5, "chance": 0.25}),
    ("a", "A", 3, "boxes", {"correct": True, "score": 0.7, "iou": 0.7}),
    (
        "a",
        "A",
        8,
        "report",
        {"correct": None, "score": 0.2, "entity_f1": 0.2, "attribute_f1": 0.1, "rouge": 0.3},
    ),
    ("b", None, 2, "yes_no", {"correct": True, "score": 1.0, "gold_label": "yes", "chance": 0.5}),
    ("b", None, 2, "yes_no", {"correct": True, "score": 1.0, "gold_label": "uncertain", "chance": 0.5}),
    ("b", None, 3, "boxes", {"correct": False, "score": 0.3, "iou": 0.3}),
    ("b", None, 3, "boxes", {"correct": False, "score": 0.0, "iou": 0.0, "status": "no_answer"}),
    ("b", None, 3, "choice", {"correct": True, "score": 1.0, "chance": 0.25}),
    # Not reached counts as wrong, in words too; failed on the way counts as nothing.
    ("b", None, 3, "choice", {"state": "not_reached", "status": None, "chance": 0.25}),
    ("b", None, 8, "report", {"state": "not_reached", "status": None}),
    ("c", "C", 2, "yes_no", {"state": "incomplete", "status": None, "gold_label": "yes", "chance": 0.5}),
]


KEYS = pl.DataFrame(
    [
        ("a", "t1", "yes"), ("a", "t2", "no"), ("a", "t4", "x; y"),
        ("b", "t0", "yes"), ("b", "t1", "uncertain"), ("b", "t4", "x"), ("b", "t5", "x"),
    ],
    ["case", "step", "key"],
    orient="row",
)  # fmt: skip


def frame(rows):
    counts: dict[str, int] = {}
    made = []
    for case, patient, stage, form, told in rows:
        number = counts[case] = counts.get(case, -1) + 1
        about = {"task": form, "step": f"t{number}", "number": number, "stage": stage, "format": form}
        made.append(StepRow(**(COMMON | {"case": case, "patient": patient} | about | told)))
    return pl.from_arrow(to_table(StepRow, made))


@pytest.fixture(scope="module")
def found():
    return derive_outcomes(frame(ROWS), "trek", KEYS)


@pytest.fixture(scope="module")
def run(runs):
    """Only its name is used."""
    return read_run(runs[0])


def test_accuracy_by_stage_counts_every_question(found, run):
    told = {measure.key[:2]: measure.estimate(run, found) for measure in headline_measures("trek", [found])}
    assert ("case", "") not in told
    assert [(name, item.value, item.n) for (level, name), item in told.items() if level == "stage"] == [
        ("1", 1.0, 1),
        ("2", 3 / 4, 4),
        ("3", pytest.approx(2 / 6), 6),
    ]
    # Stage 1 has one patient and is left out of the mean over stages.
    assert told["macro", ""].value == pytest.approx((3 / 4 + 2 / 6) / 2)
    assert told["micro", ""].value == pytest.approx(6 / 11)
    # Boxes have no chance level, so neither has what holds them.
    assert told["stage", "2"].chance == 0.5
    assert told["stage", "3"].chance is None


def test_headline_measures_are_those_that_the_protocol_declares(found, monkeypatch):
    declared = ProtocolInfo(name="mine", title="Mine", stages=(), headline=(ALL_STEPS, CASE_SUCCESS))
    monkeypatch.setattr(measures, "find_protocol", lambda name: {"mine": declared}[name])
    assert [measure.title for measure in headline_measures("mine", [found])] == ["All steps", "Case success"]


def test_only_stages_of_closed_questions_have_a_constant_answer(found, run):
    told = {
        measure.key[:2]: measure.estimate(run, found).constant
        for measure in headline_measures("trek", [found])
    }
    # Always "yes": two of four. Stage 1 is answered in words, stage 3 has boxes.
    assert told["stage", "2"] == 0.5
    assert told["stage", "1"] is None
    assert told["stage", "3"] is None
    assert told["micro", ""] is None


def test_free_text_is_estimated_separately(found, run):
    told = {measure.name: measure.estimate(run, found) for measure in free_text_measures("trek", [found])}
    assert {name: (item.value, item.n) for name, item in told.items()} == {
        "2": (0.6, 1),
        "8": (pytest.approx(0.1), 2),
    }


def test_each_format_has_its_own_metrics(found, run):
    told = {(item.name, item.metric): (item.value, item.n) for item in estimate_formats(run, found)}
    assert told == {
        ("yes_no", "accuracy"): (3 / 4, 4),
        # Yes: two of two. No: none of one. What is uncertain is neither.
        ("yes_no", "balanced accuracy"): (0.5, 3),
        ("choice", "exact"): (pytest.approx(1 / 3), 3),
        ("choice", "set F1"): (0.5, 1),
        ("boxes", "mean IoU"): (pytest.approx(1 / 3), 3),
        ("boxes", "IoU at least 0.5"): (pytest.approx(1 / 3), 3),
        ("boxes", "IoU at least 0.25"): (pytest.approx(2 / 3), 3),
        ("open", "entity F1"): (0.6, 1),
        ("open", "attribute F1"): (None, 0),
        ("open", "ROUGE-L"): (pytest.approx(0.6), 2),
        ("report", "entity F1"): (0.2, 1),
        ("report", "attribute F1"): (0.1, 1),
        ("report", "ROUGE-L"): (pytest.approx(0.15), 2),
    }


def test_learned_text_scores_are_averaged_where_a_run_has_them(run):
    # Two of three open answers have been compared; the report that was never reached matches nothing.
    scored = [
        (*row[:4], row[4] | {"bertscore": 0.9, "chexbert_f1": 0.5})
        if (row[0], row[2], row[3]) in (("a", 1, "open"), ("a", 8, "report"))
        else row
        for row in ROWS
    ]
    told = {
        (item.name, item.metric): (item.value, item.n)
        for item in estimate_formats(run, derive_outcomes(frame(scored), "trek", KEYS))
    }
    assert told["open", "BERTScore"] == (0.9, 1)
    assert told["report", "BERTScore"] == (pytest.approx(0.45), 2)
    # Whether there were labels to match in what was never reached is not known.
    assert told["report", "CheXbert F1"] == (0.5, 1)
    assert ("report", "RadGraph F1") not in told


def test_only_cases_without_a_failure_are_complete(found):
    assert found.complete.to_list() == ["a", "b"]
    assert found.steps.filter(pl.col("case") == "c").is_empty()


def test_a_case_without_a_patient_is_its_own_cluster(found):
    assert set(found.steps["cluster"]) == {"A", "case b"}
