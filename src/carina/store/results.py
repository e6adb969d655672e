"""What every public function returns: an object with a path, a table, and a form that notebooks show.

Also `as_path`, by which every public function takes a path or such an object.
"""

import html
import os
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from carina.store.errors import CarinaError

if TYPE_CHECKING:
    import polars as pl


class HasPath(Protocol):
    """Anything that lies on disk and knows where."""

    @property
    def path(self) -> Path: ...


Location: TypeAlias = str | os.PathLike[str] | HasPath
"""A location on disk: text, a path, or an object that Carina returned."""


def as_path(location: Location) -> Path:
    """The path of a location.

    Raises:
        CarinaError: It is neither a path nor an object with a path, or no file can be there: the path holds a NUL
            character, is not UTF-8 text, or is a link that leads back to itself.

    Example:
        >>> as_path("runs/reader").name
        'reader'
    """
    if getattr(location, "is_narrowed", False):
        raise CarinaError(
            f"{location!r}: holds only what where() selected, and this function works on whole sets; pass the whole set"
        )
    path = Path(location) if isinstance(location, str | os.PathLike) else getattr(location, "path", None)
    if not isinstance(path, Path):
        shown = f"{reprlib.repr(location)} ({type(location).__name__})"
        raise CarinaError(f"expected a path or an object that Carina returned, found {shown}")
    if "\0" in str(path):
        raise CarinaError(f"expected a path, found {str(path)!r}: a path cannot hold a NUL character")
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise CarinaError(
            f"{str(path)!r}: a name that is not UTF-8 text, which no manifest can hold; rename it or choose another"
        ) from None
    try:
        path.resolve()
    except (OSError, RuntimeError):
        raise CarinaError(f"{path}: its links lead in a circle; remove them or choose another path") from None
    return path


def image_directory(location: Location, images: Location | None) -> Path | None:
    """The directory of images that a caller names: by an argument, or by the set that was opened with one.

    Args:
        location: The set, by its path or opened.
        images: Directory of the images; None where the caller names none.

    Returns:
        The directory; None for the one that the set names itself.
    """
    if images is not None:
        return as_path(images)
    found: Path | None = getattr(location, "other_image_root", None)
    return found


def as_pandas(frame: "pl.DataFrame") -> Any:  # noqa: ANN401 - pandas is optional
    """A polars table as a pandas table.

    Raises:
        CarinaError: pandas is not installed.
    """
    try:
        import pandas  # noqa: F401, PLC0415 - optional, only its presence matters
    except ImportError:
        raise CarinaError("to_pandas needs pandas: pip install pandas") from None
    return frame.to_pandas()


class Result(ABC):
    """Base of what public functions return."""

    @property
    @abstractmethod
    def path(self) -> Path:
        """Its location on disk."""

    @abstractmethod
    def to_frame(self) -> "pl.DataFrame":
        """Its rows as a polars table."""

    def to_pandas(self) -> Any:  # noqa: ANN401 - pandas is optional
        """As `to_frame`, as a pandas table.

        Raises:
            CarinaError: pandas is not installed.
        """
        return as_pandas(self.to_frame())

    def _summary(self) -> Mapping[str, object]:
        """A few numbers or names that describe it in one line, by what they are."""
        return {}

    def __repr__(self) -> str:
        described = "".join(f", {name}={value!r}" for name, value in self._summary().items())
        return f"{type(self).__name__}({str(self.path)!r}{described})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name.replace('_', ' '))}</th>"
            f"<td style='text-align:left'>{html.escape(str(value))}</td></tr>"
            for name, value in {"path": self.path, **self._summary()}.items()
        )
        return f"<table><caption>{html.escape(type(self).__name__)}</caption>{rows}</table>"
