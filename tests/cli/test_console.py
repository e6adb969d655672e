"""How far a command is, where there is no terminal."""

import pytest

from carina.cli.console import progress
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
