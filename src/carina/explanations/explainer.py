"""The interface of everything that answers a probe with a localisation map: a model with a method, or a control."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from carina.models.frame import Frame, Map
from carina.studies import Region


@dataclass(frozen=True, kw_only=True)
class Probe:
    """One finding, or phrase, to be located on one image."""

    case: str
    """Id of the case."""
    patient: str | None
    target: str
    """Name of the finding."""
    phrase: str
    """Text to locate: the name of the finding, or a sentence of a report."""
    image: NDArray[np.uint8]
    """Grey values, (height, width), 0 is black."""
    truth: Region | None
    """Expert region, used by controls only; None where the finding is absent."""
    lungs: Region | None


@dataclass(frozen=True, kw_only=True)
class MapResult:
    """The localisation map of one probe, and how well the image agrees with the prompts."""

    values: Map
    """Grid over the whole input square of the model."""
    frame: Frame
    """Position of the image in that square."""
    positive: tuple[str, ...] = ()
    """Prompts for the finding."""
    negative: tuple[str, ...] = ()
    """Prompts for its absence."""
    score: float | None = None
    """Agreement of the image with the positive prompts; None for maps without a model."""
    against: float | None = None
    """Agreement of the image with the negative prompts."""


class Explainer(Protocol):
    """Makes localisation maps. The map of a probe does not depend on the other probes of a call."""

    @property
    def name(self) -> str:
        """Name of the model, without paths of this machine."""

    @property
    def method(self) -> str: ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """Everything that decides the maps: checksums of weights, options of the method, image preparation."""

    def explain(self, probes: Sequence[Probe]) -> list[MapResult]: ...
