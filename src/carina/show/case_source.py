"""What pages need of a benchmark: cases in order, their pixels, the terms of their sources, and views as pictures."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from carina.cases.model import Case, CaseImage
from carina.draw import Gray, Rgb
from carina.studies import SourceInfo

if TYPE_CHECKING:
    import polars as pl


class Terms(Protocol):
    """The part of a benchmark's manifest that says on what terms its images came."""

    @property
    def sources(self) -> Sequence[SourceInfo]: ...


class CaseSet(Protocol):
    """`carina.cases.Benchmark`, or anything that reads like it."""

    @property
    def manifest(self) -> Terms: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Case]: ...
    def pixels(self, image: CaseImage) -> Gray | Rgb: ...
    def image_path(self, image: CaseImage) -> Path: ...
    def table(self, columns: Sequence[str] | None = None) -> "pl.LazyFrame": ...


class DrawnViews(Protocol):
    """`carina.cases.render.Views`, or anything that draws like it."""

    def array(self, case: Case, view_id: str) -> Rgb: ...
