"""`carina run`: what a user types, sees and finds on disk."""

import json

import pytest
from tests.runs.conftest import lesion_free, revision_required, talk
from typer.testing import CliRunner

from carina.cases import Provenance, write_benchmark
from carina.cli import app
from carina.runs import Policy, open_run, read_info

CASES = (lesion_free(), revision_required(), talk())


@pytest.fixture
def bench(tmp_path):
    write_benchmark(tmp_path / "bench", CASES, Provenance(command="made by hand"))
    return tmp_path / "bench"


def carina(*words):
    return CliRunner().invoke(app, ["run", *map(str, words)])


def test_a_run_prints_its_directory_and_counts(bench, tmp_path):
    done = carina(bench, "--model", "builtin/oracle", "-o", tmp_path / "run")
    assert done.exit_code == 0
    assert done.stdout == f"{tmp_path / 'run'}\n"
    assert done.stderr == "3 cases, 13 of 13 steps answered\n"
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "run.json",
        "steps-00.jsonl",
        "steps.parquet",
    ]
    again = carina(bench, "--model", "builtin/oracle", "-o", tmp_path / "run")
    assert (again.exit_code, again.stderr) == (0, done.stderr)


def test_a_run_is_extended_with_a_notice_and_never_reduced(bench, tmp_path):
    carina(bench, "--model", "builtin/oracle", "-o", tmp_path / "run", "--limit", 1)
    done = carina(bench, "--model", "builtin/oracle", "-o", tmp_path / "run", "--limit", 2)
    assert done.stderr == f"{tmp_path / 'run'}: extended from 1 to 2 cases\n2 cases, 8 of 8 steps answered\n"
    assert carina(bench, "--model", "builtin/oracle", "-o", tmp_path / "run").exit_code == 0
    back = carina(bench, "--model", "builtin/oracle", "-o", tmp_path / "run", "--limit", 2)
    assert back.exit_code == 2
    assert "holds a run of 3 cases, more than the 2 that are selected now" in back.stderr


@pytest.mark.parametrize(
    "choices",
    [
        "own|gold|hint|none|implicit|explicit",
        "step|stage",
        "continue|stop",
        "carina|chexpercept",
        "local|ray",
    ],
)
def test_help_lists_the_values_of_each_option(choices):
    assert choices in carina("--help").stdout


def test_json_is_one_document(bench, tmp_path):
    done = carina(bench, "--model", "builtin/random", "-o", tmp_path / "run", "--json")
    printed = json.loads(done.stdout)
    assert printed["model"] == "builtin/random"
    assert printed["counts"]["answered"] == 13
    assert printed["failed"] == []


@pytest.mark.parametrize(
    ("words", "policy"),
    [
        ((), Policy()),
        (("--history", "gold"), Policy(history="gold")),
        (("--history", "hint", "--scope", "stage"), Policy(history="hint", scope="stage")),
        (("--history", "none", "--on-wrong", "stop"), Policy(history="none", on_wrong="stop")),
        (("--history", "implicit"), Policy(history="gold", scope="stage")),
        (("--history", "explicit"), Policy(history="hint", scope="stage")),
        (("--profile", "chexpercept", "--history", "none"), Policy(scope="stage", profile="chexpercept")),
        (
            ("--profile", "chexpercept", "--history", "implicit"),
            Policy(history="gold", scope="stage", profile="chexpercept"),
        ),
    ],
)  # fmt: skip
def test_options_give_the_policy(bench, tmp_path, words, policy):
    done = carina(bench, "--model", "builtin/oracle", "-o", tmp_path / "run", *words)
    assert done.exit_code == 0, done.stderr
    assert read_info(tmp_path / "run").policy == policy


def test_on_wrong_stop_leaves_steps_not_reached(bench, tmp_path):
    done = carina(
        bench, "--model", "builtin/random", "--on-wrong", "stop", "-o", tmp_path / "run", "--seed", 4
    )
    assert "not reached" in done.stderr
    states = [row.state for row in open_run(tmp_path / "run").rows()]
    assert set(states) == {"answered", "not_reached"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--model", "builtin/nobody", "-o", "x"), "model 'builtin/nobody': unknown"),
        (("--model", "builtin/raeder", "-o", "x"), "unknown. Did you mean builtin/reader?"),
        (("--model", "builtin/oracle"), "--out: missing"),
        (("--model", "builtin/oracle", "-o", "x", "--history", "mine"), "'mine' is not one of own, gold"),
        (("--model", "builtin/oracle", "-o", "x", "--scope", "all"), "'all' is not one of step, stage"),
        (("--model", "builtin/oracle", "-o", "x", "--limit", "0"), "'--limit': expected 1 or more"),
        (("--model", "builtin/oracle", "-o", "x", "--max-side", "2"), "max_side 2"),
    ],
)  # fmt: skip
def test_wrong_usage_is_refused_in_one_sentence(bench, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    done = carina(bench, *words)
    assert done.exit_code == 2
    assert message in done.stderr
    assert not (tmp_path / "x" / "steps.parquet").exists()


def test_another_run_is_refused(bench, tmp_path):
    carina(bench, "--model", "builtin/oracle", "-o", tmp_path / "run")
    done = carina(bench, "--model", "builtin/random", "-o", tmp_path / "run")
    assert done.exit_code == 2
    assert "holds another run (model builtin/oracle, not builtin/random)" in done.stderr


def test_missing_images_are_named_and_fail_their_cases(bench, tmp_path):
    done = carina(bench, "--model", "builtin/reader", "-o", tmp_path / "run")
    assert (done.exit_code, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert "no question was answered: 3 cases failed, 1 of them with " in line
    assert "lf.png" in line
    assert {row.state for row in open_run(tmp_path / "run").rows()} == {"incomplete"}
