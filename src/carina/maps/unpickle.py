"""A restricted unpickler: reads numbers, text, lists, tables, arrays and tensors, and refuses everything else.

Program of the child process of `carina.maps.pickles`; imports numpy and the standard library only. Arrays and tensors
are rebuilt from their bytes by functions of this module; the constructors of numpy and torch are never called, nor is
anything else that a pickle names. The package fickling analyses a pickle before it is run, whereas this unpickler never
runs one. As a program it first limits its own memory, time and file size.
"""

import io
import json
import math
import os
import pickle
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_NUMBER_TYPES: Final = frozenset({"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"})
_STORAGES: Final[dict[str, str]] = {
    "FloatStorage": "f4",
    "DoubleStorage": "f8",
    "HalfStorage": "f2",
    "LongStorage": "i8",
    "IntStorage": "i4",
    "ShortStorage": "i2",
    "CharStorage": "i1",
    "ByteStorage": "u1",
    "BoolStorage": "b1",
}
_TASKS: Final = (
    "No Finding", "Enlarged Cardiomediastinum", "Cardiomegaly", "Lung Lesion", "Airspace Opacity", "Edema",
    "Consolidation", "Pneumonia", "Atelectasis", "Pneumothorax", "Pleural Effusion", "Pleural Other", "Fracture",
    "Support Devices",
)  # fmt: skip
"""Labels of CheXpert in their order, in which a file may hold the probabilities of all labels."""
_MAGIC: Final = 0x1950A86A20F9469CFC6C
"""First number of torch's legacy format, in which pickle writes tensors."""
_MAX_NUMBERS: Final = 100_000_000
"""Largest number of elements of an array."""
_GIGABYTE: Final = 1 << 30
_MAX_MEMORY: Final = 4 * _GIGABYTE
_SECONDS_PER_FILE: Final = 10
"""Limit on processor time for each file, and once more for the start."""


class RefusedPickleError(Exception):
    """A pickle holds something that is not read; the message names it."""


# ---- replacements for what a pickle names ----


class _Dtype:
    """Name and byte order of a numpy dtype."""

    def __init__(self, name: object, *_: object) -> None:
        self.name = name
        self.order = "<"

    def __setstate__(self, state: object) -> None:
        match state:
            case (_, "<" | ">" | "|" as order, None, None, None, *_):
                self.order = order
            case _:
                raise RefusedPickleError("an array of records or objects")

    def to_numpy(self) -> np.dtype[Any]:
        if self.name not in _NUMBER_TYPES:
            raise RefusedPickleError(f"an array of {self.name!r}, expected numbers")
        return np.dtype(f"{self.order if self.order != '|' else ''}{self.name}")


class _Array:
    """A numpy array that is rebuilt from its pickled state."""

    def __init__(self) -> None:
        self.array: Array | None = None

    def __setstate__(self, state: object) -> None:
        match state:
            case (_, tuple() as shape, _Dtype() as dtype, bool() | int() as fortran, bytes() | str() as raw):
                content = raw.encode("latin1") if isinstance(raw, str) else raw
                self.array = _build_array(content, dtype.to_numpy(), shape, "F" if fortran else "C")
            case _:
                raise RefusedPickleError("an array in a form that is not numpy's")


class _Marker:
    """A class that a pickle names, of which no instance is made."""

    def __init__(self, name: str) -> None:
        self.name = name


def _build_array(content: bytes | bytearray, dtype: np.dtype[Any], shape: object, order: str) -> Array:
    if not (isinstance(shape, tuple) and all(isinstance(n, int) and n >= 0 for n in shape)):
        raise RefusedPickleError(f"an array of the invalid shape {shape!r}")
    number = math.prod(shape)
    if number > _MAX_NUMBERS:
        raise RefusedPickleError(f"an array of {number:,} numbers, more than the limit of {_MAX_NUMBERS:,}")
    if number * dtype.itemsize != len(content):
        raise RefusedPickleError(f"an array of shape {shape} in {len(content):,} bytes")
    return np.frombuffer(bytes(content), dtype).reshape(shape, order=order)  # type: ignore[call-overload, no-any-return]


def _build_from_buffer(content: object, dtype: object, shape: object, order: object) -> Array:
    if not isinstance(content, bytes | bytearray) or not isinstance(dtype, _Dtype) or order not in ("C", "F"):
        raise RefusedPickleError("an array in a form that is not numpy's")
    return _build_array(content, dtype.to_numpy(), shape, str(order))


