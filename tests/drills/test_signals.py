"""The short version of the drill with interrupts."""

import subprocess
import sys
from pathlib import Path

DRILLS = Path(__file__).parents[2] / "drills"


def test_interrupted_commands_end_without_a_traceback_and_resume():
    done = subprocess.run(
        [sys.executable, DRILLS / "signals.py", "--short"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "signals: 0 broken promises" in done.stdout
