"""What pages need of a study set: studies in order, the prior of one, and pixels."""

from collections.abc import Iterator
from typing import Protocol

from carina.studies.model import Image, Study
from carina.studies.pixels import Pixels


class StudySet(Protocol):
    """`carina.studies.Studies`, or anything that reads like it."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Study]: ...
    def prior(self, study: Study, /) -> Study | None: ...
    def pixels(self, image: Image, /) -> Pixels: ...
