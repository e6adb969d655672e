"""Writing a set so that work can be shared, interrupted and taken up again.

A set is claimed, its parts are written in any order by any process, and the manifest closes it. Until then
there is nothing to open: a reader never mistakes half a set for a whole one.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any, Final, Generic

import carina
from carina.files import write_bytes
from carina.store import parts as part_files
from carina.store.distinct import Distinct
from carina.store.kind import Kind, R
from carina.store.layout import UNFINISHED, holding, part_paths
from carina.store.manifest import M, Manifest, PartInfo, Provenance, read_manifest, save_manifest

PART_SIZE: Final = 1024
"""Records a part, where the caller does not say: tens of megabytes, so one fits in memory many times over."""

_WAY_OUT: Final = "choose another directory, remove this one, or replace it"


@dataclass(frozen=True)
class Writer(Generic[R, M]):
    """Writes sets of one kind. Holds nothing but the kind: all state is in the directory."""

    kind: Kind[R, M]

    def claim(self, directory: Path, provenance: Provenance, *, replace: bool = False) -> None:
        """Make `directory` ready for a set; call it before the first part is written.

        Parts of an interrupted call stay, for `finished_part` to find. A set made in another way, complete or begun,
        is refused, or given up with `replace=True`; one of another kind is always refused.
        """
        layout, error = self.kind.layout, self.kind.error
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise error(f"{directory}: is a file, expected a directory for the {layout.title}") from None
        there = holding(directory)
        if there is not None and there != layout:
            raise error(
                f"{directory}: holds a {there.title}: choose another directory for the {layout.title}"
            )
        manifest, unfinished = directory / layout.file, directory / UNFINISHED
        if replace:
            manifest.unlink(missing_ok=True)
            unfinished.unlink(missing_ok=True)
        found = self.finished_set(directory)
        if found is not None:
            if found.fingerprint != provenance.fingerprint:
                raise error(
                    f"{directory}: already holds {_holds(found)} {layout.folder} made in another way "
                    f"(`{found.command}`; {_difference(found, provenance)}): {_WAY_OUT}"
                )
        elif unfinished.exists() and unfinished.read_bytes() != provenance.fingerprint.encode():
            raise error(
                f"{directory}: holds the beginning of a set made in another way: finish it with the command that "
                f"began it, {_WAY_OUT}"
            )
        else:
            write_bytes(unfinished, provenance.fingerprint.encode())

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

    def finished_part(self, directory: Path, index: int, *, fingerprint: str) -> PartInfo | None:
        """A part that an earlier call finished; None where it is missing, damaged or made in another way."""
        return part_files.finished_part(self.kind, directory, index, fingerprint=fingerprint)

    def finished_set(self, directory: Path) -> M | None:
        """The manifest of a complete set that lies there, if there is one."""
        there = (directory / self.kind.layout.file).exists()
        return read_manifest(self.kind, directory) if there else None

    def whole_set(self, directory: Path, *, fingerprint: str) -> M | None:
        """As `finished_set`, if nothing of it was damaged or changed since: a build then has nothing to do."""
        manifest = self.finished_set(directory)
        if manifest is None:
            return None
        parts = (
            self.finished_part(directory, n, fingerprint=fingerprint) for n in range(len(manifest.parts))
        )
        return manifest if tuple(parts) == manifest.parts else None

    def write_manifest(self, directory: Path, provenance: Provenance, parts: Iterable[PartInfo]) -> M:
        """Close a set: count what its parts hold, remove parts that do not belong to it, write the manifest.

        Records are streamed; of each a few bytes are remembered, to find duplicates. Parts may be written
        while they are taken: each is counted at once.
        """
        layout = self.kind.layout
        taken: list[PartInfo] = []
        counts = self.kind.count(self._counted(directory, parts, taken))
        listed = {part.file for part in taken}
        for stale in list(part_paths(directory, layout)):
            if f"{layout.folder}/{stale.name}" not in listed:
                stale.unlink()
        for leftover in (directory / layout.folder).glob(".part-*.tmp"):
            leftover.unlink()
        manifest = self.kind.manifest(
            kind=layout.kind,
            schema=self.kind.schema_version,
            carina=carina.__version__,
            command=provenance.command,
            seed=provenance.seed,
            options=provenance.options,
            sources=tuple(sorted(provenance.sources, key=lambda source: source.name)),
            image_root=provenance.image_root,
            fingerprint=provenance.fingerprint,
            counts=counts,
            parts=tuple(taken),
        )
        save_manifest(layout, directory, manifest)
        (directory / UNFINISHED).unlink(missing_ok=True)
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
        """Write a whole set from one stream, with at most one part in memory.

        A complete set that lies there is given up only with `replace=True`: nobody can tell whether the stream still
        holds what was written before.
        """
        self.claim(directory, provenance, replace=replace)
        there = self.finished_set(directory)
        if there is not None:
            held = f"{_holds(there)} {self.kind.layout.folder}"
            raise self.kind.error(f"{directory}: already holds {held}: {_WAY_OUT}")
        stream = iter(records)
        parts: list[PartInfo] = []
        for index in count():
            chunk = list(islice(stream, part_size))
            if not chunk:
                break
            parts.append(self.write_part(directory, index, chunk, fingerprint=provenance.fingerprint))
        return self.write_manifest(directory, provenance, parts)

    def _counted(self, directory: Path, parts: Iterable[PartInfo], taken: list[PartInfo]) -> Iterator[Any]:
        """The columns that are counted, as Arrow batches; what was counted is `taken`. No id may come twice."""
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
        # The sums were just taken by whoever wrote the part.
        return part_files.PartReader(self.kind, directory, part, minor=self.kind.version[1], verify=False)


def _holds(manifest: Manifest) -> int:
    return sum(part.rows for part in manifest.parts)


def _difference(there: Manifest, wanted: Provenance) -> str:
    """What decides the bytes and is not the same, in words."""
    pairs = {"seed": (there.seed, wanted.seed), "image root": (there.image_root, wanted.image_root)}
    for name in sorted({*there.options, *wanted.options}):
        pairs[name] = (there.options.get(name), wanted.options.get(name))
    differing = [f"{name} {theirs}, not {ours}" for name, (theirs, ours) in pairs.items() if theirs != ours]
    return "; ".join(differing) or f"Carina {there.carina}"
