"""Where a model's image tokens lie on the image: known for few models, and refused for all others.

A map of attention over tokens says nothing as long as it is not known what each token was made from.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isqrt
from typing import Any, Final, NamedTuple

from carina.models.chat.loading import Loaded
from carina.models.clip.preprocessing import Fit, as_transformers, square_first
from carina.models.frame import Frame
from carina.models.weights import CONFIG, PREPARED
from carina.store.errors import CarinaError

_CLASS_TOKENS: Final = {"clip_vision_model": 1, "siglip_vision_model": 0}
"""Tokens before the patches, by the kind of network that sees."""
_PROCESSORS: Final = (
    "CLIPImageProcessor",
    "SiglipImageProcessor",
    "LlavaImageProcessor",
    "Gemma3ImageProcessor",
)


@dataclass(frozen=True, kw_only=True)
class ImageGrid:
    """Tokens of an image, row by row from its upper left corner."""

    rows: int
    columns: int
    fit: Fit

    def frame(self, height: int, width: int) -> Frame:
        """Where an image of a height and width lies under the grid."""
        return self.fit(height, width)


class _Seen(NamedTuple):
    """Of the square that the network takes."""

    side: int
    cells: int
    """Tokens along it."""
    covered: int
    """Pixels along it that they are made from: patches that do not fit are left out at its right and lower edge."""


def _llava(config: Any) -> _Seen | str:  # noqa: ANN401 - transformers'
    vision = config.vision_config
    if vision.model_type not in _CLASS_TOKENS:
        return f"vision_config: {vision.model_type!r} is not one of {', '.join(_CLASS_TOKENS)}"
    dropped = int(config.vision_feature_select_strategy == "default")
    if dropped != _CLASS_TOKENS[vision.model_type]:
        return (
            f"vision_feature_select_strategy {config.vision_feature_select_strategy!r} leaves one token more or less "
            "than there are patches"
        )
    cells = vision.image_size // vision.patch_size
    return _Seen(vision.image_size, cells, cells * vision.patch_size)


def _gemma3(config: Any) -> _Seen | str:  # noqa: ANN401
    vision, cells = config.vision_config, isqrt(config.mm_tokens_per_image)
    if cells**2 != config.mm_tokens_per_image:
        return f"mm_tokens_per_image {config.mm_tokens_per_image} is no square"
    pooled = vision.image_size // vision.patch_size // cells
    return _Seen(vision.image_size, cells, cells * pooled * vision.patch_size)


_KINDS: Final[dict[str, Callable[[Any], _Seen | str]]] = {"llava": _llava, "gemma3": _gemma3}


def check_kind(path: str, model_type: object) -> None:
    """That a kind of model is one whose image tokens form a known grid; nothing is loaded."""
    if model_type not in _KINDS:
        raise CarinaError(
            f"{path}: the image tokens of model_type {model_type!r} are not known to form one grid over the image; "
            f"known are {', '.join(_KINDS)}"
        )


def image_grid(loaded: Loaded) -> ImageGrid:
    """The grid of a model, from its configuration and what prepares its images."""
    config = loaded.model.config
    check_kind(str(loaded.path / CONFIG), config.model_type)
    seen = _KINDS[config.model_type](config)
    if isinstance(seen, str):
        raise CarinaError(
            f"{loaded.path / CONFIG}: {seen}, so that its image tokens do not form a known grid"
        )
    return ImageGrid(rows=seen.cells, columns=seen.cells, fit=_fit(loaded, seen))


def _fit(loaded: Loaded, seen: _Seen) -> Fit:
    processor = loaded.processor.image_processor
    kind = type(processor).__name__.removesuffix("Pil").removesuffix("Fast")
    said = processor.to_dict()
    where = loaded.path / PREPARED
    if kind not in _PROCESSORS:
        raise CarinaError(
            f"{where}: {kind}: where it puts the parts of an image is not known; known are {', '.join(_PROCESSORS)}"
        )
    if said.get("do_pan_and_scan"):
        raise CarinaError(
            f"{where}: do_pan_and_scan shows an image in several pieces; expected one that is whole"
        )
    if not said.get("do_resize", True):
        raise CarinaError(f"{where}: do_resize is off; expected images that are resized for the network")
    inner = as_transformers(where, said, seen.side).fit
    if said.get("do_pad"):
        if kind != "LlavaImageProcessor" or seen.covered != seen.side:
            raise CarinaError(f"{where}: do_pad: where {kind} puts an image with margins is not known")
        # The image at its own size in the middle of a square, which is resized as a whole.
        return lambda height, width: square_first(height, width, least=1)

    def fit(height: int, width: int) -> Frame:
        return replace(inner(height, width), side=seen.covered)

    return fit
