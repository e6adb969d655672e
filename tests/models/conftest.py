"""Tiny weights, made once a run."""

import importlib.util
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def tiny():
    """The module that makes tiny random weights."""
    pytest.importorskip("torch", reason="the extra torch is not installed")
    pytest.importorskip("transformers", reason="the extra torch is not installed")
    spec = importlib.util.spec_from_file_location("tiny_weights", Path(__file__).with_name("tiny.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def weights(tiny, tmp_path_factory):
    """A folder of weights of a kind: `weights("sam")`; not to be changed."""
    there = {}

    def folder(kind: str) -> Path:
        if kind not in there:
            there[kind] = tiny.save_tiny(kind, tmp_path_factory.mktemp("weights") / f"tiny-{kind}")
        return there[kind]

    return folder
