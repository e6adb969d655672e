"""Optional packages, imported where they are first needed."""

import importlib
import importlib.util
from types import ModuleType

from carina.store.errors import CarinaError, install


def check(*packages: str) -> None:
    """Check that packages of the extra `torch` are installed.

    Raises:
        CarinaError: One is missing; the message says how to install it.
    """
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise CarinaError(f"this needs {' and '.join(missing)}: {install('torch')}")


def require(*packages: str) -> tuple[ModuleType, ...]:
    """Import packages of the extra `torch`."""
    check(*packages)
    return tuple(importlib.import_module(name) for name in packages)
