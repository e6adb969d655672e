"""`carina check` on a whole set and on damaged ones."""

import json

import msgspec
import numpy as np
import pytest
from typer.testing import CliRunner

from carina.cases import Case, CaseImage, Key, Option, Provenance, Step, write_benchmark
from carina.cli import app
from carina.phantom import PhantomOptions, make_phantoms, make_studies
from carina.studies import Finding, Image, Study, write_png, write_studies
from carina.studies import Provenance as StudyProvenance


@pytest.fixture
def studies(tmp_path):
    make_phantoms(tmp_path / "set", n=2, seed=1, size=64, workers=1)
    return tmp_path / "set"


def run(*arguments):
    return CliRunner().invoke(app, ["check", *map(str, arguments)])


def test_a_whole_set_has_nothing_wrong(studies):
    result = run(studies)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "2 studies: nothing wrong" in result.stderr


def test_each_damaged_image_is_a_line_that_names_its_study(studies):
    gone, changed = sorted(studies.glob("images/*/*.png"))[:2]
    gone.unlink()
    changed.write_bytes(changed.read_bytes()[:-20])
    result = run(studies)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert len(lines) == 2
    assert "row 0, study 'p000000-s1'" in lines[0]
    assert "is missing" in lines[0]
    assert run(studies, "--no-files").exit_code == 0


def test_a_changed_part_is_reported_as_json(studies):
    part = next(studies.glob("studies/*.parquet"))
    part.write_bytes(part.read_bytes() + b"x")
    result = run(studies, "--json")
    assert result.exit_code == 1
    (problem,) = json.loads(result.stdout)["problems"]
    assert part.name in problem["message"]


def test_names_that_are_not_known_are_notices_and_no_problem(tmp_path):
    images = (Image(key="a.png", view="PA", width=4, height=4),)
    findings = [Finding(id="f1", name=name, certainty="present") for name in ("Pleural Effusion", "edema")]
    studies = [
        Study(id=f"s{number}", patient="p1", source="mine", images=images, findings=(finding,))
        for number, finding in enumerate((*findings, findings[0]))
    ]
    write_studies(tmp_path / "mine", studies, StudyProvenance(command="test"))
    result = run(tmp_path / "mine", "--no-files")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.splitlines() == [
        "Notice: finding 'Pleural Effusion' in 2 studies: not a known name, did you mean 'pleural effusion'?",
        "3 studies: nothing wrong",
    ]
    assert json.loads(run(tmp_path / "mine", "--no-files", "--json").stdout) == {
        "studies": 3,
        "problems": [],
        "unknown_names": [
            {"kind": "finding", "name": "Pleural Effusion", "studies": 2, "nearest": "pleural effusion"}
        ],
        "implausible": [],
        "patients_in_several_splits": [],
    }


def test_a_patient_in_two_splits_is_a_notice(tmp_path):
    images = (Image(key="a.png", view="PA", width=4, height=4),)
    placed = [
        ("s1", "p1", "train"),
        ("s2", "p2", "test"),
        ("s3", "p1", "test"),
        ("s4", "p2", None),
        ("s5", "p2", "test"),
    ]
    studies = [
        Study(id=name, patient=patient, source="mine", images=images, split=split)
        for name, patient, split in placed
    ]
    # In parts of two studies, so that the two of p1 are in different parts.
    write_studies(tmp_path / "mine", studies, StudyProvenance(command="test"), part_size=2)
    result = run(tmp_path / "mine", "--no-files")
    assert (result.exit_code, result.stdout) == (0, "")
    notice, end = result.stderr.splitlines()
    assert notice.startswith("Notice: patient 'p1' is in 'train' with study 's1' and 'test' with study 's3'")
    assert end == "5 studies: nothing wrong"
    found = json.loads(run(tmp_path / "mine", "--no-files", "--json").stdout)["patients_in_several_splits"]
    assert found == [{"patient": "p1", "studies": {"train": "s1", "test": "s3"}}]


def test_a_folder_without_a_set_is_bad_input(tmp_path):
    result = run(tmp_path)
    assert result.exit_code == 2
    assert "studies.json" in result.stderr
    assert "bench.json" in result.stderr


