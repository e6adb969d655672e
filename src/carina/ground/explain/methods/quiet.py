"""The surroundings in which maps are made. Imported only where torch is."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from carina.models.clip.state import one_thread


@contextmanager
def quiet() -> Iterator[None]:
    """One thread, so that the same picture gives the same bits, and no graph but where it is asked for."""
    with one_thread(), torch.inference_mode(mode=False), torch.no_grad():
        yield
