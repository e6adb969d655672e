"""Random numbers that depend only on what they are for.

Every random choice is seeded by a hash of (seed, purpose...): never by the order of work. So the same study
comes out whatever the number of workers, and adding one more random choice elsewhere changes nothing here.
"""

import hashlib

import numpy as np


def rng(seed: int, *purpose: str | int) -> np.random.Generator:
    """A generator of its own for one purpose: `rng(7, "p000003", "heart")`."""
    # Length-prefixed, so that ("ab", "c") and ("a", "bc") are different purposes.
    text = "".join(f"{len(str(part))}:{part}" for part in (seed, *purpose))
    digest = hashlib.sha256(text.encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16], "little")))
