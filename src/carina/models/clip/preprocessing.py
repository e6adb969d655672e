"""Preprocessing of grey images for a network, always through a `Frame`, so that pixels and geometry agree.

Needs no torch. Each publication's own resampling is kept: results depend on it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from carina.models.frame import Frame
from carina.store.errors import CarinaError

Tone = Callable[[NDArray[np.uint8]], NDArray[np.uint8]]
"""Maps the grey values of an image at its own size."""
Fit = Callable[[int, int], Frame]
"""Gives the frame of an image of a height and width."""
Resample = Literal[
    "pil nearest", "pil lanczos", "pil bilinear", "pil bicubic", "cv2 linear", "cv2 cubic", "cv2 area"
]
"""Filters of PIL are antialiased; of OpenCV's only `area` is. `cv2 cubic` equals bicubic in torch."""
CLIP_MEAN: Final = (0.48145466, 0.4578275, 0.40821073)
CLIP_STD: Final = (0.26862954, 0.26130258, 0.27577711)
IMAGENET_MEAN: Final = (0.485, 0.456, 0.406)
IMAGENET_STD: Final = (0.229, 0.224, 0.225)
LONGEST: Final = 20
"""Longest side of a resized image, in sides of the square that the model sees."""
_PIL: Final = {
    "pil nearest": Image.Resampling.NEAREST,
    "pil lanczos": Image.Resampling.LANCZOS,
    "pil bilinear": Image.Resampling.BILINEAR,
    "pil bicubic": Image.Resampling.BICUBIC,
}
_CV2: Final = {"cv2 linear": cv2.INTER_LINEAR, "cv2 cubic": cv2.INTER_CUBIC, "cv2 area": cv2.INTER_AREA}
_BY_NUMBER: Final[dict[int, Resample]] = {
    0: "pil nearest",
    1: "pil lanczos",
    2: "pil bilinear",
    3: "pil bicubic",
}
"""Filters by their number in preprocessor_config.json."""


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """How an image becomes a network's input."""

    fit: Fit
    side: int
    resample: Resample
    again: Resample | None = None
    """How the frame's square is resized to the network's input, where their sizes differ."""
    mean: tuple[float, ...]
    std: tuple[float, ...]
    scale: float = 1 / 255
    """Factor for grey values, before mean and standard deviation are applied."""
    tone: Tone | None = None

    def frame(self, height: int, width: int) -> Frame:
        frame = self.fit(height, width)
        if max(frame.rows, frame.columns) > LONGEST * frame.side:
            raise CarinaError(
                f"an image of {height} x {width} (height x width) is too long and narrow for this model, which sees "
                f"the square in its middle; expected at most {LONGEST} such squares in a row"
            )
        return frame

    def __call__(self, image: NDArray[np.uint8]) -> NDArray[np.float32]:
        """The network's input (3, side, side)."""
        if image.ndim != 2 or image.dtype != np.uint8:
            raise ValueError(
                f"expected a grey image (height, width) of uint8, got {image.dtype} {image.shape}"
            )
        frame = self.frame(*image.shape)
        image = image if self.tone is None else self.tone(image)
        square = frame.place(resize(image, frame.rows, frame.columns, self.resample))
        if frame.side != self.side:
            if self.again is None:
                raise ValueError(
                    f"a frame of side {frame.side} for a network of {self.side}, and no way between them"
                )
            # Only filters of PIL work on whole grey values.
            laid = square if self.again in _PIL else square.astype(np.float32)
            square = resize(laid, self.side, self.side, self.again)
        grey = square.astype(np.float32) * np.float32(self.scale)
        mean, std = (np.array(values, np.float32)[:, None, None] for values in (self.mean, self.std))
        return np.asarray((grey - mean) / std, np.float32)


def resize(image: NDArray[Any], rows: int, columns: int, how: Resample) -> NDArray[Any]:
    """Resize an image."""
    if image.shape == (rows, columns):
        return image
    if how in _PIL:
        return np.asarray(Image.fromarray(image).resize((columns, rows), _PIL[how]))
    return np.asarray(cv2.resize(image, (columns, rows), interpolation=_CV2[how]))


