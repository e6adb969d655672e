"""Classifiers of findings as ONNX: a folder, what it describes, and predictions for images.

    <folder>/model.onnx     one input (batch, channels, height, width) of float32; a batch of any size, or of 1
    <folder>/carina.json    this description

    {
      "kind": "carina/classifier", "schema": "1.0",
      "input": {"size": [224, 224], "channels": 1, "mean": [0.5], "std": [0.25], "fit": "pad"},
      "output": "probabilities",
      "findings": ["pleural effusion", "cardiomegaly"],
      "thresholds": {"cardiomegaly": 0.35},
      "synonyms": {"cardiomegaly": ["enlarged heart"]},
      "grid": {"output": "patches", "threshold": 0.4}
    }

`output` names the model's output (batch, findings), `grid.output` the one (batch, findings, rows, columns) that says
where; both hold probabilities, or log-odds with `"activation": "sigmoid"`. A grey value v of 0 to 255 becomes
(v / 255 - mean) / std. With `"fit": "stretch"` the image fills the input, with `"pad"` it keeps its shape and lies in
the upper left corner. A threshold is the probability from which a finding counts as present.
"""

import importlib
import importlib.util
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from carina.models.fingerprint import fingerprint_of
from carina.store.documents import read_json
from carina.store.errors import CarinaError, install

DESCRIPTION: Final = "carina.json"
MODEL: Final = "model.onnx"
MAX_INPUT_SIDE: Final = 4_096
"""Side of a model's input in pixels: several times that of the largest classifiers in use."""
_MAJOR: Final = "1."
_PROVIDERS: Final = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}

Activation = Literal["none", "sigmoid"]
FloatArray = NDArray[np.float32]


class InputSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How an image becomes the model's input."""

    size: tuple[int, int]
    """Height and width."""
    channels: Literal[1, 3] = 1
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    """One number per channel, or one for all."""
    fit: Literal["stretch", "pad"] = "stretch"

    def __post_init__(self) -> None:
        if not 1 <= min(self.size) <= max(self.size) <= MAX_INPUT_SIDE:
            raise ValueError(f"`size` must be height and width, 1 to {MAX_INPUT_SIDE:,} each")
        for name, values in (("mean", self.mean), ("std", self.std)):
            if len(values) not in (1, self.channels):
                raise ValueError(
                    f"`{name}` must hold one number, or one for each of {self.channels} channels"
                )
        if min(self.std) <= 0:
            raise ValueError("`std` must be above 0")


class GridSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The output that says where a finding is."""

    output: str
    threshold: float = 0.5
    activation: Activation = "none"


class Description(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`carina.json`."""

    kind: Literal["carina/classifier"]
    schema: str
    input: InputSpec
    output: str
    findings: tuple[str, ...]
    activation: Activation = "none"
    threshold: float = 0.5
    """Threshold of the findings that `thresholds` does not name."""
    thresholds: dict[str, float] = {}
    synonyms: dict[str, tuple[str, ...]] = {}
    grid: GridSpec | None = None

    def __post_init__(self) -> None:
        if not self.schema.startswith(_MAJOR):
            raise ValueError(f"schema {self.schema!r}: this Carina reads {_MAJOR}x")
        if not self.findings or len(set(self.findings)) != len(self.findings):
            raise ValueError("`findings` must name at least one finding, each once")
        for name, mapping in (("thresholds", self.thresholds), ("synonyms", self.synonyms)):
            unknown = sorted(set(mapping) - set(self.findings))
            if unknown:
                raise ValueError(f"`{name}` names {unknown[0]!r}, which is not among `findings`")
        if not all(0 < value < 1 for value in (self.threshold, *self.thresholds.values())):
            raise ValueError("a threshold must lie between 0 and 1")


def read_description(path: Path) -> Description:
    """Read a folder's `carina.json`."""
    return read_json(
        path, Description, missing="missing; write one that describes the classifier's input and outputs"
    )


@dataclass(frozen=True, eq=False)
class Prediction:
    """What the classifier says about one image."""

    probabilities: FloatArray
    """In the order of the findings."""
    grid: FloatArray | None
    """(findings, rows, columns), over the model's whole input."""
    filled: tuple[float, float] = (1.0, 1.0)
    """Share of the input's height and width that the image fills."""


