"""Numbers out of a pickle without running what it names: the child process of `pickles`.

Arrays and tensors are rebuilt here from their bytes by stand-ins; numpy's and torch's own constructors are never
called, nor is anything else that a pickle asks for. Run as a module it first takes limits on memory, time and file
size.
"""

import io
import json
import math
import pickle
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_NUMBERS: Final = frozenset({"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"})
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
"""CheXpert's labels in their order: a model may have told the probabilities of all."""
_MAGIC: Final = 0x1950A86A20F9469CFC6C
"""First number in torch's old layout, in which it pickles tensors."""
_MOST: Final = 100_000_000
"""Numbers in an array."""
_GIGABYTE: Final = 1 << 30
_MEMORY: Final = 4 * _GIGABYTE
_SECONDS: Final = 10
"""Of processor time for each file, and once more to start."""


class Refused(Exception):  # noqa: N818 - what is wrong with a pickle, told in a sentence
    """A pickle that holds more than numbers, text, lists and tables."""


# ---- stand-ins ----


class _Dtype:
    """A numpy dtype's name and byte order."""

    def __init__(self, name: object, *_: object) -> None:
        self.name = name
        self.order = "<"

    def __setstate__(self, state: object) -> None:
        match state:
            case (_, "<" | ">" | "|" as order, None, None, None, *_):
                self.order = order
            case _:
                raise Refused("an array of records or objects")

    def real(self) -> np.dtype[Any]:
        if self.name not in _NUMBERS:
            raise Refused(f"an array of {self.name!r}, expected numbers")
        return np.dtype(f"{self.order if self.order != '|' else ''}{self.name}")


class _Array:
    """A numpy array to be."""

    def __init__(self) -> None:
        self.array: Array | None = None

    def __setstate__(self, state: object) -> None:
        match state:
            case (_, tuple() as shape, _Dtype() as dtype, bool() | int() as fortran, bytes() | str() as raw):
                content = raw.encode("latin1") if isinstance(raw, str) else raw
                self.array = _shaped(content, dtype.real(), shape, "F" if fortran else "C")
            case _:
                raise Refused("an array in a form that is not numpy's")


class _Marker:
    """A class that is named and never made."""

    def __init__(self, name: str) -> None:
        self.name = name


def _shaped(content: bytes | bytearray, dtype: np.dtype[Any], shape: object, order: str) -> Array:
    if not (isinstance(shape, tuple) and all(isinstance(n, int) and n >= 0 for n in shape)):
        raise Refused("an array whose shape is none")
    number = math.prod(shape)
    if number > _MOST:
        raise Refused(f"an array of {number:,} numbers, more than the limit of {_MOST:,}")
    if number * dtype.itemsize != len(content):
        raise Refused(f"an array of shape {shape} in {len(content):,} bytes")
    return np.frombuffer(bytes(content), dtype).reshape(shape, order=order)  # type: ignore[call-overload, no-any-return]


def _from_buffer(content: object, dtype: object, shape: object, order: object) -> Array:
    if not isinstance(content, bytes | bytearray) or not isinstance(dtype, _Dtype) or order not in ("C", "F"):
        raise Refused("an array in a form that is not numpy's")
    return _shaped(content, dtype.real(), shape, str(order))


def _scalar(dtype: object, content: object) -> Any:  # noqa: ANN401 - a Python number
    if not isinstance(dtype, _Dtype) or not isinstance(content, bytes):
        raise Refused("a number in a form that is not numpy's")
    return _shaped(content, dtype.real(), (), "C").item()


def _latin1(text: object, encoding: object = "latin1") -> bytes:
    if not isinstance(text, str) or encoding != "latin1":
        raise Refused("text in an encoding that arrays do not use")
    return text.encode("latin1")


def _tensor(storage: object, offset: object, size: object, stride: object, *_: object) -> Array:
    """A tensor's numbers, in their order; as `torch.as_strided`, within the storage."""
    match (storage, offset, size, stride):
        case (np.ndarray(), int(start), tuple() as shape, tuple() as steps) if len(shape) == len(steps):
            pass
        case _:
            raise Refused("a tensor in a form that is not torch's")
    if start < 0 or not all(isinstance(n, int) and n >= 0 for n in (*shape, *steps)):
        raise Refused("a tensor whose shape is none")
    number = math.prod(shape)
    if number > _MOST:
        raise Refused(f"a tensor of {number:,} numbers, more than the limit of {_MOST:,}")
    last = start + sum((n - 1) * step for n, step in zip(shape, steps, strict=True))
    if number and last >= len(storage):
        raise Refused("a tensor that reaches beyond its storage")
    at = np.full(shape, start, np.int64)
    for axis, (n, step) in enumerate(zip(shape, steps, strict=True)):
        at += (np.arange(n) * step).reshape([-1 if a == axis else 1 for a in range(len(shape))])
    return np.asarray(storage[at])


