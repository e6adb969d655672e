"""A run whose cases a Ray cluster shares: the same table as on one machine."""

import msgspec
import pytest

from carina.run import RunOptions, read_rows, run_model, shards

pytestmark = pytest.mark.xdist_group("ray")  # one cluster at a time

pytest.importorskip("ray")


def test_a_cluster_gives_the_same_table(bench, tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "_SHARE", 5)
    for name, options in (("here", RunOptions()), ("there", RunOptions(engine="ray"))):
        run_model(bench.directory, "builtin/majority", tmp_path / name, options)
    here, there = (
        [msgspec.structs.replace(row, seconds=None) for row in read_rows(tmp_path / name)]
        for name in ("here", "there")
    )
    assert there == here
