"""The optional packages, imported where they are first needed."""

import importlib
import importlib.util
from types import ModuleType

from carina.errors import CarinaError


def require(*packages: str) -> tuple[ModuleType, ...]:
    """Modules of the extra `torch`, or one sentence on how to get them."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise CarinaError(f"this needs {' and '.join(missing)}: pip install 'carina[torch]'")
    return tuple(importlib.import_module(name) for name in packages)
