"""Python functions as explainers: `carina.explain(probes, make_map, out)` with `make_map(image, phrase)`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from carina.explanations.explainer import MapResult, Probe
from carina.models.frame import Frame, Map
from carina.models.function import FUNCTION, describe_error
from carina.store.errors import CarinaError, MapsError

MapFunction: TypeAlias = Callable[[NDArray[np.uint8], str], "ArrayLike | tuple[ArrayLike, float]"]
"""A function that makes the localisation map of a phrase on an image, and may add a score for its presence."""


@dataclass(frozen=True)
class FunctionExplainer:
    """A Python function that makes localisation maps."""

    function: MapFunction
    name: str

    @property
    def method(self) -> str:
        return FUNCTION

    @property
    def settings(self) -> Mapping[str, Any]:
        return {}

    def explain(self, probes: Sequence[Probe]) -> list[MapResult]:
        return [self._explain_one(probe) for probe in probes]

    def _explain_one(self, probe: Probe) -> MapResult:
        """The map of one probe.

        Raises:
            CarinaError: The function raised an error, or its result is no map.
        """
        try:
            result = self.function(probe.image.copy(), probe.phrase)
        except CarinaError:
            raise
        except Exception as error:
            raise MapsError(f"{self.name}: {describe_error(error)}") from error
        made, score = result if isinstance(result, tuple) and len(result) == 2 else (result, None)
        height, width = probe.image.shape
        return MapResult(
            values=self._read_map(made),
            # The map covers the whole image, whatever its own size.
            frame=Frame.stretched(height, width, side=max(height, width)),
            positive=(probe.phrase,),
            score=None if score is None else self._read_score(score),
        )

    def _read_map(self, made: object) -> Map:
        try:
            values = np.asarray(made, np.float32)
        except (TypeError, ValueError) as error:
            raise self._no_map(type(made).__name__) from error
        if values.ndim != 2 or 0 in values.shape:
            raise self._no_map(f"an array of shape {values.shape}")
        return values

    def _no_map(self, found: str) -> MapsError:
        return MapsError(
            f"{self.name}: expected a 2-D array of numbers as the map, or the map and a score; found {found}"
        )

    def _read_score(self, score: object) -> float:
        try:
            number = float(score)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            number = float("nan")
        if not np.isfinite(number):
            raise MapsError(f"{self.name}: expected a finite number as the score, found {score!r:.60}")
        return number
