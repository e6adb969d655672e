"""A folder with a CLIP-style model: which files there are, what they say, and what the model is called.

Needs no torch; nothing is loaded. Beside the published files a `carina.json` may say what they do not.
"""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import msgspec

from carina.errors import CarinaError
from carina.files import sha256
from carina.models.clip.interface import Pretraining, PromptPair
from carina.models.named import ModelIdentity
from carina.models.weights import CONFIG, INDEX, PICKLES, PREPARED, PROCESSOR, WEIGHTS, Checkpoint

OPEN_CLIP_WEIGHTS: Final = "open_clip_model.safetensors"
OPEN_CLIP_CONFIG: Final = "open_clip_config.json"
TEXT: Final = "text.safetensors"
"""Weights of a text tower that is published apart from its image tower, beside them in one folder."""
DECLARED: Final = "carina.json"
OBSERVATIONS: Final = "observation explanation.json"
"""What MedKLIP and MAVL ask, by name."""
CONCEPTS: Final = "gpt4_mimic.json"
"""What MAVL asks of each observation's looks."""
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
"""Files that decide a model's answers beside its weights."""
DEFAULT_PAIR: Final = ("a chest x-ray showing {}", "a chest x-ray showing no {}")
"""Ours, for models whose publication names no prompt for findings."""


def checkpoints(path: Path) -> list[Path]:
    """Weight files of a folder that holds several models, by their names; none where it holds one, maybe in parts."""
    if any((path / name).is_file() for name in (OPEN_CLIP_WEIGHTS, WEIGHTS, INDEX)):
        return []
    return sorted(file for file in path.glob("*.safetensors") if file.name != TEXT)


class Declared(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What carina.json may say."""

    pretraining: Pretraining | None = None
    positive: tuple[str, ...] = ()
    """Prompts with {} where the finding goes."""
    negative: tuple[str, ...] = ()


@dataclass(frozen=True)
class Folder:
    """Where a model is."""

    kind: str
    checkpoint: Checkpoint

    @classmethod
    def find(cls, kind: str, path: Path, *, where: str) -> "Folder":
        """The folder, or the one weight file in it; `where` says what to download when there is none."""
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
                        "of them with carina ground convert-checkpoint"
                    )
            if several := checkpoints(path):
                raise CarinaError(f"{path}: has weights of several models; name one, {kind}:{several[0]}")
        raise CarinaError(f"{path / WEIGHTS}: missing; {where}")

    @property
    def path(self) -> Path:
        return self.checkpoint.path

    @property
    def name(self) -> str:
        """Of the folder, and of the file where it is not the only one a folder has."""
        file = self.checkpoint.files[0]
        alone = len(self.checkpoint.files) > 1 or file.name in {WEIGHTS, OPEN_CLIP_WEIGHTS}
        return self.checkpoint.name if alone else f"{self.checkpoint.name}/{file.stem}"

    @cached_property
    def identity(self) -> ModelIdentity:
        there = [self.path / name for name in SETTINGS if (self.path / name).is_file()]
        listed = "".join(f"{sha256(file)}  {file.name}\n" for file in there)
        return ModelIdentity(
            name=f"{self.kind}:{self.name}",
            weights=self.checkpoint.weights_sha256,
            settings=hashlib.sha256(listed.encode()).hexdigest(),
        )

    def has(self, *names: str) -> bool:
        return all((self.path / name).is_file() for name in names)

    def read(self, name: str) -> dict[str, Any]:
        """A file of settings; empty where there is none."""
        if not self.has(name):
            return {}
        try:
            return msgspec.json.decode((self.path / name).read_bytes(), type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise CarinaError(f"{self.path / name}: not a JSON object: {error}") from error

    @cached_property
    def declared(self) -> Declared:
        if not self.has(DECLARED):
            return Declared()
        try:
            said = msgspec.json.decode((self.path / DECLARED).read_bytes(), type=Declared)
        except msgspec.DecodeError as error:
            raise CarinaError(f"{self.path / DECLARED}: {error}") from error
        for prompt in (*said.positive, *said.negative):
            if "{}" not in prompt:
                raise CarinaError(
                    f"{self.path / DECLARED}: prompt {prompt!r}; expected {{}} where the finding goes"
                )
        return said

    def prompts(self, finding: str, pair: tuple[str, ...] = DEFAULT_PAIR) -> PromptPair:
        """The declared prompts of a finding, or those of the pair, which may have but the one for it."""
        said = self.declared
        if not said.positive:
            said = Declared(positive=pair[:1], negative=pair[1:])
        return PromptPair(
            tuple(prompt.replace("{}", finding) for prompt in said.positive),
            tuple(prompt.replace("{}", finding) for prompt in said.negative),
        )
