"""`carina build trek`: options, what it prints, and how it refuses."""

import json

import pytest
from tests.trek import conftest as made
from typer.testing import CliRunner

from carina.cases import NoCasesError, open_benchmark
from carina.cli import app
from carina.studies import Assessed
from carina.trek import build_trek


def write(directory, studies):
    made.write_studies(directory, studies, made.Provenance(command="made"))
    return directory


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    """Forty studies and two of a patient who comes twice, one that shows nothing."""
    pair = [
        made.study(
            made.finding("mass", severity=grade, zones=("left upper",)),
            name=name,
            order=order,
            patient="twice",
            split="test",
            anatomy=made.anatomy(f"{name}.png", heart=made.rectangle(1, 1, 9, 9)),
        )
        for order, (name, grade) in enumerate([("first", "mild"), ("second", "severe")])
    ]
    return write(
        tmp_path_factory.mktemp("sets") / "studies",
        [*made.crowd(40), *pair, made.study(name="silent", assessed=Assessed())],
    )


def trek(studies, out, *arguments, workers=1):
    command = ["build", "trek", str(studies), "-o", str(out), "--workers", str(workers), *arguments]
    return CliRunner().invoke(app, command)


def test_build_writes_a_benchmark_and_prints_its_directory_and_stages(studies, tmp_path):
    result = trek(studies, tmp_path / "talks")
    assert result.exit_code == 0, result.output
    bench = open_benchmark(tmp_path / "talks")
    lines = result.stdout.splitlines()
    assert lines[0] == str(tmp_path / "talks")
    assert lines[1].split("\t") == ["stage", "title", "questions", "share"]
    rows = [line.split("\t") for line in lines[2:]]
    assert [row[0] for row in rows] == list("12345678")
    steps = [step for case in bench for step in case.steps]
    assert [int(row[2]) for row in rows] == [sum(step.stage == n for step in steps) for n in range(1, 9)]
    assert rows[1][3] == f"{int(rows[1][2]) / len(steps):.1%}"
    with_reference = sum(case.reference_study is not None for case in bench)
    with_later = sum(case.later_study is not None for case in bench)
    told = result.stderr.splitlines()
    assert told[0] == (
        f"42 conversations, {len(steps)} questions; {with_reference} with a prior study, "
        f"{with_later} with a follow-up study"
    )
    assert with_reference == 1
    (left_out,) = (line for line in told if "studies left out" in line)
    assert left_out.startswith("1 of 43 studies left out: ")
    assert left_out.endswith("(skipped.csv)")
    assert all(
        "not asked: left out to keep yes and no balanced" in line for line in told[1:] if line != left_out
    )


def test_build_says_which_questions_have_no_known_answer(tmp_path):
    labels = Assessed(findings="listed", listed=("mass", "edema"))
    studies = [
        made.study(made.finding("mass"), name=f"n{n}", patient=f"q{n}", assessed=labels) for n in range(3)
    ]
    result = trek(write(tmp_path / "labels", studies), tmp_path / "talks")
    assert result.exit_code == 0, result.output
    told = result.stderr.splitlines()
    assert "any device: 3 questions not asked: not every device was looked for" in told
    assert "full report: 3 questions not asked: not every finding was looked for" in told


def test_json_is_one_document_with_the_report(studies, tmp_path):
    result = trek(studies, tmp_path / "talks", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert set(told) == {"benchmark", "counts", "report"}
    assert told["benchmark"] == str(tmp_path / "talks")
    assert told["counts"]["cases"] == told["report"]["conversations"] == 42
    assert told["report"]["studies"] == 43
    assert sum(told["report"]["skipped"].values()) == 1
    assert told["report"]["questions"] == told["counts"]["steps"] == sum(told["counts"]["stages"].values())
    assert result.stderr == ""


def test_a_second_call_prints_the_same(studies, tmp_path):
    first = trek(studies, tmp_path / "talks")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "talks").rglob("*")}
    again = trek(studies, tmp_path / "talks")
    assert (again.exit_code, again.stdout) == (0, first.stdout)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "talks").rglob("*")} == before


def test_another_seed_in_the_same_directory_is_refused_in_one_sentence(studies, tmp_path):
    assert trek(studies, tmp_path / "talks").exit_code == 0
    result = trek(studies, tmp_path / "talks", "--seed", "1")
    assert result.exit_code == 2
    assert f"Error: {tmp_path / 'talks'}: already holds 42 cases made in another way" in result.stderr
    assert "seed" in result.stderr
    assert "Traceback" not in result.output


