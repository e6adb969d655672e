"""Maps that a Ray cluster shares: the same bytes as on one machine."""

import pytest
from tests.explanations.test_map_parts import bench  # noqa: F401 - a fixture
from typer.testing import CliRunner

from carina.cli import app
from carina.explanations import map_parts

pytestmark = pytest.mark.xdist_group("ray")  # one cluster at a time

pytest.importorskip("ray")


def test_a_cluster_gives_the_same_bytes(bench, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setattr(map_parts, "PART_SIZE", 5)
    for engine in ("local", "ray"):
        result = CliRunner().invoke(
            app,
            ["explain", str(bench.directory), "--model", "builtin/untrained", "-o", str(tmp_path / engine),
             "--engine", engine, "--workers", "2", "--no-controls"],
        )  # fmt: skip
        assert result.exit_code == 0, result.output
    here, there = (
        {path.relative_to(top): path.read_bytes() for path in top.rglob("*") if path.is_file()}
        for top in (tmp_path / "local", tmp_path / "ray")
    )
    assert sum(path.parent.name == "maps" for path in here) == 5  # 24 probes
    assert there == here
