"""All that the reader has found out about one picture, each thing when it is first needed."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from carina.runs.builtin.reader.appearance import Appearance, appearance
from carina.runs.builtin.reader.contour import Estimate, estimate
from carina.runs.builtin.reader.picture import Picture
from carina.runs.builtin.reader.signs import Signs, measure, present
from carina.runs.builtin.reader.thorax import Thorax, find_thorax
from carina.studies.region import Mask
from carina.studies.vocabulary import FINDINGS

_FRONTAL: Final = 0.33
"""Brightness at the sides of a frontal image, by that of its middle, at least: arms and shoulders fill it, while a
chest seen from the side leaves both sides dark."""
_SIDES: Final = 0.1
"""Share of the width that is a side of the image."""
_PORTABLE: Final = 0.49
"""Contrast of lung and mediastinum below which an image was taken at the bedside, from front to back."""
_BLANK: Final = 4.0
"""Standard deviation of grey values below which a picture shows nothing."""


@dataclass(frozen=True)
class Reading:
    """One picture, read."""

    picture: Picture

    @cached_property
    def thorax(self) -> Thorax:
        return find_thorax(self.picture.grey)

    @cached_property
    def look(self) -> Appearance:
        return appearance(self.picture.grey, self.thorax)

    @cached_property
    def signs(self) -> Signs:
        return measure(self.look)

    @cached_property
    def blank(self) -> bool:
        """Whether there is nothing to read: a grey card, say."""
        return float(np.std(self.picture.grey)) < _BLANK

    @property
    def shape(self) -> tuple[int, int]:
        return self.picture.grey.shape[0], self.picture.grey.shape[1]

    @cached_property
    def frontal(self) -> bool:
        """Whether the patient faces the image; what shows nothing is taken for one that does."""
        grey = self.picture.grey
        height, width = self.shape
        side = max(1, round(_SIDES * width))
        beside = 0.5 * (float(np.median(grey[:, :side])) + float(np.median(grey[:, -side:])))
        middle = grey[round(0.35 * height) : round(0.66 * height), round(0.4 * width) : round(0.6 * width)]
        return self.blank or beside >= _FRONTAL * (float(np.median(middle)) + 1.0)

    @property
    def portable(self) -> bool:
        """Whether the image was taken at the bedside."""
        return not self.blank and self.look.contrast < _PORTABLE

    def shows(self, finding: str) -> bool:
        """Whether a finding is there."""
        return not self.blank and present(self.signs, finding)

    @cached_property
    def findings(self) -> tuple[str, ...]:
        """All that is there."""
        return tuple(finding for finding in FINDINGS if self.shows(finding))

    def lesion(self, finding: str, shown: Mask | None = None) -> Estimate:
        """Where a finding is."""
        if shown is not None and shown.shape != self.shape:
            shown = None
        return estimate(self.look, finding, shown)
