"""Deformers by study: how contours give way there, and what that is called in the facts of a case."""

from dataclasses import dataclass
from typing import Protocol

from carina.percept.deform import Reluctance, warp
from carina.studies.model import Image, Study


@dataclass(frozen=True)
class Deformer:
    """A way to change contours of one study."""

    name: str
    gives_way: Reluctance


class DeformerSource(Protocol):
    """Makes the deformer of a study."""

    def __call__(self, study: Study, image: Image, /) -> Deformer:
        """The deformer for contours on an image; `Ineligible` where there can be none."""
        ...


def warped(_study: Study, _image: Image) -> Deformer:
    """The signed-distance warp: the same for all studies, needs no pixels."""
    return Deformer("signed-distance warp", warp)
