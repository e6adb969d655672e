"""Load weights and tokenizers of a folder in their published layouts, strictly, and without running code from it.

A weight that is missing, unknown or of another shape is an error, since a model with random weights would score too.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from carina.models.chat.loading import first_line, silence_transformers
from carina.models.extra import check, require
from carina.models.weights import CONFIG
from carina.store.errors import CarinaError
from carina.store.files import sha256

State = dict[str, Any]
"""Tensors by name."""
_SHORT: Final = 16
_IDS: Final = "position_ids"
"""Position numbers, which old versions of transformers saved among the weights."""


def folder_named_by(variable: str) -> Path:
    """The folder that an environment variable names."""
    folder = Path(os.environ[variable]).expanduser()
    if not folder.is_dir():
        raise CarinaError(f"{variable}: {folder}: no such folder; expected one with the weights of a model")
    check("torch", "transformers", "safetensors")
    return folder


def short(digest: str) -> str:
    """The first digits of a SHA-256."""
    return digest[:_SHORT]


def short_sha256(path: Path) -> str:
    return short(sha256(path))


def present(folder: Path, *names: str, needed: str) -> Path:
    """The first of some files that exists in a folder."""
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise CarinaError(f"{folder / names[0]}: missing; expected {needed}")


def read_state(path: Path) -> State:
    """Read the tensors of a file in safetensors or, with `weights_only`, torch format."""
    torch, safetensors = require("torch", "safetensors.torch")
    try:
        if path.suffix == ".safetensors":
            return dict(safetensors.load_file(path))
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # whatever either raises on a foreign file, the place to look is this one
        raise CarinaError(f"{path}: not weights that can be read safely: {first_line(error)}") from error
    if isinstance(loaded, Mapping) and isinstance(loaded.get("model_state_dict"), Mapping):
        loaded = loaded["model_state_dict"]
    if not isinstance(loaded, Mapping) or not all(torch.is_tensor(value) for value in loaded.values()):
        raise CarinaError(f"{path}: expected tensors by name, or these under 'model_state_dict'")
    return {str(name): value for name, value in loaded.items()}


def take(state: State, shapes: Mapping[str, tuple[int | None, ...]], path: Path) -> State:
    """Take tensors out of `state`, as float32; None in a shape stands for any length."""
    for name, shape in shapes.items():
        if name not in state:
            raise CarinaError(f"{path}: the weight {name} is missing")
        there = tuple(state[name].shape)
        fits = len(there) == len(shape) and all(
            want in (None, length) for want, length in zip(shape, there, strict=True)
        )
        if not fits:
            wanted = ", ".join("any" if length is None else str(length) for length in shape)
            raise CarinaError(f"{path}: the weight {name} has the shape {there}, expected ({wanted})")
    return {name: state.pop(name).float() for name in shapes}


def refuse_others(state: Iterable[str], path: Path, *, apart_from: tuple[str, ...] = ()) -> None:
    """Raise an error if `state` has weights that the model does not know."""
    unknown = sorted(name for name in state if not name.startswith(apart_from) and not name.endswith(_IDS))
    if unknown:
        raise CarinaError(f"{path}: the weight {unknown[0]} is not known; another kind of model?")


def tokenizer_in(folder: Path) -> Any:  # noqa: ANN401 - transformers is not there for everybody
    """Load the tokenizer of a folder; code in the folder is not run."""
    (transformers,) = require("transformers")
    try:
        with silence_transformers(transformers):
            return transformers.AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    except Exception as error:
        raise CarinaError(f"{folder}: its tokenizer cannot be loaded: {first_line(error)}") from error


def encoder_in(folder: Path, state: State, prefix: str, path: Path) -> Any:  # noqa: ANN401
    """Build the encoder that `config.json` describes; take its weights, which have a prefix, out of `state`."""
    torch, transformers = require("torch", "transformers")
    # Weights are first initialised at random: keep the random state of the caller.
    with silence_transformers(transformers), torch.random.fork_rng(devices=[]):
        try:
            config = transformers.AutoConfig.from_pretrained(str(folder), local_files_only=True)
            model = transformers.AutoModel.from_config(config, dtype=torch.float32)
        except Exception as error:
            raise CarinaError(f"{folder / CONFIG}: not an encoder: {first_line(error)}") from error
    shapes = {f"{prefix}{name}": tuple(value.shape) for name, value in model.state_dict().items()}
    found = take(state, shapes, path)
    model.load_state_dict({name.removeprefix(prefix): value for name, value in found.items()})
    return model.eval()
