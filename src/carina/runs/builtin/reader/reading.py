"""Everything that the reader measures on one image, computed when it is first needed."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from carina.runs.builtin.reader.appearance import Appearance, measure_appearance
from carina.runs.builtin.reader.contour import LesionEstimate, estimate_lesion
from carina.runs.builtin.reader.rendered_image import RenderedImage
from carina.runs.builtin.reader.signs import Signs, is_present, measure_signs
from carina.runs.builtin.reader.thorax import Thorax, find_thorax
from carina.studies.region import Mask
from carina.studies.vocabulary import FINDINGS

_FRONTAL: Final = 0.33
"""Least brightness at the sides of a frontal image, relative to its middle: arms and shoulders are bright, while the
sides of a lateral image are dark."""
_SIDE_SHARE: Final = 0.1
"""Share of the width that counts as a side of the image."""
_PORTABLE: Final = 0.49
"""Contrast of lung and mediastinum below which an image counts as portable (AP)."""
_BLANK: Final = 4.0
"""Standard deviation of grey values below which an image counts as blank."""


@dataclass(frozen=True)
class Reading:
    """Measurements on one image."""

    image: RenderedImage

    @cached_property
    def thorax(self) -> Thorax:
        return find_thorax(self.image.grey)

    @cached_property
    def appearance(self) -> Appearance:
        return measure_appearance(self.image.grey, self.thorax)

    @cached_property
    def signs(self) -> Signs:
        return measure_signs(self.appearance)

    @cached_property
    def is_blank(self) -> bool:
        """Whether the image shows nothing, as a uniform grey image does."""
        return float(np.std(self.image.grey)) < _BLANK

    @property
    def shape(self) -> tuple[int, int]:
        return self.image.grey.shape[0], self.image.grey.shape[1]

    @cached_property
    def is_frontal(self) -> bool:
        """Whether the projection is frontal; blank images count as frontal."""
        grey = self.image.grey
        height, width = self.shape
        side = max(1, round(_SIDE_SHARE * width))
        beside = 0.5 * (float(np.median(grey[:, :side])) + float(np.median(grey[:, -side:])))
        middle = grey[round(0.35 * height) : round(0.66 * height), round(0.4 * width) : round(0.6 * width)]
        return self.is_blank or beside >= _FRONTAL * (float(np.median(middle)) + 1.0)

    @property
    def is_portable(self) -> bool:
        """Whether the image was taken at the bedside."""
        return not self.is_blank and self.appearance.contrast < _PORTABLE

    def has_finding(self, finding: str) -> bool:
        """Whether a finding is present."""
        return not self.is_blank and is_present(self.signs, finding)

    @cached_property
    def findings(self) -> tuple[str, ...]:
        """All findings that are present."""
        return tuple(finding for finding in FINDINGS if self.has_finding(finding))

    def estimate_lesion(self, finding: str, proposal: Mask | None = None) -> LesionEstimate:
        """Estimate where a finding is, near a proposed contour if there is one."""
        if proposal is not None and proposal.shape != self.shape:
            proposal = None
        return estimate_lesion(self.appearance, finding, proposal)
