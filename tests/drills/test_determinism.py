"""Every variant of every command writes the same bytes."""

import subprocess
import sys
from pathlib import Path

DRILL = Path(__file__).parents[2] / "drills" / "determinism.py"


def test_every_command_writes_the_same_bytes_in_every_variant():
    done = subprocess.run(
        [sys.executable, str(DRILL), "--short"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "determinism: 0 broken promises" in done.stdout
