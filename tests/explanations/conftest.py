"""Models to be explained, made once a run."""

import importlib.util
import sys
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def one_thread():
    """Threads that wait for each other cost more than such small models."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def tiny():
    """The module that makes tiny models."""
    pytest.importorskip("torch", reason="the extra torch is not installed")
    pytest.importorskip("transformers", reason="the extra torch is not installed")
    return _module("tiny")


@pytest.fixture(scope="session")
def weights(tiny):  # noqa: ARG001 - without torch there are none
    """The module that saves tiny weights of every adapter under their published names."""
    checkpoints = Path(__file__).parents[1] / "models" / "clip"
    made, more = (_module(name, checkpoints) for name in ("tiny_clip", "tiny_more"))
    more.extend(made)
    return made


@pytest.fixture(scope="session")
def slow():
    """The module with a vision transformer in plain numpy, whose every part can be replaced."""
    return _module("slow")


def _module(name, folder=Path(__file__).parent):
    spec = importlib.util.spec_from_file_location(f"{name}_of_explanations", folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
