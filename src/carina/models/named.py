"""Models by the names that the command line knows them by: `sam:PATH`."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from carina.errors import CarinaError
from carina.models.extra import check
from carina.models.sam import SamSegmenter, sam_checkpoint
from carina.models.segment import Segmenter
from carina.models.weights import Checkpoint


@dataclass(frozen=True, kw_only=True)
class ModelIdentity:
    """What decides a model's answers: for manifests."""

    name: str
    weights: str
    """SHA-256 of the weights."""
    settings: str
    """SHA-256 of how inputs are prepared and the layers are put together."""


class _Kind(NamedTuple):
    """One kind of segmenter."""

    find: Callable[[Path], Checkpoint]
    open: Callable[[Path], Segmenter]


_SEGMENTERS: Final = {"sam": _Kind(sam_checkpoint, SamSegmenter.open)}


def open_segmenter(named: str) -> Segmenter:
    """The segmenter of a name such as "sam:weights/sam-vit-base"."""
    kind, path = _parsed(named)
    return _SEGMENTERS[kind].open(path)


def identify_segmenter(named: str) -> ModelIdentity:
    """What a name stands for, from its files alone. Nothing is loaded; that it could be is checked."""
    kind, path = _parsed(named)
    checkpoint = _SEGMENTERS[kind].find(path)
    check("torch", "transformers")
    return ModelIdentity(
        name=f"{kind}:{checkpoint.name}",
        weights=checkpoint.weights_sha256,
        settings=checkpoint.settings_sha256,
    )


def _parsed(named: str) -> tuple[str, Path]:
    kind, colon, path = named.partition(":")
    if not colon or kind not in _SEGMENTERS or not path:
        known = ", ".join(f"{kind}:PATH" for kind in _SEGMENTERS)
        raise CarinaError(f"segmenter {named!r}: unknown; known are {known}")
    return kind, Path(path)
