"""Percept cases of studies with several readers: how the readers do, and the human ceiling of a report."""

import csv

import numpy as np
import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from carina.cli import app
from carina.percept import build_percept
from carina.percept.facts import PerceptCaseFacts
from carina.studies import Assessed, Region, SalientPoint

READERS = ("R1", "R2", "R3")


def with_readers(study):
    """R1 and R2 drew the same, R3 nothing. H, for comparison, drew a part, and marked a point in it and one outside."""
    drawn = []
    for finding in study.findings:
        if finding.certainty == "absent":
            continue
        (own,) = finding.annotations
        part = own.region.to_mask()
        rows = np.flatnonzero(part.any(axis=1))
        part[rows[len(rows) // 2] :] = False
        y, x = np.argwhere(part)[0].tolist()
        inside = SalientPoint(image=own.image, x=x + 0.5, y=y + 0.5, annotator="H")
        drawn.append(
            replace(
                finding,
                annotations=tuple(replace(own, annotator=reader) for reader in READERS[:2]),
                stated_by=READERS[:2],
                comparisons=(replace(own, region=Region.from_mask(part), annotator="H"),),
                points=(inside, replace(inside, x=0.5, y=0.5)),
            )
        )
    looked = Assessed(
        findings="listed", listed=("cardiomegaly", "edema", "pleural effusion"), readers=READERS
    )
    return replace(study, findings=tuple(drawn), assessed=looked)


@pytest.fixture(scope="module")
def bench(chest, tmp_path_factory):
    root = tmp_path_factory.mktemp("readers")
    studies = [with_readers(study) for study in chest.population(6, targets=("edema", "effusion"))]
    chest.write_set(root / "studies", studies)
    return build_percept(root / "studies", root / "bench", targets=["edema"], per_cell=2, workers=1)


def test_each_reader_is_scored_on_presence_and_mask(bench):
    paths = [case.path for case in bench]
    assert sorted(set(paths)) == ["LF", "RF", "RR"]
    for case in bench:
        facts = PerceptCaseFacts.of(case)
        scored = {name: (one.presence, one.iou, one.dice) for name, one in facts.readers.items()}
        if case.path == "LF":
            assert scored == dict.fromkeys(READERS, (1, None, None))
            continue
        # R1 and R2 each have one for and one against them; R3 has two against, and drew nothing.
        human = facts.readers["H"]
        assert scored == {
            "R1": (0.5, 1, 1),
            "R2": (0.5, 1, 1),
            "R3": (0, 0, 0),
            "H": (None, human.iou, human.dice),
        }
        # What H drew lies in the truth, so that Dice is 2 IoU / (1 + IoU).
        assert 0 < human.iou < 1
        assert human.dice == pytest.approx(2 * human.iou / (1 + human.iou))
        assert (human.points, human.boxes, human.auroc, human.pointing) == (0.5, None, None, None)
        assert facts.sources[facts.region("truth")].provenance.startswith("drawn by R1; R2 agrees to 1.00")


def test_the_report_shows_the_human_ceiling(bench, tmp_path):
    for arguments in (
        ("run", bench.directory, "--model", "builtin/random", "-o", tmp_path / "runs/random"),
        ("report", tmp_path / "runs", "-o", tmp_path / "report", "--cases", 0),
    ):
        done = CliRunner().invoke(app, [str(one) for one in arguments])
        assert done.exit_code == 0, done.output
    with (tmp_path / "report/tables/readers.csv").open(newline="") as file:
        shown = {row["metric"]: row for row in csv.DictReader(file) if not row["name"]}
    # Two cases on each of three paths; on the path without a lesion all three readers agree.
    presence = shown["agrees with most of the other readers on presence"]
    assert (float(presence["value"]), presence["n"]) == (
        pytest.approx((2 * 1 + 4 * (1 / 2 + 1 / 2 + 0) / 3) / 6),
        "6",
    )
    humans = [PerceptCaseFacts.of(case).readers["H"].iou for case in bench if case.path != "LF"]
    assert float(shown["IoU"]["value"]) == pytest.approx(np.mean([(1 + 1 + 0 + one) / 4 for one in humans]))
    assert "Human ceiling" in (tmp_path / "report/report.html").read_text()


def test_cases_of_one_reader_say_nothing_of_readers(chest, tmp_path):
    studies = chest.population(6, targets=("edema", "effusion"))
    chest.write_set(tmp_path / "studies", studies)
    bench = build_percept(tmp_path / "studies", tmp_path / "bench", targets=["edema"], per_cell=2, workers=1)
    assert {len(PerceptCaseFacts.of(case).readers) for case in bench} == {0}
