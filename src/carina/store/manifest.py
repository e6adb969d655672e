"""The manifest of a set: what made it, what it holds, and the checksum of every part.

Written last, so a directory with a manifest is a complete set; the same records give the same bytes.
"""

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import msgspec

from carina.store.documents import DECODE_ERRORS, decode_json, explain_decode_error, read_file
from carina.store.errors import CarinaError
from carina.store.files import write_bytes
from carina.store.layout import Layout, has_parts, layout_of
from carina.store.resume import read_marker
from carina.version import __version__

if TYPE_CHECKING:
    from carina.store.kind import Kind


class SourceInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A source of studies, and its licence."""

    name: str
    licence: str
    url: str | None = None
    citation: str | msgspec.UnsetType = msgspec.UNSET
    """What to cite; left out of the manifest where the source names nothing."""


class PartInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One Parquet file of a set, by name relative to the set's directory."""

    file: str
    rows: int
    bytes: int
    sha256: str


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """What a set is made from, as the command that writes it states. Each kind of set has its own subclass."""

    stamp: ClassVar[str]
    """Kind and version of the columns."""

    command: str
    seed: int | None = None
    options: dict[str, Any] = {}
    sources: tuple[SourceInfo, ...] = ()
    image_root: str = "."
    """Directory that image keys are relative to: itself relative to the directory of the set, or absolute."""

    @property
    def fingerprint(self) -> str:
        """A hash of everything that decides the bytes of the set.

        The text of the command is left out: it may name an output directory or a number of workers.
        """
        decisive = (__version__, self.stamp, self.seed, self.options, self.sources, self.image_root)
        return hashlib.sha256(msgspec.json.encode(decisive, order="sorted")).hexdigest()


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a manifest. Each kind of set has its own subclass, which declares the counts."""

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
    """The fields that decide whether this Carina can read the rest."""

    kind: str
    schema: str


def manifest_path(layout: Layout, path: Path) -> Path:
    """Path of the manifest of a set, given the directory of the set or the manifest itself."""
    return path if path.name == layout.file else path / layout.file


def read_manifest(kind: "Kind[Any, M]", path: Path) -> M:
    """The manifest of the set in a directory, or of the manifest file itself.

    Raises:
        CarinaError: Of the kind's class: the manifest is missing, damaged, or written by a newer Carina.
    """
    layout, error_class = kind.layout, kind.error
    file = manifest_path(layout, path)
    if not _is_there(file):
        raise error_class(_why_missing(layout, path, file))
    content = read_file(file, error=error_class)
    check_header(
        file,
        content,
        kind=layout.kind,
        title=f"the manifest of a {layout.title}",
        schema=kind.schema_version,
        error_class=error_class,
    )
    return decode_json(content, kind.manifest, path=file, error=error_class)


def _is_there(file: Path) -> bool:
    try:
        return file.exists()
    except OSError:  # a name that is too long, or a folder that may not be entered: reading says which
        return True


def check_header(
    file: Path, content: bytes, *, kind: str, title: str, schema: str, error_class: type[CarinaError]
) -> None:
    """Check that a manifest is of the expected kind, and of a schema that this Carina can read.

    Every reader of a manifest calls this before it decodes the rest.

    Args:
        file: Where the content was read from, for messages.
        content: JSON with the fields `kind` and `schema`.
        kind: Expected kind.
        title: What the file should be, for messages: "the manifest of a study set".
        schema: Newest schema that this Carina writes; a newer major version is refused.
        error_class: Class of the errors that are raised.
    """
    try:
        header = msgspec.json.decode(content, type=_Header)
    except DECODE_ERRORS as error:
        raise error_class(f"{file}: not {title}: {explain_decode_error(error)}") from error
    if header.kind != kind:
        raise error_class(f"{file}: holds {header.kind!r}, expected {kind!r}")
    try:
        major, _ = _version(header.schema)
    except ValueError:
        raise error_class(f"{file}: schema {header.schema!r} is not a version such as {schema!r}") from None
    newest, _ = _version(schema)
    if major > newest:
        raise error_class(
            f"{file}: written with schema {header.schema}; this Carina ({__version__}) reads up to {newest}.x: "
            "upgrade Carina to read it"
        )


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
    other = layout_of(path)
    if other is not None and other != layout:
        return f"{path}: is a {other.title}, expected a {layout.title}; {layout.made_by}"
    if not file.parent.is_dir():
        return f"{file.parent}: no such directory, expected a {layout.title}"
    if has_parts(file.parent, layout) or read_marker(file.parent) is not None:
        return f"{file}: missing: an unfinished set. Run the command that writes it again"
    return f"{file}: missing, so {file.parent} is not a {layout.title}"
