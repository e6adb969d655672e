"""A folder of weights in the layout that transformers saves: its files, and that they are safe to read.

Only safetensors: a pickle runs whatever code its author put into it.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from carina.store.documents import read_json
from carina.store.errors import CarinaError
from carina.store.files import sha256

CONFIG: Final = "config.json"
PREPARED: Final = "preprocessor_config.json"
PROCESSOR: Final = "processor_config.json"
WEIGHTS: Final = "model.safetensors"
INDEX: Final = "model.safetensors.index.json"
PICKLES: Final = (".bin", ".pt", ".pth", ".ckpt", ".pkl")


@dataclass(frozen=True)
class Checkpoint:
    """A folder whose files exist; nothing is loaded."""

    path: Path
    files: tuple[Path, ...]
    """Weights, by name."""

    @classmethod
    def of(cls, path: Path) -> "Checkpoint":
        """Find the checkpoint in a folder; `CarinaError` says what is missing."""
        if not path.is_dir():
            raise CarinaError(
                f"{path}: no such folder; expected one with {CONFIG}, {PREPARED} and {WEIGHTS}, as transformers saves"
            )
        if not (path / CONFIG).is_file():
            raise CarinaError(
                f"{path / CONFIG}: missing; expected weights in the layout that transformers saves"
            )
        return cls(path, _weight_files(path))

    @property
    def name(self) -> str:
        """Name of the folder: says nothing about the machine."""
        return self.path.resolve().name

    @cached_property
    def weights_sha256(self) -> str:
        """SHA-256 of the weight file; for weights in several files, of the list of their names and checksums."""
        sums = {file.name: sha256(file) for file in self.files}
        if len(sums) == 1:
            return next(iter(sums.values()))
        return hashlib.sha256(
            "".join(f"{sums[name]}  {name}\n" for name in sorted(sums)).encode()
        ).hexdigest()

    @cached_property
    def settings_sha256(self) -> str:
        names = (CONFIG, PREPARED, PROCESSOR)
        there = [self.path / name for name in names if (self.path / name).is_file()]
        return hashlib.sha256(
            "".join(f"{sha256(file)}  {file.name}\n" for file in there).encode()
        ).hexdigest()

    def check_settings(self) -> None:
        """Refuse sizes that no model has, before a library allocates them."""
        for name in (CONFIG, PREPARED, PROCESSOR):
            if (self.path / name).exists():
                read_settings(self.path / name)

    @cached_property
    def config(self) -> dict[str, Any]:
        return read_settings(self.path / CONFIG)

    @cached_property
    def preparation(self) -> dict[str, Any]:
        """How images are prepared for the model."""
        if (self.path / PREPARED).is_file():
            return read_settings(self.path / PREPARED)
        if (self.path / PROCESSOR).is_file():
            nested = read_settings(self.path / PROCESSOR).get("image_processor")
            if isinstance(nested, dict):
                return nested
        raise CarinaError(f"{self.path / PREPARED}: missing; it says how images are prepared for the model")


def _weight_files(path: Path) -> tuple[Path, ...]:
    if (path / WEIGHTS).is_file():
        return (path / WEIGHTS,)
    if (path / INDEX).is_file():
        parts = read_settings(path / INDEX).get("weight_map")
        if not isinstance(parts, dict) or not parts:
            raise CarinaError(f"{path / INDEX}: expected a field 'weight_map' that names the parts")
        files = tuple(path / name for name in sorted({Path(str(part)).name for part in parts.values()}))
        for file in files:
            if file.suffix != ".safetensors" or not file.is_file():
                raise CarinaError(f"{file}: missing, or not safetensors, though {INDEX} names it")
        return files
    pickles = sorted(file.name for file in path.iterdir() if file.suffix in PICKLES)
    if pickles:
        raise CarinaError(
            f"{path / pickles[0]}: pickled weights can run code and are not read; expected {WEIGHTS} (safetensors)"
        )
    raise CarinaError(
        f"{path / WEIGHTS}: missing; download the model's safetensors weights and put them here"
    )


MAX_LAYERS: Final = 1_000
"""Several times the deepest models in use; each layer takes milliseconds to create, even without weights."""
MAX_SIDE: Final = 65_536
"""Side of an image or a patch in pixels: several times the largest radiographs."""
MAX_WIDTH: Final = 2**24
"""Any other length, such as that of a vocabulary, of which the largest in use have 2^18 words."""
_LAYERS: Final = ("layers", "layer", "depth", "blocks")
_SIDES: Final = ("image_size", "patch_size", "height", "width", "edge", "crop_size", "resolution", "side")
_WIDTHS: Final = ("size", "dim", "heads", "channels", "embeddings", "features")


def read_settings(path: Path) -> dict[str, Any]:
    """Read a file of settings of a model: a JSON object whose sizes a model can have.

    Sizes are checked before a library creates a model from them, which could take hours or all memory.

    Raises:
        CarinaError: The file cannot be read, is not a JSON object, or holds a size that no model has.
    """
    settings = read_json(path, dict[str, Any], what="a JSON object")
    for place, number in _sizes(settings, ""):
        name = place.rpartition(".")[2]
        most = (
            MAX_LAYERS
            if name.endswith(_LAYERS)
            else MAX_SIDE
            if name.endswith(_SIDES)
            else MAX_WIDTH
            if name.endswith(_WIDTHS)
            else None
        )
        if most is not None and abs(number) > most:
            raise CarinaError(f"{path}: {place} is {number}; expected at most {most:,}")
    return settings


def _sizes(value: object, place: str) -> Iterator[tuple[str, int | float]]:
    """Numbers of nested settings, with the names that lead to them."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _sizes(inner, f"{place}.{key}" if place else str(key))
    elif isinstance(value, list):
        for inner in value:
            yield from _sizes(inner, place)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield place, value
