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
    assert done.stdout.startswith(f"{tmp_path / 'run'}\nprotocol\tmeasure\t")
    assert done.stderr.startswith("3 cases, 13 of 13 steps answered\nblind: the best constant answer")
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "run.json",
        "steps-00.jsonl",
        "steps.parquet",
    ]
    again = carina(bench, "--model", "builtin/oracle", "-o", tmp_path / "run")
    assert (again.exit_code, again.stdout, again.stderr) == (0, done.stdout, done.stderr)


def test_a_run_is_extended_with_a_notice_and_never_reduced(bench, tmp_path):
    carina(bench, "--model", "builtin/oracle", "-o", tmp_path / "run", "--limit", 1)
    done = carina(bench, "--model", "builtin/oracle", "-o", tmp_path / "run", "--limit", 2)
    assert done.stderr.startswith(
        f"{tmp_path / 'run'}: extended from 1 to 2 cases\n2 cases, 8 of 8 steps answered\n"
    )
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


def test_a_run_ends_with_its_scores_beside_the_blind_baseline(bench, tmp_path):
    carina(bench, "--model", "builtin/majority", "-o", tmp_path / "majority")
    done = carina(bench, "--model", "builtin/oracle", "-o", tmp_path / "run")
    assert done.stderr.endswith(f"blind: builtin/majority in {tmp_path / 'majority'}\n")
    lines = [line.split("\t") for line in done.stdout.splitlines()[1:]]
    assert lines[0] == ["protocol", "measure", "metric", "score", "n", "chance", "blind"]
    rows = {(row[0], row[1]): row[2:] for row in lines[1:]}
    # Of the two percept cases one has no lesion: both sides of the first stage are there.
    assert rows["percept", "Detection"][:4] == ["balanced accuracy", "1.000 (0.158 to 1.000)", "2", "0.500"]
    # One patient has no interval, and one side of an opposed stage has no value.
    assert rows["percept", "Contour revision"][:2] == ["accuracy", "1.000"]
    assert rows["percept", "Contour evaluation"] == ["balanced accuracy", "-", "0", "-", "-"]
    assert rows["-", "answers not read"] == ["share", "0.000", "13", "-", "-"]
    printed = json.loads(carina(bench, "--model", "builtin/oracle", "-o", tmp_path / "run", "--json").stdout)
    assert printed["not_read"] == {"share": 0.0, "answers": 13}
    assert printed["blind_baseline"] == {"run": str(tmp_path / "majority"), "model": "builtin/majority"}
    (detection,) = [one for one in printed["scores"] if one["title"] == "Detection"]
    assert (detection["value"], detection["n"], detection["chance"]) == (1.0, 2, 0.5)
    assert round(detection["low"], 3) == 0.158


def test_several_models_and_histories_are_runs_below_one_directory(bench, tmp_path):
    out = tmp_path / "runs"
    words = (
        bench,
        "-m",
        "builtin/oracle",
        "-m",
        "hf:nowhere",
        "--history",
        "own",
        "--history",
        "gold",
        "-o",
        out,
    )
    for _ in range(2):
        done = carina(*words)
        assert done.exit_code == 1
        assert sorted(path.name for path in out.iterdir()) == [
            "bench-builtin-oracle-gold",
            "bench-builtin-oracle-own",
        ]
        lines = [line.split("\t") for line in done.stdout.splitlines()]
        assert lines[0] == [str(out)]
        assert [line[:2] for line in lines[2:]] == [
            [f"bench-builtin-oracle-{history}", protocol]
            for history in ("own", "gold")
            for protocol in ("percept", "trek")
        ]
        assert done.stderr.count(f"failed: {out}/bench-hf-nowhere-") == 2
        assert done.stderr.endswith("2 runs failed; repeat the command to resume\n")
    printed = json.loads(carina(*words, "--json").stdout)
    assert [one["history"] for one in printed["runs"]] == ["own", "gold"]
    assert len(printed["errors"]) == 2
    assert printed["runs"][0]["scores"]
    report = CliRunner().invoke(app, ["report", str(out), "-o", str(tmp_path / "report"), "--cases", "0"])
    assert report.exit_code == 0


@pytest.mark.usefixtures("bench")
def test_two_benchmarks_and_a_file_go_the_same_way(tmp_path, monkeypatch):
    write_benchmark(tmp_path / "other", CASES[:1], Provenance(command="made by hand"))
    monkeypatch.chdir(tmp_path)
    done = carina("bench", "other", "-m", "builtin/oracle", "-o", "runs")
    assert done.exit_code == 0
    (tmp_path / "both.yaml").write_text("benchmarks: [bench, other]\nmodels: [builtin/oracle]\nout: runs\n")
    again = carina("both.yaml")
    assert (again.exit_code, again.stdout) == (0, done.stdout)
    assert carina("both.yaml", "-o", "elsewhere").stdout.startswith("elsewhere\n")
    for words, message in (
        (("both.yaml", "--limit", "3"), "--limit: does not go together with both.yaml"),
        (("both.yaml", "-m", "builtin/random"), "--model: does not go together with both.yaml"),
        (("nothing.yaml",), "nothing.yaml: no such file"),
        (("bench", "-o", "run"), "--model: missing"),
        (("bench", "other", "-m", "builtin/oracle"), "--out: missing"),
        (("bench", "other", "-m", "openai/gpt-5", "--estimate"), "--estimate: expected one benchmark"),
    ):
        refused = carina(*words)
        assert (refused.exit_code, message in refused.stderr) == (2, True), refused.stderr
