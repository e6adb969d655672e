"""The tiny probes, their runs and the page about them, made once."""

import importlib.util
from pathlib import Path

import pytest

from carina.report.ground.analyse import recognition
from carina.report.ground.analysis import analyse, probings
from carina.report.ground.read import read_maps_runs
from carina.report.ground.write import write_ground

spec = importlib.util.spec_from_file_location("tiny", Path(__file__).with_name("tiny.py"))
made_by_hand = importlib.util.module_from_spec(spec)
spec.loader.exec_module(made_by_hand)


@pytest.fixture(scope="session")
def tiny():
    return made_by_hand


@pytest.fixture(scope="session")
def probes(tiny, tmp_path_factory):
    return tiny.bench(tmp_path_factory.mktemp("tiny") / "bench")


@pytest.fixture(scope="session")
def explained(tiny, probes):
    """Two runs beside their benchmark: "good" and "poor"."""
    root = probes.directory.parent / "runs"
    return [
        tiny.explained(root / "good", probes, pretraining="chest x-ray"),
        tiny.explained(root / "poor", probes, "lab/poor", good=False, pretraining="general"),
    ]


@pytest.fixture
def three_count(monkeypatch):
    """Findings count from three images on either side on, as the tiny ones have; below five they otherwise don't."""
    monkeypatch.setattr(recognition, "LEAST", 3)


@pytest.fixture(scope="session")
def ground(probes, explained):
    """What is worked out of the two."""
    (probing,) = probings(read_maps_runs(explained), {probes.manifest.fingerprint: probes})
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(recognition, "LEAST", 3)
        return analyse(probing)


@pytest.fixture(scope="session")
def written(explained, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(recognition, "LEAST", 3)
        return write_ground(explained, tmp_path_factory.mktemp("ground"))
