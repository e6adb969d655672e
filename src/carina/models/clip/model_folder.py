"""The folder of a CLIP-style model: its files, its settings and the model's name.

Needs no torch; nothing is loaded. A `carina.json` in the folder may add what the published files do not say.
"""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import msgspec

from carina.models.clip.interface import Pretraining, PromptPair
from carina.models.registry import ModelIdentity
from carina.models.weights import (
    CONFIG,
    INDEX,
    PICKLES,
    PREPARED,
    PROCESSOR,
    WEIGHTS,
    Checkpoint,
    read_settings,
)
from carina.store.documents import read_json
from carina.store.errors import CarinaError
from carina.store.files import sha256

OPEN_CLIP_WEIGHTS: Final = "open_clip_model.safetensors"
OPEN_CLIP_CONFIG: Final = "open_clip_config.json"
TEXT: Final = "text.safetensors"
"""Weights of a text tower that is published apart from its image tower, in the same folder."""
DECLARED: Final = "carina.json"
OBSERVATIONS: Final = "observation explanation.json"
"""Descriptions of the observations that MedKLIP and MAVL know, by name."""
CONCEPTS: Final = "gpt4_mimic.json"
"""Visual concepts of each observation, for MAVL."""
SETTINGS: Final = (
    CONFIG,
    PREPARED,
    PROCESSOR,
    OPEN_CLIP_CONFIG,
    DECLARED,
    OBSERVATIONS,
    CONCEPTS,
    "merges.txt",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
    "vocab.txt",
)
"""Files other than the weights that decide a model's answers."""
DEFAULT_PAIR: Final = ("a chest x-ray showing {}", "a chest x-ray showing no {}")
"""Prompts of Carina, for models whose publication names no prompt for findings."""


def list_checkpoints(path: Path) -> list[Path]:
    """List the weight files of a folder that holds several models, sorted; empty where it holds one, maybe in parts."""
    if any((path / name).is_file() for name in (OPEN_CLIP_WEIGHTS, WEIGHTS, INDEX)):
        return []
    return sorted(file for file in path.glob("*.safetensors") if file.name != TEXT)


class DeclaredSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Contents of `carina.json`."""

    pretraining: Pretraining | None = None
    positive: tuple[str, ...] = ()
    """Prompts with {} where the finding goes."""
    negative: tuple[str, ...] = ()


@dataclass(frozen=True)
class ModelFolder:
    """The folder of one model."""

    kind: str
    checkpoint: Checkpoint

    @classmethod
    def find(cls, kind: str, path: Path, *, download: str) -> "ModelFolder":
        """Find the weights in a folder, or take one weight file; `download` says what to download if there are none."""
        if path.is_file() and path.suffix == ".safetensors":
            return cls(kind, Checkpoint(path.parent, (path,)))
        for name in (OPEN_CLIP_WEIGHTS, WEIGHTS):
            if (path / name).is_file():
                return cls(kind, Checkpoint(path, (path / name,)))
        if (path / INDEX).is_file():
            return cls(kind, Checkpoint.of(path))
        if path.is_dir():
            for file in sorted(path.iterdir()):
                if file.suffix in PICKLES:
                    raise CarinaError(
                        f"{file}: pickled weights can run code and are not read; make safetensors "
                        "of them with carina convert-checkpoint"
                    )
            if several := list_checkpoints(path):
                raise CarinaError(f"{path}: has weights of several models; name one, {kind}:{several[0]}")
        raise CarinaError(f"{path / WEIGHTS}: missing; {download}")

    @property
    def path(self) -> Path:
        return self.checkpoint.path

    @property
    def name(self) -> str:
        """Name of the folder; with the name of the file where the folder holds several models."""
        file = self.checkpoint.files[0]
        alone = len(self.checkpoint.files) > 1 or file.name in {WEIGHTS, OPEN_CLIP_WEIGHTS}
        return self.checkpoint.name if alone else f"{self.checkpoint.name}/{file.stem}"

    @cached_property
    def identity(self) -> ModelIdentity:
        present = [self.path / name for name in SETTINGS if (self.path / name).is_file()]
        listed = "".join(f"{sha256(file)}  {file.name}\n" for file in present)
        return ModelIdentity(
            name=f"{self.kind}:{self.name}",
            weights=self.checkpoint.weights_sha256,
            settings=hashlib.sha256(listed.encode()).hexdigest(),
        )

    def has(self, *names: str) -> bool:
        return all((self.path / name).is_file() for name in names)

    def read(self, name: str) -> dict[str, Any]:
        """Read a file of settings; empty where there is no such file."""
        if not self.has(name):
            return {}
        return read_settings(self.path / name)

    @cached_property
    def declared(self) -> DeclaredSettings:
        if not self.has(DECLARED):
            return DeclaredSettings()
        settings = read_json(self.path / DECLARED, DeclaredSettings)
        for prompt in (*settings.positive, *settings.negative):
            if "{}" not in prompt:
                raise CarinaError(
                    f"{self.path / DECLARED}: prompt {prompt!r}; expected {{}} where the finding goes"
                )
        return settings

    def prompts(self, finding: str, pair: tuple[str, ...] = DEFAULT_PAIR) -> PromptPair:
        """The declared prompts for a finding, or those of `pair`, which may lack the negative one."""
        settings = self.declared
        if not settings.positive:
            settings = DeclaredSettings(positive=pair[:1], negative=pair[1:])
        return PromptPair(
            tuple(prompt.replace("{}", finding) for prompt in settings.positive),
            tuple(prompt.replace("{}", finding) for prompt in settings.negative),
        )
