"""The pixels of a study's image, as a model is shown them."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from carina.errors import CarinaError
from carina.percept.rules import Ineligible
from carina.studies import Studies, to_display
from carina.studies.model import Image

GreyOf = Callable[[Image], NDArray[np.uint8]]
"""Grey values (height, width) of an image, 0 black."""


def grey_of(studies: Studies) -> GreyOf:
    """Images of a study set; one that cannot be read makes its study ineligible."""

    def read(image: Image) -> NDArray[np.uint8]:
        try:
            stored = studies.pixels(image)
        except CarinaError as error:
            # Its sentence names a path of this machine, which must not get into a benchmark.
            raise Ineligible("image cannot be read", repr(image.key)) from error
        return to_display(stored, bits=image.bits, monochrome1=image.monochrome1)

    return read