def _storage(content: object) -> Array:
    """A tensor's storage in torch's old layout: three small pickles, what it is, its keys, and its numbers."""
    if not isinstance(content, bytes):
        raise Refused("a tensor in a form that is not torch's")
    stream = io.BytesIO(content)
    if _Inner(stream).load() != _MAGIC:
        raise Refused("a tensor in torch's zip layout, expected the one that pickle writes")
    _Inner(stream).load()
    system = _Inner(stream).load()
    if not isinstance(system, dict) or system.get("little_endian") is not True:
        raise Refused("a tensor with its bytes in another order")
    held = _Inner(stream).load()
    keys = _Inner(stream).load()
    if not isinstance(held, _Held) or keys != [held.key] or held.kind not in _NUMBERS:
        raise Refused("a tensor whose numbers are elsewhere")
    number = int.from_bytes(stream.read(8), "little", signed=True)
    kind = np.dtype(f"<{held.kind}") if held.kind != "b1" else np.dtype("b1")
    if number != held.number or not 0 <= number <= _MOST:
        raise Refused(f"a tensor of {number:,} numbers where {held.number:,} are stated")
    return _shaped(stream.read(number * kind.itemsize), kind, (number,), "C")


class _Held:
    """What a storage says of itself."""

    def __init__(self, kind: str, key: str, number: int) -> None:
        self.kind, self.key, self.number = kind, key, number


# ---- reading ----

_KNOWN: Final[dict[tuple[str, str], Callable[..., Any]]] = {
    **{(f"numpy.{core}.multiarray", "scalar"): _scalar for core in ("core", "_core")},
    **{(f"numpy.{core}.multiarray", "_reconstruct"): lambda *_: _Array() for core in ("core", "_core")},
    **{(f"numpy.{core}.numeric", "_frombuffer"): _from_buffer for core in ("core", "_core")},
    ("numpy", "dtype"): _Dtype,
    ("numpy", "ndarray"): _Marker,
    ("collections", "OrderedDict"): dict,
    ("_codecs", "encode"): _latin1,
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("torch._utils", "_rebuild_tensor"): _tensor,
    ("torch.storage", "_load_from_bytes"): _storage,
}
"""All that a pickle may name, and what stands in for it."""


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401 - as pickle has it
        found = _KNOWN.get((module, name))
        if found is None:
            raise Refused(f"{module}.{name}; only numbers, text, lists, tables, arrays and tensors are read")
        return found

    def persistent_load(self, _: object) -> Any:  # noqa: ANN401 - as pickle has it
        raise Refused("a reference to something outside the file")


class _Inner(_Reader):
    """Reads the small pickles of a tensor's storage."""

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401 - as pickle has it
        if module == "torch" and name in _STORAGES:
            return _Marker(_STORAGES[name])
        raise Refused(f"a tensor of {module}.{name}, expected {', '.join(sorted(_STORAGES))}")

    def persistent_load(self, told: object) -> _Held:
        match told:
            case ("storage", _Marker() as kind, str(key), str(), int(number), *rest) if rest in ([], [None]):
                return _Held(kind.name, key, number)
        raise Refused("a tensor's storage in a form that is not torch's")


def load(content: bytes) -> Any:  # noqa: ANN401 - whatever it holds
    """What a pickle holds, arrays and tensors as numpy arrays; `Refused` says what it may not hold."""
    try:
        return _plain(_Reader(io.BytesIO(content)).load())
    except Refused:
        raise
    except MemoryError:
        raise Refused("more than the memory that it may take") from None
    except Exception as error:
        raise Refused(f"not a pickle, or damaged: {error}") from error


def _plain(value: Any) -> Any:  # noqa: ANN401 - whatever it holds
    if isinstance(value, _Array):
        if value.array is None:
            raise Refused("an array without numbers")
        return value.array
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_plain(item) for item in value)
    return value


def read_map(content: bytes) -> dict[str, Array]:
    """The map of a cheXlocalize pickle, with the image's size and the finding's probability where it tells them."""
    held = load(content)
    if not isinstance(held, dict) or not isinstance(held.get("map"), np.ndarray):
        raise Refused("no array or tensor under 'map'")
    values = held["map"].squeeze()
    if values.ndim != 2 or values.dtype.kind not in "fiu":
        raise Refused(f"a map of {held['map'].dtype} in shape {held['map'].shape}, expected rows and columns")
    kept = {"map": values.astype(np.float32)}
    match held.get("cxr_dims"):
        case (int(width), int(height)) | [int(width), int(height)]:
            kept["dims"] = np.array([width, height])
    probability = held.get("prob")
    if isinstance(probability, np.ndarray) and probability.size == len(_TASKS) and held.get("task") in _TASKS:
        probability = probability.ravel()[_TASKS.index(held["task"])]
    if isinstance(probability, np.ndarray | np.generic) and probability.size == 1:
        probability = probability.item()
    if isinstance(probability, int | float):
        kept["prob"] = np.array(float(probability))
    return kept


def _limit(files: int) -> None:
    seconds = _SECONDS * (files + 1)
    for what, most in (
        (resource.RLIMIT_AS, _MEMORY),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, _GIGABYTE),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(what)
        allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (allowed, allowed))


def main() -> None:
    """Pairs of paths as JSON on standard input; a line of JSON on standard output for each, as soon as it is done."""
    pairs = json.load(sys.stdin)
    _limit(len(pairs))
    for source, target in pairs:
        wrong = None
        try:
            np.savez(target, **read_map(Path(source).read_bytes()))  # type: ignore[arg-type]
        except Refused as refused:
            wrong = f"holds {refused}"
        except OSError as error:
            wrong = f"cannot be read or written: {error.strerror}"
        except MemoryError:
            wrong = "holds more than the memory that it may take"
        sys.stdout.write(json.dumps([source, wrong]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
