"""A run whose cases a Ray cluster shares: the same table as on one machine."""

import msgspec
import pytest

from carina.runs import open_run, shards
from carina.runs.evaluate import run_model
from carina.runs.options import RunOptions

pytestmark = pytest.mark.xdist_group("ray")  # one cluster at a time

pytest.importorskip("ray")


def test_a_ray_cluster_gives_the_same_table(bench, tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "_SHARE", 5)
    for name, options in (("here", RunOptions()), ("there", RunOptions(engine="ray"))):
        run_model(bench.directory, "builtin/majority", tmp_path / name, options)
    here, there = (
        [msgspec.structs.replace(row, seconds=None) for row in open_run(tmp_path / name).rows()]
        for name in ("here", "there")
    )
    assert there == here