class FindingClassifier:
    """An opened classifier of findings."""

    def __init__(self, path: Path, description: Description, session: Any) -> None:  # noqa: ANN401 - onnxruntime's
        self.name = f"onnx:{path.resolve().name}"
        self.description = description
        self._path = path
        self._session = session
        self._input = _check_session(path, description, session)

    @classmethod
    def open(cls, location: str, *, device: str | None = None) -> "FindingClassifier":
        """Open the classifier in a folder.

        Raises:
            CarinaError: A file or onnxruntime is missing, or the model is not as `carina.json` describes it.
        """
        path = onnx_folder(location)
        description = read_description(path / DESCRIPTION)
        if not (path / MODEL).is_file():
            raise CarinaError(f"{path / MODEL}: missing; put the classifier's ONNX file here")
        if importlib.util.find_spec("onnxruntime") is None:
            raise CarinaError(f"this needs onnxruntime: {install('onnx')}")
        return cls(path, description, _session(importlib.import_module("onnxruntime"), path / MODEL, device))

    @property
    def takes_batches(self) -> bool:
        """Whether the model takes batches of any size rather than one image at a time."""
        return not isinstance(self._input.shape[0], int)

    def predict(self, pngs: Sequence[bytes]) -> list[Prediction]:
        """Predict the findings of some images, in one batch."""
        inputs = [prepare(png, self.description.input) for png in pngs]
        grid = self.description.grid
        outputs = [self.description.output, *([grid.output] if grid is not None else [])]
        batch = np.stack([values for values, _ in inputs])
        try:
            results = self._session.run(outputs, {self._input.name: batch})
        except Exception as error:  # onnxruntime has many kinds, all of which are about this model
            line = next(iter(str(error).splitlines()), "") or type(error).__name__
            raise CarinaError(f"{self._path / MODEL}: cannot be run: {line}") from error
        expected = (len(pngs), len(self.description.findings))
        for name, values, rank in zip(outputs, results, (2, 4), strict=False):
            if values.ndim != rank or values.shape[:2] != expected or not np.isfinite(values).all():
                raise CarinaError(
                    f"{self._path / MODEL}: output {name!r} is {values.dtype} {values.shape}; expected finite numbers, "
                    f"{expected[0]} x {expected[1]}{' x rows x columns' if rank == 4 else ''}"
                )
        probabilities = _activate(results[0], self.description.activation)
        grids = None if grid is None else _activate(results[1], grid.activation)
        return [
            Prediction(probabilities[number], None if grids is None else grids[number], filled)
            for number, (_, filled) in enumerate(inputs)
        ]


def onnx_folder(location: str) -> Path:
    """The folder of a classifier."""
    path = Path(location).expanduser()
    if not path.is_dir():
        raise CarinaError(f"{path}: no such folder; expected one with {MODEL} and {DESCRIPTION}")
    return path


def fingerprint_of_onnx(location: str) -> str:
    """Quick fingerprint of all files in the folder: weights may lie in any file of it."""
    return fingerprint_of(path for path in onnx_folder(location).iterdir() if not path.name.startswith("."))


def prepare(png: bytes, spec: InputSpec) -> tuple[FloatArray, tuple[float, float]]:
    """An image as the model's input (channels, height, width), and the share of its height and width that it fills."""
    height, width = spec.size
    with Image.open(io.BytesIO(png)) as image:
        converted = image.convert("L" if spec.channels == 1 else "RGB")
    if spec.fit == "pad":
        scale = min(height / converted.height, width / converted.width)
        rows, columns = max(1, round(converted.height * scale)), max(1, round(converted.width * scale))
    else:
        rows, columns = height, width
    resized = np.asarray(converted.resize((columns, rows), Image.Resampling.BILINEAR), np.float32) / 255
    mean, std = np.asarray(spec.mean, np.float32), np.asarray(spec.std, np.float32)
    values = (resized.reshape(rows, columns, spec.channels) - mean) / std
    values_in_input = np.zeros((spec.channels, height, width), np.float32)
    values_in_input[:, :rows, :columns] = values.transpose(2, 0, 1)
    return values_in_input, (rows / height, columns / width)


def _activate(values: FloatArray, activation: Activation) -> FloatArray:
    if activation == "none":
        return np.asarray(values, np.float32)
    return np.asarray(1 / (1 + np.exp(-np.clip(values.astype(np.float64), -60, 60))), np.float32)


def _session(onnxruntime: Any, path: Path, device: str | None) -> Any:  # noqa: ANN401
    provider = _PROVIDERS.get(device or "cpu")
    if provider is None or provider not in onnxruntime.get_available_providers():
        raise CarinaError(
            f"device {device!r}: onnxruntime does not have it here; expected cpu, or cuda where it is available"
        )
    options = onnxruntime.SessionOptions()
    # One thread: sums come out in one order, and workers share the cores.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=[provider])
    except Exception as error:  # onnxruntime has many kinds, none of which a user can do anything about
        line = next(iter(str(error).splitlines()), "")
        raise CarinaError(f"{path}: cannot be loaded as ONNX: {line}") from error


def _check_session(path: Path, description: Description, session: Any) -> Any:  # noqa: ANN401
    """The model's one input, after checking it and the outputs against the description."""
    inputs, spec = session.get_inputs(), description.input
    wanted = (spec.channels, *spec.size)
    given = inputs[0].shape if len(inputs) == 1 else None
    if given is None or len(given) != 4 or inputs[0].type != "tensor(float)":
        raise CarinaError(
            f"{path / MODEL}: expected one input of float32 (batch, channels, height, width), has "
            + ", ".join(f"{one.name} {one.type} {one.shape}" for one in inputs)
        )
    # A dimension that may have any size has a name, or none.
    fixed = [(size, want) for size, want in zip(given, (1, *wanted), strict=True) if isinstance(size, int)]
    if any(size != want for size, want in fixed):
        raise CarinaError(
            f"{path / MODEL}: its input is {given}, {DESCRIPTION} says {wanted} in batches of any size or of 1"
        )
    present = [output.name for output in session.get_outputs()]
    named = [("output", description.output)]
    if description.grid is not None:
        named.append(("grid.output", description.grid.output))
    for field, name in named:
        if name not in present:
            raise CarinaError(
                f"{path / DESCRIPTION}: {field} {name!r} is no output of {MODEL}, which has {', '.join(present)}"
            )
    return inputs[0]
