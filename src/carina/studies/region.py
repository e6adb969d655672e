"""Region: a set of pixels of one image, in one storage form (COCO run-length encoding)."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray
from pycocotools import mask as coco

Mask = NDArray[np.bool_]


class Region(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Pixels of an image of `height` x `width`; `counts` is COCO's compressed run-length string."""

    height: int
    width: int
    counts: str

    @classmethod
    def from_mask(cls, mask: Mask) -> Region:
        """From a boolean array of shape (height, width)."""
        encoded = coco.encode(np.asfortranarray(mask, dtype=np.uint8))
        return cls(height=mask.shape[0], width=mask.shape[1], counts=encoded["counts"].decode("ascii"))

    def to_mask(self) -> Mask:
        """As a boolean array of shape (height, width)."""
        return coco.decode({"size": [self.height, self.width], "counts": self.counts.encode("ascii")}).astype(bool)
