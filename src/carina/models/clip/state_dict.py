"""Strict loading of published weights: no weight may be missing, of another shape, or unused.

A map from Carina's names to those of the checkpoint is declared per layout, so that an error names the key in the file.
Reads safetensors alone; imported only where torch is.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from carina.store.errors import CarinaError

Module = TypeVar("Module", bound=nn.Module)
COUNTERS: Final = r"(.*\.)?(position_ids|num_batches_tracked)"
"""Counters that some versions saved and no output depends on."""


@dataclass(frozen=True)
class Source:
    """Location of a module's weight in a published checkpoint."""

    key: str
    part: int | None = None
    """Index among `parts` equal parts of the first axis, where query, key and value are one matrix."""
    parts: int = 3
    transposed: bool = False
    """Whether the published matrix is the transpose."""
    lead: int = 0
    """Number of leading axes of length 1 that are removed."""

    def take(self, published: Tensor) -> Tensor:
        found = published.reshape(published.shape[self.lead :]) if self.lead else published
        if self.part is not None:
            found = found.chunk(self.parts)[self.part]
        return found.t() if self.transposed else found


KeyMap = Mapping[str, Source]
"""From the names of a module's weights to their sources in the checkpoint."""


@dataclass
class Weights:
    """The tensors of a checkpoint; remembers which of them were used."""

    where: Path
    tensors: Mapping[str, Tensor]
    _used: set[str] = field(default_factory=set)

    @classmethod
    def read(cls, files: Sequence[Path], device: torch.device | str = "cpu") -> Self:
        """Read all tensors of the files of one checkpoint to a device."""
        tensors: dict[str, Tensor] = {}
        for file in files:
            try:
                tensors |= load_file(file, device=str(device))
            except (SafetensorError, OSError) as error:
                raise CarinaError(f"{file}: not readable as safetensors: {error}") from error
        return cls(files[0] if len(files) == 1 else files[0].parent, tensors)

    def has(self, prefix: str) -> bool:
        """Whether any key begins with a prefix."""
        return any(key.startswith(prefix) for key in self.tensors)

    def shape(self, key: str, axes: int) -> tuple[int, ...]:
        """Shape of a tensor with this number of axes; the tensor does not count as used."""
        shape = tuple(self._get_tensor(key).shape)
        if len(shape) != axes or 0 in shape:
            raise self.shape_error(key, f"{axes} axes, none of them empty")
        return shape

    def count(self, pattern: str) -> int:
        """Count the different numbers that the group of a pattern matches, such as blocks of a transformer."""
        found = (re.fullmatch(pattern, key) for key in self.tensors)
        return len({match[1] for match in found if match})

    def take(self, key: str) -> Tensor:
        """One tensor, as float32."""
        found = self._get_tensor(key).float()
        # A sum is finite only if all terms are, and is ten times faster than checking each.
        if not found.sum().isfinite():
            raise CarinaError(f"{self.where}: weight {key} holds NaN or infinity; expected finite numbers")
        self._used.add(key)
        return found

    def number(self, key: str) -> Tensor:
        """A tensor of one number, of any shape."""
        if self._get_tensor(key).numel() != 1:
            raise self.shape_error(key, "a single number")
        return self.take(key).reshape(())

    def make(self, create: Callable[[], Module]) -> Module:
        """Create a module whose sizes come from settings, unless it needs more numbers than the checkpoint holds.

        Args:
            create: Creates the module. It is called on torch's meta device first, where a module takes no memory.

        Raises:
            CarinaError: The settings describe a larger model than the weights, or none at all.
        """
        try:
            with torch.device("meta"):
                needed = sum(own.numel() for own in create().parameters())
        except Exception as error:
            # Whatever torch or transformers raise on foreign sizes, the settings do not describe a model.
            raise CarinaError(
                f"{self.where}: the settings beside it do not describe a model: {str(error).splitlines()[:1]}"
            ) from error
        held = sum(tensor.numel() for tensor in self.tensors.values())
        if needed > held:
            raise CarinaError(
                f"{self.where}: holds {held:,} numbers, the settings beside it describe a model of {needed:,}"
            )
        return create()

    def fill(self, module: nn.Module, keys: KeyMap) -> None:
        """Load a module's weights."""
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
                    f"{self.where}: weight {source.key} has the shape {tuple(found.shape)}; "
                    f"expected {tuple(ours[name].shape)} for {name}"
                )
            state[name] = part
        module.load_state_dict(state, strict=False)

    def close(self, ignored: str = COUNTERS) -> None:
        """Refuse a checkpoint with unused keys, except for those that match a pattern."""
        left = sorted(key for key in set(self.tensors) - self._used if not re.fullmatch(ignored, key))
        if left:
            raise CarinaError(
                f"{self.where}: {len(left)} weights do not belong to this model, first {left[0]}; "
                "is it the checkpoint of another model or version?"
            )

    def shape_error(self, key: str, expected: str) -> CarinaError:
        """The error about a weight's shape."""
        return CarinaError(
            f"{self.where}: weight {key} has the shape {tuple(self.tensors[key].shape)}; expected {expected}"
        )

    def _get_tensor(self, key: str) -> Tensor:
        if key not in self.tensors:
            raise CarinaError(
                f"{self.where}: weight {key} is missing; is it the checkpoint of another model?"
            )
        return self.tensors[key]


def map_same_names(module: nn.Module, prefix: str = "") -> dict[str, Source]:
    """The key map of a module whose weights are published under its own names with a prefix."""
    return {name: Source(prefix + name) for name in module.state_dict() if not re.fullmatch(COUNTERS, name)}


def freeze(module: Module) -> Module:
    """Set a module to inference: without dropout, and without gradients of its weights."""
    module.eval().requires_grad_(requires_grad=False)
    return module


@contextmanager
def use_one_thread() -> Iterator[None]:
    """Use one thread: sums have one order, and workers share the cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def read_linear(weights: Weights, prefix: str, width: int) -> nn.Module:
    """Read a linear layer with a bias, whose input has `width` features."""
    out, _ = weights.shape(f"{prefix}weight", 2)
    return _read_layer(nn.Linear(width, out), weights, prefix)


def read_pointwise(weights: Weights, prefix: str, width: int, *, bias: bool) -> nn.Module:
    """Read a convolution of one by one, whose input has `width` channels."""
    out, _, _, _ = weights.shape(f"{prefix}weight", 4)
    return _read_layer(nn.Conv2d(width, out, 1, bias=bias), weights, prefix)


def _read_layer(layer: nn.Module, weights: Weights, prefix: str) -> nn.Module:
    weights.fill(layer, map_same_names(layer, prefix))
    return freeze(layer)
