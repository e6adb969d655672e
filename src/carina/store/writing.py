"""Writing a set of records so that work can be shared, interrupted and resumed.

`Writer.create` claims a directory and locks it; its parts are written in any order by any process, and the manifest
closes it. Until then there is nothing to open: a reader never mistakes half a set for a whole one. What is common to
all directories that Carina writes lies in `carina.store.resume`.

The finishing step is the same for every command: first the files beside the parts (lists of skipped records, reports),
then the manifest, then the notes of the command and the marker are removed. Killed before the manifest, the command is
repeated from the parts that are whole; killed after it, the next call removes what is left.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any, Final, Generic

import msgspec

from carina.store import parts as part_files
from carina.store.distinct import Distinct
from carina.store.files import remove_temporary_files
from carina.store.kind import Kind, R
from carina.store.layout import layout_of, part_paths
from carina.store.manifest import M, Manifest, PartInfo, Provenance, read_manifest, save_manifest
from carina.store.resume import (
    WAYS_OUT,
    claim_directory,
    is_empty,
    mark_finished,
    mark_unfinished,
    read_marker,
    remove_notes,
)
from carina.version import __version__

PART_SIZE: Final = 1024
"""Records a part, where the caller does not say: tens of megabytes, so one fits in memory many times over."""


@dataclass(frozen=True)
class SetBuild(Generic[R, M]):
    """A directory that is claimed and locked for one set, as `Writer.create` returns it."""

    writer: "Writer[R, M]"
    directory: Path
    provenance: Provenance

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the set, which every part carries."""
        return self.provenance.fingerprint

    def manifest(self) -> M | None:
        """The manifest in the directory, whatever became of the parts since; None for an unfinished set."""
        return self.writer.read_manifest(self.directory)

    def finished(self) -> M | None:
        """The manifest, if the set is complete and no part was damaged or changed since: nothing is left to do."""
        manifest = self.manifest()
        if manifest is None:
            return None
        parts = tuple(self.finished_part(index) for index in range(len(manifest.parts)))
        return manifest if parts == manifest.parts else None

    def finished_part(self, index: int) -> PartInfo | None:
        """As `Writer.finished_part`."""
        return self.writer.finished_part(self.directory, index, fingerprint=self.fingerprint)

    def write_part(self, index: int, records: Iterable[R]) -> PartInfo:
        """As `Writer.write_part`."""
        return self.writer.write_part(self.directory, index, records, fingerprint=self.fingerprint)

    def write_packed_part(self, index: int, batches: Iterable[Any]) -> PartInfo:
        """As `Writer.write_packed_part`."""
        return self.writer.write_packed_part(self.directory, index, batches, fingerprint=self.fingerprint)

    def complete_part(
        self, index: int, make: Callable[[], Iterable[R]], *, rows: int | None = None
    ) -> PartInfo:
        """As `Writer.complete_part`."""
        return self.writer.complete_part(self.directory, index, make, fingerprint=self.fingerprint, rows=rows)

    def close(self, parts: Iterable[PartInfo], write_beside: Callable[[M], object] | None = None) -> M:
        """Count what the parts hold, remove parts of this set that are no longer wanted, and write the manifest.

        Records are streamed; of each a few bytes are remembered, to find duplicate ids. Parts may be written while they
        are taken from `parts`: each is counted at once.

        Args:
            parts: All parts of the set, in order.
            write_beside: Writes the files that lie beside the parts, such as `skipped.csv`. Called with the manifest
                before that is written, so that a set with a manifest has these files.
        """
        return self.writer.close(self.directory, self.provenance, parts, write_beside)


