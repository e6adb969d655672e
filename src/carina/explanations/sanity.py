"""Sanity checks of maps: do they depend on the weights of the model, and on the prompts?

A map that stays the same when the weights are shuffled shows the image, not the model (Adebayo et al., 2018). A map
that stays the same for another finding, or for an absent one, shows where the model attends, not where it sees the
finding: attention after a softmax always has a peak. Imports no torch.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter
from scipy.stats import rankdata

from carina.models.clip.interface import ClipModel
from carina.store.errors import CarinaError
from carina.store.seeding import rng

if TYPE_CHECKING:
    from torch import nn

Order = Literal["cascading", "whole"]
"""Order in which weights are shuffled: from the output to the input, one more part at a time, or all at once."""
Floats = NDArray[np.float64]
WINDOW: Final = 7
"""Side of the windows of structural similarity, in cells; smaller for a smaller grid."""
_LUMINANCE: Final = 0.01**2
_CONTRAST: Final = 0.03**2
"""Constants of structural similarity (Wang et al., 2004), for values from 0 to 1."""


@dataclass(frozen=True)
class Agreement:
    """Agreement of two maps for each of n images; NaN where one of the maps is constant."""

    pearson: Floats
    spearman: Floats
    ssim: Floats
    """Mean structural similarity of the maps, each scaled from 0 to 1."""


@dataclass(frozen=True)
class RandomisationStep:
    """Agreement of the maps after one step of the randomisation of weights."""

    stage: str
    """Part that was shuffled last; in a cascade, the parts before it are shuffled too."""
    agreement: Agreement
    """Agreement with the maps of the trained model."""


def compare_maps(maps: npt.ArrayLike, other: npt.ArrayLike) -> Agreement:
    """Compare maps (n, rows, columns) with other maps of the same images."""
    first, second = np.asarray(maps, np.float64), np.asarray(other, np.float64)
    if first.shape != second.shape or first.ndim != 3:
        raise ValueError(f"maps of {first.shape} and {second.shape}; expected the same (n, rows, columns)")
    flat, against = first.reshape(len(first), -1), second.reshape(len(second), -1)
    return Agreement(
        pearson=_correlation(flat, against),
        spearman=_correlation(rankdata(flat, axis=1), rankdata(against, axis=1)),
        ssim=np.array(
            [_ssim(*pair) for pair in zip(_scale_to_unit(first), _scale_to_unit(second), strict=True)]
        ),
    )


def randomise_weights(
    model: ClipModel, explain: Callable[[], npt.ArrayLike], *, order: Order = "cascading", seed: int = 0
) -> list[RandomisationStep]:
    """Compare maps before and after shuffling the weights of the model's image tower; the weights are restored."""
    if model.tower is None:
        raise CarinaError(
            f"{model.identity.name}: the layers of its image tower cannot be read, so its weights cannot be shuffled"
        )
    before = np.asarray(explain())
    parts = list(weights_by_stage(model.tower))
    steps = [parts] if order == "whole" else [parts[: end + 1] for end in range(len(parts))]
    results = []
    for step in steps:
        with shuffled_weights(model.tower, step, seed=seed):
            agreement = compare_maps(before, explain())
        results.append(RandomisationStep("whole" if order == "whole" else step[-1], agreement))
    return results


def weights_by_stage(tower: "nn.Module") -> Mapping[str, tuple[str, ...]]:
    """Names of the weights of a tower by the part that they belong to, from its output to its input."""
    names_by_stage: dict[str, list[str]] = {}
    for name, weights in tower.state_dict().items():
        if weights.is_floating_point():
            names_by_stage.setdefault(_stage(name), []).append(name)
    return {stage: tuple(names_by_stage[stage]) for stage in reversed(names_by_stage)}


@contextmanager
def shuffled_weights(tower: "nn.Module", parts: Sequence[str], *, seed: int = 0) -> Iterator[None]:
    """Shuffle the numbers within each weight: their distribution stays, what was learned is lost. Restores them."""
    weights = tower.state_dict()
    names = [name for part in parts for name in weights_by_stage(tower)[part]]
    originals: dict[str, Any] = {name: weights[name].clone() for name in names}
    try:
        for name in names:
            order = rng(seed, "shuffled weights", name).permutation(weights[name].numel())
            weights[name].copy_(originals[name].flatten()[order].reshape(originals[name].shape))
        yield
    finally:
        for name in names:
            weights[name].copy_(originals[name])


def _stage(name: str) -> str:
    """Part of a tower that a weight belongs to: a block, a layer, the output or the input."""
    part, _, rest = name.partition(".")
    if part == "blocks":
        return f"block {rest.partition('.')[0]}"
    if part in {"norm", "projection", "head"}:
        return "output"
    return part if part.startswith("layer") else "input"


def _correlation(first: Floats, second: Floats) -> Floats:
    """Pearson's correlation of each row."""
    centred, other_centred = (values - values.mean(axis=1, keepdims=True) for values in (first, second))
    varied = (np.ptp(first, axis=1) > 0) & (np.ptp(second, axis=1) > 0)
    spread = np.sqrt((centred**2).sum(axis=1) * (other_centred**2).sum(axis=1))
    correlations = np.full(len(first), np.nan)
    np.divide((centred * other_centred).sum(axis=1), spread, out=correlations, where=varied & (spread > 0))
    return np.asarray(np.clip(correlations, -1, 1), np.float64)


def _scale_to_unit(maps: Floats) -> Floats:
    """Scale each map from 0 to 1; NaN where a map is constant."""
    lowest, highest = maps.min(axis=(1, 2), keepdims=True), maps.max(axis=(1, 2), keepdims=True)
    scaled = np.full_like(maps, np.nan)
    np.divide(maps - lowest, highest - lowest, out=scaled, where=highest > lowest)
    return scaled


def _ssim(first: Floats, second: Floats) -> float:
    """Structural similarity, averaged over the positions of whole windows, with sample variances."""
    if np.isnan(first).any() or np.isnan(second).any():
        return float("nan")
    shortest = min(first.shape)
    window = min(WINDOW, shortest - 1 + shortest % 2)
    edge = window // 2
    inner = tuple(slice(edge, length - edge) for length in first.shape)

    def mean(values: Floats) -> Floats:
        return np.asarray(uniform_filter(values, window)[inner], np.float64)

    ours, theirs = mean(first), mean(second)
    sample = window**2 / (window**2 - 1) if window > 1 else 1.0
    spread = sample * (mean(first**2) - ours**2)
    other = sample * (mean(second**2) - theirs**2)
    shared = sample * (mean(first * second) - ours * theirs)
    similarity = (2 * ours * theirs + _LUMINANCE) * (2 * shared + _CONTRAST)
    return float(np.mean(similarity / ((ours**2 + theirs**2 + _LUMINANCE) * (spread + other + _CONTRAST))))
