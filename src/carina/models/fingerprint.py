"""Fingerprints of a model's files, which tell two folders of one name apart and are quick for large weights.

A fingerprint is no checksum: of a file above 64 MiB it covers the size and 64 blocks, evenly spread from the first byte
to the last, 4 MiB in all. Checkpoints of one training differ in far more places; a single changed number may be missed.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from carina.store.files import sha256

_WHOLE: Final = 64 << 20
"""Bytes up to which a file is read completely."""
_BLOCKS: Final = 64
_BLOCK: Final = 64 << 10
_READ_BY_TRANSFORMERS: Final = frozenset(
    {".json", ".jinja", ".model", ".py", ".safetensors", ".tiktoken", ".txt"}
)
"""Suffixes of the files of a model, its tokenizer and its processor; other files do not count."""


def fingerprint_of_transformers(folder: Path) -> str:
    """Fingerprint of the files from which transformers makes a model, its tokenizer and its processor."""
    return fingerprint_of(path for path in folder.iterdir() if path.suffix in _READ_BY_TRANSFORMERS)


def fingerprint_of(paths: Iterable[Path]) -> str:
    """SHA-256 over names, sizes and content of files, whatever their order."""
    files = sorted((path for path in paths if path.is_file()), key=lambda path: path.name)
    lines = (f"{path.name}\t{path.stat().st_size}\t{_content(path)}\n" for path in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _content(path: Path) -> str:
    size = path.stat().st_size
    if size <= _WHOLE:
        return sha256(path)
    found = hashlib.sha256()
    with path.open("rb") as file:
        for number in range(_BLOCKS):
            file.seek(number * (size - _BLOCK) // (_BLOCKS - 1))
            found.update(file.read(_BLOCK))
    return found.hexdigest()
