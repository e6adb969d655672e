"""The grid of a chat model's image tokens on the image, known for a few kinds of models and refused for all others.

A map of attention over tokens has no meaning if the image region of each token is not known.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isqrt
from typing import Any, Final, NamedTuple

from carina.models.chat.loading import LoadedModel
from carina.models.clip.preprocessing import Fit, preparation_from_transformers, square_first
from carina.models.frame import Frame
from carina.models.weights import CONFIG, PREPARED
from carina.store.errors import CarinaError

_CLASS_TOKENS: Final = {"clip_vision_model": 1, "siglip_vision_model": 0}
"""Tokens before the patches, by the kind of vision network."""
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
        """Frame of an image of a height and width under the grid."""
        return self.fit(height, width)


class _InputSquare(NamedTuple):
    """The square input of the vision network."""

    side: int
    cells: int
    """Number of tokens along a side."""
    covered: int
    """Pixels along a side that the tokens cover: the remainder at the right and lower edge is not used."""


def _read_llava(config: Any) -> _InputSquare | str:  # noqa: ANN401 - transformers'
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
    return _InputSquare(vision.image_size, cells, cells * vision.patch_size)


def _read_gemma3(config: Any) -> _InputSquare | str:  # noqa: ANN401
    vision, cells = config.vision_config, isqrt(config.mm_tokens_per_image)
    if cells**2 != config.mm_tokens_per_image:
        return f"mm_tokens_per_image {config.mm_tokens_per_image} is no square"
    pooled = vision.image_size // vision.patch_size // cells
    return _InputSquare(vision.image_size, cells, cells * pooled * vision.patch_size)


_KINDS: Final[dict[str, Callable[[Any], _InputSquare | str]]] = {"llava": _read_llava, "gemma3": _read_gemma3}


def check_kind(path: str, model_type: object) -> None:
    """Check that the image tokens of a kind of model form a known grid; nothing is loaded."""
    if model_type not in _KINDS:
        raise CarinaError(
            f"{path}: the image tokens of model_type {model_type!r} are not known to form one grid over the image; "
            f"known are {', '.join(_KINDS)}"
        )


def find_image_grid(loaded: LoadedModel) -> ImageGrid:
    """The grid of a model, from its configuration and its image processor."""
    config = loaded.model.config
    check_kind(str(loaded.path / CONFIG), config.model_type)
    square = _KINDS[config.model_type](config)
    if isinstance(square, str):
        raise CarinaError(
            f"{loaded.path / CONFIG}: {square}, so that its image tokens do not form a known grid"
        )
    return ImageGrid(rows=square.cells, columns=square.cells, fit=_make_fit(loaded, square))


def _make_fit(loaded: LoadedModel, square: _InputSquare) -> Fit:
    processor = loaded.processor.image_processor
    kind = type(processor).__name__.removesuffix("Pil").removesuffix("Fast")
    settings = processor.to_dict()
    where = loaded.path / PREPARED
    if kind not in _PROCESSORS:
        raise CarinaError(
            f"{where}: {kind}: not known how it places an image; known are {', '.join(_PROCESSORS)}"
        )
    if settings.get("do_pan_and_scan"):
        raise CarinaError(f"{where}: do_pan_and_scan divides an image into several pieces; expected false")
    if not settings.get("do_resize", True):
        raise CarinaError(
            f"{where}: do_resize is false; expected true, so that images are resized for the network"
        )
    inner = preparation_from_transformers(where, settings, square.side).fit
    if settings.get("do_pad"):
        if kind != "LlavaImageProcessor" or square.covered != square.side:
            raise CarinaError(
                f"{where}: do_pad: not known how {kind} places an image with margins; expected false"
            )
        # The image at its own size in the middle of a square, which is resized as a whole.
        return lambda height, width: square_first(height, width, least=1)

    def fit(height: int, width: int) -> Frame:
        return replace(inner(height, width), side=square.covered)

    return fit
