"""`show`: what it returns, its progress, and memory that does not grow with the number of pages."""

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.pages import percept_cases as like

from carina.pages import Pages, show, write_case_pages, write_study_pages
from carina.phantom import PhantomOptions
from carina.phantom.make import write_phantom
from carina.store.errors import CarinaError
from carina.studies import Image, Study, open_studies


@pytest.fixture(scope="module")
def phantom(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("set") / "studies"
    write_phantom(directory, n=5, seed=3, options=PhantomOptions(size=64))
    return directory


class Recorder:
    """Titles, totals and advances of a progress display."""

    def __init__(self) -> None:
        self.phases: list[tuple[str, int | None]] = []
        self.done = 0

    @contextmanager
    def __call__(self, title: str, total: int | None) -> Iterator[object]:
        self.phases.append((title, total))

        def advance(done: int = 1, /, *, asked: int = 0, failed: int = 0) -> None:
            del asked, failed
            self.done += done

        yield advance


def test_result_has_the_index_and_lists_the_pages(phantom, tmp_path) -> None:
    pages = show(phantom, tmp_path / "out", limit=3)
    assert isinstance(pages, Pages)
    assert pages.path == tmp_path / "out" / "index.html"
    frame = pages.to_frame()
    assert frame.columns == ["id", "file", "image"]
    assert frame["id"].to_list() == open_studies(phantom).ids()[:3]
    assert all(Path(file).is_file() for column in ("file", "image") for file in frame[column])
    assert (pages.noun, pages.total) == ("study", 5)
    assert repr(pages).endswith("pages=3, of=5)")
    assert "<table>" in pages._repr_html_()


def test_result_of_one_study_is_its_page(phantom, tmp_path) -> None:
    wanted = open_studies(phantom).ids()[1]
    pages = show(str(phantom), str(tmp_path / "out"), id=wanted)
    assert pages.path == tmp_path / "out" / f"{wanted}.html"
    assert pages.to_frame()["id"].to_list() == [wanted]
    assert pages.to_frame().schema == {"id": pl.String, "file": pl.String, "image": pl.String}


def test_opened_set_gives_the_same_bytes_as_its_path(phantom, tmp_path) -> None:
    first, second = (
        show(given, tmp_path / name, limit=2)
        for given, name in ((phantom, "a"), (open_studies(phantom), "b"))
    )
    assert first.path.read_bytes() == second.path.read_bytes()


def test_title_is_the_name_of_the_set_unless_given(phantom, tmp_path) -> None:
    assert "<h1>studies</h1>" in show(phantom, tmp_path / "a", limit=1).path.read_text()
    assert "<h1>Mine</h1>" in show(phantom, tmp_path / "b", limit=1, title="Mine").path.read_text()


@pytest.mark.parametrize(("limit", "total"), [(2, 2), (5, 5), (100, 5)])
def test_progress_total_is_the_number_of_pages(phantom, tmp_path, limit, total) -> None:
    recorder = Recorder()
    pages = show(phantom, tmp_path / "out", limit=limit, progress=recorder)
    assert recorder.phases == [("Pages", total)]
    assert recorder.done == total == len(pages.pages)


def test_limit_below_one_is_refused(phantom, tmp_path) -> None:
    with pytest.raises(CarinaError, match="limit"):
        show(phantom, tmp_path / "out", limit=0)


class BlackStudies:
    """A study set in memory, with a black image of 1024 x 1024 pixels in every study."""

    def __init__(self, count: int) -> None:
        self._studies = [
            Study(
                id=f"s{number}",
                patient=f"p{number}",
                source="test",
                order=0,
                images=(Image(key=f"{number}.png", view="PA", width=1024, height=1024),),
            )
            for number in range(count)
        ]

    def __len__(self) -> int:
        return len(self._studies)

    def __iter__(self) -> Iterator[Study]:
        return iter(self._studies)

    def prior(self, _study: Study) -> None:
        return None

    def pixels(self, image: Image) -> np.ndarray:
        return np.zeros((image.height, image.width), np.uint8)

    def image_path(self, _image: Image) -> Path:
        return Path(__file__)  # a file that is there


def peak_memory(write) -> int:
    tracemalloc.start()
    try:
        write()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_number_of_studies(tmp_path) -> None:
    few, many = BlackStudies(4), BlackStudies(16)
    write_study_pages(few, tmp_path / "warm")
    small = peak_memory(lambda: write_study_pages(few, tmp_path / "few"))
    large = peak_memory(lambda: write_study_pages(many, tmp_path / "many"))
    # Twelve further images, and three further rows of the contact sheet, are less than one image in memory.
    assert large - small < 1024 * 1024


def test_memory_does_not_grow_with_the_number_of_cases(tmp_path) -> None:
    side = 512
    image = np.zeros((side, side), np.uint8)

    def cases(count: int):
        return like.bench_of(*(like.rr_case(side, id=f"c-{n}") for n in range(count)), image=image)

    few, many = (cases(count) for count in (2, 10))
    write_case_pages(few, tmp_path / "warm")
    small = peak_memory(lambda: write_case_pages(few, tmp_path / "few"))
    large = peak_memory(lambda: write_case_pages(many, tmp_path / "many"))
    # Eight further cases, each with a view of 786,432 bytes on its card: less than one view more in all.
    assert large - small < side * side * 3