def _build_scalar(dtype: object, content: object) -> Any:  # noqa: ANN401 - a Python number
    if not isinstance(dtype, _Dtype) or not isinstance(content, bytes):
        raise RefusedPickleError("a number in a form that is not numpy's")
    return _build_array(content, dtype.to_numpy(), (), "C").item()


def _encode_latin1(text: object, encoding: object = "latin1") -> bytes:
    if not isinstance(text, str) or encoding != "latin1":
        raise RefusedPickleError("text in an encoding that arrays do not use")
    return text.encode("latin1")


def _build_tensor(storage: object, offset: object, size: object, stride: object, *_: object) -> Array:
    """The numbers of a tensor, as `torch.as_strided` gives them, within its storage."""
    match (storage, offset, size, stride):
        case (np.ndarray(), int(start), tuple() as shape, tuple() as steps) if len(shape) == len(steps):
            pass
        case _:
            raise RefusedPickleError("a tensor in a form that is not torch's")
    if start < 0 or not all(isinstance(n, int) and n >= 0 for n in (*shape, *steps)):
        raise RefusedPickleError(f"a tensor of the invalid shape {shape} with strides {steps}")
    number = math.prod(shape)
    if number > _MAX_NUMBERS:
        raise RefusedPickleError(f"a tensor of {number:,} numbers, more than the limit of {_MAX_NUMBERS:,}")
    last = start + sum((n - 1) * step for n, step in zip(shape, steps, strict=True))
    if number and last >= len(storage):
        raise RefusedPickleError("a tensor that reaches beyond its storage")
    indices = np.full(shape, start, np.int64)
    for axis, (n, step) in enumerate(zip(shape, steps, strict=True)):
        indices += (np.arange(n) * step).reshape([-1 if a == axis else 1 for a in range(len(shape))])
    return np.asarray(storage[indices])


def _read_storage(content: object) -> Array:
    """The storage of a tensor in torch's legacy format: three small pickles, the storage, its keys and its numbers."""
    if not isinstance(content, bytes):
        raise RefusedPickleError("a tensor in a form that is not torch's")
    stream = io.BytesIO(content)
    if _StorageUnpickler(stream).load() != _MAGIC:
        raise RefusedPickleError(
            "a tensor in torch's zip format, expected the legacy format that pickle writes"
        )
    _StorageUnpickler(stream).load()
    system = _StorageUnpickler(stream).load()
    if not isinstance(system, dict) or system.get("little_endian") is not True:
        raise RefusedPickleError("a tensor that is not stored in little-endian byte order")
    storage = _StorageUnpickler(stream).load()
    keys = _StorageUnpickler(stream).load()
    if not isinstance(storage, _StorageInfo) or keys != [storage.key] or storage.kind not in _NUMBER_TYPES:
        raise RefusedPickleError("a tensor whose numbers are not in the file")
    number = int.from_bytes(stream.read(8), "little", signed=True)
    kind = np.dtype(f"<{storage.kind}") if storage.kind != "b1" else np.dtype("b1")
    if number != storage.number or not 0 <= number <= _MAX_NUMBERS:
        raise RefusedPickleError(f"a tensor of {number:,} numbers, expected {storage.number:,}")
    return _build_array(stream.read(number * kind.itemsize), kind, (number,), "C")


class _StorageInfo:
    """Type, key and number of elements of a tensor's storage."""

    def __init__(self, kind: str, key: str, number: int) -> None:
        self.kind, self.key, self.number = kind, key, number


# ---- reading ----

_ALLOWED: Final[dict[tuple[str, str], Callable[..., Any]]] = {
    **{(f"numpy.{core}.multiarray", "scalar"): _build_scalar for core in ("core", "_core")},
    **{(f"numpy.{core}.multiarray", "_reconstruct"): lambda *_: _Array() for core in ("core", "_core")},
    **{(f"numpy.{core}.numeric", "_frombuffer"): _build_from_buffer for core in ("core", "_core")},
    ("numpy", "dtype"): _Dtype,
    ("numpy", "ndarray"): _Marker,
    ("collections", "OrderedDict"): dict,
    ("_codecs", "encode"): _encode_latin1,
    ("torch._utils", "_rebuild_tensor_v2"): _build_tensor,
    ("torch._utils", "_rebuild_tensor"): _build_tensor,
    ("torch.storage", "_load_from_bytes"): _read_storage,
}
"""Every name that a pickle may use, with the function that is called in its place."""


