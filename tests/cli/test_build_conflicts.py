"""`carina build` on studies with drawings, labels and report text that agree or contradict each other."""

import csv
import json

import msgspec
import pytest
from tests.percept import conftest as chest
from typer.testing import CliRunner

from carina.cases import open_benchmark
from carina.cli import app
from carina.ground.facts import GroundCaseFacts
from carina.studies import (
    Annotation,
    Assessed,
    Finding,
    Image,
    Provenance,
    Region,
    Report,
    ReportSection,
    Sentence,
    Statement,
    Study,
    write_studies,
)

HEIGHT, WIDTH = 40, 60
LISTED = Assessed(findings="listed", listed=("pleural effusion", "mass"))


def box(x, y, w, h):
    return Region.from_box(x, y, w, h, height=HEIGHT, width=WIDTH)


def note(text):
    return Report(sections=(ReportSection(name="findings", text=text),))


def study(number, text, *regions, name="pleural effusion", assessed=LISTED):
    drawn = tuple(
        Annotation(image=f"{number}.png", region=region, drawn="mask", annotator="A") for region in regions
    )
    found = Finding(id="f1", name=name, certainty="present", annotations=drawn)
    return Study(
        id=f"s{number}",
        patient=f"p{number}",
        source="made",
        images=(Image(key=f"{number}.png", view="PA", width=WIDTH, height=HEIGHT),),
        findings=(found,) if regions else (),
        assessed=assessed,
        report=None if text is None else note(text),
    )


STUDIES = (
    study(0, "Small right pleural effusion.", box(5, 20, 10, 10)),
    study(1, "No pleural effusion. The lungs are clear.", box(5, 20, 10, 10)),
    study(2, None, box(5, 20, 10, 10)),
    study(3, "The lungs are clear. No pleural effusion."),
    study(4, "Large left pleural effusion."),
    study(5, None),
)
CONFLICTS = [
    {
        "study": "s1",
        "finding": "pleural effusion",
        "recorded": "drawn",
        "report": "absent",
        "sentence": "No pleural effusion.",
    },
    {
        "study": "s4",
        "finding": "pleural effusion",
        "recorded": "looked for and not recorded",
        "report": "present",
        "sentence": "Large left pleural effusion.",
    },
]


def write(root, studies):
    write_studies(root / "studies", studies, Provenance(command="made"))
    return root / "studies"


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    return write(tmp_path_factory.mktemp("conflicts"), STUDIES)


def build(protocol, studies, out, *options):
    done = CliRunner().invoke(
        app, ["build", protocol, str(studies), "-o", str(out), "--workers", "1", *options]
    )
    assert done.exit_code == 0, done.output
    return done, open_benchmark(out)


