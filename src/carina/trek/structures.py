"""Anatomy drawn on the images of a study, of which a conversation asks for little: regions are read when asked for.

They are most of what a set stores, and making records of all of them would take longer than making the questions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np

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


def structures(drawn: Any) -> list[Structures]:  # noqa: ANN401 - pyarrow has no types
    """Those of many studies, from an Arrow array of their field `anatomy`."""
    values = drawn.values
    names, images = _texts(values.field("name")), _texts(values.field("image"))
    heights, widths, counts = values.field("region").flatten()
    tall, wide = heights.to_numpy(), widths.to_numpy()
    ends = drawn.offsets.to_pylist()

    def of(first: int, last: int) -> Structures:
        def region(number: int) -> Region:
            place = first + number
            return Region(tall.item(place), wide.item(place), counts[place].as_py())

        return Structures(names[first:last], images[first:last], region)

    return [of(first, last) for first, last in pairwise(ends)]


def _texts(column: Any) -> list[str]:  # noqa: ANN401
    """The texts of a column of which few are different: each is made once."""
    encoded = column.dictionary_encode()
    different = np.array(encoded.dictionary.to_pylist(), dtype=object)
    texts: list[str] = different.take(encoded.indices.to_numpy()).tolist()
    return texts
