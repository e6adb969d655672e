"""The tiny runs of maps with their analysis and their report, made once."""

import pytest
from tests.explanations.analysis import tiny_maps
from tests.runs.analysis import small_runs

from carina.explanations.analysis import recognition
from carina.explanations.analysis.maps_analysis import analyse_maps
from carina.explanations.analysis.maps_groups import group_maps_runs
from carina.explanations.analysis.read import read_maps_runs
from carina.pages.report import report


@pytest.fixture(scope="session")
def tiny():
    return tiny_maps


@pytest.fixture(scope="session")
def small():
    return small_runs


@pytest.fixture(scope="session")
def probes(tmp_path_factory):
    """The benchmark."""
    return tiny_maps.bench(tmp_path_factory.mktemp("tiny") / "bench")


@pytest.fixture(scope="session")
def explained(probes):
    """Two runs beside their benchmark: "good" and "poor"."""
    root = probes.directory.parent / "runs"
    return [
        tiny_maps.explained(root / "good", probes, pretraining="chest x-ray"),
        tiny_maps.explained(root / "poor", probes, "lab/poor", good=False, pretraining="general"),
    ]


@pytest.fixture
def three_images_suffice(monkeypatch):
    """Findings with three images on either side enter means and correlations; otherwise five are needed."""
    monkeypatch.setattr(recognition, "LEAST", 3)


@pytest.fixture(scope="session")
def ground(probes, explained):
    """The analysis of the two runs."""
    (group,) = group_maps_runs(read_maps_runs(explained), {probes.manifest.fingerprint: probes})
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(recognition, "LEAST", 3)
        return analyse_maps(group)


@pytest.fixture(scope="session")
def written(explained, tmp_path_factory):
    """The report of the two runs."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(recognition, "LEAST", 3)
        return report(explained, tmp_path_factory.mktemp("ground"))
