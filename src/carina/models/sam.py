"""Segmenters of the SAM family, through transformers, with weights in a folder of this machine.

Runs on the CPU with one thread, so that the same image and prompts give the same bits.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from carina.models.extra import check, require
from carina.models.frame import Frame
from carina.models.registry import ModelIdentity, ModelName, ModelOptions, model_kind
from carina.models.segmenter import Prompts, Proposal, Segmenter
from carina.models.weights import CONFIG, Checkpoint
from carina.store.errors import CarinaError
from carina.studies.region import Mask, Region

CLASSES: Final = {
    "sam": "SamModel",
    "sam_hq": "SamHQModel",
    "sam2": "Sam2Model",
    # SAM 2 and 3 are published as video models; their image part is loaded alone.
    "sam2_video": "Sam2Model",
    "sam3_tracker": "Sam3TrackerModel",
    "sam3_tracker_video": "Sam3TrackerModel",
    "sam3_video": "Sam3TrackerModel",
}
"""By `model_type` of config.json. EdgeTAM is left out: its backbone needs timm and torchvision."""
MOST_SURE: Final = 1e-8
"""A mask prompt holds log-odds; CheXpercept's code puts ln(1e8) inside the mask."""
_HALF: Final = 0.5
"""The models take indices of pixels and add this to get their centres; our coordinates are continuous already."""
_KEPT: Final = 2
"""Number of images whose embeddings are cached."""


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """How an image becomes a model's input: `preprocessor_config.json`."""

    longest: int | None
    """Longer side after resizing, with the shape kept; None where the image is stretched to the square."""
    side: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    rescale: float
    resample: Image.Resampling

    @classmethod
    def of(cls, checkpoint: Checkpoint, side: int) -> "Preparation":
        """Read the preparation from the checkpoint's files, for a model whose input has this side."""
        settings = checkpoint.preparation
        try:
            size = settings["size"]
            longest = int(size["longest_edge"]) if "longest_edge" in size else None
            if longest is None and not int(size["height"]) == int(size["width"]) == side:
                raise CarinaError(
                    f"{checkpoint.path}: images are prepared as {size['height']} x {size['width']}, "
                    f"the model in {CONFIG} takes {side} x {side}"
                )
            if longest is not None and longest > side:
                raise CarinaError(
                    f"{checkpoint.path}: images are prepared with a longer side of {longest}, "
                    f"the model in {CONFIG} takes {side} x {side}"
                )
            return cls(
                longest=longest,
                side=side,
                mean=tuple(map(float, settings["image_mean"])),
                std=tuple(map(float, settings["image_std"])),
                rescale=float(settings.get("rescale_factor", 1 / 255)),
                resample=Image.Resampling(int(settings.get("resample", Image.Resampling.BILINEAR))),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise CarinaError(
                f"{checkpoint.path}: how images are prepared is not understood ({error!r}); "
                "expected size, image_mean and image_std as transformers saves them"
            ) from error

    def frame(self, height: int, width: int) -> Frame:
        if self.longest is None:
            return Frame.stretched(height, width, side=self.side)
        return Frame.padded(height, width, longest=self.longest, side=self.side)

    def __call__(self, image: NDArray[np.uint8]) -> NDArray[np.float32]:
        """The model's input (3, side, side)."""
        frame = self.frame(*image.shape)
        resized = Image.fromarray(image).resize((frame.columns, frame.rows), self.resample)
        grey = np.asarray(resized, np.float32) * np.float32(self.rescale)
        values = np.zeros((3, self.side, self.side), np.float32)
        for channel, (mean, std) in enumerate(zip(self.mean, self.std, strict=True)):
            values[channel, : frame.rows, : frame.columns] = (grey - np.float32(mean)) / np.float32(std)
        return values


@dataclass
class SamSegmenter:
    """An opened model of the SAM family."""

    name: str
    weights: str
    preparation: Preparation
    prompt_size: int
    """Side of a mask prompt."""
    _model: Any
    _torch: Any
    _embeddings: dict[bytes, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path) -> "SamSegmenter":
        """Open the segmenter whose weights lie in a folder as transformers saves it."""
        checkpoint = sam_checkpoint(path)
        torch, transformers = require("torch", "transformers")
        model = _load(transformers, torch, checkpoint, CLASSES[checkpoint.config["model_type"]])
        prompt = model.config.prompt_encoder_config
        return cls(
            name=f"sam:{checkpoint.name}",
            weights=checkpoint.weights_sha256,
            preparation=Preparation.of(checkpoint, int(prompt.image_size)),
            prompt_size=4 * int(prompt.image_size) // int(prompt.patch_size),
            _model=model,
            _torch=torch,
        )

    def propose(self, image: NDArray[np.uint8], prompts: Prompts) -> list[Proposal]:
        """Outline the object, the best proposal first: three for points or a box, one where a mask is refined."""
        if image.ndim != 2 or image.dtype != np.uint8:
            raise ValueError(
                f"expected a grey image (height, width) of uint8, got {image.dtype} {image.shape}"
            )
        frame = self.preparation.frame(*image.shape)
        with self._one_thread():
            output = self._model(
                **self._embed(image),
                **self._prompt_tensors(prompts, frame),
                multimask_output=prompts.mask is None,
            )
            low = np.asarray(output.pred_masks[0, 0].numpy(), np.float32)
            scores = output.iou_scores[0, 0].tolist()
        proposals = []
        for score, values in zip(scores, low, strict=True):
            logits = frame.to_image(values)
            proposals.append(Proposal(region=Region.from_mask(logits > 0), score=score, logits=logits))
        return sorted(proposals, key=lambda proposal: -proposal.score)

    def _embed(self, image: NDArray[np.uint8]) -> dict[str, Any]:
        """Embed an image, once for all prompts on it."""
        key = hashlib.sha256(repr(image.shape).encode() + image.tobytes()).digest()
        made = self._embeddings.pop(key, None)
        if made is None:
            pixels = self._torch.from_numpy(self.preparation(image))[None]
            embedding = self._model.get_image_embeddings(pixels)
            made = {"image_embeddings": embedding}
            if isinstance(embedding, tuple):  # SAM-HQ also uses intermediate results of its encoder
                made = {"image_embeddings": embedding[0], "intermediate_embeddings": embedding[1]}
        self._embeddings[key] = made
        while len(self._embeddings) > _KEPT:
            del self._embeddings[next(iter(self._embeddings))]
        return made

    def _prompt_tensors(self, prompts: Prompts, frame: Frame) -> dict[str, Any]:
        """Prompts as the model takes them: one object of one image."""
        tensors: dict[str, Any] = {}
        if prompts.box is not None:
            corners = np.array(prompts.box, np.float64).reshape(2, 2)
            tensors["input_boxes"] = self._tensor(frame.to_input(corners).reshape(1, 1, 4) - _HALF)
        if prompts.points:
            places = np.array([(point.x, point.y) for point in prompts.points], np.float64)
            tensors["input_points"] = self._tensor(frame.to_input(places)[None, None] - _HALF)
            labels = [int(point.inside) for point in prompts.points]
            tensors["input_labels"] = self._torch.tensor([[labels]], dtype=self._torch.int64)
        if prompts.mask is not None:
            tensors["input_masks"] = self._tensor(self._log_odds(prompts.mask, frame)[None, None])
        return tensors

    def _log_odds(self, mask: Mask, frame: Frame) -> NDArray[np.float64]:
        if mask.shape != (frame.height, frame.width):
            raise ValueError(f"mask prompt of {mask.shape} on an image of {(frame.height, frame.width)}")
        covered = frame.cover(mask, self.prompt_size).astype(np.float64)
        return np.asarray(np.log((covered + MOST_SURE) / (1 - covered + MOST_SURE)))

    def _tensor(self, values: NDArray[np.float64]) -> Any:  # noqa: ANN401 - torch is not there for everybody
        return self._torch.from_numpy(values.astype(np.float32))

    @contextmanager
    def _one_thread(self) -> Iterator[None]:
        """One thread: sums come out in one order, and workers share the cores."""
        before = self._torch.get_num_threads()
        self._torch.set_num_threads(1)
        try:
            with self._torch.inference_mode():
                yield
        finally:
            self._torch.set_num_threads(before)


def sam_checkpoint(path: Path) -> Checkpoint:
    """Find the weights in a folder and check that they are of the SAM family; nothing is loaded."""
    checkpoint = Checkpoint.of(path)
    kind = checkpoint.config.get("model_type")
    if kind not in CLASSES:
        raise CarinaError(
            f"{path / CONFIG}: model_type {kind!r} is not of the SAM family; known are {', '.join(CLASSES)}"
        )
    return checkpoint


def _identify(name: ModelName) -> ModelIdentity:
    checkpoint = sam_checkpoint(name.path)
    check("torch", "transformers")
    return ModelIdentity(
        name=f"sam:{checkpoint.name}",
        weights=checkpoint.weights_sha256,
        settings=checkpoint.settings_sha256,
    )


@model_kind(
    "sam",
    capabilities=["segments"],
    extra="torch",
    packages=("torch", "transformers"),
    identify=_identify,
)
def open_sam(name: ModelName, _options: ModelOptions) -> Segmenter:
    """Promptable segmenter of the SAM family, through transformers."""
    return SamSegmenter.open(name.path)


def _load(transformers: Any, torch: Any, checkpoint: Checkpoint, name: str) -> Any:  # noqa: ANN401
    """The model with every one of its weights from the checkpoint; transformers would fill gaps with random numbers."""
    logging = transformers.utils.logging
    verbosity, bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        model, info = getattr(transformers, name).from_pretrained(
            str(checkpoint.path),
            local_files_only=True,
            use_safetensors=True,
            dtype=torch.float32,
            output_loading_info=True,
        )
    except Exception as error:
        # Whatever transformers or safetensors raise on foreign files, the place to look is this folder.
        what = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise CarinaError(f"{checkpoint.path}: cannot be loaded as {name}: {what}") from error
    finally:
        logging.set_verbosity(verbosity)
        if bar:
            logging.enable_progress_bar()
    missing = sorted(map(str, [*info["missing_keys"], *info["mismatched_keys"]]))
    if missing:
        raise CarinaError(
            f"{checkpoint.path}: {len(missing)} weights of {name} are missing or of another shape, first {missing[0]}"
        )
    return model.eval()
