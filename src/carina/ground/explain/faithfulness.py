"""Does the score depend on the places that a map points to? Deletion and insertion (Petsiuk et al., 2018), by cells.

Deleting the places that matter first, the score falls fast; inserting them first, it rises fast. So a good map has a
small area under the curve of deletion and a large one under that of insertion. What is deleted is not made black, which
on a radiograph is air: it is blurred, or filled from around it (Rong et al., 2022). Imports no torch before it is used.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array
from scipy.sparse.linalg import splu

from carina.errors import CarinaError
from carina.ground.explain.methods.options import Followed
from carina.models.clip.interface import ClipModel, PromptPair
from carina.seeding import rng

if TYPE_CHECKING:
    from torch import Tensor

Imputation = Literal["blur", "noisy-linear"]
"""What is hidden shows a blurred picture; or each of its pixels is the weighted mean of the eight around it, some of
them hidden too, and a little noise, so that nothing can be told from its smoothness."""
Floats = NDArray[np.float32]
Score = Callable[[Floats], NDArray[np.floating]]
"""Prepared pictures (n, 3, side, side) to one number each."""
_AROUND: Final = tuple(
    (down, right, 1 / 12 if down and right else 1 / 6)
    for down in (-1, 0, 1)
    for right in (-1, 0, 1)
    if down or right
)
"""Neighbours and their weights, as Rong et al. chose them."""


@dataclass(frozen=True, kw_only=True)
class FaithfulnessOptions:
    imputation: Imputation = "blur"
    kernel: int = 11
    """Side of the blur's kernel, in pixels; odd."""
    sigma: float = 5.0
    noise: float = 0.01
    """Standard deviation of the noise, on the scale of prepared pixels."""
    contrast: Followed = "probability"
    """What is followed: the probability of the finding, or the model's own score (`none`) or difference of scores."""
    steps: int | None = None
    """In how many steps cells go; None for one at a time."""
    seed: int = 0
    """Of the noise, and of the order of cells that a map ranks alike."""
    batch: int = 32

    def __post_init__(self) -> None:
        if self.kernel < 1 or self.kernel % 2 == 0:
            raise CarinaError(f"option kernel: expected an odd number of pixels, not {self.kernel}")
        if self.sigma <= 0 or self.noise < 0:
            raise CarinaError(
                f"options sigma and noise: expected more than 0 and at least 0, not {self.sigma:g} and {self.noise:g}"
            )
        if self.batch < 1 or (self.steps is not None and self.steps < 1):
            raise CarinaError(
                f"options batch and steps: expected at least 1, not {self.batch} and {self.steps}"
            )


@dataclass(frozen=True)
class Faithfulness:
    """Of n pictures."""

    share: NDArray[np.float64]
    """(k,) of cells deleted or inserted, from 0 to 1."""
    deletion: NDArray[np.float64]
    """(n, k) scores."""
    insertion: NDArray[np.float64]

    @property
    def deletion_area(self) -> NDArray[np.float64]:
        """Under each curve, by trapezoids; the mean score on the way."""
        return np.asarray(np.trapezoid(self.deletion, self.share, axis=1))

    @property
    def insertion_area(self) -> NDArray[np.float64]:
        return np.asarray(np.trapezoid(self.insertion, self.share, axis=1))


def faithfulness(
    model: ClipModel,
    pixels: "Tensor",
    prompts: PromptPair,
    maps: "Tensor | Floats",
    options: FaithfulnessOptions | None = None,
) -> Faithfulness:
    """Of maps (n, rows, columns) of prepared pictures. Costs two passes for each step, and two more."""
    import torch  # noqa: PLC0415 - optional

    from carina.ground.explain.methods.asking import follow  # noqa: PLC0415 - needs torch
    from carina.ground.explain.methods.quiet import quiet  # noqa: PLC0415 - needs torch

    options = options or FaithfulnessOptions()
    with quiet():
        score = follow(model, prompts, options.contrast)
        return curves(
            lambda some: score(torch.from_numpy(some)).numpy(), np.asarray(pixels), np.asarray(maps), options
        )


