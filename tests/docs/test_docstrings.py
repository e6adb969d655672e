"""The examples in docstrings run and print what they say, and every public function has one."""

import doctest
import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

import carina

ROOT = Path(__file__).parents[2]
PACKAGES = ["carina", *(f"carina.{found.name}" for found in iter_modules(carina.__path__) if found.ispkg)]


def test_examples_in_docstrings_print_what_they_say():
    # In a process of its own: what an example registers must not reach other tests.
    command = [sys.executable, ROOT / "docs" / "docstrings.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]


def test_examples_of_functions_that_check_their_arguments_are_run():
    # The decorator is of another module, and doctest passes over what a module does not define itself.
    module = import_module(carina.run.__module__)
    found = [test.name for test in doctest.DocTestFinder().find(module) if test.examples]
    assert f"{module.__name__}.run" in found


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
