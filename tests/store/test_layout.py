"""Which set a directory holds, and what is said where it holds another."""

import re

import pytest

from carina import cases, studies
from carina.store import LAYOUTS, Layout, declare_layout, what_is
from carina.store.errors import BenchmarkError, StudySetError

STUDIES_MADE = studies.Provenance(command="test")
CASES_MADE = cases.Provenance(command="test")


@pytest.fixture
def sets(tmp_path):
    studies.write_studies(tmp_path / "studies", [], STUDIES_MADE)
    cases.write_benchmark(tmp_path / "bench", [], CASES_MADE)
    return tmp_path


def test_sets_are_recognised_by_their_manifest(sets):
    assert what_is(sets / "studies") == what_is(sets / "studies/studies.json") == "studies"
    assert what_is(str(sets / "bench")) == what_is(sets / "bench/bench.json") == "benchmark"
    assert what_is(sets) is None
    assert what_is(sets / "nowhere") is None
    assert what_is(sets / "nowhere/bench.json") is None


def test_a_set_that_is_begun_is_known_by_its_parts(tmp_path):
    cases.write_part(tmp_path, 0, [], fingerprint="f")
    assert what_is(tmp_path) == "benchmark"
    with pytest.raises(BenchmarkError, match=r"bench\.json: missing.*unfinished"):
        cases.open_benchmark(tmp_path)


@pytest.mark.parametrize("named", ["", "/bench.json"])
def test_a_benchmark_is_not_a_study_set(sets, named):
    with pytest.raises(
        StudySetError, match=r"bench.*: is a benchmark, expected a study set; .*`carina import`"
    ):
        studies.open_studies(f"{sets / 'bench'}{named}")


@pytest.mark.parametrize("named", ["", "/studies.json"])
def test_a_study_set_is_not_a_benchmark(sets, named):
    with pytest.raises(
        BenchmarkError,
        match=r"studies.*: is a study set, expected a benchmark; build one with `carina build`",
    ):
        cases.open_benchmark(f"{sets / 'studies'}{named}")


@pytest.mark.parametrize("replace", [True, False])
def test_a_set_of_one_kind_is_never_written_over_another(sets, replace):
    before = sorted((sets / "studies").rglob("*"))
    with (
        pytest.raises(BenchmarkError, match="holds a study set: choose another directory for the benchmark"),
        cases.create_benchmark(sets / "studies", CASES_MADE, replace=replace),
    ):
        pass
    assert sorted((sets / "studies").rglob("*")) == before
    with (
        pytest.raises(StudySetError, match="holds a benchmark: choose another directory for the study set"),
        studies.create_studies(sets / "bench", STUDIES_MADE, replace=replace),
    ):
        pass


def test_a_begun_study_set_is_no_place_for_a_benchmark_made_from_the_same(tmp_path):
    with studies.create_studies(tmp_path, STUDIES_MADE):
        pass
    with (
        pytest.raises(BenchmarkError, match="the beginning of a set made in another way"),
        cases.create_benchmark(tmp_path, CASES_MADE),
    ):
        pass


@pytest.mark.parametrize("open_set", [studies.open_studies, cases.open_benchmark])
def test_a_run_is_named_where_a_set_is_expected(tmp_path, open_set):
    (tmp_path / "run.json").write_text("{}")
    assert what_is(tmp_path) == "run"
    with pytest.raises((StudySetError, BenchmarkError), match=": is a run, expected a "):
        open_set(tmp_path)


@pytest.mark.parametrize("holds", ["studies", "benchmark", "maps", "run"])
def test_the_command_that_a_layout_advises_exists(holds):
    advised = re.findall(r"`carina (\w+)`", LAYOUTS[holds].made_by)
    assert advised
    assert {*advised} <= {"build", "explain", "import", "phantom", "run"}


def test_a_set_of_another_package_is_recognised_once_it_is_declared(tmp_path, monkeypatch):
    monkeypatch.setattr(LAYOUTS, "_entries", dict(LAYOUTS.entries()))
    (tmp_path / "verdicts.json").write_text("{}")
    assert what_is(tmp_path) is None
    declare_layout(
        Layout("verdicts", "set of verdicts", "verdicts.json", "verdicts", "make one with `judge`")
    )
    assert what_is(tmp_path) == "verdicts"
    with pytest.raises(StudySetError, match=r"is a set of verdicts, expected a study set; "):
        studies.open_studies(tmp_path)