@dataclass(frozen=True)
class Writer(Generic[R, M]):
    """Writes sets of one kind. Holds nothing but the kind: all state is in the directory."""

    kind: Kind[R, M]

    @contextmanager
    def create(
        self,
        directory: Path,
        provenance: Provenance,
        *,
        replace: bool = False,
        beside: Sequence[str] = (),
        notes: Sequence[str] = (),
    ) -> Iterator[SetBuild[R, M]]:
        """Claim a directory for a set and keep every other writer out of it until the block ends.

        Finished parts of an interrupted call stay. The set is complete when `SetBuild.close` was called; a block that
        ends earlier leaves an unfinished set, which the next call with the same provenance resumes.

        Args:
            directory: Created where it is missing.
            provenance: What the set is made from; its fingerprint decides what may be continued.
            replace: Give up a set, complete or begun, that was made in another way, instead of refusing it. A set of
                another kind is refused in any case.
            beside: Names of files and folders that the command writes beside the parts. Where one is there before the
                set is begun, it is somebody else's, and the directory is refused.
            notes: Names of files and folders that the command needs only until the set is complete.

        Raises:
            CarinaError: Of the kind's own class: the directory holds another set or files that are in the way, or
                another process writes there.
        """

        def is_complete() -> bool:
            return self._is_complete(directory, provenance, replace=replace, names=(*beside, *notes))

        with claim_directory(directory, provenance.fingerprint, is_complete, error=self.kind.error):
            yield SetBuild(self, directory, provenance)
            if (directory / self.kind.layout.file).exists():
                remove_temporary_files(directory / self.kind.layout.folder, is_recursive=False)
                remove_notes(directory, notes)
                mark_finished(directory)

    def _is_complete(
        self, directory: Path, provenance: Provenance, *, replace: bool, names: Iterable[str]
    ) -> bool:
        """Whether the directory holds this very set; raises where it holds another one, or files in the way."""
        layout, error = self.kind.layout, self.kind.error
        other = layout_of(directory)
        if other is not None and other != layout:
            raise error(
                f"{directory}: holds a {other.title}: choose another directory for the {layout.title}"
            )
        manifest = self.read_manifest(directory)
        if replace:
            self._give_up(directory, manifest, provenance.fingerprint)
            manifest = None
        if manifest is not None and manifest.fingerprint != provenance.fingerprint:
            raise error(
                f"{directory}: already holds {_rows(manifest)} {layout.folder} made in another way "
                f"(`{manifest.command}`; {self._describe_difference(manifest, provenance)}): {WAYS_OUT}"
            )
        self._refuse_foreign_files(directory, manifest, provenance.fingerprint, names)
        return manifest is not None

    def _give_up(self, directory: Path, manifest: M | None, fingerprint: str) -> None:
        """Remove the set in a directory, complete or begun; of the same set, only the manifest."""
        former = read_marker(directory) if manifest is None else manifest.fingerprint
        if former is None:
            return
        if former != fingerprint:
            listed = {part.file for part in manifest.parts} if manifest else set()
            for path in list(part_paths(directory, self.kind.layout)):
                if self._name(path) in listed or part_files.read_fingerprint(path) == former:
                    path.unlink()
        mark_unfinished(directory, fingerprint)
        (directory / self.kind.layout.file).unlink(missing_ok=True)

    def _refuse_foreign_files(
        self, directory: Path, manifest: M | None, fingerprint: str, names: Iterable[str]
    ) -> None:
        """Raise where the set would overwrite or remove a file that Carina did not write."""
        marker = read_marker(directory)
        if marker not in {None, fingerprint}:
            return  # the beginning of another set, which `claim_directory` refuses
        listed = {part.file for part in manifest.parts} if manifest else set()
        stated = {
            path: part_files.read_fingerprint(path)
            for path in sorted(part_paths(directory, self.kind.layout))
            if self._name(path) not in listed
        }
        is_begun = manifest is not None or marker is not None or fingerprint in stated.values()
        # Where this set is begun, a part that cannot be read is a damaged one, which is made again.
        own = {fingerprint, None} if is_begun else {fingerprint}
        unknown = [path for path, found in stated.items() if found not in own]
        if not is_begun:
            unknown += [directory / name for name in names if not is_empty(directory / name)]
        if unknown:
            raise self._in_the_way(unknown[0])

    def _in_the_way(self, path: Path) -> Exception:
        return self.kind.error(
            f"{path}: was not written by this command, which would overwrite or remove it: move it away or choose "
            f"another directory for the {self.kind.layout.title}"
        )

    def _name(self, part: Path) -> str:
        """Name of a part as manifests state it."""
        return f"{self.kind.layout.folder}/{part.name}"

    def _describe_difference(self, there: Manifest, wanted: Provenance) -> str:
        """The differing settings that change the bytes, as text."""
        options = msgspec.json.decode(
            msgspec.json.encode(wanted.options)
        )  # as the manifest holds them: no tuples
        pairs: dict[str, tuple[object, object]] = {
            "seed": (there.seed, wanted.seed),
            "image root": (there.image_root, wanted.image_root),
        }
        for name in sorted({*there.options, *options}):
            pairs[name] = (there.options.get(name), options.get(name))
        pairs["sources"] = (_list_sources(there), _list_sources(wanted))
        pairs["schema"] = (there.schema, self.kind.schema_version)
        pairs["Carina"] = (there.carina, __version__)
        differing = [
            f"{name} {theirs}, not {ours}" for name, (theirs, ours) in pairs.items() if theirs != ours
        ]
        return (
            "; ".join(differing)
            or "another description of a source, or an earlier way to compute fingerprints"
        )

    def read_manifest(self, directory: Path) -> M | None:
        """The manifest in a directory, or None where there is none."""
        return read_manifest(self.kind, directory) if (directory / self.kind.layout.file).exists() else None

    def write_part(self, directory: Path, index: int, records: Iterable[R], *, fingerprint: str) -> PartInfo:
        """Write part number `index` of a set, whole or not at all; safe to call from several processes at once.

        A manifest that lies there is removed first: it described the parts before this one changed. Records may be made
        while they are taken: of those that are columns already nothing is kept.
        """
        return part_files.write_part(self.kind, directory, index, records, fingerprint=fingerprint)

    def write_table_part(
        self,
        directory: Path,
        index: int,
        table: Any,  # noqa: ANN401 - pyarrow has no types
        *,
        fingerprint: str,
    ) -> PartInfo:
        """As `write_part`, from an Arrow table with exactly the kind's schema: for rows by the million."""
        return part_files.write_table_part(self.kind, directory, index, table, fingerprint=fingerprint)

    def write_packed_part(
        self, directory: Path, index: int, batches: Iterable[Any], *, fingerprint: str
    ) -> PartInfo:
        """As `write_part`, for records that other processes have packed with `carina.store.parts.pack_records`."""
        return part_files.write_packed_part(self.kind, directory, index, batches, fingerprint=fingerprint)

    def finished_part(self, directory: Path, index: int, *, fingerprint: str) -> PartInfo | None:
        """A part that an earlier call finished; None where it is missing, damaged or made in another way."""
        return part_files.finished_part(self.kind, directory, index, fingerprint=fingerprint)

    def complete_part(
        self,
        directory: Path,
        index: int,
        make: Callable[[], Iterable[R]],
        *,
        fingerprint: str,
        rows: int | None = None,
    ) -> PartInfo:
        """The part that an earlier call finished, else the part written from the records that `make` returns.

        Args:
            directory: Directory of the set.
            index: Number of the part, from 0.
            make: Called where the part is missing, damaged, or made in another way.
            fingerprint: Of the set.
            rows: Number of records that a finished part must hold; None for any.
        """
        part = self.finished_part(directory, index, fingerprint=fingerprint)
        if part is not None and (rows is None or part.rows == rows):
            return part
        return self.write_part(directory, index, make(), fingerprint=fingerprint)

    def close(
        self,
        directory: Path,
        provenance: Provenance,
        parts: Iterable[PartInfo],
        write_beside: Callable[[M], object] | None = None,
    ) -> M:
        """As `SetBuild.close`, which keeps other writers out."""
        layout = self.kind.layout
        taken: list[PartInfo] = []
        counts = self.kind.count(self._read_counted_columns(directory, parts, taken))
        listed = {part.file for part in taken}
        for stale in list(part_paths(directory, layout)):
            if self._name(stale) in listed:
                continue
            if part_files.read_fingerprint(stale) == provenance.fingerprint:
                stale.unlink()
        for folder in (directory, directory / layout.folder):
            remove_temporary_files(folder, is_recursive=False)
        manifest = self.kind.manifest(
            kind=layout.kind,
            schema=self.kind.schema_version,
            carina=__version__,
            command=provenance.command,
            seed=provenance.seed,
            options=provenance.options,
            sources=tuple(sorted(provenance.sources, key=lambda source: source.name)),
            image_root=provenance.image_root,
            fingerprint=provenance.fingerprint,
            counts=counts,
            parts=tuple(taken),
        )
        if write_beside is not None:
            write_beside(manifest)
        save_manifest(layout, directory, manifest)
        return manifest

    def write(
        self,
        directory: Path,
        records: Iterable[R],
        provenance: Provenance,
        *,
        part_size: int = PART_SIZE,
        replace: bool = False,
    ) -> M:
        """Write a whole set from one stream of records, with at most one part in memory.

        A complete set is given up only with `replace=True`: nobody can tell whether the stream still holds what was
        written before.
        """
        with self.create(directory, provenance, replace=replace) as build:
            manifest = build.manifest()
            if manifest is not None:
                held = f"{_rows(manifest)} {self.kind.layout.folder}"
                raise self.kind.error(f"{directory}: already holds {held}: {WAYS_OUT}, or pass replace=True")
            return build.close(_write_parts(build, records, part_size))

    def _read_counted_columns(
        self, directory: Path, parts: Iterable[PartInfo], taken: list[PartInfo]
    ) -> Iterator[Any]:
        """The counted columns as Arrow batches; adds each part to `taken`, and refuses an id that occurs twice."""
        seen = Distinct()
        for part in parts:
            taken.append(part)
            for _, batch in self._reader(directory, part).batches(self.kind.counted):
                suspects = seen.add(batch.column("id").to_pylist())
                if suspects:
                    self._refuse_duplicates(directory, taken, suspects)
                yield batch

    def _refuse_duplicates(
        self, directory: Path, parts: Iterable[PartInfo], suspects: Collection[int]
    ) -> None:
        """Look at the ids whose digests came before, and raise where an id did."""
        places: dict[str, tuple[str, int]] = {}
        for part in parts:
            reader = self._reader(directory, part)
            for row, values in reader.rows(["id"]):
                name = values["id"]
                if hash(name) not in suspects:
                    continue
                if name in places:
                    file, earlier = places[name]
                    place = reader.place(row, name)
                    raise self.kind.error(f"{place}: the id is already taken by row {earlier} of {file}")
                places[name] = (part.file, row)

    def _reader(self, directory: Path, part: PartInfo) -> part_files.PartReader[R, M]:
        # The checksums were just computed by the writer of the part.
        return part_files.PartReader(self.kind, directory, part, minor=self.kind.version[1], verify=False)


def _write_parts(build: SetBuild[R, M], records: Iterable[R], part_size: int) -> Iterator[PartInfo]:
    """Write parts of `part_size` records each."""
    stream = iter(records)
    for index in count():
        chunk = list(islice(stream, part_size))
        if not chunk:
            return
        yield build.write_part(index, chunk)


def _rows(manifest: Manifest) -> int:
    return sum(part.rows for part in manifest.parts)


def _list_sources(made: Manifest | Provenance) -> list[str]:
    return sorted(source.name for source in made.sources)