def crop_to_even(height: int, width: int, *, shortest: int, side: int) -> Frame:
    """As `Frame.cropped`, cut where torchvision cuts: halves of an odd margin are rounded to even."""
    frame = Frame.cropped(height, width, shortest=shortest, side=side)
    return replace(frame, top=-round((frame.rows - side) / 2), left=-round((frame.columns - side) / 2))


def square_first(height: int, width: int, *, least: int) -> Frame:
    """The image at its own size in the middle of a square, which is resized as a whole later (MedCLIP).

    The square has at least a side of `least`, so that a small image keeps its size and gets wide margins.
    """
    side = max(height, width, least)
    return Frame(height, width, height, width, side, (side - height) // 2, (side - width) // 2)


def preparation_from_transformers(path: Path, settings: dict[str, Any], side: int) -> Preparation:
    """Preparation by the preprocessor_config.json of CLIP or SigLIP, for a network of this side."""
    try:
        size = settings["size"]
        if isinstance(size, int):
            size = {"shortest_edge": size}
        cut = (
            settings.get("crop_size", side)
            if settings.get("do_center_crop", "crop_size" in settings)
            else None
        )
        if isinstance(cut, dict):
            cut = cut["height"] if cut["height"] == cut["width"] else 0
        normalised = settings.get("do_normalize", True)
        made = Preparation(
            fit=_make_fit(size, cut, side),
            side=side,
            resample=_BY_NUMBER[settings.get("resample", 3)],
            mean=_three_channels(settings["image_mean"]) if normalised else (0.0, 0.0, 0.0),
            std=_three_channels(settings["image_std"]) if normalised else (1.0, 1.0, 1.0),
            scale=float(settings.get("rescale_factor", 1 / 255)) if settings.get("do_rescale", True) else 1.0,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CarinaError(
            f"{path}: these settings cannot prepare images for a network of {side} x {side} ({error!r}); "
            "expected size, crop_size, image_mean and image_std as transformers saves them"
        ) from error
    return made


def preparation_from_open_clip(path: Path, settings: dict[str, Any], side: int) -> Preparation:
    """Preparation by the `preprocess_cfg` of an open_clip_config.json, with OpenAI's values for its gaps."""
    modes: dict[str, Fit] = {
        "shortest": partial(crop_to_even, shortest=side, side=side),
        "squash": partial(Frame.stretched, side=side),
    }
    try:
        return Preparation(
            fit=modes[settings.get("resize_mode") or "shortest"],
            side=side,
            resample="pil bilinear" if settings.get("interpolation") == "bilinear" else "pil bicubic",
            mean=_three_channels(settings.get("mean") or CLIP_MEAN),
            std=_three_channels(settings.get("std") or CLIP_STD),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CarinaError(
            f"{path}: preprocess_cfg is not understood ({error!r}); expected mean and std of one or three numbers, "
            f"and resize_mode {' or '.join(modes)}"
        ) from error


def _make_fit(size: dict[str, int], cut: int | None, side: int) -> Fit:
    if cut not in {None, side}:
        raise ValueError(f"crop_size {cut}")
    if "shortest_edge" in size:
        if cut is None or not side <= size["shortest_edge"] <= LONGEST * side:
            raise ValueError(f"shortest_edge {size['shortest_edge']}, cut to {cut}")
        return partial(Frame.cropped, shortest=size["shortest_edge"], side=side)
    if not size["height"] == size["width"] == side:
        raise ValueError(f"{size['height']} x {size['width']}")
    return partial(Frame.stretched, side=side)


def _three_channels(values: float | Sequence[float]) -> tuple[float, ...]:
    given = [values] * 3 if isinstance(values, int | float) else list(values)
    if len(given) != 3:
        raise ValueError(f"{len(given)} channels")
    return tuple(map(float, given))
