"""The program as a whole: help, version, exit codes."""

import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

import carina
from carina.cli import app
from carina.store.errors import CarinaError

COMMANDS = ("show", "sources")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The program as a user starts it."""
    start = "from carina.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", start, *arguments], capture_output=True, text=True, check=False, timeout=60
    )


def test_version_is_printed() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"carina {carina.__version__}\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_examples_in_its_help(command: str) -> None:
    result = CliRunner().invoke(app, [command, "--help"])
    assert result.exit_code == 0
    assert f"Examples:\n    carina {command}" in result.stdout


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
    assert "Running the same command again resumes." in result.stderr


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
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")
    assert "studies" in result.stderr
