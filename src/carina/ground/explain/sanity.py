"""Does a map depend on what it should? On the weights of the model, and on what is asked.

A map that stays the same when what was learned is shuffled shows the picture, not the model (Adebayo et al., 2018). One
that stays the same when another finding is asked for, or one that is not there, shows where the model looks, not where
it sees the finding: attention after a softmax always peaks somewhere. Imports no torch of its own.
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

from carina.errors import CarinaError
from carina.models.clip.interface import ClipModel, PromptPair
from carina.seeding import rng

if TYPE_CHECKING:
    from torch import nn

Order = Literal["cascading", "whole"]
"""From the output to the input, a part more at a time; or everything at once."""
Floats = NDArray[np.float64]
WINDOW: Final = 7
"""Side of the squares over which structural similarity compares; smaller where a grid is."""
_LUMINANCE: Final = 0.01**2
_CONTRAST: Final = 0.03**2
"""Constants of structural similarity (Wang et al., 2004), for values from 0 to 1."""


@dataclass(frozen=True)
class Agreement:
    """Of two maps, for each of n pictures; NaN where one of them is the same everywhere."""

    pearson: Floats
    spearman: Floats
    ssim: Floats
    """Mean structural similarity of the maps, each stretched from 0 to 1."""


@dataclass(frozen=True)
class Randomised:
    """A step of the randomisation of weights."""

    stage: str
    """What was shuffled last; in a cascade all before it are shuffled too."""
    agreement: Agreement
    """With the maps of the model as it was."""


def compare(one: npt.ArrayLike, other: npt.ArrayLike) -> Agreement:
    """Maps (n, rows, columns) with other maps of the same pictures."""
    first, second = np.asarray(one, np.float64), np.asarray(other, np.float64)
    if first.shape != second.shape or first.ndim != 3:
        raise ValueError(f"maps of {first.shape} and {second.shape}; expected the same (n, rows, columns)")
    flat, against = first.reshape(len(first), -1), second.reshape(len(second), -1)
    return Agreement(
        pearson=_correlation(flat, against),
        spearman=_correlation(rankdata(flat, axis=1), rankdata(against, axis=1)),
        ssim=np.array([_ssim(*pair) for pair in zip(_stretched(first), _stretched(second), strict=True)]),
    )


def swapped(
    explain: Callable[[PromptPair], npt.ArrayLike], asked: PromptPair, other: PromptPair
) -> Agreement:
    """Maps of one finding with those of another on the same pictures.

    With a finding that is there too, this tells whether the text matters; with one that is not, what a map of nothing
    looks like beside it.
    """
    return compare(explain(asked), explain(other))


def randomised(
    model: ClipModel, explain: Callable[[], npt.ArrayLike], *, order: Order = "cascading", seed: int = 0
) -> list[Randomised]:
    """How maps change when the weights of the model's image tower are shuffled; they are put back."""
    if model.tower is None:
        raise CarinaError(f"{model.identity.name}: its image tower is not shown, so it cannot be shuffled")
    before = np.asarray(explain())
    parts = list(stages(model.tower))
    steps = [parts] if order == "whole" else [parts[: end + 1] for end in range(len(parts))]
    made = []
    for step in steps:
        with shuffled(model.tower, step, seed=seed):
            agreement = compare(before, explain())
        made.append(Randomised("whole" if order == "whole" else step[-1], agreement))
    return made


def stages(tower: "nn.Module") -> Mapping[str, tuple[str, ...]]:
    """Weights of a tower by the part that they belong to, from its output to its input."""
    found: dict[str, list[str]] = {}
    for name, weights in tower.state_dict().items():
        if weights.is_floating_point():
            found.setdefault(_stage(name), []).append(name)
    return {stage: tuple(found[stage]) for stage in reversed(found)}


@contextmanager
def shuffled(tower: "nn.Module", parts: Sequence[str], *, seed: int = 0) -> Iterator[None]:
    """With the numbers of each weight in random places: distributed as before, but nothing that was learned."""
    weights = tower.state_dict()
    chosen = [name for part in parts for name in stages(tower)[part]]
    kept: dict[str, Any] = {name: weights[name].clone() for name in chosen}
    try:
        for name in chosen:
            places = rng(seed, "shuffled weights", name).permutation(weights[name].numel())
            weights[name].copy_(kept[name].flatten()[places].reshape(kept[name].shape))
        yield
    finally:
        for name in chosen:
            weights[name].copy_(kept[name])


def _stage(name: str) -> str:
    """Part of a tower that a weight belongs to: a block, a stage, what comes after all, or what comes before."""
    part, _, rest = name.partition(".")
    if part == "blocks":
        return f"block {rest.partition('.')[0]}"
    if part in {"norm", "projection", "head"}:
        return "output"
    return part if part.startswith("layer") else "input"


def _correlation(first: Floats, second: Floats) -> Floats:
    """Pearson's, row by row."""
    ours, theirs = (values - values.mean(axis=1, keepdims=True) for values in (first, second))
    varied = (np.ptp(first, axis=1) > 0) & (np.ptp(second, axis=1) > 0)
    spread = np.sqrt((ours**2).sum(axis=1) * (theirs**2).sum(axis=1))
    found = np.full(len(first), np.nan)
    np.divide((ours * theirs).sum(axis=1), spread, out=found, where=varied & (spread > 0))
    return np.asarray(np.clip(found, -1, 1), np.float64)


def _stretched(maps: Floats) -> Floats:
    """From 0 to 1; NaN where a map is the same everywhere."""
    lowest, highest = maps.min(axis=(1, 2), keepdims=True), maps.max(axis=(1, 2), keepdims=True)
    found = np.full_like(maps, np.nan)
    np.divide(maps - lowest, highest - lowest, out=found, where=highest > lowest)
    return found


def _ssim(first: Floats, second: Floats) -> float:
    """Mean over the places at which a whole window fits, with variances as of samples."""
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
    alike = (2 * ours * theirs + _LUMINANCE) * (2 * shared + _CONTRAST)
    return float(np.mean(alike / ((ours**2 + theirs**2 + _LUMINANCE) * (spread + other + _CONTRAST))))
