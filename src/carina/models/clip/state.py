"""Published weights put into our modules, key by key: none may be missing, and none may be left over.

A checkpoint's names are declared by a map from our names to theirs, so that a complaint names the key that its reader
finds in the file. Reads safetensors alone; imported only where torch is.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from carina.errors import CarinaError

Module = TypeVar("Module", bound=nn.Module)
COUNTERS: Final = r"(.*\.)?(position_ids|num_batches_tracked)"
"""Numbers that some versions saved and no output depends on."""


@dataclass(frozen=True)
class Source:
    """Where a weight of ours stands in a published checkpoint."""

    key: str
    part: int | None = None
    """Which of `parts` equal parts of the first axis, where query, key and value are one matrix."""
    parts: int = 3
    transposed: bool = False
    """A matrix that its authors multiply from the right."""
    lead: int = 0
    """How many leading axes of length 1 there are before ours."""

    def take(self, published: Tensor) -> Tensor:
        found = published.reshape(published.shape[self.lead :]) if self.lead else published
        if self.part is not None:
            found = found.chunk(self.parts)[self.part]
        return found.t() if self.transposed else found


KeyMap = Mapping[str, Source]
"""From our names to theirs."""


@dataclass
class Weights:
    """A checkpoint's tensors, and which of them have found their place."""

    where: Path
    tensors: Mapping[str, Tensor]
    _taken: set[str] = field(default_factory=set)

    @classmethod
    def read(cls, files: Sequence[Path]) -> Self:
        """All tensors of the files of one checkpoint."""
        tensors: dict[str, Tensor] = {}
        for file in files:
            try:
                tensors |= load_file(file)
            except (SafetensorError, OSError) as error:
                raise CarinaError(f"{file}: not readable as safetensors: {error}") from error
        return cls(files[0] if len(files) == 1 else files[0].parent, tensors)

    def has(self, prefix: str) -> bool:
        """Whether there is anything behind a prefix: no single weight decides what a checkpoint is."""
        return any(key.startswith(prefix) for key in self.tensors)

    def shape(self, key: str, axes: int) -> tuple[int, ...]:
        """Of a tensor that must be there, with so many axes; it stays to be taken."""
        shape = tuple(self._found(key).shape)
        if len(shape) != axes or 0 in shape:
            raise self.odd(key, f"{axes} axes, none of them empty")
        return shape

    def count(self, pattern: str) -> int:
        """How many different numbers stand in the group of a pattern: blocks of a transformer, say."""
        found = (re.fullmatch(pattern, key) for key in self.tensors)
        return len({match[1] for match in found if match})

    def take(self, key: str) -> Tensor:
        """One tensor, as float32."""
        found = self._found(key).float()
        # A sum is finite only where all its terms are, and takes a tenth of the time of asking each.
        if not found.sum().isfinite():
            raise CarinaError(f"{self.where}: weight {key} holds NaN or infinity; expected finite numbers")
        self._taken.add(key)
        return found

    def number(self, key: str) -> Tensor:
        """A tensor of one number, with any axes around it."""
        if self._found(key).numel() != 1:
            raise self.odd(key, "a single number")
        return self.take(key).reshape(())

    def fill(self, module: nn.Module, keys: KeyMap) -> None:
        """Give a module its weights."""
        ours = {
            name: own
            for name, own in module.state_dict().items()
            if name in keys or not re.fullmatch(COUNTERS, name)
        }
        if unknown := sorted(set(ours) ^ set(keys)):
            raise ValueError(
                f"{type(module).__name__}: weight {unknown[0]} is not in both the module and its key map"
            )
        state = {}
        for name, source in keys.items():
            found = self.take(source.key)
            try:
                part = source.take(found)
            except (IndexError, RuntimeError):
                part = found
            if part.shape != ours[name].shape:
                raise CarinaError(
                    f"{self.where}: weight {source.key} has the shape {tuple(found.shape)}, of which "
                    f"{tuple(ours[name].shape)} was expected for {name}"
                )
            state[name] = part
        module.load_state_dict(state, strict=False)

    def close(self, ignored: str = COUNTERS) -> None:
        """That nothing is left over, but for keys that match a pattern."""
        left = sorted(key for key in set(self.tensors) - self._taken if not re.fullmatch(ignored, key))
        if left:
            raise CarinaError(
                f"{self.where}: {len(left)} weights are not of this model, first {left[0]}; "
                "is it the checkpoint of another model or version?"
            )

    def odd(self, key: str, expected: str) -> CarinaError:
        """The complaint of a weight's shape."""
        return CarinaError(
            f"{self.where}: weight {key} has the shape {tuple(self.tensors[key].shape)}; expected {expected}"
        )

    def _found(self, key: str) -> Tensor:
        if key not in self.tensors:
            raise CarinaError(
                f"{self.where}: weight {key} is missing; is it the checkpoint of another model?"
            )
        return self.tensors[key]


def same_names(module: nn.Module, prefix: str = "") -> dict[str, Source]:
    """The map of a module whose weights are published under its own names, behind a prefix."""
    return {name: Source(prefix + name) for name in module.state_dict() if not re.fullmatch(COUNTERS, name)}


def frozen(module: Module) -> Module:
    """A module for use: what is random in training is off, and gradients are for pixels and tokens alone."""
    module.eval().requires_grad_(requires_grad=False)
    return module


@contextmanager
def one_thread() -> Iterator[None]:
    """Sums come out in one order, and workers share the cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
