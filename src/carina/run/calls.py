"""When a run was at work, with which versions, and where it asked: told in `run.json`, never compared."""

from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Final
from urllib.parse import urlsplit

import msgspec

import carina
from carina.run.records import Call, RunInfo

_PACKAGES: Final = {"builtin/": (), "hf:": ("torch", "transformers"), "onnx:": ("onnxruntime",)}
"""That run a model, by the beginning of its name; all others are served."""
_SERVED: Final = ("inspect-ai",)


def begun(info: RunInfo, model: str, base_url: str | None) -> RunInfo:
    """The run with a call that starts now."""
    names = next((names for start, names in _PACKAGES.items() if model.startswith(start)), _SERVED)
    versions = {"carina": carina.__version__} | {name: _version(name) for name in names}
    call = Call(started=_now(), base_url=without_secrets(base_url), versions=versions)
    return msgspec.structs.replace(info, calls=(*info.calls, call))


def ended(info: RunInfo) -> RunInfo:
    """The run whose last call ends now."""
    *before, last = info.calls
    return msgspec.structs.replace(info, calls=(*before, msgspec.structs.replace(last, ended=_now())))


def without_secrets(address: str | None) -> str | None:
    """An address without what stands before the host and behind the path, where keys are put."""
    if not address:
        return None
    scheme, separator, rest = address.partition("://")
    try:
        parts = urlsplit(f"//{rest if separator else address}")
    except ValueError:
        return None
    host = parts.netloc.rpartition("@")[2]
    return f"{scheme}{separator}{host}{parts.path}" if separator else f"{host}{parts.path}"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
