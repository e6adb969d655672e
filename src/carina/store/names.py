"""File names from names in data, such as the id of a case or the name of a protocol.

A name that comes from a file of data may hold anything: slashes, dots, nothing at all. It becomes part of a path only
through `safe_name`.
"""

import re
from collections.abc import Collection
from hashlib import sha256
from typing import Final

LONGEST: Final = 100
"""Characters of a name that is kept as it is; file systems allow 255 bytes, and endings are added."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_HASHED: Final = re.compile(r".*-[0-9a-f]{10}")
"""The form that unsafe names are given; a name that has it by chance is hashed too, so that no two names meet."""
_DEVICES: Final = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)
"""Names that Windows takes for devices, with any ending."""


def safe_name(name: str, *, reserved: Collection[str] = (), otherwise: str = "unnamed") -> str:
    """Make a file name, without ending, from a name in data.

    A name of ASCII letters, digits, `.`, `_` and `-` is kept. Any other gets a readable form that ends in a hash of the
    name, so that two different names never have the same file.

    Args:
        name: Any text.
        reserved: File names that the caller gives to other files.
        otherwise: Readable part of the name where nothing of `name` can be kept.

    Returns:
        A name of 1 to 100 characters that leads to no other directory and is no device.

    Example:
        >>> safe_name("trek"), safe_name("../../x")
        ('trek', 'x-9cdf6a5010')
    """
    is_plain = len(name) <= LONGEST and _PLAIN.fullmatch(name) and not name.endswith(".")
    if is_plain and not (_HASHED.fullmatch(name) or _DEVICES.fullmatch(name) or name in reserved):
        return name
    readable = re.sub(r"[^A-Za-z0-9_-]+", "_", name)[:60].strip("_-")
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    return f"{readable or otherwise}-{digest}"
