"""Which files a model is made of: what tells two folders of one name apart, cheap for large weights.

Not a checksum: of a file above 64 MiB its size and 64 blocks, evenly spread from its first byte to its last, are looked
at, 4 MiB in all. Checkpoints of one training differ in far more places than that; a single changed number may go
unseen.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from carina.files import sha256

_WHOLE: Final = 64 << 20
"""Bytes up to which a file is read from end to end."""
_BLOCKS: Final = 64
_BLOCK: Final = 64 << 10
_READ_BY_TRANSFORMERS: Final = frozenset(
    {".json", ".jinja", ".model", ".py", ".safetensors", ".tiktoken", ".txt"}
)
"""How files end that a model, its tokenizer or its processor may be made from; a note beside them changes nothing."""


def fingerprint_of_transformers(folder: Path) -> str:
    """Of everything in a folder that transformers makes a model, its tokenizer or its processor from."""
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
