"""The examples in docstrings run and print what they say, and every public function has one."""

import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ["carina"]


def test_examples_in_docstrings_print_what_they_say():
    # In a process of its own: what an example registers must not reach other tests.
    command = [sys.executable, ROOT / "docs" / "docstrings.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_function_has_an_example(package):
    module = import_module(package)
    public = {name: getattr(module, name) for name in getattr(module, "__all__", ())}
    without = [
        name
        for name, value in public.items()
        if (inspect.isfunction(value) or (package == "carina" and inspect.isclass(value)))
        and ">>>" not in (inspect.getdoc(value) or "")
    ]
    assert without == []
