"""The tiny runs of maps of `tests/explanations/analysis`."""

from tests.explanations.analysis.conftest import (
    explained,
    ground,
    probes,
    small,
    three_images_suffice,
    tiny,
    written,
)

__all__ = ["explained", "ground", "probes", "small", "three_images_suffice", "tiny", "written"]
