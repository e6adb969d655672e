"""The short version of the drill that damages data sets."""

import subprocess
import sys
from pathlib import Path

DRILL = Path(__file__).parents[2] / "drills/import_fuzz.py"


def test_no_damaged_data_set_breaks_a_promise():
    result = subprocess.run(
        [sys.executable, str(DRILL), "--short"], capture_output=True, text=True, check=False, timeout=1800
    )
    assert result.returncode == 0, result.stderr[-5000:]
    assert "import_fuzz: 0 broken promises" in result.stdout
