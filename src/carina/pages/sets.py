"""What pages need of a study set and of a benchmark, so that they can be made from anything that reads like one."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from carina.cases.draw import Gray, Rgb
from carina.cases.model import Case, CaseImage
from carina.studies import SourceInfo
from carina.studies.model import Image, Study
from carina.studies.pixels import Pixels

if TYPE_CHECKING:
    import polars as pl


class StudySet(Protocol):
    """`carina.studies.Studies`, or anything that reads like it."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Study]: ...
    def prior(self, study: Study, /) -> Study | None: ...
    def pixels(self, image: Image, /) -> Pixels: ...
    def image_path(self, image: Image, /) -> Path: ...


class SourceTerms(Protocol):
    """The part of a benchmark's manifest that gives the licences of its images."""

    @property
    def sources(self) -> Sequence[SourceInfo]: ...


class CaseSet(Protocol):
    """`carina.cases.Benchmark`, or anything that reads like it."""

    @property
    def manifest(self) -> SourceTerms: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Case]: ...
    def pixels(self, image: CaseImage) -> Gray | Rgb: ...
    def image_path(self, image: CaseImage) -> Path: ...
    def check_image(self, image: CaseImage) -> None: ...
    def table(self, columns: Sequence[str] | None = None) -> "pl.LazyFrame": ...


class RenderedViews(Protocol):
    """`carina.cases.render.Views`, or anything that renders like it."""

    def array(self, case: Case, view_id: str) -> Rgb: ...
