"""Maps that no model is needed for. What a model's map is worth is read against them.

| control | its map |
|---|---|
| uniform | the same everywhere |
| centre | a Gaussian in the middle of the image, a quarter of each side wide |
| lungs | how much of a cell the lungs cover; uniform where they are not known |
| mean-region | how often the finding covered a cell in other patients; any finding where nobody else has it |
| random | independent noise, drawn anew for each probe |
| oracle | how much of a cell the truth covers |
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from carina.errors import CarinaError
from carina.ground.explain.explainer import Asked, Shown
from carina.models.frame import Frame, Map
from carina.seeding import rng
from carina.studies import Region

CONTROLS: Final = ("uniform", "centre", "lungs", "mean-region", "random", "oracle")
FOLDS: Final = 5
"""Groups of patients; the mean region of one is made of the others."""
_PRIOR: Final = 32
"""Rows and columns of a mean region, which lies over the whole image."""
_CENTRE: Final = 0.25
_FINEST: Final = 256


@dataclass
class Priors:
    """Mean regions by finding, each without the patients whom it is used for."""

    _sums: dict[tuple[str, int], NDArray[np.float64]] = field(default_factory=dict)
    _counts: dict[tuple[str, int], int] = field(default_factory=dict)

    def add(self, target: str, patient: str, truth: Region) -> None:
        """One image on which the finding was drawn."""
        place = target, _fold(patient)
        cover = Frame.stretched(truth.height, truth.width, side=_PRIOR).cover(truth.to_mask(), _PRIOR)
        self._sums[place] = self._sums.get(place, 0.0) + cover.astype(np.float64)
        self._counts[place] = self._counts.get(place, 0) + 1

    def of(self, target: str, patient: str) -> Map:
        """From other patients: the finding's mean region; that of all findings where nobody else has it."""
        own = _fold(patient)
        others = [place for place in self._sums if place[1] != own]
        places = [place for place in others if place[0] == target] or others
        if not places:
            return np.zeros((_PRIOR, _PRIOR), np.float32)
        total = np.sum([self._sums[place] for place in places], axis=0)
        return np.asarray(total / sum(self._counts[place] for place in places), np.float32)


def _fold(patient: str) -> int:
    return hashlib.sha256(patient.encode()).digest()[0] % FOLDS


def priors(seen: Iterable[tuple[str, str, Region]]) -> Priors:
    """Mean regions of (finding, patient, truth)."""
    made = Priors()
    for target, patient, truth in seen:
        made.add(target, patient, truth)
    return made


def control(
    name: str, asked: Asked, frame: Frame, shape: tuple[int, int], *, known: Priors, seed: int
) -> Map:
    """The map of a control on a grid of rows and columns over the square of a frame."""
    match name:
        case "uniform":
            return np.ones(shape, np.float32)
        case "random":
            return rng(seed, "control", asked.case).random(shape, np.float32)
        case "oracle":
            return np.zeros(shape, np.float32) if asked.truth is None else _over(asked.truth, frame, shape)
        case "lungs":
            return np.ones(shape, np.float32) if asked.lungs is None else _over(asked.lungs, frame, shape)
        case "centre":
            x, y = _on_image(frame, shape)
            squared = (x / frame.width - 0.5) ** 2 + (y / frame.height - 0.5) ** 2
            return np.asarray(np.exp(-squared / (2 * _CENTRE**2)), np.float32)
        case "mean-region":
            x, y = _on_image(frame, shape)
            mean = known.of(asked.target, asked.patient or asked.case)
            columns, rows = (
                np.clip(np.floor(at * _PRIOR / length).astype(int), 0, _PRIOR - 1)
                for at, length in ((x, frame.width), (y, frame.height))
            )
            return np.asarray(mean[rows, columns], np.float32)
    raise ValueError(f"no control {name!r}")


def _over(region: Region, frame: Frame, shape: tuple[int, int]) -> Map:
    rows, columns = shape
    # Cells are counted on the finer of the two grids where a grid is not square.
    cover = frame.cover(region.to_mask(), rows * columns if rows != columns else rows)
    if rows == columns:
        return cover
    return np.asarray(cover.reshape(rows, columns, columns, rows).mean(axis=(1, 3)), np.float32)


def _on_image(frame: Frame, shape: tuple[int, int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Where the centres of the cells lie on the image, as x and y."""
    rows, columns = ((np.arange(number) + 0.5) * frame.side / number for number in shape)
    x, y = np.meshgrid(columns, rows)
    points = frame.from_input(np.stack([x, y], axis=-1).reshape(-1, 2))
    return points[:, 0].reshape(shape), points[:, 1].reshape(shape)


@dataclass(frozen=True, kw_only=True)
class ControlOptions:
    grid: int = 14
    """Rows and columns of its maps."""

    def __post_init__(self) -> None:
        if not 1 <= self.grid <= _FINEST:
            raise CarinaError(f"option grid: expected a whole number from 1 to {_FINEST}, not {self.grid}")


@dataclass(frozen=True)
class Control:
    """A control as an explainer of its own: `control/centre`, over the whole image."""

    method: str
    known: Priors
    grid: int = 14
    seed: int = 0

    @property
    def name(self) -> str:
        return f"control/{self.method}"

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"grid": self.grid, "seed": self.seed, "folds": FOLDS}

    def explain(self, asked: Iterable[Asked]) -> list[Shown]:
        shown = []
        for one in asked:
            frame = Frame.stretched(*one.image.shape, side=self.grid)
            values = control(
                self.method, one, frame, (self.grid, self.grid), known=self.known, seed=self.seed
            )
            shown.append(Shown(values=values, frame=frame))
        return shown
