"""How often Python looks for objects that refer to each other in a cycle and that nothing else uses."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_RARELY: Final = 100_000
"""New objects after which to look; Python's own 700 suits programs with fewer."""


@contextmanager
def collect_rarely() -> Iterator[None]:
    """Look rarely for cycles until the block ends: for work that makes millions of records, which are in none."""
    before = gc.get_threshold()
    gc.set_threshold(_RARELY, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
