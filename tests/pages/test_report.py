"""Reports: names of files, so that no group's figures replace those of another; and truth by programs is told."""

import msgspec
import pytest

from carina import (
    build_ground,
    build_percept,
    build_trek,
    explain,
    make_phantoms,
    open_benchmark,
    open_studies,
    run,
)
from carina.pages.report import _number_repeated, report
from carina.runs.analysis.case_facts import is_stated_by_program
from carina.studies import write_studies
from carina.studies.store import Provenance
from carina.studies.vocabulary import FINDINGS
from carina.trek import TrekCaseFacts


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


# ---- truth by programs ----------------------------------------------------------------------------------------------


def mark_automatic(study):
    """The study with all of its regions drawn by a program."""
    things = {
        kind: tuple(
            msgspec.structs.replace(
                thing,
                annotations=tuple(msgspec.structs.replace(one, automatic=True) for one in thing.annotations),
            )
            for thing in getattr(study, kind)
        )
        for kind in ("findings", "devices")
    }
    return msgspec.structs.replace(study, **things)


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """A study set of phantoms, and the same with all regions of findings and devices drawn by a program."""
    base = tmp_path_factory.mktemp("program")
    studies = make_phantoms(base / "people", n=12, seed=4, size=128, workers=1)
    provenance = Provenance(command="test", image_root="../people")
    write_studies(base / "program", map(mark_automatic, studies), provenance)
    return base


@pytest.mark.parametrize(
    ("build", "options"),
    [(build_ground, {}), (build_percept, {"per_cell": 2}), (build_trek, {})],
    ids=["ground", "percept", "trek"],
)
def test_a_report_tells_that_keys_rest_on_what_a_program_drew(build, options, sets, tmp_path):
    told = {}
    for drawer in ("people", "program"):
        build(sets / drawer, tmp_path / f"{drawer} bench", workers=1, **options)
        run(tmp_path / f"{drawer} bench", "builtin/majority", tmp_path / f"{drawer} run")
        made = report(tmp_path / f"{drawer} run", tmp_path / f"{drawer} report")
        told[drawer] = "agreement with that program" in (made.path / "report.html").read_text()
    assert told == {"people": False, "program": True}


def test_a_conversation_lists_what_only_programs_drew(sets, tmp_path):
    build_trek(sets / "program", tmp_path / "bench", workers=1)
    listed = [TrekCaseFacts.of(case).drawn_by for case in open_benchmark(tmp_path / "bench")]
    assert any(listed)
    assert {drawer for one in listed for drawer in one.values()} == {"a program"}


def state_by_program(study):
    """The study with everything that is recorded or was looked for stated by a program."""
    named = {one.name for one in (*study.findings, *study.devices)} | set(FINDINGS)
    assessed = msgspec.structs.replace(study.assessed, by_program=tuple(sorted(named)))
    return msgspec.structs.replace(study, assessed=assessed)


@pytest.mark.parametrize(
    ("build", "options"),
    [(build_ground, {}), (build_percept, {"per_cell": 2}), (build_trek, {})],
    ids=["ground", "percept", "trek"],
)
def test_a_report_tells_that_keys_rest_on_what_a_program_states(build, options, sets, tmp_path):
    """What people drew is theirs; that a lesion is absent is stated by a program."""
    studies = [state_by_program(study) for study in open_studies(sets / "people")]
    write_studies(tmp_path / "mined", studies, Provenance(command="test", image_root=str(sets / "people")))
    build(tmp_path / "mined", tmp_path / "bench", workers=1, **options)
    run(tmp_path / "bench", "builtin/majority", tmp_path / "run")
    page = (report(tmp_path / "run", tmp_path / "report").path / "report.html").read_text()
    assert "only a program says whether it is present" in page
    assert "a program drew the regions" not in page
    cases = list(open_benchmark(tmp_path / "bench"))
    if build is build_ground:
        by_person = {bool(case.steps[-1].key.boxes) for case in cases if not is_stated_by_program(case)}
        assert by_person == {True}
