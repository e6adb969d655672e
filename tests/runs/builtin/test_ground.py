"""The built-in models on probes of regions."""

import pytest

from carina.cases import open_benchmark
from carina.ground import build_ground
from carina.phantom import PhantomOptions
from carina.phantom.make import write_phantom
from carina.runs import open_run
from carina.runs.evaluate import run_model
from carina.runs.options import RunOptions
from carina.studies import open_studies


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    root = tmp_path_factory.mktemp("probes")
    write_phantom(root / "studies", n=24, seed=5, options=PhantomOptions(size=256))
    build_ground(open_studies(root / "studies"), root / "bench", workers=1)
    assert open_benchmark(root / "bench").manifest.counts.cases > 20

    def run(model):
        run_model(root / "bench", model, root / model, RunOptions())
        return open_run(root / model).rows()

    return {model: run(f"builtin/{model}") for model in ("oracle", "reader", "random")}


def mean(rows, task):
    scores = [row.score for row in rows if row.task == task]
    return sum(scores) / len(scores)


def test_the_oracle_is_right_on_every_probe(rows):
    assert all(row.correct for row in rows["oracle"])


def test_the_reader_locates_findings_better_than_chance(rows):
    """It finds more of what is there than chance does, and mostly knows whether something is."""
    assert mean(rows["reader"], "localisation") > 3 * mean(rows["random"], "localisation")
    assert mean(rows["reader"], "recognition") > 0.65
    assert {row.status for row in rows["reader"]} == {"ok"}
