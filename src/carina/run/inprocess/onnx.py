"""Classifiers of findings as ONNX, in the layout that `carina.run.inprocess.classifier` describes."""

import importlib
import importlib.util
import io
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from PIL import Image

from carina.cases.chat import shown
from carina.errors import CarinaError, install
from carina.models.served import Reply
from carina.run.examinee import Pictures
from carina.run.inprocess.classifier import (
    DESCRIPTION,
    Activation,
    Classifier,
    Description,
    Figures,
    InputSpec,
    Looked,
    read_description,
)
from carina.run.records import Turn

MODEL: Final = "model.onnx"
_KEPT: Final = 2048
"""Pictures whose figures are remembered: the turns of a case come one after the other, with others between them."""
_PROVIDERS: Final = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}

View = tuple[str, str]


class OnnxExaminee:
    """A classifier, open. Looks at the first picture that a question needs, once."""

    batch: int = 32

    def __init__(self, path: Path, description: Description, session: Any) -> None:  # noqa: ANN401 - onnxruntime's
        self.name = f"onnx:{path.resolve().name}"
        self._path = path
        self._description = description
        self._classifier = Classifier(description)
        self._session = session
        self._input = _check(path, description, session)
        self._seen: OrderedDict[View, Looked] = OrderedDict()

    @classmethod
    def open(cls, named: str, *, device: str | None = None) -> "OnnxExaminee":
        """The classifier in a folder; `CarinaError` says what is missing."""
        path = onnx_folder(named)
        description = read_description(path / DESCRIPTION)
        if not (path / MODEL).is_file():
            raise CarinaError(f"{path / MODEL}: missing; put the classifier's ONNX file here")
        if importlib.util.find_spec("onnxruntime") is None:
            raise CarinaError(f"this needs onnxruntime: {install('onnx')}")
        return cls(path, description, _session(importlib.import_module("onnxruntime"), path / MODEL, device))

    def answer(self, turns: Sequence[Turn], pictures: Pictures) -> list[Reply]:
        """One reply a turn, in order."""
        views = [_view(turn) for turn in turns]
        wanted = {view for view in views if view is not None}
        for view in wanted & self._seen.keys():
            self._seen.move_to_end(view)
        # In the order of the turns, so that batches are the same on every occasion.
        new = [view for view in dict.fromkeys(views) if view is not None and view not in self._seen]
        step = 1 if isinstance(self._input.shape[0], int) else self.batch
        for start in range(0, len(new), step):
            part = new[start : start + step]
            self._seen.update(zip(part, self._looked([pictures(*view) for view in part]), strict=True))
        replies = [
            Reply(
                text=self._classifier.answer(turn.step, None if view is None else self._seen[view]),
                stop="stop",
            )
            for turn, view in zip(turns, views, strict=True)
        ]
        while len(self._seen) > _KEPT:
            self._seen.popitem(last=False)
        return replies

    def _looked(self, pngs: Sequence[bytes]) -> list[Looked]:
        """What the model makes of some pictures."""
        made = [prepared(png, self._description.input) for png in pngs]
        grid = self._description.grid
        outputs = [self._description.output, *([grid.output] if grid is not None else [])]
        found = self._session.run(outputs, {self._input.name: np.stack([values for values, _ in made])})
        wanted = (len(pngs), len(self._description.findings))
        for name, values, rank in zip(outputs, found, (2, 4), strict=False):
            if values.ndim != rank or values.shape[:2] != wanted or not np.isfinite(values).all():
                raise CarinaError(
                    f"{self._path / MODEL}: output {name!r} is {values.dtype} {values.shape}; expected finite numbers, "
                    f"{wanted[0]} x {wanted[1]}{' x rows x columns' if rank == 4 else ''}"
                )
        probabilities = _activated(found[0], self._description.activation)
        grids = None if grid is None else _activated(found[1], grid.activation)
        return [
            Looked(probabilities[number], None if grids is None else grids[number], filled)
            for number, (_, filled) in enumerate(made)
        ]


def onnx_folder(named: str) -> Path:
    """The folder of a classifier."""
    path = Path(named).expanduser()
    if not path.is_dir():
        raise CarinaError(f"{path}: no such folder; expected one with {MODEL} and {DESCRIPTION}")
    return path


def prepared(png: bytes, spec: InputSpec) -> tuple[Figures, tuple[float, float]]:
    """A picture as the model's input (channels, height, width), and how much of its height and width it takes."""
    height, width = spec.size
    with Image.open(io.BytesIO(png)) as picture:
        right = picture.convert("L" if spec.channels == 1 else "RGB")
    if spec.fit == "pad":
        scale = min(height / right.height, width / right.width)
        rows, columns = max(1, round(right.height * scale)), max(1, round(right.width * scale))
    else:
        rows, columns = height, width
    resized = np.asarray(right.resize((columns, rows), Image.Resampling.BILINEAR), np.float32) / 255
    mean, std = np.asarray(spec.mean, np.float32), np.asarray(spec.std, np.float32)
    values = (resized.reshape(rows, columns, spec.channels) - mean) / std
    made = np.zeros((spec.channels, height, width), np.float32)
    made[:, :rows, :columns] = values.transpose(2, 0, 1)
    return made, (rows / height, columns / width)


def _view(turn: Turn) -> View | None:
    """The picture to look at: the first that the question needs, or else the first that was shown."""
    there = shown(turn.messages)
    needed = [view for view in turn.step.uses if view in there]
    return (turn.case, (needed or there)[0]) if there else None


def _activated(values: Figures, activation: Activation) -> Figures:
    if activation == "none":
        return np.asarray(values, np.float32)
    return np.asarray(1 / (1 + np.exp(-np.clip(values.astype(np.float64), -60, 60))), np.float32)


def _session(onnxruntime: Any, path: Path, device: str | None) -> Any:  # noqa: ANN401
    provider = _PROVIDERS.get(device or "cpu")
    if provider is None or provider not in onnxruntime.get_available_providers():
        raise CarinaError(
            f"device {device!r}: not one that onnxruntime has here; expected cpu, or cuda where it is"
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


def _check(path: Path, description: Description, session: Any) -> Any:  # noqa: ANN401
    """The model's one input, if it is what the description says, and the outputs are there."""
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
    there = [output.name for output in session.get_outputs()]
    named = [("output", description.output)]
    if description.grid is not None:
        named.append(("grid.output", description.grid.output))
    for field, name in named:
        if name not in there:
            raise CarinaError(
                f"{path / DESCRIPTION}: {field} {name!r} is no output of {MODEL}, which has {', '.join(there)}"
            )
    return inputs[0]
