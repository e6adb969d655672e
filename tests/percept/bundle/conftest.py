"""The maker of bundles, as a fixture: tests are no package, so they cannot import it."""

import importlib.util
import sys
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location("published_bundles", Path(__file__).with_name("published.py"))
_module = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = _module
_spec.loader.exec_module(_module)


@pytest.fixture(scope="session")
def make():
    return _module


@pytest.fixture
def bundle(tmp_path):
    return _module.write_bundle(tmp_path / "bundle")
