"""Pictures of an export: left out, written once each under the name of their content, or put into the text."""

import base64
import hashlib
from pathlib import Path
from typing import Final, Literal, Protocol

from carina.cases.model import Case
from carina.files import write_bytes

Mode = Literal["none", "copy", "embed"]
MODES: Final[tuple[Mode, ...]] = ("none", "copy", "embed")
FOLDER: Final = "images"
_NAME: Final = 32
"""Hex digits of the SHA-256 that name a picture: 128 bits, so that no two share a name."""


class Drawn(Protocol):
    """What draws views."""

    def png(self, case: Case, view_id: str) -> bytes: ...


def reference(case: Case, view_id: str) -> str:
    """How a picture is named where it is left out: the key of its image, and `#<view>` where something is drawn on it.

    The first image, where it shows several.
    """
    view = case.view(view_id)
    panel = view.panels[0]
    as_it_is = len(view.panels) == 1 and not (
        panel.overlays or panel.marks or panel.crop or panel.caption or view.side
    )
    return panel.image if as_it_is else f"{panel.image}#{view_id}"


def place(target: Path, content: bytes) -> str:
    """Put a picture into its place below `target`, if it is not there yet; its path relative to `target`."""
    name = hashlib.sha256(content).hexdigest()[:_NAME]
    path = f"{FOLDER}/{name[:2]}/{name}.png"
    # A file with its final name is whole, and its name says what is in it.
    if not (target / path).is_file():
        write_bytes(target / path, content)
    return path


def data_uri(content: bytes) -> str:
    """A picture as an address that holds it."""
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"


def refer(drawn: Drawn, target: Path, case: Case, view_id: str, *, mode: Mode) -> str:
    """The address of the picture of a view, which is where it says when this returns."""
    if mode == "none":
        return reference(case, view_id)
    content = drawn.png(case, view_id)
    return data_uri(content) if mode == "embed" else place(target, content)


def count(target: Path) -> int:
    """Pictures that were placed below `target`."""
    return sum(1 for _ in (target / FOLDER).glob("*/*.png"))
