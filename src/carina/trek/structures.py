"""Anatomy drawn on the images of a study; each region is decoded when it is needed.

Regions are most of what a set stores, and a conversation asks for few of them: decoding all would take longer than
making the questions.
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
    """Keys of the images that the structures were drawn on."""
    region: Callable[[int], Region]

    @classmethod
    def of(cls, study: Study) -> Self:
        """The structures of a study that was read with its anatomy."""
        drawn = study.anatomy
        names, images = [one.name for one in drawn], [one.image for one in drawn]
        return cls(names, images, lambda number: drawn[number].region)


def read_structures(drawn: Any) -> list[Structures]:  # noqa: ANN401 - pyarrow has no types
    """The structures of many studies, from an Arrow array of their field `anatomy`."""
    values = drawn.values
    names, images = _decode_texts(values.field("name")), _decode_texts(values.field("image"))
    heights, widths, counts = values.field("region").flatten()
    tall, wide = heights.to_numpy(), widths.to_numpy()
    ends = drawn.offsets.to_pylist()

    def of(first: int, last: int) -> Structures:
        def region(number: int) -> Region:
            place = first + number
            return Region(tall.item(place), wide.item(place), counts[place].as_py())

        return Structures(names[first:last], images[first:last], region)

    return [of(first, last) for first, last in pairwise(ends)]


def _decode_texts(column: Any) -> list[str]:  # noqa: ANN401
    """The texts of a column with few different values; each value is decoded once."""
    encoded = column.dictionary_encode()
    different = np.array(encoded.dictionary.to_pylist(), dtype=object)
    texts: list[str] = different.take(encoded.indices.to_numpy()).tolist()
    return texts
