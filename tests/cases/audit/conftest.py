"""A sound benchmark for every test to break."""

import importlib.util
import sys
from pathlib import Path

import pytest


def load_sound():
    if "sound_benchmark" not in sys.modules:
        spec = importlib.util.spec_from_file_location("sound_benchmark", Path(__file__).with_name("sound.py"))
        module = importlib.util.module_from_spec(spec)
        sys.modules["sound_benchmark"] = module
        spec.loader.exec_module(module)
    return sys.modules["sound_benchmark"]


@pytest.fixture(scope="session")
def sound():
    return tuple(load_sound().benchmark(48))
