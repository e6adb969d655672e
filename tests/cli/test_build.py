"""`carina build percept`: options, what it prints, and how it refuses."""

import json
from collections import Counter

import numpy as np
import pytest
from tests.percept import conftest as chest
from typer.testing import CliRunner

from carina.cases import open_benchmark
from carina.cli import app
from carina.studies import Region


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    return chest.write_set(tmp_path_factory.mktemp("sets") / "studies", chest.population())


def percept(studies, out, *arguments, workers=1):
    command = ["build", "percept", str(studies), "-o", str(out), "--workers", str(workers), *arguments]
    return CliRunner().invoke(app, command)


SMALL = ("--per-cell", "1", "--target", "cardiomegaly", "--target", "edema")


def test_build_writes_a_benchmark_and_prints_its_directory_and_cells(studies, tmp_path):
    result = percept(studies, tmp_path / "bench", *SMALL)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == str(tmp_path / "bench")
    assert [line.split() for line in lines[-2:]] == [
        ["cardiomegaly", "1", "1", "1"],
        ["edema", "1", "1", "1"],
    ]
    assert result.stderr.splitlines()[0].endswith("patients")
    bench = open_benchmark(tmp_path / "bench")
    assert {(case.target, case.path) for case in bench} == {
        (target, path) for target in ("cardiomegaly", "edema") for path in ("LF", "RF", "RR")
    }
    # Cardiomegaly 5 + 2 + 1 questions, edema 9 + 6 + 1.
    assert f"6 cases, 24 questions, {len({case.patient for case in bench})} patients" in result.stderr


def test_json_is_one_document_with_the_report(studies, tmp_path):
    result = percept(studies, tmp_path / "bench", *SMALL, "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["benchmark"] == str(tmp_path / "bench")
    assert told["counts"]["cases"] == 6
    assert told["report"]["studies"] == 36
    assert [(cell["target"], cell["path"], cell["built"]) for cell in told["report"]["cells"]] == [
        (target, path, 1) for target in ("cardiomegaly", "edema") for path in ("LF", "RF", "RR")
    ]
    assert result.stderr == ""


def test_a_second_call_prints_the_same(studies, tmp_path):
    first = percept(studies, tmp_path / "bench", *SMALL)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "bench").rglob("*")}
    again = percept(studies, tmp_path / "bench", *SMALL)
    assert (again.exit_code, again.stdout) == (0, first.stdout)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "bench").rglob("*")} == before


def test_another_seed_in_the_same_directory_is_refused_in_one_sentence(studies, tmp_path):
    assert percept(studies, tmp_path / "bench", *SMALL).exit_code == 0
    result = percept(studies, tmp_path / "bench", *SMALL, "--seed", "1")
    assert result.exit_code == 2
    assert f"Error: {tmp_path / 'bench'}: already holds 6 cases made in another way" in result.stderr
    assert "seed" in result.stderr
    assert "Traceback" not in result.output


def test_another_seed_gives_other_cases(studies, tmp_path):
    for seed in ("1", "2"):
        assert percept(studies, tmp_path / seed, *SMALL, "--seed", seed).exit_code == 0
    assert open_benchmark(tmp_path / "1").ids() != open_benchmark(tmp_path / "2").ids()


def test_an_unknown_lesion_is_wrong_usage(studies, tmp_path):
    result = percept(studies, tmp_path / "bench", "--target", "nodule")
    assert result.exit_code == 2
    assert "target 'nodule'" in result.stderr
    assert "cardiomegaly, consolidation, edema" in result.stderr
    assert not (tmp_path / "bench").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("--per-cell", "0"),
        ("--workers", "0"),
        ("--max-failures", "2"),
        ("--target", "edema", "--target", "edema"),
        ("--split", "exam"),
    ],
)
def test_invalid_option_values_are_wrong_usage(studies, tmp_path, arguments):
    result = percept(studies, tmp_path / "bench", *arguments)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output


def test_a_missing_study_set_is_bad_input(tmp_path):
    result = percept(tmp_path / "nowhere", tmp_path / "bench")
    assert result.exit_code == 2
    assert "nowhere" in result.stderr
    assert not (tmp_path / "bench").exists()


def test_a_directory_with_studies_is_refused(studies):
    result = percept(studies, studies, *SMALL)
    assert result.exit_code == 2
    assert "lies in the study set" in result.stderr


