"""Whatever answers probes with maps: a model with a method, or a control without a model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from carina.models.frame import Frame, Map
from carina.studies import Region


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One probe."""

    case: str
    patient: str | None
    target: str
    phrase: str
    """Words to be found: the name of the finding, or a sentence of a report."""
    image: NDArray[np.uint8]
    """Grey, (height, width), 0 black."""
    truth: Region | None
    """For controls alone; None where the finding is not there."""
    lungs: Region | None


@dataclass(frozen=True, kw_only=True)
class Shown:
    """The answer to a probe."""

    values: Map
    """Over the whole square of the frame."""
    frame: Frame
    positive: tuple[str, ...] = ()
    negative: tuple[str, ...] = ()
    score: float | None = None
    against: float | None = None


class Explainer(Protocol):
    """Pure: the same probe has the same answer, whatever else is asked with it."""

    @property
    def name(self) -> str:
        """Of the model: says nothing of the machine."""

    @property
    def method(self) -> str: ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """Everything that decides the maps: weights, options of the method, preparation."""

    def explain(self, asked: Sequence[Asked]) -> list[Shown]: ...
