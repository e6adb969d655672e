"""The short version of the drill that damages inputs."""

import subprocess
import sys
from pathlib import Path

DRILL = Path(__file__).parents[2] / "drills/fuzz.py"


def test_no_damaged_input_breaks_a_promise():
    result = subprocess.run(
        [sys.executable, str(DRILL), "--short"], capture_output=True, text=True, check=False, timeout=1800
    )
    assert result.returncode == 0, result.stderr[-5000:]
    assert "fuzz: 0 broken promises" in result.stdout