class _RestrictedUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401 - as pickle has it
        replacement = _ALLOWED.get((module, name))
        if replacement is None:
            raise RefusedPickleError(
                f"{module}.{name}; only numbers, text, lists, tables, arrays and tensors are read"
            )
        return replacement

    def persistent_load(self, _: object) -> Any:  # noqa: ANN401 - as pickle has it
        raise RefusedPickleError("a reference to something outside the file")


class _StorageUnpickler(_RestrictedUnpickler):
    """Reads the small pickles in the storage of a tensor."""

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401 - as pickle has it
        if module == "torch" and name in _STORAGES:
            return _Marker(_STORAGES[name])
        raise RefusedPickleError(f"a tensor of {module}.{name}, expected {', '.join(sorted(_STORAGES))}")

    def persistent_load(self, identifier: object) -> _StorageInfo:
        match identifier:
            case ("storage", _Marker() as kind, str(key), str(), int(number), *rest) if rest in ([], [None]):
                return _StorageInfo(kind.name, key, number)
        raise RefusedPickleError("a tensor's storage in a form that is not torch's")


def load_pickle(content: bytes) -> Any:  # noqa: ANN401 - any type that is read
    """The content of a pickle, with arrays and tensors as numpy arrays.

    Raises:
        RefusedPickleError: The pickle is damaged, or holds something that is not read.
    """
    try:
        return _unwrap_arrays(_RestrictedUnpickler(io.BytesIO(content)).load())
    except RefusedPickleError:
        raise
    except MemoryError:
        raise RefusedPickleError("more than fits into the memory limit") from None
    except Exception as error:
        raise RefusedPickleError(f"not a pickle, or damaged: {error}") from error


def _unwrap_arrays(value: Any) -> Any:  # noqa: ANN401 - any type that is read
    if isinstance(value, _Array):
        if value.array is None:
            raise RefusedPickleError("an array without numbers")
        return value.array
    if isinstance(value, dict):
        return {_unwrap_arrays(key): _unwrap_arrays(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_unwrap_arrays(item) for item in value)
    return value


def read_map(content: bytes) -> dict[str, Array]:
    """The map of a cheXlocalize pickle, with the size of the image and the probability of the finding if it has them.

    Raises:
        RefusedPickleError: The pickle is damaged, holds something that is not read, or holds no map.
    """
    fields = load_pickle(content)
    if not isinstance(fields, dict) or not isinstance(fields.get("map"), np.ndarray):
        raise RefusedPickleError("no array or tensor under 'map'")
    values = fields["map"].squeeze()
    if values.ndim != 2 or values.dtype.kind not in "fiu":
        raise RefusedPickleError(
            f"a map of {fields['map'].dtype} in shape {fields['map'].shape}, expected rows and columns"
        )
    arrays = {"map": values.astype(np.float32)}
    match fields.get("cxr_dims"):
        case (int(width), int(height)) | [int(width), int(height)]:
            arrays["dims"] = np.array([width, height])
    probability = fields.get("prob")
    if (
        isinstance(probability, np.ndarray)
        and probability.size == len(_TASKS)
        and fields.get("task") in _TASKS
    ):
        probability = probability.ravel()[_TASKS.index(fields["task"])]
    if isinstance(probability, np.ndarray | np.generic) and probability.size == 1:
        probability = probability.item()
    if isinstance(probability, int | float):
        arrays["prob"] = np.array(float(probability))
    return arrays


def _limit_resources(files: int) -> None:
    seconds = _SECONDS_PER_FILE * (files + 1)
    for kind, limit in (
        (resource.RLIMIT_AS, _MAX_MEMORY),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, _GIGABYTE),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        allowed = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (allowed, allowed))


def _write_map(target: Path, arrays: dict[str, Array]) -> None:
    # As `carina.store.files.replacing`, which this process cannot import: it sees no module but numpy and its own.
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def main() -> None:
    """Read pairs of paths as JSON from standard input; write one line of JSON for each as soon as it is done."""
    pairs = json.load(sys.stdin)
    _limit_resources(len(pairs))
    for source, target in pairs:
        reason = None
        try:
            _write_map(Path(target), read_map(Path(source).read_bytes()))
        except RefusedPickleError as refused:
            reason = f"holds {refused}"
        except OSError as error:
            reason = f"cannot be read or written: {error.strerror}"
        except MemoryError:
            reason = "holds more than fits into the memory limit"
        sys.stdout.write(json.dumps([source, reason]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