@pytest.fixture
def benchmark(tmp_path):
    options = (Option(id="yes", text="Yes"), Option(id="no", text="No"))
    step = Step(id="1", stage=1, task="detection", format="choice", question="Is it there?", options=options)
    images = (CaseImage(key="a.png", width=8, height=4),)
    fields = {"protocol": "test", "study": "s1", "patient": None, "source": "phantom", "images": images}
    keyed = msgspec.structs.replace(step, key=Key(options=("yes",)))
    cases = [Case(id="c1", steps=(keyed,), **fields), Case(id="c2", steps=(step,), **fields)]
    write_png(tmp_path / "bench" / "a.png", np.zeros((4, 8), np.uint8))
    write_benchmark(tmp_path / "bench", cases, Provenance(command="test"))
    return tmp_path / "bench"


def test_a_benchmark_is_checked_too(benchmark):
    result = run(benchmark)
    assert result.exit_code == 1
    (line,) = result.stdout.splitlines()
    assert line.endswith("row 1, case 'c2': step '1': has options and no key")
    (benchmark / "a.png").unlink()
    told = json.loads(run(benchmark / "bench.json", "--json").stdout)
    assert told["cases"] == 2
    assert [problem["case"] for problem in told["problems"]] == ["c1", "c2", "c2"]


def test_images_may_lie_elsewhere(studies, benchmark, tmp_path):
    (tmp_path / "moved").mkdir()
    (studies / "images").rename(tmp_path / "moved" / "images")
    assert run(studies).exit_code == 1
    assert run(studies, "--images", tmp_path / "moved").exit_code == 0
    (tmp_path / "mine").mkdir()
    (benchmark / "a.png").rename(tmp_path / "mine" / "a.png")
    assert len(run(benchmark).stdout.splitlines()) == 3
    (line,) = run(benchmark, "--images", tmp_path / "mine").stdout.splitlines()
    assert "has options and no key" in line


def test_images_together_with_no_files_is_wrong_usage(benchmark):
    result = run(benchmark, "--images", benchmark, "--no-files")
    assert result.exit_code == 2
    assert "--no-files" in result.stderr


def test_an_unfinished_set_is_reported_as_unfinished(studies):
    (studies / "studies.json").unlink()
    result = run(studies)
    assert result.exit_code == 2
    assert "an unfinished set" in result.stderr


@pytest.fixture
def inverted(tmp_path):
    """A set of two studies; the first image of the first one is inverted, and its record does not say so."""
    made = list(make_studies(2, 1, PhantomOptions(size=128)))
    for number, (study, pixels) in enumerate(made):
        for place, image in enumerate(study.images):
            values = pixels[image.key]
            write_png(tmp_path / "set" / "images" / image.key, ~values if number == place == 0 else values)
    studies = [
        msgspec.structs.replace(
            study, images=tuple(msgspec.structs.replace(image, sha256=None) for image in study.images)
        )
        for study, _ in made
    ]
    write_studies(tmp_path / "set", studies, StudyProvenance(command="by hand", image_root="images"))
    return tmp_path / "set"


def test_an_inverted_image_is_listed_and_is_no_problem(inverted):
    result = run(inverted)
    assert result.exit_code == 0
    line = next(line for line in result.stderr.splitlines() if line.startswith("Implausible"))
    assert "study 'p000000-s1'" in line
    assert "polarity: seen an inverted image" in line
    (listed,) = json.loads(run(inverted, "--json").stdout)["implausible"]
    assert (listed["study"], listed["check"]) == ("p000000-s1", "polarity")


def test_implausible_images_are_problems_on_request_or_not_looked_for(inverted):
    failed = run(inverted, "--implausible", "fail")
    assert failed.exit_code == 1
    assert "polarity" in failed.stdout
    for quiet in (("--implausible", "ignore"), ("--no-files",)):
        result = run(inverted, *quiet)
        assert (result.exit_code, "Implausible" in result.stderr) == (0, False)
    wrong = run(inverted, "--implausible", "perhaps")
    assert wrong.exit_code == 2
    assert "'report', 'fail' or 'ignore'" in wrong.stderr


def test_problems_beyond_20_are_counted_and_printed_on_request(tmp_path):
    images = tuple(Image(key=f"{number}.png", view="PA", width=4, height=4) for number in range(25))
    studies = [Study(id="s1", patient="p1", source="mine", images=images)]
    write_studies(tmp_path / "mine", studies, StudyProvenance(command="test"))
    result = run(tmp_path / "mine")
    *listed, end = result.stdout.splitlines()
    assert (result.exit_code, len(listed)) == (1, 20)
    assert end.startswith("... and 5 more problems")
    assert "--all" in end
    assert len(run(tmp_path / "mine", "--all").stdout.splitlines()) == 25
    assert len(json.loads(run(tmp_path / "mine", "--json").stdout)["problems"]) == 25
