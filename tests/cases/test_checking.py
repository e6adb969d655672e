"""Checking a set by one function, whatever it holds."""

import numpy as np
import pytest

from carina.cases import Case, CaseImage, Key, Provenance, Step, check, open_benchmark, write_benchmark
from carina.phantom import make_phantoms
from carina.store.errors import CarinaError
from carina.studies import open_studies, write_png


@pytest.fixture
def studies(tmp_path):
    return make_phantoms(tmp_path / "studies", n=2, seed=1, size=64, workers=1)


@pytest.fixture
def bench(tmp_path):
    step = Step(id="1", stage=1, task="detection", format="open", question="What?", key=Key(text="Edema."))
    images = (CaseImage(key="a.png", width=8, height=4),)
    fields = {"protocol": "test", "study": "s", "patient": None, "source": "made", "images": images}
    write_png(tmp_path / "images/a.png", np.zeros((4, 8), np.uint8))
    made = Provenance(command="test", image_root="../images")
    write_benchmark(tmp_path / "bench", [Case(id="c1", steps=(step,), **fields)], made)
    return open_benchmark(tmp_path / "bench")


def test_a_sound_set_has_no_problems_however_it_is_named(studies, bench):
    for location in (studies, studies.path, str(studies.path), studies.path / "studies.json"):
        result = check(location)
        assert result.is_sound
        assert (result.path, result.noun, result.records) == (studies.path, "studies", 2)
        assert repr(result) == f"CheckResult('{studies.path}', studies=2, problems=0)"
    for location in (bench, bench.path / "bench.json"):
        assert (check(location).noun, check(location).records) == ("cases", 1)


def test_each_problem_names_its_record_and_is_reported_at_once(studies):
    image = next(iter(studies)).images[0]
    studies.image_path(image).unlink()
    told = []
    result = check(open_studies(studies.path), on_problem=told.append)
    assert tuple(told) == result.problems
    (problem,) = result.problems
    assert problem.record == studies.ids()[0]
    assert image.key in problem.message
    assert result.to_frame().rows() == [(problem.record, problem.message)]
    assert check(studies, files=False).is_sound
    assert check(studies, files=False).to_frame().columns == ["record", "message"]


def test_images_may_lie_elsewhere(bench, tmp_path):
    (tmp_path / "images").rename(tmp_path / "moved")
    assert not check(bench).is_sound
    assert check(bench, images=tmp_path / "moved").is_sound
    assert check(bench.path, images=str(tmp_path / "moved")).is_sound
    with pytest.raises(CarinaError, match=r"images: .*files=False"):
        check(bench, files=False, images=tmp_path)


def test_a_directory_that_holds_no_set_is_refused(tmp_path):
    with pytest.raises(CarinaError, match=r"neither a study set \(studies.json\) nor a benchmark"):
        check(tmp_path)
