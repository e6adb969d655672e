"""Weights and tokenizers of a folder, in the layouts in which they are published: read strictly, and never run.

A key that is missing, too many or of another shape is named: a model with some random weights would score all the same.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from carina.errors import CarinaError
from carina.files import sha256
from carina.models.chat.loading import first_line, quiet
from carina.models.extra import check, require
from carina.models.weights import CONFIG

State = dict[str, Any]
"""Tensors by name."""
_SHORT: Final = 16
_IDS: Final = "position_ids"
"""Numbers from 0 on, which old versions of transformers saved among the weights."""


def folder_named_by(variable: str) -> Path:
    """The folder that an environment variable names."""
    folder = Path(os.environ[variable]).expanduser()
    if not folder.is_dir():
        raise CarinaError(f"{variable}: {folder}: no such folder; expected one with the weights of a model")
    check("torch", "transformers", "safetensors")
    return folder


def short(digest: str) -> str:
    """As much of a SHA-256 as tells weights apart."""
    return digest[:_SHORT]


def short_sha256(path: Path) -> str:
    return short(sha256(path))


def present(folder: Path, *names: str, needed: str) -> Path:
    """The first of these files that lies in a folder."""
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise CarinaError(f"{folder / names[0]}: missing; expected {needed}")


def read_state(path: Path) -> State:
    """The tensors of a file: safetensors, or what torch has saved, of which nothing but tensors is taken."""
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
    """The named tensors as float32, taken out of `state`; None stands for any length of an axis."""
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
    """That nothing is left but what has no part in the answer."""
    unknown = sorted(name for name in state if not name.startswith(apart_from) and not name.endswith(_IDS))
    if unknown:
        raise CarinaError(f"{path}: the weight {unknown[0]} is not known; another kind of model?")


def tokenizer_in(folder: Path) -> Any:  # noqa: ANN401 - transformers is not there for everybody
    """The tokenizer of a folder; nothing that comes with it is run."""
    (transformers,) = require("transformers")
    try:
        with quiet(transformers):
            return transformers.AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    except Exception as error:
        raise CarinaError(f"{folder}: its tokenizer cannot be loaded: {first_line(error)}") from error


def encoder_in(folder: Path, state: State, prefix: str, path: Path) -> Any:  # noqa: ANN401
    """The encoder that `config.json` describes, with the weights under a prefix, which are taken out of `state`."""
    torch, transformers = require("torch", "transformers")
    # Weights are drawn first and replaced then: what is drawn elsewhere must not change with that.
    with quiet(transformers), torch.random.fork_rng(devices=[]):
        try:
            config = transformers.AutoConfig.from_pretrained(str(folder), local_files_only=True)
            model = transformers.AutoModel.from_config(config, dtype=torch.float32)
        except Exception as error:
            raise CarinaError(f"{folder / CONFIG}: not an encoder: {first_line(error)}") from error
    shapes = {f"{prefix}{name}": tuple(value.shape) for name, value in model.state_dict().items()}
    found = take(state, shapes, path)
    model.load_state_dict({name.removeprefix(prefix): value for name, value in found.items()})
    return model.eval()
