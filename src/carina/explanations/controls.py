"""Controls: maps that need no model. A model's maps are compared with them.

| control | its map |
|---|---|
| uniform | the same everywhere |
| centre | a Gaussian in the middle of the image, a quarter of each side wide |
| lungs | share of a cell that the lungs cover; uniform where they are unknown, left out where no image has them |
| mean-region | how often the finding covers a cell in other patients; any finding where no other patient has it |
| random | independent noise for each probe |
| oracle | share of a cell that the truth covers |
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from carina.explanations.explainer import MapResult, Probe
from carina.models.frame import Frame, Map
from carina.store.errors import CarinaError
from carina.store.seeding import rng
from carina.studies import Region

LUNGS: Final = "lungs"
MEAN_REGION: Final = "mean-region"
CONTROLS: Final = ("uniform", "centre", LUNGS, MEAN_REGION, "random", "oracle")
FOLDS: Final = 5
"""Number of groups of patients; the mean region for one group is computed from the others."""
_MEAN_REGION_SIDE: Final = 32
"""Rows and columns of a mean region over the whole image."""
_CENTRE_WIDTH: Final = 0.25
_MAX_GRID: Final = 256


@dataclass
class MeanRegions:
    """Mean regions by finding, computed without the patients for whom they are used."""

    _sums: dict[tuple[str, int], NDArray[np.float64]] = field(default_factory=dict)
    _counts: dict[tuple[str, int], int] = field(default_factory=dict)

    def add(self, target: str, patient: str, truth: Region) -> None:
        """Add the region of a finding on one image."""
        key = target, _fold(patient)
        frame = Frame.stretched(truth.height, truth.width, side=_MEAN_REGION_SIDE)
        cover = frame.cover(truth.to_mask(), _MEAN_REGION_SIDE)
        self._sums[key] = self._sums.get(key, 0.0) + cover.astype(np.float64)
        self._counts[key] = self._counts.get(key, 0) + 1

    def average(self, target: str, patient: str) -> Map:
        """The mean region of a finding in other patients; of all findings where no other patient has it."""
        fold = _fold(patient)
        others = [key for key in self._sums if key[1] != fold]
        keys = [key for key in others if key[0] == target] or others
        if not keys:
            return np.zeros((_MEAN_REGION_SIDE, _MEAN_REGION_SIDE), np.float32)
        total = np.sum([self._sums[key] for key in keys], axis=0)
        return np.asarray(total / sum(self._counts[key] for key in keys), np.float32)


def _fold(patient: str) -> int:
    return hashlib.sha256(patient.encode()).digest()[0] % FOLDS


def collect_mean_regions(regions: Iterable[tuple[str, str, Region]]) -> MeanRegions:
    """Mean regions from findings, patients and regions."""
    mean_regions = MeanRegions()
    for target, patient, region in regions:
        mean_regions.add(target, patient, region)
    return mean_regions


def control_map(
    name: str, probe: Probe, frame: Frame, shape: tuple[int, int], *, mean_regions: MeanRegions, seed: int
) -> Map:
    """The map of a control.

    Args:
        name: One of `CONTROLS`.
        probe: The probe.
        frame: How the image lies in the square that the map covers.
        shape: Rows and columns of the map.
        mean_regions: Mean regions of other patients, for "mean-region".
        seed: Seed of the noise, for "random".
    """
    match name:
        case "uniform":
            return np.ones(shape, np.float32)
        case "random":
            return rng(seed, "control", probe.case).random(shape, np.float32)
        case "oracle":
            return np.zeros(shape, np.float32) if probe.truth is None else _cover(probe.truth, frame, shape)
        case "lungs":
            return np.ones(shape, np.float32) if probe.lungs is None else _cover(probe.lungs, frame, shape)
        case "centre":
            x, y = _cell_centres(frame, shape)
            squared = (x / frame.width - 0.5) ** 2 + (y / frame.height - 0.5) ** 2
            return np.asarray(np.exp(-squared / (2 * _CENTRE_WIDTH**2)), np.float32)
        case _ if name == MEAN_REGION:
            x, y = _cell_centres(frame, shape)
            mean = mean_regions.average(probe.target, probe.patient or probe.case)
            columns, rows = (
                np.clip(np.floor(at * _MEAN_REGION_SIDE / length).astype(int), 0, _MEAN_REGION_SIDE - 1)
                for at, length in ((x, frame.width), (y, frame.height))
            )
            return np.asarray(mean[rows, columns], np.float32)
    raise ValueError(f"no control {name!r}")


def _cover(region: Region, frame: Frame, shape: tuple[int, int]) -> Map:
    rows, columns = shape
    # A grid that is not square is computed on a finer square grid and averaged.
    cover = frame.cover(region.to_mask(), rows * columns if rows != columns else rows)
    if rows == columns:
        return cover
    return np.asarray(cover.reshape(rows, columns, columns, rows).mean(axis=(1, 3)), np.float32)


def _cell_centres(frame: Frame, shape: tuple[int, int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Positions of the centres of the cells on the image, x and y."""
    rows, columns = ((np.arange(number) + 0.5) * frame.side / number for number in shape)
    x, y = np.meshgrid(columns, rows)
    points = frame.from_input(np.stack([x, y], axis=-1).reshape(-1, 2))
    return points[:, 0].reshape(shape), points[:, 1].reshape(shape)


@dataclass(frozen=True, kw_only=True)
class ControlOptions:
    """Options of a control."""

    grid: int = 14
    """Rows and columns of the maps."""

    def __post_init__(self) -> None:
        if not 1 <= self.grid <= _MAX_GRID:
            raise CarinaError(
                f"option grid: expected a whole number from 1 to {_MAX_GRID}, found {self.grid}"
            )


@dataclass(frozen=True)
class Control:
    """A control as an explainer, such as `control/centre`; its maps cover the whole image."""

    method: str
    mean_regions: MeanRegions
    grid: int = 14
    seed: int = 0

    @property
    def name(self) -> str:
        return f"control/{self.method}"

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"grid": self.grid, "seed": self.seed, "folds": FOLDS}

    def explain(self, probes: Sequence[Probe]) -> list[MapResult]:
        results = []
        for probe in probes:
            frame = Frame.stretched(*probe.image.shape, side=self.grid)
            values = control_map(
                self.method,
                probe,
                frame,
                (self.grid, self.grid),
                mean_regions=self.mean_regions,
                seed=self.seed,
            )
            results.append(MapResult(values=values, frame=frame))
        return results
