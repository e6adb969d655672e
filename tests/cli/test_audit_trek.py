"""`carina audit` on trek conversations: their gates, their statistics, and limits from a file."""

import json

import msgspec
import pytest
from tests.audits.trek.sound import benchmark
from typer.testing import CliRunner

from carina.cases import Provenance, write_benchmark
from carina.cli import app

change = msgspec.structs.replace


@pytest.fixture(scope="module")
def sound():
    return benchmark(80)


def written(directory, cases):
    write_benchmark(directory, cases, Provenance(command="test"))
    return directory


def run(*arguments):
    return CliRunner().invoke(app, ["audit", *map(str, arguments), "--no-files"])


def test_conversations_pass_their_gates_and_print_statistics(tmp_path, sound):
    bench = written(tmp_path / "bench", sound)
    result = run(bench)
    assert result.exit_code == 0, result.output
    lines = [line.split("\t") for line in result.stdout.splitlines()]
    gates = {line[1]: line[0] for line in lines if len(line) == 5}
    assert gates["answer-balance"] == gates["history-baseline"] == gates["turn-structure"] == "✓ pass"
    assert gates["image-files"] == "– not applicable"
    figures = {line[0]: line[1:] for line in lines if len(line) == 4}
    assert figures["statistic"] == ["value", "n", "for comparison"]
    assert figures["turns per conversation, mean"][2] == "the original's sample: 26.06"
    assert figures["stage 8: conversations with it"][:2] == ["1.000", "80"]
    stored = json.loads((bench / "audit" / "audit.json").read_text())
    assert next(gate for gate in stored["gates"] if gate["name"] == "conversation-statistics")["rows"]
    page = (bench / "audit" / "audit.html").read_text()
    assert "the original&#39;s sample: 26.06" in page


def test_a_broken_set_fails_and_names_the_record(tmp_path, sound):
    case = sound[0]
    broken = change(case, reference_study=None, later_study=None)
    result = run(written(tmp_path / "bench", [broken, *sound[1:]]))
    if case.reference_study is None and case.later_study is None:
        pytest.fail("the first conversation should compare or foresee something")
    assert result.exit_code == 1
    assert f"stage-requirements: {case.id}: " in result.stdout
    assert "stage-requirements" in result.stderr


def test_limits_come_from_a_file(tmp_path, sound):
    bench = written(tmp_path / "bench", sound)
    limits = tmp_path / "limits.yaml"
    limits.write_text("negative-origins: {single_origin: 0.1}\nanswer-balance: {majority: 0.6}\n")
    result = run(bench, "--limits", limits)
    assert result.exit_code == 1
    assert "failed: negative-origins" in result.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("answer-balance: {majorty: 0.5}\n", "answer-balance: unknown limit 'majorty'"),
        ("answer-balanc: {majority: 0.5}\n", "unknown gate 'answer-balanc'. Did you mean 'answer-balance'?"),
        ("majority: 0.5\n", "'majority' is a limit; write it below its gate, such as answer-balance"),
        ("answer-balance: {majority: much}\n", "answer-balance: Expected `float`, got `str` - at `majority`"),
        ("answer-balance: {majority: 1.5}\n", "`majority`"),
        ("answer-balance: {majority: .nan}\n", "answer-balance.majority: expected a finite number"),
        ("answer-balance: {majority: .inf}\n", "answer-balance.majority: expected a finite number"),
        ("answer-balance: 0.5\n", "answer-balance: expected limits by name"),
        ("contour-shortcuts: {max_auc: 0.7}\n", "contour-shortcuts: examines percept cases"),
        ("- majority\n", "expected gates with their limits"),
        ("majority: [\n", "not YAML"),
    ],
)
def test_an_invalid_file_of_limits_is_refused_with_its_name(tmp_path, sound, text, words):
    bench = written(tmp_path / "bench", sound[:3])
    limits = tmp_path / "limits.yaml"
    limits.write_text(text)
    result = run(bench, "--limits", limits)
    assert result.exit_code == 2
    message = " ".join((result.stderr or str(result.exception)).split())
    assert "limits.yaml" in message
    assert words in message
    missing = run(bench, "--limits", tmp_path / "none.yaml")
    assert missing.exit_code == 2
    assert not (bench / "audit").exists()


def test_limits_of_trek_gates_are_refused_without_conversations(tmp_path, sound):
    others = [change(case, protocol="made") for case in sound[:3]]
    limits = tmp_path / "limits.yaml"
    limits.write_text("answer-balance: {majority: 0.6}\n")
    result = run(written(tmp_path / "bench", others), "--limits", limits)
    assert result.exit_code == 2


def test_two_processes_give_the_same_bytes_as_one(tmp_path, sound):
    bench = written(tmp_path / "bench", sound)
    results = [run(bench, "-o", tmp_path / number, "--workers", number) for number in ("1", "2")]
    assert [result.exit_code for result in results] == [0, 0], results[1].output
    assert results[0].stdout == results[1].stdout
    for name in ("audit.html", "audit.json"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()


def test_a_damaged_part_gives_the_same_error_with_two_processes(tmp_path, sound):
    bench = written(tmp_path / "bench", sound)
    part = next(bench.glob("cases/*.parquet"))
    part.write_bytes(part.read_bytes()[:-100])
    results = [run(bench, "--workers", number) for number in (1, 2)]
    assert [result.exit_code for result in results] == [2, 2]
    assert "cut or changed" in results[0].stderr
    assert results[0].stderr == results[1].stderr


def test_a_failing_set_fails_with_two_processes_too(tmp_path, sound):
    broken = change(sound[0], reference_study=None, later_study=None)
    bench = written(tmp_path / "bench", [broken, *sound[1:]])
    results = [run(bench, "--workers", number, "--json") for number in (1, 2)]
    assert [result.exit_code for result in results] == [1, 1]
    assert json.loads(results[0].stdout) == json.loads(results[1].stdout)
