"""The manifest of a set: what made it, what it holds, and the checksum of every part.

Written last, so a directory with a manifest is a complete set; the same records give the same bytes.
"""

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import msgspec

import carina
from carina.files import write_bytes
from carina.store.layout import Layout, has_parts, holding

if TYPE_CHECKING:
    from carina.store.kind import Kind


class SourceInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Where studies come from, and on what terms."""

    name: str
    licence: str
    url: str | None = None


class PartInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One Parquet file of a set, by name relative to the set's directory."""

    file: str
    rows: int
    bytes: int
    sha256: str


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """What a set is made from, as told by the command that makes it. Each kind of set has its own subclass."""

    stamp: ClassVar[str]
    """Kind and version of the columns."""

    command: str
    seed: int | None = None
    options: dict[str, Any] = {}
    sources: tuple[SourceInfo, ...] = ()
    image_root: str = "."
    """Where image keys start: relative to the set's directory, or absolute."""

    @property
    def fingerprint(self) -> str:
        """The same for everything that gives the same bytes.

        The text of the command is left out: it may name an output folder or a number of workers.
        """
        decisive = (carina.__version__, self.stamp, self.seed, self.options, self.sources, self.image_root)
        return hashlib.sha256(msgspec.json.encode(decisive, order="sorted")).hexdigest()


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """A manifest, field by field. Each kind of set has its own subclass, which says what is counted."""

    kind: str
    schema: str
    carina: str
    command: str
    seed: int | None
    options: dict[str, Any]
    sources: tuple[SourceInfo, ...]
    image_root: str
    fingerprint: str
    counts: Any
    parts: tuple[PartInfo, ...]

    @property
    def version(self) -> tuple[int, int]:
        """The schema as (major, minor)."""
        return _version(self.schema)


M = TypeVar("M", bound=Manifest)


class _Header(msgspec.Struct):
    """What must be understood before the rest may be read."""

    kind: str
    schema: str


def manifest_path(layout: Layout, path: Path) -> Path:
    """The manifest of a set named by its directory or by its manifest."""
    return path if path.name == layout.file else path / layout.file


def read_manifest(kind: "Kind[Any, M]", path: Path) -> M:
    """The manifest of the set in a directory (or named by the manifest itself), if this Carina can read it."""
    layout, error_class = kind.layout, kind.error
    file = manifest_path(layout, path)
    try:
        content = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise error_class(_why_missing(layout, path, file)) from None
    except OSError as error:
        raise error_class(f"{file}: cannot be read: {error.strerror}") from error
    try:
        header = msgspec.json.decode(content, type=_Header)
    except (msgspec.DecodeError, RecursionError) as error:
        raise error_class(f"{file}: not the manifest of a {layout.title}: {error}") from error
    if header.kind != layout.kind:
        raise error_class(f"{file}: holds {header.kind!r}, expected {layout.kind!r}")
    try:
        major, _ = _version(header.schema)
    except ValueError:
        raise error_class(
            f"{file}: schema {header.schema!r} is not a version such as {kind.schema_version!r}"
        ) from None
    if major > kind.version[0]:
        raise error_class(
            f"{file}: written with schema {header.schema}; this Carina ({carina.__version__}) reads up to "
            f"{kind.version[0]}.x: upgrade Carina to read it"
        )
    try:
        return msgspec.json.decode(content, type=kind.manifest)
    except msgspec.DecodeError as error:
        raise error_class(f"{file}: {error}") from error


def save_manifest(layout: Layout, directory: Path, manifest: Manifest) -> None:
    """Write the manifest, whole or not at all."""
    encoded = msgspec.json.encode(manifest, order="deterministic")
    write_bytes(directory / layout.file, msgspec.json.format(encoded, indent=2) + b"\n")


def _version(text: str) -> tuple[int, int]:
    if not re.fullmatch(r"[1-9][0-9]*\.[0-9]+", text, re.ASCII):
        raise ValueError(f"{text!r} is not a version such as '1.0'")
    major, minor = text.split(".")
    return int(major), int(minor)


def _why_missing(layout: Layout, path: Path, file: Path) -> str:
    there = holding(path)
    if there is not None and there != layout:
        return f"{path}: holds a {there.title}, not a {layout.title}: `{there.opener}` reads it"
    if not file.parent.is_dir():
        return f"{file.parent}: no such directory, so no {layout.title} there"
    if has_parts(file.parent, layout):
        return f"{file}: missing, but there are parts: an unfinished set; run the command that makes it again"
    return f"{file}: missing, so {file.parent} is not a {layout.title}"
