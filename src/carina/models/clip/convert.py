"""Convert pickled checkpoints to safetensors without running code that they contain.

Only tensors and plain containers are created. Objects of a few libraries that training scripts store with the weights
are replaced by empty objects; anything else is refused. Keys stay as published, without prefixes common to all of them.
"""

import math
import re
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from carina.models.clip.kinds import KINDS
from carina.models.clip.model_folder import SETTINGS
from carina.models.extra import require
from carina.models.weights import CONFIG, WEIGHTS
from carina.store.arguments import check_arguments
from carina.store.errors import CarinaError
from carina.store.files import replacing, sha256, write_bytes
from carina.store.layout import lock_output
from carina.store.results import Location, Result, as_path

if TYPE_CHECKING:
    import polars as pl

ENTRIES: Final[Mapping[str, tuple[str, ...]]] = {
    "carzero": ("state_dict",),
    "gloria": ("state_dict",),
    "afloc": ("state_dict",),
    "medklip": ("model",),
    "mavl": ("model",),
    "kad": ("image_encoder", "text_encoder", "model"),
}
"""Entries of a checkpoint that hold its weights, by kind; other kinds have them at the top level."""
WRAPPERS: Final = ("state_dict", "model_state_dict")
"""Entries in which training scripts store the weights of all other kinds."""
PARALLEL: Final = "module."
"""Prefix of every key of a model that was trained on several devices."""
PLAIN: Final = frozenset(
    f"builtins.{name}" for name in ("bool", "bytes", "dict", "float", "int", "list", "object", "str", "tuple")
)
"""Built-in types that settings may contain."""
HARMLESS: Final = (
    "argparse.",
    "collections.",
    "lightning.",
    "lightning_fabric.",
    "numpy.",
    "omegaconf.",
    "pathlib.",
    "pytorch_lightning.",
    "typing.",
)
"""Libraries whose objects may be stored with weights; they are not imported, and their objects come out empty."""
INNER: Final = "pytorch_model.bin"
"""MedCLIP's weights are this file in an archive."""
CONVERTIBLE_KINDS: Final = (*KINDS, "bert")
"""Kinds of checkpoints that can be converted; "bert" is a text tower that is published separately."""
LARGEST: Final = 20 * 10**9
"""Largest size of the weights in bytes; published weights have some gigabytes."""
TIGHTEST: Final = 100
"""Largest compression ratio. Weights hardly compress, so a higher ratio indicates a decompression bomb."""


@dataclass(frozen=True, repr=False)
class ConvertedCheckpoint(Result):
    """Weights that were written as safetensors. Made by `convert_checkpoint`."""

    file: Path
    kind: str
    """Kind of model."""
    tensors: Mapping[str, tuple[int, ...]]
    """Shape of each tensor by name."""

    @property
    def path(self) -> Path:
        """The file of weights."""
        return self.file

    def to_frame(self) -> "pl.DataFrame":
        """One row a tensor: its name, shape and number of values."""
        import polars as pl  # noqa: PLC0415 - slow to import

        return pl.DataFrame(
            [(name, list(shape), math.prod(shape)) for name, shape in self.tensors.items()],
            schema={"tensor": pl.String, "shape": pl.List(pl.Int64), "values": pl.Int64},
            orient="row",
        )

    def _summary(self) -> Mapping[str, object]:
        return {"kind": self.kind, "tensors": len(self.tensors)}


@check_arguments
def convert_checkpoint(checkpoint: Location, out: Location, kind: str) -> ConvertedCheckpoint:
    """Convert a pickled checkpoint of a CLIP-style model to safetensors without running the code that it may contain.

    Settings and vocabularies in the folder of the checkpoint are copied; where there is no config.json, one is written
    that says where the weights came from. Needs the extra `torch`.

    Args:
        checkpoint: A .pt, .pth, .bin or .ckpt file, or a zip of one.
        out: Directory of the model, or a file that ends in .safetensors, for one checkpoint of an ensemble.
        kind: Kind of model: a CLIP-style kind such as "biovil", or "bert" for a text tower.

    Returns:
        The file of weights, and the names and shapes of its tensors.

    Raises:
        CarinaError: The kind is unknown, or the file is missing, damaged or holds more than tensors.

    Example:
        >>> convert_checkpoint("checkpoint.pt", "weights/chexzero", "chexzero")
        ConvertedCheckpoint('weights/chexzero/model.safetensors', kind='chexzero', tensors=1)
    """
    return _convert(as_path(checkpoint), as_path(out), kind)


def _convert(path: Path, out: Path, kind: str) -> ConvertedCheckpoint:
    if kind not in CONVERTIBLE_KINDS:
        raise CarinaError(f"kind {kind!r}: unknown; known are {', '.join(CONVERTIBLE_KINDS)}")
    if not path.is_file():
        raise CarinaError(f"{path}: no such file; expected a checkpoint of {kind}")
    _, save = require("torch", "safetensors.torch")
    with _unpack(path) as file:
        tensors = _collect_tensors(_load_tensors(file, path), path, kind)
    folder, target = (out.parent, out) if out.suffix == ".safetensors" else (out, out / WEIGHTS)
    with lock_output(folder, "the model"):
        for name in SETTINGS:
            if (path.parent / name).is_file() and not (folder / name).exists():
                write_bytes(folder / name, (path.parent / name).read_bytes())
        # Copies: tensors of a checkpoint may share memory, which safetensors does not write.
        copies = {key: value.detach().clone().contiguous() for key, value in tensors.items()}
        with replacing(target) as temporary:
            save.save_file(copies, temporary, metadata={"format": "pt"})
        if not (folder / CONFIG).exists():
            said = {"kind": kind, "source": path.name, "source_sha256": sha256(path)}
            write_bytes(folder / CONFIG, msgspec.json.format(msgspec.json.encode(said)) + b"\n")
    return ConvertedCheckpoint(target, kind, {key: tuple(value.shape) for key, value in tensors.items()})


