"""Tiny weights, made once a run."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def tiny():
    """The module that makes tiny random weights."""
    pytest.importorskip("torch", reason="the extra torch is not installed")
    pytest.importorskip("transformers", reason="the extra torch is not installed")
    from tests.models import tiny

    return tiny


@pytest.fixture(scope="session")
def weights(tiny, tmp_path_factory):
    """A folder of weights of a kind: `weights("sam")`; not to be changed."""
    there = {}

    def folder(kind: str) -> Path:
        if kind not in there:
            there[kind] = tiny.save_tiny(kind, tmp_path_factory.mktemp("weights") / f"tiny-{kind}")
        return there[kind]

    return folder
