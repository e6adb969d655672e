"""The built-in models on probes of regions."""

import pytest

from carina.cases import open_benchmark
from carina.ground.probes import GroundOptions, build_ground
from carina.phantom import PhantomOptions, write_phantom
from carina.run import RunOptions, read_rows, run_model
from carina.studies import open_studies


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    root = tmp_path_factory.mktemp("probes")
    write_phantom(root / "studies", n=24, seed=5, options=PhantomOptions(size=256))
    build_ground(open_studies(root / "studies"), root / "bench", GroundOptions())
    assert open_benchmark(root / "bench").manifest.counts.cases > 20

    def run(model):
        run_model(root / "bench", model, root / model, RunOptions())
        return read_rows(root / model)

    return {model: run(f"builtin/{model}") for model in ("oracle", "reader", "random")}


def mean(rows, task):
    scores = [row.score for row in rows if row.task == task]
    return sum(scores) / len(scores)


def test_the_oracle_is_right_everywhere(rows):
    assert all(row.correct for row in rows["oracle"])


def test_the_reader_looks(rows):
    """It finds more of what is there than chance does, and mostly knows whether something is."""
    assert mean(rows["reader"], "localisation") > 3 * mean(rows["random"], "localisation")
    assert mean(rows["reader"], "recognition") > 0.65
    assert {row.status for row in rows["reader"]} == {"ok"}
