"""What commands print: how far they are where there is no terminal, and text that a terminal must not obey."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import carina.cli
from carina.cli import app
from carina.cli.console import print_json, print_line, print_table, progress
from carina.store import progress as progress_module


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass when they are told to."""

    class Clock:
        now = 1000.0

        def monotonic(self):
            return self.now

    made = Clock()
    monkeypatch.setattr(progress_module, "time", made)
    return made


def test_progress_without_a_terminal_is_one_line_every_half_minute(clock, capfd):
    with progress("Cases", 2100) as advance:
        for _ in range(10):  # ten seconds each, 30 questions in them
            clock.now += 10
            advance(4, asked=30, failed=1)
    out, err = capfd.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "Cases: 12 of 2100, 3.0 questions/s, 3 failed",
        "Cases: 24 of 2100, 3.0 questions/s, 6 failed",
        "Cases: 36 of 2100, 3.0 questions/s, 9 failed",
        "Cases: 40 of 2100, 3.0 questions/s, 10 failed",  # at the end, so that no log stops in the middle
    ]


def test_progress_lines_leave_out_counts_that_are_not_given(clock, capfd):
    with progress("Studies", 40) as advance:
        advance()
        clock.now += 31
        advance()
    with progress("Records", None) as advance:
        clock.now += 31
        advance(7)
    assert capfd.readouterr().err.splitlines() == ["Studies: 2 of 40", "Records: 7"]


def test_quick_commands_and_json_output_show_no_progress(clock, capfd):
    with progress("Cases", 10) as advance:
        advance(10, asked=70)
    with progress("Cases", 10, quiet=True) as advance:
        clock.now += 100
        advance(10)
    assert capfd.readouterr().err == ""


def test_a_terminal_shows_a_progress_bar_on_standard_error(capfd, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress("Cases", 10) as advance:
        advance(10, asked=3, failed=2)
    out, err = capfd.readouterr()
    assert out == ""
    assert "Cases, 2 failed" in err
    assert "10/10" in err


# ---- signs that a terminal obeys ------------------------------------------------------------------------------------

HOSTILE = "a\x1b[2J\x1b]0;title\x07\rb\x9b31m\x85\u202ec\u2066\u2028\x00\ud800\x7f\U000e0041"
SHOWN = r"a\x1b[2J\x1b]0;title\x07\rb\x9b31m\x85\u202ec\u2066\u2028\x00\ud800\x7f\U000e0041"


def test_lines_show_control_characters_as_escapes(capfd):
    print_line(f"{HOSTILE}\n\tsecond line")
    print_line(HOSTILE, err=True, fg="red")
    out, err = capfd.readouterr()
    assert out == f"{SHOWN}\n\tsecond line\n"
    assert SHOWN in err


def test_ordinary_text_of_any_language_is_printed_as_it_is(capfd):
    text = "Erguß links, 胸水, فا‌رسی, 12\u202f%, \xa0, 👩\u200d⚕️ [bold]"
    print_line(text)
    print_table(["name"], [[text]])
    assert capfd.readouterr().out == f"{text}\nname\n{text}\n"


@pytest.mark.parametrize("is_terminal", [False, True])
def test_cells_of_a_table_cannot_break_it(capfd, monkeypatch, is_terminal):
    monkeypatch.setattr("sys.stdout.isatty", lambda: is_terminal, raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    print_table(["name", "value"], [["x\ty\nz", HOSTILE]])
    out = capfd.readouterr().out
    assert r"x\ty\nz" in out
    assert SHOWN in out


def test_json_shows_control_characters_as_escapes_and_means_the_same(capfd):
    value = {HOSTILE.replace("\ud800", ""): ["é", "\x9b", "\x7f", "\u202e", "\U000e0041"]}
    print_json(value)
    out = capfd.readouterr().out
    assert json.loads(out) == value
    assert "é" in out
    assert out.replace("\n", "").isprintable()


def test_an_error_shows_control_characters_as_escapes(tmp_path):
    done = CliRunner().invoke(app, ["check", str(tmp_path / "no\x1b[2Jne")])
    assert done.exit_code == 2
    assert "\x1b" not in done.output
    assert r"no\x1b[2Jne" in done.output


def test_progress_titles_are_no_markup_and_no_commands(capfd, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    with progress("[red]Cases[/] \x1b]0;title\x07", 1) as advance:
        advance(1)
    err = capfd.readouterr().err
    assert r"[red]Cases[/] \x1b]0;title\x07" in err


def test_commands_print_through_the_console_alone():
    """Every other way to print would have to escape control characters again."""
    calls = re.compile(r"\b(typer\.s?echo|click\.s?echo|sys\.std(out|err)\.write|(?<![\w.])print)\(")
    commands = Path(carina.cli.__file__).parent.glob("*.py")
    found = [path.name for path in commands if path.name != "console.py" and calls.search(path.read_text())]
    assert found == []
