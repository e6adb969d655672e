"""Pictures of an export, which are views rendered as PNG: not written, written as files, or embedded in the records."""

import base64
import hashlib
from pathlib import Path
from typing import Final, Literal, Protocol

from carina.cases.model import Case
from carina.store.files import write_bytes

PictureMode = Literal["none", "copy", "embed"]
FOLDER: Final = "images"
NAME_DIGITS: Final = 32
"""Hex digits of the SHA-256 in the name of a picture: 128 bits, so that no two pictures have the same name."""


class Renderer(Protocol):
    """An object that renders views."""

    def png(self, case: Case, view_id: str) -> bytes: ...


def name_picture(case: Case, view_id: str) -> str:
    """The name of a picture that is not written: the key of its image, and `#<view>` where something is drawn on it.

    For a view with several images, it is the key of the first.
    """
    view = case.view(view_id)
    panel = view.panels[0]
    is_plain = len(view.panels) == 1 and not (
        panel.overlays or panel.marks or panel.crop or panel.caption or view.side
    )
    return panel.image if is_plain else f"{panel.image}#{view_id}"


def write_picture(folder: Path, content: bytes) -> str:
    """Write a picture below `folder`, if it is not there yet; returns its path relative to `folder`."""
    name = hashlib.sha256(content).hexdigest()[:NAME_DIGITS]
    path = f"{FOLDER}/{name[:2]}/{name}.png"
    # A file with its final name is complete, and its name is a checksum of its content.
    if not (folder / path).is_file():
        write_bytes(folder / path, content)
    return path


def make_data_uri(content: bytes) -> str:
    """A picture as a data URI."""
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"


def make_address(renderer: Renderer, folder: Path, case: Case, view_id: str, *, mode: PictureMode) -> str:
    """The address of the picture of a view; with `mode="copy"` the picture is written first."""
    if mode == "none":
        return name_picture(case, view_id)
    content = renderer.png(case, view_id)
    return make_data_uri(content) if mode == "embed" else write_picture(folder, content)


def list_pictures(folder: Path) -> tuple[str, ...]:
    """The pictures that were placed below `folder`, by paths relative to it."""
    return tuple(sorted(path.relative_to(folder).as_posix() for path in (folder / FOLDER).glob("*/*.png")))
