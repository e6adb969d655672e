"""The sound set, and what its tests share; loaded by their paths, for tests are no package."""

import importlib.util
import sys
from pathlib import Path

import pytest


def _load(file):
    name = f"{file}_trek"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{file}.py"))
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


# Before tests are collected, which import it by this name: they need it where parameters are listed.
_load("gates")


@pytest.fixture(scope="session")
def sound():
    return tuple(_load("sound").benchmark(150))