def read_conflicts(out):
    with (out / "conflicts.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_ground_does_not_ask_what_the_report_contradicts_and_says_so(studies, tmp_path):
    done, bench = build("ground", studies, tmp_path / "bench", "--target", "Pleural_Effusions")
    assert {(case.study, case.path) for case in bench} == {
        ("s0", "present"),
        ("s2", "present"),
        ("s3", "absent"),
        ("s5", "absent"),
    }
    assert read_conflicts(tmp_path / "bench") == CONFLICTS
    report = json.loads((tmp_path / "bench" / "build.json").read_text())
    assert report["conflicts"] == {
        "pleural effusion": {
            "drawn, but denied in the report": 1,
            "looked for and not recorded, but stated in the report": 1,
        }
    }
    (target,) = report["targets"]
    assert target["left_out"] == {"what is recorded of it is disputed": 1}
    assert target["no_controls"] == {"what is recorded of it is disputed": 1}
    assert "1 study drawn, but denied in the report (conflicts.csv)" in done.stderr


def test_ground_asks_by_the_order_of_trust_where_it_is_told_to(studies, tmp_path):
    _, by_drawing = build("ground", studies, tmp_path / "drawing", "--on-conflict", "ask")
    assert {(case.study, case.path) for case in by_drawing} == {
        *((f"s{n}", "present") for n in (0, 1, 2)),
        *((f"s{n}", "absent") for n in (3, 4, 5)),
    }
    ask = ("--absent", "2", "--on-conflict", "ask", "--trust", "text,drawing,label")
    _, by_text = build("ground", studies, tmp_path / "text", *ask)
    # The report says that s1 has none; that s4 has one is drawn nowhere.
    assert {(case.study, case.path) for case in by_text} == {
        *((f"s{n}", "present") for n in (0, 2)),
        *((f"s{n}", "absent") for n in (1, 3, 5)),
    }
    assert read_conflicts(tmp_path / "text") == CONFLICTS
    wrong = CliRunner().invoke(
        app, ["build", "ground", str(studies), "-o", str(tmp_path / "wrong"), "--trust", "text"]
    )
    assert wrong.exit_code == 2
    assert "trust 'text': expected drawing, label, text" in wrong.output


def test_a_set_without_conflicts_has_no_list_of_them(tmp_path):
    build("ground", write(tmp_path, STUDIES[:1]), tmp_path / "bench")
    assert not (tmp_path / "bench" / "conflicts.csv").exists()


def test_a_phrase_is_asked_for_where_masks_and_text_are_of_one_study(studies, tmp_path):
    _, bench = build("ground", studies, tmp_path / "bench", "--ask", "phrase")
    (case,) = (case for case in bench if case.path == "present")
    facts = GroundCaseFacts.of(case)
    assert (case.study, facts.phrase) == ("s0", "Small right pleural effusion.")
    assert case.region(facts.region("truth")).region == box(5, 20, 10, 10)


def test_two_phrases_of_one_finding_have_their_own_regions(tmp_path):
    right, left = box(5, 20, 10, 10), box(45, 20, 10, 10)
    text = "Right effusion. Left effusion."
    spans = (("f1", 0, 15), ("f2", 16, 30))
    two = msgspec.structs.replace(
        STUDIES[0],
        findings=tuple(
            Finding(
                id=name,
                name="pleural effusion",
                certainty="present",
                annotations=(Annotation(image="0.png", region=region, drawn="box", annotator="A"),),
            )
            for name, region in (("f1", right), ("f2", left))
        ),
        report=msgspec.structs.replace(
            note(text),
            sentences=tuple(
                Sentence(
                    section="findings", start=start, end=end, states=(Statement(kind="finding", about=name),)
                )
                for name, start, end in spans
            ),
        ),
    )
    _, bench = build("ground", write(tmp_path, [two]), tmp_path / "bench", "--ask", "phrase")
    truths = {}
    for case in bench:
        facts = GroundCaseFacts.of(case)
        truths[facts.phrase] = case.region(facts.region("truth")).region
    assert truths == {"Right effusion.": right, "Left effusion.": left}


def test_trek_uses_the_text_of_a_study_with_drawings_and_leaves_out_conflicts(studies, tmp_path):
    _, bench = build("trek", studies, tmp_path / "bench")
    cases = {case.study: case for case in bench}
    # The drawing has no side; the report has.
    assert any("right" in (step.key.text or "") for step in cases["s0"].steps)
    for name in ("s1", "s4"):
        texts = [step.question for step in cases[name].steps] if name in cases else []
        assert not any("effusion" in text for text in texts), texts
    assert read_conflicts(tmp_path / "bench") == CONFLICTS
    report = json.loads((tmp_path / "bench" / "build.json").read_text())
    reasons = {reason for reasons in report["not_asked"].values() for reason in reasons}
    assert "what is recorded of it is disputed" in reasons
    _, asked_about = build("trek", studies, tmp_path / "asked", "--on-conflict", "ask")
    assert sum("effusion" in step.question for case in asked_about for step in case.steps) > 0


def test_percept_does_not_ask_what_the_report_contradicts(tmp_path):
    mask = chest.ellipse(75, 130, 25, 40)
    texts = {
        "a": "No pulmonary edema.",
        "b": None,
        "c": "Moderate pulmonary edema.",
        "d": "Moderate pulmonary edema.",
    }
    studies = []
    for name, text in texts.items():
        lesion = [chest.finding("edema", mask)] if name in "ab" else []
        more = {} if text is None else {"report": note(text)}
        assessed = Assessed(findings="listed", listed=("edema",))
        studies.append(chest.study(*lesion, name=name, patient=name, assessed=assessed, **more))
    studies.append(
        chest.study(name="e", patient="e", assessed=Assessed(findings="listed", listed=("edema",)))
    )
    path = write(tmp_path, studies)
    build("percept", path, tmp_path / "bench", "--target", "edema", "--per-cell", "5")
    assert [(row["study"], row["recorded"], row["report"]) for row in read_conflicts(tmp_path / "bench")] == [
        ("a", "drawn", "absent"),
        ("c", "looked for and not recorded", "present"),
        ("d", "looked for and not recorded", "present"),
    ]
    assert {case.study for case in open_benchmark(tmp_path / "bench")} <= {"b", "e"}
    report = json.loads((tmp_path / "bench" / "build.json").read_text())
    reasons = {cell["path"]: cell["reasons"] for cell in report["cells"]}
    assert reasons["LF"]["what is recorded of it is disputed"] == 2
    assert reasons["RR"]["what is recorded of it is disputed"] == 1
    _, asked = build(
        "percept", path, tmp_path / "asked", "--target", "edema", "--per-cell", "5", "--on-conflict", "ask"
    )
    assert {"c", "d", "e"} <= {case.study for case in asked}


def test_trek_keys_no_report_that_contradicts_what_the_other_stages_take_for_true(studies, tmp_path):
    def reported(bench):
        return {case.study for case in bench if any(step.stage == 8 for step in case.steps)}

    _, by_drawing = build("trek", studies, tmp_path / "drawing", "--on-conflict", "ask")
    # s1 is drawn and denied, s4 was looked for and is stated: their reports are not what the other stages say.
    assert reported(by_drawing) == {"s0", "s3"}
    left_out = json.loads((tmp_path / "drawing" / "build.json").read_text())["not_asked"]["full report"]
    assert left_out["what is recorded of it is disputed"] == 2
    ask = ("--on-conflict", "ask", "--trust", "text,drawing,label")
    _, by_text = build("trek", studies, tmp_path / "text", *ask)
    # The text counts, so that all stages agree with it.
    assert reported(by_text) == {"s0", "s1", "s3", "s4"}