def test_only_studies_of_the_chosen_split_are_used(studies, tmp_path):
    result = percept(studies, tmp_path / "bench", *SMALL, "--split", "val")
    assert result.exit_code == 0, result.output
    assert {case.split for case in open_benchmark(tmp_path / "bench")} == {"val"}


def test_cells_that_cannot_be_filled_are_printed_with_the_reasons(tmp_path):
    mask = chest.some_lesions()["lower"]
    bad = [
        chest.study(chest.finding("edema", Region.full(9, 9)), name="outside"),
        chest.study(chest.finding("edema", np.zeros_like(mask)), name="empty"),
        chest.study(chest.finding("edema", mask), name="lungless", fields=()),
        chest.study(chest.finding("edema", mask & chest.rectangle(180, 75, 1, 1)), name="pixel"),
    ]
    studies = chest.write_set(tmp_path / "studies", [*bad, *chest.population(4)])
    result = percept(studies, tmp_path / "bench", "--per-cell", "20", "--target", "edema")
    assert result.exit_code == 0, result.output
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("edema RR: ")]
    assert "of 20 from 8 candidates; not usable: " in line
    for reason in ("region outside its image 1", "empty mask 1", "no lungs 1", "lesion too small 1"):
        assert reason in line
    assert "edema LF: 8 of 20 from 8 candidates" in result.stderr.splitlines()
    paths = Counter(case.path for case in open_benchmark(tmp_path / "bench"))
    assert paths["LF"] == 8
    assert paths["RR"] >= 1
    strict = percept(
        studies, tmp_path / "two", "--per-cell", "20", "--max-failures", "0.5", "--target", "edema"
    )
    assert strict.exit_code == 0


def test_a_build_with_lesion_free_cases_only_says_first_that_no_lesion_has_a_mask(tmp_path):
    clear = [
        study
        for study in chest.population(4)
        if not any(f.name == "edema" and f.certainty == "present" for f in study.findings)
    ]
    undrawn = chest.study(chest.finding("edema"), name="undrawn")
    studies = chest.write_set(tmp_path / "studies", [undrawn, *clear])
    result = percept(studies, tmp_path / "bench", "--per-cell", "2", "--target", "edema")
    assert result.exit_code == 0, result.output
    said = result.stderr.splitlines()
    assert said[1] == "no lesion has a mask on a frontal image: only lesion-free cases"
    assert {case.path for case in open_benchmark(tmp_path / "bench")} == {"LF"}
    assert "LF (lesion-free)" in result.stdout


def test_a_build_without_cases_fails_with_the_reasons(tmp_path):
    mask = chest.some_lesions()["lower"]
    none = [chest.study(chest.finding("edema", mask), name=f"n{n}", fields=()) for n in range(3)]
    studies = chest.write_set(tmp_path / "studies", none)
    result = percept(studies, tmp_path / "bench", "--target", "edema")
    assert result.exit_code == 1
    assert "edema RR: 0 of 100 from 3 candidates; not usable: no lungs 3" in result.stderr.splitlines()
    assert "none of 3 studies can be asked about" in result.stderr.splitlines()[-1]
    assert (tmp_path / "bench" / "skipped.csv").read_text().count("no lungs") == 3
    # Said again, not hidden by the finished benchmark that lies there.
    assert percept(studies, tmp_path / "bench", "--target", "edema").exit_code == 1


def test_more_empty_cells_than_max_failures_fail(studies, tmp_path):
    # No study states anything of pneumonia: three of six cells stay empty.
    asked = ("--per-cell", "1", "--target", "edema", "--target", "pneumonia")
    assert percept(studies, tmp_path / "bench", *asked, "--max-failures", "0.5").exit_code == 0
    result = percept(studies, tmp_path / "bench", *asked, "--max-failures", "0.4")
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1] == "Error: 3 of 6 cells are empty"
    assert percept(studies, tmp_path / "bench", *asked).exit_code == 0


def test_an_empty_study_set_is_a_failure(tmp_path):
    studies = chest.write_set(tmp_path / "studies", [])
    result = percept(studies, tmp_path / "bench")
    assert result.exit_code == 1
    assert "none of 0 studies can be asked about" in result.stderr.splitlines()[-1]


def test_help_shows_the_lesions_and_examples():
    result = CliRunner().invoke(app, ["build", "percept", "--help"])
    assert result.exit_code == 0
    assert "cardiomegaly, consolidation, edema, atelectasis, pneumonia, opacity, effusion" in result.stdout
