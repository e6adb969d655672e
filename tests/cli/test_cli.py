"""The program as a whole: help, version, exit codes."""

import errno
import os
import re
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

import carina
from carina.cli import app
from carina.store.errors import CarinaError
from carina.studies import Provenance, write_studies

COMMANDS = ("show", "sources")
EVERY_COMMAND = (
    *(
        "audit",
        "check",
        "compare-profiles",
        "convert-checkpoint",
        "convert-pickles",
        "demo",
        "explain",
        "export",
    ),
    *("list-metrics", "phantom", "report", "run", "score-maps", "show", "sources"),
    *(
        "build percept",
        "build trek",
        "build ground",
        "import chexpercept",
        "import dicom",
        "import swift-chat",
    ),
    *("export --to chat", "export --to chexpercept", "export --to hf"),
)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The program as a user starts it."""
    start = "from carina.program import main; main()"
    return subprocess.run(
        [sys.executable, "-c", start, *arguments], capture_output=True, text=True, check=False, timeout=60
    )


def test_version_is_printed() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"carina {carina.__version__}\n")


@pytest.mark.parametrize(
    ("former", "current"),
    [
        (["score", "maps", "-o", "x"], "`carina score-maps`\n"),
        (["compare"], "`carina compare-profiles`\n"),
        (["variants"], "`carina list-metrics`\n"),
        (["convert-pickles"], "`carina convert-pickles`\n"),
        (["convert-checkpoint"], "`carina convert-checkpoint`\n"),
        (["--help"], "`carina score-maps`, `carina compare-profiles`, "),
        ([], "`carina score-maps`, `carina compare-profiles`, "),
    ],
)
def test_a_command_of_the_former_group_ground_is_refused_with_its_name_of_today(former, current) -> None:
    result = CliRunner().invoke(app, ["ground", *former])
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: there is no command `carina ground")
    assert f"; use {current}" in result.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_examples_in_its_help(command: str) -> None:
    result = CliRunner().invoke(app, [command, "--help"])
    assert result.exit_code == 0
    assert f"Examples:\n    carina {command}" in result.stdout


@pytest.mark.parametrize("command", EVERY_COMMAND)
def test_help_names_values_in_plain_words(command: str) -> None:
    result = CliRunner().invoke(app, [*command.split(), "--help"])
    assert result.exit_code == 0
    usage, *lines = result.stdout.splitlines()
    assert not re.search(r"[{}<>]|\[\[", usage)
    for line in lines:
        if re.match(r"  (-|[A-Z]+\b(\.\.\.)?  )", line):  # an option, or an argument
            name = re.split(r"  +", line.strip())[0]
            assert not re.search(r"[<>{}]|\b(int|str|float|path|list)\b", name), line


@pytest.mark.parametrize("group", [[], ["build"], ["import"]])
def test_summaries_of_commands_are_not_cut_off_at_80_columns(group: list[str]) -> None:
    result = CliRunner().invoke(app, [*group, "--help"], env={"COLUMNS": "80"})
    listed = result.stdout.partition("Commands:\n")[2]
    assert listed
    assert "..." not in listed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "b", "-m", "m", "--limit", "many"), "'--limit': expected a whole number"),
        (("run", "b", "-m", "m", "--limit", "0"), "'--limit': expected 1 or more"),
        (("run", "b", "-m", "m", "--history", "golden"), "'--history': 'golden' is not one of own, gold"),
        (("audit", "b", "--warn-level", "low"), "'--warn-level': expected a number"),
        (("audit", "b", "--warn-level", "2"), "'--warn-level': expected 1 or less"),
        (("export", "b", "--to", "hf", "-o", "x", "--workers", "a"), "'--workers': expected a whole number"),
    ],
)
def test_wrong_values_are_explained_in_plain_words(arguments: tuple[str, ...], message: str) -> None:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 2
    assert f"Invalid value for {message}" in result.stderr


def test_a_set_of_the_wrong_kind_is_named_with_the_command_that_makes_the_right_one(tmp_path) -> None:
    studies, elsewhere = tmp_path / "studies", tmp_path / "run"
    write_studies(studies, [], Provenance(command="test"))
    elsewhere.mkdir()
    (elsewhere / "run.json").write_text("{}")
    for arguments, message in (
        (("run", studies), f"{studies}: is a study set, expected a benchmark; build one with `carina build`"),
        (("run", elsewhere), f"{elsewhere}: is a run, expected a benchmark; build one with `carina build`"),
        (("check", elsewhere), f"{elsewhere}: is a run, expected a study set or a benchmark"),
        (
            ("check", tmp_path / "no"),
            f"{tmp_path / 'no'}: no such directory, expected a study set or a benchmark",
        ),
        (("report", studies), f"{studies}: is a study set, expected a run"),
    ):
        command, path = arguments
        options = {"run": ["-m", "builtin/reader"], "report": []}.get(command)
        out = [] if options is None else [*options, "-o", str(tmp_path / "out")]
        result = CliRunner().invoke(app, [command, str(path), *out])
        assert result.exit_code == 2
        assert message in result.stderr


def test_help_lists_every_command_without_loading_what_commands_need() -> None:
    start = "import sys; from carina.cli import app; app(['--help'], standalone_mode=False); "
    code = start + "print(sorted(sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    for command in COMMANDS:
        assert f"\n  {command} " in result.stdout
    for heavy in ("numpy", "cv2", "polars", "duckdb", "jinja2", "carina.studies"):
        assert f"'{heavy}'" not in result.stdout


def test_bad_input_is_one_sentence_and_exit_code_2(tmp_path) -> None:
    result = run("show", str(tmp_path / "nowhere"), "-o", str(tmp_path / "out"))
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert "nowhere" in result.stderr
    assert result.stderr.count("\n") == 1
    assert "\x1b" not in result.stderr  # no colours into a pipe


def test_wrong_usage_is_exit_code_2() -> None:
    for arguments in (["nonsense"], ["show"], ["sources", "--nonsense"]):
        assert run(*arguments).returncode == 2


def fails_with(error: BaseException) -> typer.Typer:
    """The program with one more command, which raises."""
    program = typer.Typer(cls=app.info.cls, pretty_exceptions_enable=False)

    @program.callback()
    def _program() -> None:
        pass

    @program.command()
    def work() -> None:
        raise error

    return program


def test_an_interrupt_says_how_to_resume() -> None:
    result = CliRunner().invoke(fails_with(KeyboardInterrupt()), ["work"])
    assert result.exit_code == 130
    assert "Run the same command again" in result.stderr


def test_a_command_that_failed_keeps_its_exit_code_and_a_fault_its_traceback() -> None:
    assert CliRunner().invoke(fails_with(typer.Exit(1)), ["work"]).exit_code == 1
    assert (
        CliRunner().invoke(fails_with(CarinaError("row 3: no id")), ["work"]).stderr
        == "Error: row 3: no id\n"
    )
    fault = CliRunner().invoke(fails_with(ZeroDivisionError("ours")), ["work"])
    assert fault.exit_code == 1
    assert isinstance(fault.exception, ZeroDivisionError)


def test_an_error_of_the_file_system_is_one_sentence(tmp_path):
    (tmp_path / "studies").write_text("in the way")
    result = CliRunner().invoke(app, ["phantom", "-n", "1", "--size", "32", "-o", str(tmp_path)])
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")
    assert "studies" in result.stderr


def test_help_lists_commands_in_the_order_of_the_work():
    listed = CliRunner().invoke(app, ["--help"]).stdout.partition("Commands:")[2].splitlines()
    names = [line.split()[0] for line in listed if line.strip()]
    wanted = ["phantom", "import", "build", "audit", "run", "report"]
    assert [name for name in names if name in wanted] == wanted


@pytest.mark.parametrize(
    ("number", "code", "words"),
    [
        (errno.ENOSPC, 1, "free some space and run the same command again"),
        (errno.EROFS, 2, "choose another directory"),
        (errno.EACCES, 2, "choose another directory"),
    ],
)
def test_an_error_of_the_operating_system_names_the_file_and_what_to_do(
    tmp_path, monkeypatch, number, code, words
):
    """A full disk is an error of `write`, which knows no file name."""

    def refuse(_path, _content):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("pathlib.Path.write_bytes", refuse)
    result = CliRunner().invoke(app, ["phantom", "-n", "1", "--size", "64", "-o", str(tmp_path / "out")])
    assert result.exit_code == code
    assert str(tmp_path / "out") in result.stderr
    assert os.strerror(number) in result.stderr
    assert words in result.stderr