def test_options_reach_the_conversations(studies, tmp_path):
    result = trek(
        studies,
        tmp_path / "talks",
        *(
            "--split",
            "test",
            "--frame",
            "thousand",
            "--shuffled",
            "1",
            "--most-images",
            "1",
            "--indication",
            "0",
        ),
    )
    assert result.exit_code == 0, result.output
    bench = list(open_benchmark(tmp_path / "talks"))
    assert {case.study for case in bench} == {"first", "second"}
    assert {case.order for case in bench} == {"shuffled"}
    assert {box.frame for case in bench for step in case.steps for box in step.key.boxes} == {"thousand"}
    assert not any(step.context for case in bench for step in case.steps)


@pytest.mark.parametrize("frame", ["pixel", "percent", "thousand"])
def test_the_frame_option_sets_the_units_of_boxes(studies, tmp_path, frame):
    assert trek(studies, tmp_path / "talks", "--frame", frame, "--split", "test").exit_code == 0
    boxes = [b for c in open_benchmark(tmp_path / "talks") for s in c.steps for b in s.key.boxes]
    assert {box.frame for box in boxes} == {frame}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--frame", "inch"), "Invalid value for '--frame'"),
        (("--engine", "dask"), "Invalid value for '--engine'"),
        (("--on-error", "cry"), "Invalid value for '--on-error'"),
        (("--shuffled", "1.5"), "Invalid value for '--shuffled'"),
        (("--shuffled", "-1"), "Invalid value for '--shuffled'"),
        (("--indication", "2"), "Invalid value for '--indication'"),
        (("--most-images", "0"), "Invalid value for '--most-images'"),
        (("--workers", "0"), "Invalid value for '--workers'"),
        (("--split", "exam"), "split 'exam': expected one of train, val, test"),
        (("--extractor", "magic"), "extractor 'magic'"),
        (("--paraphrase", "gpt"), "paraphrase 'gpt'"),
        (("--seed", "x"), "Invalid value for '--seed'"),
    ],
)
def test_invalid_option_values_are_wrong_usage(studies, tmp_path, arguments, told):
    result = trek(studies, tmp_path / "talks", *arguments)
    assert result.exit_code == 2, result.output
    assert told in result.stderr
    assert "Traceback" not in result.output
    assert not (tmp_path / "talks").exists()


def test_a_missing_study_set_is_bad_input(tmp_path):
    result = trek(tmp_path / "nowhere", tmp_path / "talks")
    assert result.exit_code == 2
    assert "nowhere" in result.stderr
    assert not (tmp_path / "talks").exists()


def test_a_directory_within_the_studies_is_refused(studies):
    result = trek(studies, studies / "talks")
    assert result.exit_code == 2
    assert "lies in the study set" in result.stderr
    assert not (studies / "talks").exists()


def test_a_set_that_gives_nothing_fails_with_the_reason(tmp_path):
    silent = write(tmp_path / "studies", [made.study(name="silent", assessed=Assessed())])
    result = trek(silent, tmp_path / "talks")
    assert result.exit_code == 1
    assert "none of 1 study can be asked about" in result.stderr
    assert "1 of 1 study left out: " in result.stderr
    assert "Traceback" not in result.output
    with pytest.raises(NoCasesError, match="none of 1 study can be asked about") as caught:
        build_trek(silent, tmp_path / "again", workers=1)
    assert caught.value.benchmark.build_report.studies == 1


def test_a_contradiction_is_skipped_or_stops(tmp_path):
    torn = made.study(
        made.finding("mass"),
        name="torn",
        patient="torn",
        report=made.report("A mass."),
        recommendations=(made.Recommendation(id="r", action="chest CT", about=("f-mass",), evidence=(77,)),),
    )
    directory = write(tmp_path / "studies", [*made.crowd(5), torn])
    result = trek(directory, tmp_path / "talks")
    assert result.exit_code == 0
    assert "1 of 6 studies left out: its records contradict each other" in result.stderr
    stopped = trek(directory, tmp_path / "other", "--on-error", "stop")
    assert stopped.exit_code == 2
    assert "Error: study torn: its records contradict each other" in stopped.stderr


def test_an_address_without_a_cluster_is_bad_input(studies, tmp_path):
    pytest.importorskip("ray")
    result = trek(studies, tmp_path / "talks", "--engine", "ray", "--address", "somewhere")
    assert result.exit_code == 2
    assert "is no address of a Ray cluster" in result.stderr


def test_help_shows_how_and_the_examples_are_understood():
    result = CliRunner().invoke(app, ["build", "trek", "--help"])
    assert result.exit_code == 0
    examples = [
        line.split() for line in result.stdout.splitlines() if line.strip().startswith("carina build trek")
    ]
    assert len(examples) >= 3
    options = {word for example in examples for word in example if word.startswith("--")}
    assert {"--split", "--frame", "--engine"} <= options
    for option in options:
        assert result.stdout.count(option) > 1, option
    assert "Usage: carina build trek" in CliRunner().invoke(app, ["build", "trek"]).output
    assert "trek" in CliRunner().invoke(app, ["build", "--help"]).stdout
