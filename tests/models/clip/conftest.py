"""Tiny random weights under their published names, made once a run."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def tiny_clip():
    """The module that makes them."""
    pytest.importorskip("torch", reason="the extra torch is not installed")
    pytest.importorskip("transformers", reason="the extra torch is not installed")
    from tests.models.clip import tiny_clip, tiny_more

    tiny_more.extend(tiny_clip)
    return tiny_clip


@pytest.fixture(scope="session")
def published(tiny_clip, tmp_path_factory):
    """A folder of weights of a kind: `published("chexzero")`; not to be changed."""
    there = {}

    def folder(kind: str) -> Path:
        if kind not in there:
            there[kind] = tiny_clip.save(kind, tmp_path_factory.mktemp("clip") / f"tiny-{kind}")
        return there[kind]

    return folder


@pytest.fixture(scope="session")
def opened(tiny_clip, published):
    """The model of a kind, opened once."""
    from carina.models.clip.kinds import open_clip_model

    there = {}

    def of(kind: str):
        if kind not in there:
            there[kind] = open_clip_model(f"{tiny_clip.NAMES[kind]}:{published(kind)}")
        return there[kind]

    return of
