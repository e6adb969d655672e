"""Makers of bundles and of cases, as fixtures: tests are no package, so they cannot import them."""

import importlib.util
import sys
from pathlib import Path

import pytest


def _load(name):
    spec = importlib.util.spec_from_file_location(f"bundle_{name}", Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def make():
    return _load("published")


@pytest.fixture(scope="session")
def own():
    return _load("ours")


@pytest.fixture
def bundle(tmp_path, make):
    return make.write_bundle(tmp_path / "bundle")
