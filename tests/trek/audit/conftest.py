"""The sound set; loaded by its path, for tests do not import each other."""

import importlib.util
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def sound():
    if "sound_trek" not in sys.modules:
        spec = importlib.util.spec_from_file_location("sound_trek", Path(__file__).with_name("sound.py"))
        module = importlib.util.module_from_spec(spec)
        sys.modules["sound_trek"] = module
        spec.loader.exec_module(module)
    return tuple(sys.modules["sound_trek"].benchmark(150))