@contextmanager
def _unpack(path: Path) -> Iterator[Path]:
    """The file of the checkpoint, extracted if it is in an archive."""
    inner = next(
        (member for member in _list_members(path, path) if Path(member.filename).name == INNER), None
    )
    if inner is None:
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / INNER
        try:
            with zipfile.ZipFile(path) as archive, archive.open(inner) as packed, file.open("wb") as written:
                shutil.copyfileobj(packed, written)
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
            raise CarinaError(f"{path}: {inner.filename} in it cannot be unpacked: {error}") from error
        _list_members(file, path)
        yield file


def _list_members(file: Path, named: Path) -> Sequence[zipfile.ZipInfo]:
    """List the members of an archive and check their sizes; torch's own files are archives too."""
    if not zipfile.is_zipfile(file):
        return ()
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
    except zipfile.BadZipFile as error:
        raise CarinaError(f"{named}: not readable as an archive: {error}") from error
    for member in members:
        if member.file_size > TIGHTEST * member.compress_size:
            raise CarinaError(
                f"{named}: {member.filename} in it would unpack from {member.compress_size:,} to "
                f"{member.file_size:,} bytes; expected weights, which are not made {TIGHTEST} times smaller"
            )
    _check_size(sum(member.file_size for member in members), LARGEST, named)
    return members


def _check_size(size: int, most: int, named: Path) -> None:
    if size > most:
        raise CarinaError(f"{named}: its content takes {size:,} bytes; expected at most {most:,}")


def _load_tensors(file: Path, named: Path) -> Any:  # noqa: ANN401 - whatever the pickle holds
    (torch,) = require("torch")
    try:
        foreign = torch.serialization.get_unsafe_globals_in_checkpoint(file)
    except Exception:
        # In formats before archives, torch cannot list the objects, but refuses unknown ones when it loads them.
        foreign = []
    if unknown := sorted(name for name in foreign if name not in PLAIN and not name.startswith(HARMLESS)):
        raise CarinaError(
            f"{named}: holds an object of {unknown[0]}, which is not loaded from a pickle; expected weights alone"
        )
    stands = [(type(name.rpartition(".")[2], (_IgnoredObject,), {}), name) for name in foreign]
    try:
        with torch.serialization.safe_globals(stands):
            return torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:
        # Whatever torch raises on foreign files.
        raise CarinaError(f"{named}: cannot be read as weights alone: {_error_text(error)}") from error


def _error_text(error: Exception) -> str:
    """The message of torch, without its advice to trust the file and to disable the check."""
    said = str(error).rpartition("WeightsUnpickler error:")[2]
    said = re.sub(r"Weights only load failed.*|(In PyTorch|Please|Check the documentation) .*", "", said)
    return next(iter(said.strip().splitlines()), type(error).__name__).strip()


class _IgnoredObject:
    """Replaces an object that is not a weight."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __setstate__(self, _: object) -> None:
        pass


def _collect_tensors(content: Any, path: Path, kind: str) -> dict[str, Any]:  # noqa: ANN401
    """Collect all weights by their published keys."""
    entries = ENTRIES.get(kind, ())
    if not entries and isinstance(content, Mapping):
        entries = tuple(name for name in WRAPPERS if isinstance(content.get(name), Mapping))[:1]
    tensors: dict[str, Any] = {}
    for entry in entries or (None,):
        part = content if entry is None else _find_entry(content, entry, path, kind)
        if not isinstance(part, Mapping):
            raise CarinaError(
                f"{path}: holds {type(content).__name__} instead of weights by name; expected a checkpoint of {kind}"
            )
        own = _keep_tensors(part)
        prefix = f"{entry}." if len(entries) > 1 else ""
        tensors |= {prefix + key: value for key, value in own.items()}
    if not tensors:
        raise CarinaError(f"{path}: holds no weights; expected a checkpoint of {kind}")
    for key, value in tensors.items():
        if not _is_dense(value):
            raise CarinaError(
                f"{path}: weight {key} is a tensor of {value.dtype} with the layout {value.layout}; "
                "expected plain numbers, all of them there (neither sparse nor quantised)"
            )
    # Tensors may share memory in the file, but each is written in full.
    most = min(LARGEST, TIGHTEST * path.stat().st_size)
    _check_size(sum(value.nbytes for value in tensors.values()), most, path)
    return tensors


def _is_dense(value: Any) -> bool:  # noqa: ANN401
    """Whether safetensors can write a tensor."""
    (torch,) = require("torch")
    odd = value.is_nested or value.is_quantized or value.is_complex() or value.is_meta
    return value.layout == torch.strided and not odd


def _find_entry(content: Any, entry: str, path: Path, kind: str) -> Any:  # noqa: ANN401
    if not isinstance(content, Mapping) or entry not in content:
        raise CarinaError(f"{path}: has no entry {entry!r}, where {kind} keeps its weights")
    return content[entry]


def _keep_tensors(part: Mapping[Any, Any]) -> dict[str, Any]:
    (torch,) = require("torch")
    own = {str(key): value for key, value in part.items() if isinstance(value, torch.Tensor)}
    wrapped = bool(own) and all(key.startswith(PARALLEL) for key in own)
    return {key.removeprefix(PARALLEL) if wrapped else key: value for key, value in own.items()}
