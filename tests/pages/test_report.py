"""Names of the files of a report: no group's figures replace those of another."""

import pytest

from carina import build_ground, explain, make_phantoms, run
from carina.pages.report import _number_repeated, report


@pytest.mark.parametrize(
    ("names", "taken", "expected"),
    [
        (["percept", "trek"], [], ["percept", "trek"]),
        (["a", "a"], [], ["a-1", "a-2"]),
        (["a", "a", "a-1"], [], ["a-2", "a-3", "a-1"]),
        (["a-1", "a", "a"], [], ["a-1", "a-2", "a-3"]),
        (["a", "a", "a-1", "a-1"], [], ["a-1", "a-2", "a-1-1", "a-1-2"]),
        (["a"], ["a"], ["a-1"]),
        (["a", "a"], ["a-1"], ["a-2", "a-3"]),
    ],
)
def test_groups_of_the_same_protocol_get_different_names(names, taken, expected):
    assert _number_repeated(names, taken) == expected


def test_figures_of_answers_and_of_maps_about_the_same_benchmark_are_all_written(tmp_path):
    studies = make_phantoms(tmp_path / "studies", n=6, seed=2, size=64, workers=1)
    build_ground(studies, tmp_path / "probes", workers=1)
    run(tmp_path / "probes", "builtin/reader", tmp_path / "answers")
    explain(tmp_path / "probes", "control/centre", tmp_path / "maps")
    alone = [report(tmp_path / name, tmp_path / f"report of {name}").figures for name in ("answers", "maps")]
    both = report([tmp_path / "answers", tmp_path / "maps"], tmp_path / "both")
    assert "ground-headline" in alone[0].keys() & alone[1].keys()
    assert {"ground-headline", "ground-maps-headline"} <= both.figures.keys()
    assert len(both.figures) >= len(alone[0]) + len(alone[1])
    assert len(list((tmp_path / "both" / "figures").glob("*.svg"))) == len(both.figures)
