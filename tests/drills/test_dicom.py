"""The short version of the drill that damages DICOM objects."""

import subprocess
import sys
from pathlib import Path

DRILL = Path(__file__).parents[2] / "drills/dicom.py"


def test_no_damaged_object_breaks_a_promise():
    result = subprocess.run(
        [sys.executable, str(DRILL), "--short"], capture_output=True, text=True, check=False, timeout=600
    )
    assert result.returncode == 0, result.stderr[-5000:]
    assert "dicom: 0 broken promises" in result.stdout
