"""The optional packages, imported where they are first needed."""

import importlib
import importlib.util
from types import ModuleType

from carina.errors import CarinaError, install


def check(*packages: str) -> None:
    """That packages of the extra `torch` are installed, or one sentence on how to get them."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise CarinaError(f"this needs {' and '.join(missing)}: {install('torch')}")


def require(*packages: str) -> tuple[ModuleType, ...]:
    """The packages, imported."""
    check(*packages)
    return tuple(importlib.import_module(name) for name in packages)
