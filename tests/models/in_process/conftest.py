"""Tiny models, made once a run, and turns to ask them."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from carina.cases import Step
from carina.cases.messages import Message
from carina.runs.records import Turn


@pytest.fixture(scope="session")
def tiny():
    """The module that makes tiny random models."""
    pytest.importorskip("torch", reason="the extra torch is not installed")
    pytest.importorskip("transformers", reason="the extra torch is not installed")
    from tests.models.in_process import tiny

    return tiny


@pytest.fixture(scope="session")
def folder(tiny, tmp_path_factory):
    """The folder of a kind of model: `folder("llava")`; not to be changed."""
    there = {}

    def of(kind: str) -> Path:
        if kind not in there:
            there[kind] = tiny.save_tiny(kind, tmp_path_factory.mktemp("vlm") / f"tiny-{kind}")
        return there[kind]

    return of


@pytest.fixture(scope="session")
def turn():
    """A turn from (text, views) of its messages, of which every second is the model's."""

    def of(case, *said, system="You read.", step=None):
        messages = tuple(
            Message(role="assistant" if place % 2 else "user", step=f"s{place // 2}", text=text, shows=views)
            for place, (text, views) in enumerate(said)
        )
        step = step or Step(id="1", stage=1, task="open", format="open", question=said[-1][0])
        return Turn(case=case, step=step, system=system, messages=messages)

    return of


@pytest.fixture(scope="session")
def pixels():
    """The grey values of a view, a noise of its own."""

    def of(case, view, height=16, width=16):
        seed = [*case.encode(), *view.encode()]
        return np.random.default_rng(seed).integers(0, 256, (height, width), dtype=np.uint8)

    return of


@pytest.fixture(scope="session")
def png():
    """An array as PNG."""

    def of(values):
        file = io.BytesIO()
        Image.fromarray(values).save(file, "PNG")
        return file.getvalue()

    return of


@pytest.fixture(scope="session")
def pictures(pixels, png):
    """PNG by case and view."""
    return lambda case, view: png(pixels(case, view))
