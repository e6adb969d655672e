"""The torch state in which maps are computed. Needs torch."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from carina.models.clip.state_dict import use_one_thread


@contextmanager
def deterministic_inference() -> Iterator[None]:
    """One thread, so that the same image gives the same bits, and no gradients except where a method enables them."""
    with use_one_thread(), torch.inference_mode(mode=False), torch.no_grad():
        yield
