"""Faithfulness of a map: deletion and insertion of cells (Petsiuk et al., 2018).

When the cells that matter are deleted first, the score falls fast; when they are inserted first, it rises fast. A
faithful map therefore has a small area under the deletion curve and a large one under the insertion curve. Deleted
cells are not made black, which means air on a radiograph: they are blurred, or filled in from their surroundings (Rong
et al., 2022). torch is imported only when it is needed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array
from scipy.sparse.linalg import splu

from carina.explanations.methods._options import Followed
from carina.models.clip.interface import ClipModel, PromptPair
from carina.store.errors import CarinaError
from carina.store.seeding import rng

if TYPE_CHECKING:
    from torch import Tensor

Imputation = Literal["blur", "noisy-linear"]
"""How hidden pixels are replaced: "blur" by a blurred image, "noisy-linear" by the weighted mean of their eight
neighbours, some of which are hidden too, with a little noise, so that smoothness does not reveal what is hidden."""
Floats = NDArray[np.float32]
Score = Callable[[Floats], NDArray[np.floating]]
"""Scores prepared images (n, 3, side, side), one number each."""
_NEIGHBOURS: Final = tuple(
    (down, right, 1 / 12 if down and right else 1 / 6)
    for down in (-1, 0, 1)
    for right in (-1, 0, 1)
    if down or right
)
"""Neighbours and their weights, as Rong et al. chose them."""


@dataclass(frozen=True, kw_only=True)
class FaithfulnessOptions:
    """Options of deletion and insertion."""

    imputation: Imputation = "blur"
    kernel: int = 11
    """Side of the blur's kernel, in pixels; odd."""
    sigma: float = 5.0
    noise: float = 0.01
    """Standard deviation of the noise, on the scale of prepared pixels."""
    contrast: Followed = "probability"
    """Score that is followed: the probability of the finding, the score of the positive prompts (`none`), or the
    difference between positive and negative prompts."""
    steps: int | None = None
    """Number of steps in which cells are deleted or inserted; None for one cell at a time."""
    seed: int = 0
    """Seed of the noise, and of the order of cells with equal values."""
    batch: int = 32

    def __post_init__(self) -> None:
        if self.kernel < 1 or self.kernel % 2 == 0:
            raise CarinaError(f"option kernel: expected an odd number of pixels, found {self.kernel}")
        if self.sigma <= 0 or self.noise < 0:
            raise CarinaError(
                f"options sigma and noise: expected more than 0 and at least 0, found {self.sigma:g} and {self.noise:g}"
            )
        if self.batch < 1 or (self.steps is not None and self.steps < 1):
            raise CarinaError(
                f"options batch and steps: expected at least 1, found {self.batch} and {self.steps}"
            )


@dataclass(frozen=True)
class Faithfulness:
    """Deletion and insertion curves of n images."""

    share: NDArray[np.float64]
    """Share of the cells that are deleted or inserted, (k,), from 0 to 1."""
    deletion: NDArray[np.float64]
    """Scores, (n, k)."""
    insertion: NDArray[np.float64]

    @property
    def deletion_area(self) -> NDArray[np.float64]:
        """Area under each deletion curve by the trapezoidal rule, (n,)."""
        return np.asarray(np.trapezoid(self.deletion, self.share, axis=1))

    @property
    def insertion_area(self) -> NDArray[np.float64]:
        """Area under each insertion curve, (n,)."""
        return np.asarray(np.trapezoid(self.insertion, self.share, axis=1))


def faithfulness(
    model: ClipModel,
    pixels: "Tensor",
    prompts: PromptPair,
    maps: "Tensor | Floats",
    options: FaithfulnessOptions | None = None,
) -> Faithfulness:
    """Compute deletion and insertion curves of maps; takes two passes for each step, and two more.

    Args:
        model: The model whose score is followed.
        pixels: Prepared images, (n, 3, side, side).
        prompts: Prompts for and against the finding.
        maps: Maps of the images, (n, rows, columns).
        options: Options; None for the defaults.
    """
    import torch  # noqa: PLC0415 - optional

    from carina.explanations.methods._inference import deterministic_inference  # noqa: PLC0415 - needs torch
    from carina.explanations.methods._prompts import make_score_function  # noqa: PLC0415 - needs torch

    options = options or FaithfulnessOptions()
    with deterministic_inference():
        score = make_score_function(model, prompts, options.contrast)
        return faithfulness_curves(
            lambda images: score(torch.from_numpy(images)).numpy(),
            np.asarray(pixels),
            np.asarray(maps),
            options,
        )


