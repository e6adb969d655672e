"""The short version of the drill that kills every writing command."""

import subprocess
import sys
from pathlib import Path

DRILL = Path(__file__).parents[2] / "drills" / "kill.py"


def test_killed_commands_are_finished_by_the_next_call():
    done = subprocess.run([sys.executable, DRILL, "--short"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "kill: 0 broken promises" in done.stdout
