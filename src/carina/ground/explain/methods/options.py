"""What each method leaves open, with what its publication chose. Written into every run; needs no torch.

A finding is asked for by prompts that are for it and, where there are such, by prompts against it. What a map is of,
`contrast` says: `none` is for the finding alone, `difference` is what speaks for it less what speaks against it, and
`probability`, for methods that follow a score, is that of the finding (`carina.models.clip.recognition.presence`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeVar

import msgspec

from carina.errors import CarinaError

Contrast = Literal["none", "difference"]
Followed = Literal["none", "difference", "probability"]
Measure = Literal["cosine", "dot"]
Over = Literal["mean", "max"]
Layers = Literal["mean", "last"]
Fill = Literal["zero", "mean"]
"""What stands where pixels are hidden: 0 on the scale of prepared pixels (which is grey where the mean was taken off
them, black where it was not), or the mean of the picture."""


Options = TypeVar("Options")


def configured(kind: type[Options], given: Mapping[str, Any], whose: str, *, seed: int) -> Options:
    """Options from names and values, which may be text; the seed is for what draws by chance."""
    known = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    for name in given:
        if name not in known:
            raise CarinaError(f"{whose}: no option {name!r}; known are {', '.join(sorted(known))}")
    values = {"seed": seed} | dict(given) if "seed" in known else dict(given)
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise CarinaError(f"{whose}, options: {error}") from error


def _least(where: str, value: float, least: float) -> None:
    if not value >= least:
        raise CarinaError(f"{where}: expected at least {least:g}, not {value:g}")


def _share(where: str, value: float) -> None:
    if not 0 < value < 1:
        raise CarinaError(f"{where}: expected a share between 0 and 1, not {value:g}")


@dataclass(frozen=True, kw_only=True)
class SimilarityOptions:
    measure: Measure = "cosine"
    """`dot` adds up to the score, without its norms, where a model's picture is the mean of its patches (AFLoc's)."""
    sigma: float = 1.5
    """Of the Gaussian that smooths the map, in cells; 0 for none. BioViL and AFLoc smooth by 1.5."""
    contrast: Contrast = "none"

    def __post_init__(self) -> None:
        _least("option sigma", self.sigma, 0)


@dataclass(frozen=True, kw_only=True)
class WordAttentionOptions:
    temperature: float = 4.0
    """Multiplies the shares of words before the softmax over places."""
    words: Over = "mean"
    """How the maps of words become one; GLoRIA shows them one by one."""
    contrast: Contrast = "none"


@dataclass(frozen=True, kw_only=True)
class CrossAttentionOptions:
    layers: Layers = "mean"
    """MedKLIP, MAVL and CARZero show the mean over layers, KAD the last alone."""
    heads: Over = "mean"
    renormalised: bool = False
    """Whether the weight that fell on other keys than patches is shared out among these, so that a map adds up to 1."""
    contrast: Contrast = "none"


@dataclass(frozen=True, kw_only=True)
class MaskClipOptions:
    contrast: Contrast = "none"


@dataclass(frozen=True, kw_only=True)
class GemOptions:
    depth: int = 7
    """The branch beside the network starts this many blocks less one before its end."""
    iterations: int = 1
    temperature: float | None = None
    """Multiplies similarities before their softmax; None for the tokens' mean norm / square root of a head's width."""
    contrast: Contrast = "none"

    def __post_init__(self) -> None:
        _least("option depth", self.depth, 2)
        _least("option iterations", self.iterations, 0)


@dataclass(frozen=True, kw_only=True)
class GradCamOptions:
    contrast: Followed = "none"


@dataclass(frozen=True, kw_only=True)
class LeGradOptions:
    layers: int = 2
    """The last blocks that are added up."""
    empty: str = "a photo of a"
    """For models that pool by attention: a prompt that names nothing. Where its own map is high, ours becomes 0."""
    limit: float | None = 0.8
    """From which height of the empty prompt's map, which runs from 0 to 1; None to leave our map as it is."""
    normalised: bool = False
    """For models that pool by attention: whether tokens pass the final norm first. The published code leaves it out."""
    contrast: Contrast = "none"

    def __post_init__(self) -> None:
        _least("option layers", self.layers, 1)


@dataclass(frozen=True, kw_only=True)
class RelevanceOptions:
    layers: int = 1
    """The last blocks whose attention is taken together; its authors take the last alone for CLIP."""
    contrast: Followed = "none"

    def __post_init__(self) -> None:
        _least("option layers", self.layers, 1)


@dataclass(frozen=True, kw_only=True)
class RolloutOptions:
    heads: Over = "mean"
    skipped: int = 0
    """The first blocks that are left out."""

    def __post_init__(self) -> None:
        _least("option skipped", self.skipped, 0)


@dataclass(frozen=True, kw_only=True)
class GScoreCamOptions:
    channels: int = 300
    """Those of steepest gradient are tried out."""
    scale: float = 1.0
    """Multiplies scores before their softmax; CLIP's own have its trained scale in them, bare cosines do not."""
    contrast: Followed = "none"
    batch: int = 32

    def __post_init__(self) -> None:
        _least("option channels", self.channels, 1)
        _least("option batch", self.batch, 1)


@dataclass(frozen=True, kw_only=True)
class RiseOptions:
    masks: int = 4000
    cells: int = 7
    """Rows and columns of a mask before it is enlarged."""
    share: float = 0.5
    """Of cells that stay."""
    fill: Fill = "zero"
    centred: bool = False
    """Whether the mean score is taken off first. Shifts the expected map by a constant and quietens it: the noise of
    the published form grows with the score, and a cosine or a probability near 1/2 changes little from mask to mask."""
    contrast: Followed = "probability"
    seed: int = 0
    batch: int = 32

    def __post_init__(self) -> None:
        _least("option masks", self.masks, 1)
        _least("option cells", self.cells, 1)
        _share("option share", self.share)
        _least("option batch", self.batch, 1)


@dataclass(frozen=True, kw_only=True)
class OcclusionOptions:
    window: int = 1
    """Rows and columns of cells that are hidden at a time."""
    stride: int = 1
    fill: Fill = "zero"
    contrast: Followed = "probability"
    batch: int = 32

    def __post_init__(self) -> None:
        _least("option window", self.window, 1)
        _least("option stride", self.stride, 1)
        if self.stride > self.window:
            raise CarinaError(
                f"option stride: windows of {self.window} cells that are {self.stride} apart leave cells out"
            )
        _least("option batch", self.batch, 1)