def faithfulness_curves(
    score: Score, pixels: Floats, maps: Floats, options: FaithfulnessOptions
) -> Faithfulness:
    """`faithfulness` for any score of images."""
    count = maps.shape[1] * maps.shape[2]
    steps = min(options.steps or count, count)
    ends = np.round(np.linspace(0, count, steps + 1)).astype(int)
    curves_by_image = []
    for image, ranks in zip(pixels, rank_cells(maps, options.seed), strict=True):
        hide = make_hider(image, options)
        pixel_ranks = _spread_ranks(ranks, image.shape[-1])
        changed = (
            hide(pixel_ranks < end if is_deletion else pixel_ranks >= end)
            for is_deletion in (True, False)
            for end in ends
        )
        curves_by_image.append(_score_batches(score, changed, options.batch).reshape(2, -1))
    deletion, insertion = np.array(curves_by_image).reshape(len(maps), 2, len(ends)).swapaxes(0, 1)
    return Faithfulness(ends / count, deletion, insertion)


def rank_cells(maps: Floats, seed: int) -> NDArray[np.int64]:
    """Ranks of the cells (n, rows, columns) of each map, 0 for the highest; ties in random order.

    In reading order, the corner above the patient's shoulder would rank first in a constant map.
    """
    flat = np.asarray(maps, np.float64).reshape(len(maps), -1)
    ties = rng(seed, "ties").permutation(flat.shape[1])
    ranks = np.empty(flat.shape, np.int64)
    for row, values in zip(ranks, flat, strict=True):
        row[np.lexsort((ties, -values))] = np.arange(len(values))
    return ranks.reshape(maps.shape)


def make_hider(image: Floats, options: FaithfulnessOptions) -> Callable[[NDArray[np.bool_]], Floats]:
    """A function from a mask (side, side) of pixels to the image (3, side, side) with these pixels hidden."""
    if options.imputation == "blur":
        blurred = blur(image, options.kernel, options.sigma)
        return lambda hidden: np.where(hidden, blurred, image)
    noise = rng(options.seed, "imputation").standard_normal(image.shape, np.float32) * np.float32(
        options.noise
    )
    return lambda hidden: np.where(hidden, impute_linear(image, hidden) + noise, image)


def blur(image: Floats, kernel: int, sigma: float) -> Floats:
    """Blur an image by a Gaussian with a square kernel; the edges are repeated outwards."""
    smooth = [
        cv2.GaussianBlur(channel, (kernel, kernel), sigma, borderType=cv2.BORDER_REPLICATE)
        for channel in image
    ]
    return np.asarray(smooth, np.float32)


def impute_linear(image: Floats, hidden: NDArray[np.bool_]) -> Floats:
    """Replace each hidden pixel by the weighted mean of its neighbours; by the mean of the image if all are hidden."""
    if not hidden.any():
        return image
    if hidden.all():
        return np.broadcast_to(image.mean(axis=(1, 2), keepdims=True), image.shape)
    number = np.full(hidden.shape, -1)
    number[hidden] = np.arange(hidden.sum())
    down, right = np.nonzero(hidden)
    known = np.zeros((len(down), len(image)))
    total = np.zeros(len(down))
    rows, columns, values = [], [], []
    for lower, further, weight in _NEIGHBOURS:
        y, x = down + lower, right + further
        inside = np.flatnonzero((y >= 0) & (x >= 0) & (y < hidden.shape[0]) & (x < hidden.shape[1]))
        y, x = y[inside], x[inside]
        total[inside] += weight
        lost = hidden[y, x]
        known[inside[~lost]] += weight * image[:, y[~lost], x[~lost]].T
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
    # The matrix is symmetric and diagonally dominant: without pivoting, the factors stay sparse.
    factors = splu(system, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    imputed = image.copy()
    imputed[:, down, right] = factors.solve(known).T
    return imputed


def _spread_ranks(ranks: NDArray[np.int64], side: int) -> NDArray[np.int64]:
    """The rank of its cell for every pixel of the square."""
    rows, columns = (np.arange(side) * number // side for number in ranks.shape)
    return np.asarray(ranks[rows][:, columns])


def _score_batches(score: Score, images: Iterator[Floats], batch: int) -> NDArray[np.float64]:
    scores: list[NDArray[np.floating]] = []
    batch_images: list[Floats] = []
    for image in images:
        batch_images.append(image)
        if len(batch_images) == batch:
            scores.append(score(np.stack(batch_images)))
            batch_images = []
    if batch_images:
        scores.append(score(np.stack(batch_images)))
    return np.concatenate(scores).astype(np.float64)