def curves(score: Score, pixels: Floats, maps: Floats, options: FaithfulnessOptions) -> Faithfulness:
    """The same for any score of pictures."""
    count = maps.shape[1] * maps.shape[2]
    steps = min(options.steps or count, count)
    ends = np.round(np.linspace(0, count, steps + 1)).astype(int)
    found = []
    for picture, ranks in zip(pixels, ranked(maps, options.seed), strict=True):
        hide = hider(picture, options)
        laid = _laid(ranks, picture.shape[-1])
        shown = (hide(laid < end if deleted else laid >= end) for deleted in (True, False) for end in ends)
        found.append(_scored(score, shown, options.batch).reshape(2, -1))
    deletion, insertion = np.array(found).reshape(len(maps), 2, len(ends)).swapaxes(0, 1)
    return Faithfulness(ends / count, deletion, insertion)


def ranked(maps: Floats, seed: int) -> NDArray[np.int64]:
    """Cells (n, rows, columns) by their place in the order of a map, 0 for the highest; ties in random order.

    Reading order would take the corner above the patient's shoulder for the best of a flat map.
    """
    flat = np.asarray(maps, np.float64).reshape(len(maps), -1)
    ties = rng(seed, "ties").permutation(flat.shape[1])
    ranks = np.empty(flat.shape, np.int64)
    for row, values in zip(ranks, flat, strict=True):
        row[np.lexsort((ties, -values))] = np.arange(len(values))
    return ranks.reshape(maps.shape)


def hider(picture: Floats, options: FaithfulnessOptions) -> Callable[[NDArray[np.bool_]], Floats]:
    """From pixels (side, side) to be hidden to the picture (3, side, side) without them."""
    if options.imputation == "blur":
        blurred = blur(picture, options.kernel, options.sigma)
        return lambda hidden: np.where(hidden, blurred, picture)
    noise = rng(options.seed, "imputation").standard_normal(picture.shape, np.float32) * np.float32(
        options.noise
    )
    return lambda hidden: np.where(hidden, filled(picture, hidden) + noise, picture)


def blur(picture: Floats, kernel: int, sigma: float) -> Floats:
    """By a Gaussian cut to a square kernel, edges held."""
    smooth = [
        cv2.GaussianBlur(channel, (kernel, kernel), sigma, borderType=cv2.BORDER_REPLICATE)
        for channel in picture
    ]
    return np.asarray(smooth, np.float32)


def filled(picture: Floats, hidden: NDArray[np.bool_]) -> Floats:
    """With each hidden pixel the weighted mean of those around it; the mean of the picture where all are hidden."""
    if not hidden.any():
        return picture
    if hidden.all():
        return np.broadcast_to(picture.mean(axis=(1, 2), keepdims=True), picture.shape)
    number = np.full(hidden.shape, -1)
    number[hidden] = np.arange(hidden.sum())
    down, right = np.nonzero(hidden)
    known = np.zeros((len(down), len(picture)))
    total = np.zeros(len(down))
    rows, columns, values = [], [], []
    for lower, further, weight in _AROUND:
        y, x = down + lower, right + further
        inside = np.flatnonzero((y >= 0) & (x >= 0) & (y < hidden.shape[0]) & (x < hidden.shape[1]))
        y, x = y[inside], x[inside]
        total[inside] += weight
        lost = hidden[y, x]
        known[inside[~lost]] += weight * picture[:, y[~lost], x[~lost]].T
        rows.append(inside[lost])
        columns.append(number[y[lost], x[lost]])
        values.append(np.full(lost.sum(), -weight))
    places = np.arange(len(down))
    system = csc_array(
        (
            np.concatenate([total, *values]),
            (np.concatenate([places, *rows]), np.concatenate([places, *columns])),
        )
    )
    # Symmetric and diagonally dominant: pivots stay where they are, which keeps the factors sparse.
    factors = splu(system, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    made = picture.copy()
    made[:, down, right] = factors.solve(known).T
    return made


def _laid(ranks: NDArray[np.int64], side: int) -> NDArray[np.int64]:
    """Every pixel of the square with the rank of its cell."""
    down, right = (np.arange(side) * number // side for number in ranks.shape)
    return np.asarray(ranks[down][:, right])


def _scored(score: Score, pictures: Iterator[Floats], batch: int) -> NDArray[np.float64]:
    scores: list[NDArray[np.floating]] = []
    some: list[Floats] = []
    for picture in pictures:
        some.append(picture)
        if len(some) == batch:
            scores.append(score(np.stack(some)))
            some = []
    if some:
        scores.append(score(np.stack(some)))
    return np.concatenate(scores).astype(np.float64)
