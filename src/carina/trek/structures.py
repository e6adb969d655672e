"""Anatomy drawn on the images of a study, of which a conversation asks for little: regions are read when asked for.

They are most of what a set stores, and making records of all of them would take longer than making the questions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

from carina.studies.model import Study
from carina.studies.region import Region


@dataclass(frozen=True, slots=True)
class Structures:
    """The structures of one study, by number."""

    names: Sequence[str]
    images: Sequence[str]
    """Keys of the images that they were drawn on."""
    region: Callable[[int], Region]

    @classmethod
    def of(cls, study: Study) -> Self:
        """Those of a record that was read with its anatomy."""
        drawn = study.anatomy
        names, images = [one.name for one in drawn], [one.image for one in drawn]
        return cls(names, images, lambda number: drawn[number].region)


def structures(column: Any) -> list[Structures]:  # noqa: ANN401 - pyarrow has no types
    """Those of many studies, from the Arrow column `anatomy`."""
    drawn = column.combine_chunks()
    values = drawn.values
    names, images = values.field("name").to_pylist(), values.field("image").to_pylist()
    heights, widths, counts = values.field("region").flatten()
    ends = drawn.offsets.to_pylist()

    def of(first: int, last: int) -> Structures:
        def region(number: int) -> Region:
            height, width, runs = (part[first + number].as_py() for part in (heights, widths, counts))
            return Region(height=height, width=width, counts=runs)

        return Structures(names[first:last], images[first:last], region)

    return [of(first, last) for first, last in pairwise(ends)]
