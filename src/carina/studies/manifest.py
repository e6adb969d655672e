"""The manifest of a study set: what made it, what it holds, and the checksum of every part.

Written last, so a directory with a manifest is a complete set; the same studies give the same bytes.
"""

import hashlib
import re
from pathlib import Path
from typing import Any, Final

import msgspec

import carina
from carina.errors import StudySetError
from carina.files import write_bytes
from carina.studies.schema import SCHEMA_VERSION

FILE: Final = "studies.json"
KIND: Final = "carina/studies"
UNFINISHED: Final = ".unfinished"
"""Holds, while there is no manifest, the fingerprint of the set whose beginning lies in a directory."""
SCHEMA: Final = ".".join(map(str, SCHEMA_VERSION))


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


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """How much a set holds."""

    studies: int
    patients: int
    images: int
    findings: dict[str, dict[str, int]]
    """Finding records by name and certainty; a study with two nodules counts twice."""


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """What a set is made from, as told by the command that makes it."""

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
        decisive = (carina.__version__, SCHEMA, self.seed, self.options, self.sources, self.image_root)
        return hashlib.sha256(msgspec.json.encode(decisive, order="sorted")).hexdigest()


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """`studies.json`, field by field."""

    kind: str = KIND
    schema: str = SCHEMA
    carina: str
    command: str
    seed: int | None
    options: dict[str, Any]
    sources: tuple[SourceInfo, ...]
    image_root: str
    fingerprint: str
    counts: Counts
    parts: tuple[PartInfo, ...]

    @property
    def version(self) -> tuple[int, int]:
        """The schema as (major, minor)."""
        return _version(self.schema)


class _Header(msgspec.Struct):
    """What must be understood before the rest may be read."""

    kind: str
    schema: str


def manifest_path(path: Path) -> Path:
    """The manifest of a set named by its directory or by its manifest."""
    return path if path.name == FILE else path / FILE


def read_manifest(directory: Path) -> Manifest:
    """The manifest of the set in `directory`, if this Carina can read it."""
    path = manifest_path(directory)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise StudySetError(_why_missing(path)) from None
    except OSError as error:
        raise StudySetError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        header = msgspec.json.decode(content, type=_Header)
    except (msgspec.DecodeError, RecursionError) as error:
        raise StudySetError(f"{path}: not the manifest of a study set: {error}") from error
    if header.kind != KIND:
        raise StudySetError(f"{path}: holds {header.kind!r}, expected {KIND!r}")
    try:
        major, _ = _version(header.schema)
    except ValueError:
        raise StudySetError(f"{path}: schema {header.schema!r} is not a version such as {SCHEMA!r}") from None
    if major > SCHEMA_VERSION[0]:
        raise StudySetError(
            f"{path}: written with schema {header.schema}; this Carina ({carina.__version__}) reads up to "
            f"{SCHEMA_VERSION[0]}.x: upgrade Carina to read it"
        )
    try:
        return msgspec.json.decode(content, type=Manifest)
    except msgspec.DecodeError as error:
        raise StudySetError(f"{path}: {error}") from error


def save_manifest(directory: Path, manifest: Manifest) -> None:
    """Write `studies.json`, whole or not at all."""
    encoded = msgspec.json.encode(manifest, order="deterministic")
    write_bytes(directory / FILE, msgspec.json.format(encoded, indent=2) + b"\n")


def _version(text: str) -> tuple[int, int]:
    if not re.fullmatch(r"[1-9][0-9]*\.[0-9]+", text, re.ASCII):
        raise ValueError(f"{text!r} is not a version such as {SCHEMA!r}")
    major, minor = text.split(".")
    return int(major), int(minor)


def _why_missing(path: Path) -> str:
    if not path.parent.is_dir():
        return f"{path.parent}: no such directory, so no study set there"
    if any((path.parent / "studies").glob("part-*.parquet")):
        return f"{path}: missing, but there are parts: an unfinished set; run the command that makes it again"
    return f"{path}: missing, so {path.parent} is not a study set"
