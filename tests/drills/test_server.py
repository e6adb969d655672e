"""The drill with a hostile server, in its short version."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("inspect_ai", reason="the extra served is not installed")
pytest.importorskip("openai", reason="the extra served is not installed")

DRILL = Path(__file__).parents[2] / "drills" / "server.py"


def test_a_hostile_server_breaks_no_promise():
    done = subprocess.run([sys.executable, DRILL, "--short"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "server: 0 broken promises" in done.stdout
