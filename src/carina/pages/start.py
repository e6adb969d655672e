"""The start page of a directory with several kinds of pages: one tile for each, and what to do next.

html = render_start([Tile(title="Studies", text="...", count="200 studies", link="pages/index.html")], title="Demo")
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import cv2
import numpy as np

from carina.cases.draw import Rgb, Size, fit_size, scale, size_of
from carina.pages.figures import jpeg_uri
from carina.pages.frame import render_page

_PREVIEW: Final = Size(width=720, height=405)
"""Size of the preview image of a tile in pixels."""


@dataclass(frozen=True, kw_only=True)
class Link:
    """A text and the address it leads to, relative to the start page."""

    text: str
    href: str


@dataclass(frozen=True, kw_only=True)
class Tile:
    """One kind of page: what it is, how much of it there is, and where it begins."""

    title: str
    text: str
    count: str
    link: str
    """Address relative to the start page."""
    more: tuple[Link, ...] = ()
    preview: str | None = None
    """Preview image as a data URI."""
    is_chart: bool = False
    """Whether the preview is a chart, which is shown whole on white."""


@dataclass(frozen=True, kw_only=True)
class RunEntry:
    """One run that the start page lists."""

    benchmark: str
    model: str
    setting: str
    directory: str
    is_reported: bool = True
    """Whether a report of the directory holds it."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command to try next, and what it does."""

    text: str
    purpose: str


def render_start(
    tiles: Sequence[Tile],
    *,
    title: str,
    lead: str,
    runs: Sequence[RunEntry] = (),
    commands: Sequence[Command] = (),
) -> str:
    """The start page as HTML."""
    values: dict[str, object] = {
        "title": title,
        "lead": lead,
        "tiles": tiles,
        "runs": runs,
        "commands": commands,
    }
    return render_page("start.html.j2", values, title=title, styles=("start.css",))


def preview_uri(path: Path, *, width: int | None = None) -> str | None:
    """An image file as a small data URI; None where it cannot be read.

    With a width in pixels only the top left corner is taken, in the shape of a preview.
    """
    content = np.fromfile(path, np.uint8) if path.is_file() else np.empty(0, np.uint8)
    decoded = cv2.imdecode(content, cv2.IMREAD_COLOR) if content.size else None
    if decoded is None:
        return None
    image: Rgb = np.asarray(decoded[..., ::-1], np.uint8)
    if width is not None:
        image = np.ascontiguousarray(image[: round(width * _PREVIEW.height / _PREVIEW.width), :width])
    size = size_of(image)
    return jpeg_uri(scale(image, fit_size(size, _PREVIEW)) if size.width > _PREVIEW.width else image)
