"""Pictures of an export, which are views rendered as PNG: left out, written once each, or put into the records."""

import base64
import hashlib
from pathlib import Path
from typing import Final, Literal, Protocol

from carina.cases.model import Case
from carina.store.files import write_bytes

PictureMode = Literal["none", "copy", "embed"]
FOLDER: Final = "images"
_NAME_DIGITS: Final = 32
"""Hex digits of the SHA-256 that name a picture: 128 bits, so that no two share a name."""


class Renderer(Protocol):
    """What renders views."""

    def png(self, case: Case, view_id: str) -> bytes: ...


def reference(case: Case, view_id: str) -> str:
    """The name of a picture that is left out: the key of its image, and `#<view>` where something is drawn on it.

    Of a view with several images, the first counts.
    """
    view = case.view(view_id)
    panel = view.panels[0]
    is_plain = len(view.panels) == 1 and not (
        panel.overlays or panel.marks or panel.crop or panel.caption or view.side
    )
    return panel.image if is_plain else f"{panel.image}#{view_id}"


def place(folder: Path, content: bytes) -> str:
    """Write a picture below `folder`, if it is not there yet; returns its path relative to `folder`."""
    name = hashlib.sha256(content).hexdigest()[:_NAME_DIGITS]
    path = f"{FOLDER}/{name[:2]}/{name}.png"
    # A file with its final name is whole, and its name says what is in it.
    if not (folder / path).is_file():
        write_bytes(folder / path, content)
    return path


def data_uri(content: bytes) -> str:
    """A picture as an address that holds it."""
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"


def refer(renderer: Renderer, folder: Path, case: Case, view_id: str, *, mode: PictureMode) -> str:
    """The address of the picture of a view; with `mode="copy"` the picture is written first."""
    if mode == "none":
        return reference(case, view_id)
    content = renderer.png(case, view_id)
    return data_uri(content) if mode == "embed" else place(folder, content)


def count(folder: Path) -> int:
    """The number of pictures that were placed below `folder`."""
    return sum(1 for _ in (folder / FOLDER).glob("*/*.png"))
