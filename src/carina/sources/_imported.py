"""The result of an import: counts, skipped records, defects; and their tables on disk."""

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from carina.cases import Benchmark, Case, open_benchmark
from carina.sources._record import SourceError, describe
from carina.sources._source import Plan, Skipped, Source
from carina.store.counts import format_count
from carina.store.files import write_bytes
from carina.store.results import Result
from carina.studies import Device, Finding, Studies, Study, open_studies
from carina.studies.plausibility import PlausibilityProblem, PlausibilityResult
from carina.studies.rejected_regions import DEFECTS, REJECTED, UNDRAWABLE
from carina.studies.terms import Kind, UnknownName, find_unknown_names

if TYPE_CHECKING:
    import polars as pl

SKIPPED: Final = "skipped.csv"
IMPLAUSIBLE: Final = "implausible.csv"
COUNTS: Final = "import.json"
_SKIPPED_COLUMNS: Final = ("study", "target", "stage", "reason", "detail")
_IMPLAUSIBLE_COLUMNS: Final = ("study", "image", "check", "seen", "expected", "annotator", "what was done")
_LOST: Final = (*REJECTED, "unnamed")
"""Defects by which a region is left out that was probably meant to be used."""
_MANY: Final = 0.25
"""Share of regions that are cut off or cannot be drawn from which on their numbers are probably misread."""
_MISREAD: Final = {
    "box_form": "check --box-form and --box-frame",
    "sizes": "where the images are smaller than those on which the boxes were drawn, give the original sizes (--sizes)",
}
"""What to check then, by the option that a source has."""
_DEFECT_COLUMNS: Final = ("defect", "times", "record", "file", "row", "what was done")


class DefectCount(msgspec.Struct, kw_only=True):
    """How often a defect occurs."""

    times: int = 0
    records: int = 0
    first: int = 0
    """Number of the first record that has it, as its file counts them: the header of a table is row 1."""


class JoinCount(msgspec.Struct, kw_only=True):
    """What was joined of one source."""

    rows: int = 0
    """Rows that could be used."""
    joined: int = 0
    """Rows of these that belong to an image that was imported."""
    left_out: dict[str, int] = {}
    """Rows that could not be used, by reason."""
    row_key: str = ""
    """Name of the image of one of the rows."""
    image_key: str = ""
    """Key of one of the images."""
    images: int = 0
    """Images that got something."""
    images_without: int = 0


class ImplausibleImage(msgspec.Struct, frozen=True, kw_only=True):
    """What is implausible about an image, and what the import has done about it."""

    problem: PlausibilityProblem
    done: str


class RecordCounts(NamedTuple):
    """What one record adds to `ImportCounts`."""

    images: int
    without_patient: bool
    regions: int = 0
    unknown_names: Mapping[tuple[Kind, str], bool] = {}
    """As `find_unknown_names`."""
    cells: tuple[str, ...] = ()
    stages: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()

    @classmethod
    def of(cls, record: Study | Case) -> "RecordCounts":
        """Count what is in a record."""
        images, without_patient = len(record.images), record.patient is None
        if isinstance(record, Case):
            return cls(
                images,
                without_patient,
                cells=(f"{record.target or ''}/{record.path or ''}",),
                stages=tuple(str(step.stage) for step in record.steps),
                formats=tuple(step.format for step in record.steps),
            )
        regions = len(record.anatomy)
        things: tuple[Finding | Device, ...] = (*record.findings, *record.devices)
        for thing in things:
            regions += len(thing.annotations)
            regions += sum(not one.region.is_empty for one in thing.comparisons)
        return cls(images, without_patient, regions, find_unknown_names(record))


class ImportCounts(msgspec.Struct, kw_only=True):
    """Numbers of records that an import has read and used."""

    records: int = 0
    """All, used or skipped."""
    kept: int = 0
    """Studies or cases."""
    questions: int = 0
    without_patient: int = 0
    images: int = 0
    regions: int = 0
    """Regions of findings, devices and anatomy, with what readers for comparison drew."""
    cells: dict[str, int] = {}
    """Cases by target and path, such as `edema/RR`."""
    stages: dict[str, int] = {}
    """Questions by stage."""
    formats: dict[str, int] = {}
    """Questions by answer format."""
    defects: dict[str, DefectCount] = {}
    unmapped: dict[str, int] = {}
    """Records by field that has no place in Carina."""
    unknown_names: dict[Kind, dict[str, int]] = {}
    """Studies by kind and name of what they record, where the name is not known: see `carina.list_terms`. 0 for a name
    that was looked for and is nowhere recorded."""
    skipped: list[Skipped] = []
    joins: dict[str, JoinCount] = {}
    """What was joined, by source."""
    images_looked_at: int = 0
    """Images whose pixels were compared with what the study says of them."""
    undecided: dict[str, int] = {}
    """Images by the check that could not tell."""
    implausible: list[ImplausibleImage] = []
    """Images that do not look like what the study says of them."""

    def add(self, record: "RecordCounts") -> None:
        """Count a record that is kept."""
        self.kept += 1
        self.images += record.images
        self.without_patient += record.without_patient
        self.regions += record.regions
        self.questions += len(record.stages)
        for (kind, name), is_recorded in record.unknown_names.items():
            counts = self.unknown_names.setdefault(kind, {})
            counts[name] = counts.get(name, 0) + is_recorded
        _increase(self.cells, record.cells)
        _increase(self.stages, record.stages)
        _increase(self.formats, record.formats)

    def add_defects(
        self,
        found: Iterable[tuple[str, int, int]],
        unmapped: Iterable[str] = (),
    ) -> None:
        """Count the defects of one record: what, number of the record, and how often; and fields that have no place."""
        _increase(self.unmapped, unmapped)
        names = set()
        for defect, number, times in found:
            count = self.defects.setdefault(defect, DefectCount(first=number))
            count.times += times
            count.records += defect not in names
            names.add(defect)

    def add_plausibility(
        self, result: PlausibilityResult, done: Callable[[PlausibilityProblem], str]
    ) -> None:
        """Count what was found in the images of one study; `done` says what was done about a problem."""
        self.images_looked_at += result.images
        _increase(self.undecided, result.undecided)
        self.implausible.extend(
            ImplausibleImage(problem=problem, done=done(problem)) for problem in result.problems
        )

    def merge(self, later: "ImportCounts") -> None:
        """Add the counts of the next part."""
        for name in (
            "records",
            "kept",
            "questions",
            "without_patient",
            "images",
            "regions",
            "images_looked_at",
        ):
            setattr(self, name, getattr(self, name) + getattr(later, name))
        self.implausible.extend(later.implausible)
        for name in ("cells", "stages", "formats", "unmapped", "undecided"):
            setattr(self, name, dict(Counter(getattr(self, name)) + Counter(getattr(later, name))))
        for kind, names in later.unknown_names.items():
            counts = self.unknown_names.setdefault(kind, {})
            for (
                name,
                times,
            ) in names.items():  # not a sum of counters, which would lose names that are only looked for
                counts[name] = counts.get(name, 0) + times
        for defect, count in later.defects.items():
            known = self.defects.setdefault(defect, DefectCount(first=count.first))
            known.times += count.times
            known.records += count.records
        self.skipped.extend(later.skipped)


def _increase(counts: dict[str, int], names: Iterable[str]) -> None:
    for name in names:
        counts[name] = counts.get(name, 0) + 1


@dataclass(frozen=True, repr=False)
class Imported(Result):
    """The result of an import."""

    source: Source
    out: Path
    counts: ImportCounts
    plan: Plan = field(default_factory=Plan)
    """How the reader has understood its files, for sources that tell."""

    @property
    def path(self) -> Path:
        """The directory of the study set or benchmark; there is none where no record could be used."""
        return self.out

    @property
    def is_empty(self) -> bool:
        """Whether no record could be used, so that nothing was written."""
        return not self.counts.kept

    @property
    def skipped(self) -> list[Skipped]:
        """Records that could not be used."""
        return self.counts.skipped

    @property
    def defects(self) -> list[tuple[str, DefectCount, str]]:
        """Defects of records that are used: name, counts, what was done about it."""
        found = self.counts.defects
        return [(name, found[name], done) for name, done in self.source.defects.items() if name in found]

    @property
    def notices(self) -> tuple[str, ...]:
        """What shows only at the end of an import: regions that are not there, or that are probably misread."""
        counts, plan = self.counts, self.plan
        found = []
        if self.source.brings == "studies" and plan.region_columns and not counts.regions:
            names = ", ".join(plan.region_columns)
            found.append(f"No region was read, although columns look like regions: {names}")
        cut, sized = (self._count_defect(name) for name in ("cut", "mask size"))
        wrong = sum(map(self._count_defect, UNDRAWABLE))
        total = counts.regions + wrong + sized
        options = {option.name for option in self.source.options}
        hints = [hint for name, hint in _MISREAD.items() if name in options]
        may_be_misread = plan.has_coordinates or "sizes" in options
        if hints and may_be_misread and cut + wrong > _MANY * total:
            found.append(
                f"{cut} of {format_count(total, 'region')} are cut off at the border of the image and {wrong} cannot "
                f"be drawn: {'; '.join(hints)}"
            )
        if sized > _MANY * total:
            found.append(
                f"masks of another size than their image are left out, {sized} of {format_count(total, 'region')}: "
                "give masks of the size of the image"
            )
        found += [*self._explain_missing_images(), *self._explain_joins()]
        return tuple(found)

    def _explain_missing_images(self) -> Iterator[str]:
        """How studies without their image files are kept, where many are skipped for that."""
        missing = sum(item.kind == "image missing" for item in self.skipped)
        has_option = any(option.name == "missing_images" for option in self.source.options)
        if has_option and missing > _MANY * self.counts.records:
            studies = format_count(missing, "study", "studies")
            yield (
                f"the image files of {studies} are missing: put them where `carina sources {self.source.name}` shows, "
                "or keep what was annotated without its images with --missing-images keep"
            )

    def _explain_joins(self) -> Iterator[str]:
        """What the keys of both sides look like, for each source of which nothing was joined."""
        for name, join in self.counts.joins.items():
            if join.rows and not join.joined and self.counts.images:
                yield (
                    f"nothing of {name} was joined: it names images such as {describe(join.row_key)}, the studies have "
                    f"images such as {describe(join.image_key)}"
                )

    @property
    def lost_regions(self) -> dict[str, int]:
        """Regions that were left out, by defect."""
        return {name: times for name in _LOST if (times := self._count_defect(name))}

    def _count_defect(self, name: str) -> int:
        found = self.counts.defects.get(name)
        return 0 if found is None else found.times

    @property
    def implausible(self) -> list[ImplausibleImage]:
        """Images that do not look like what the study says of them."""
        return self.counts.implausible

    @property
    def unknown_names(self) -> list[UnknownName]:
        """Names of findings, devices and anatomy that are not known, in alphabetical order; without those that the
        user has mapped labels to."""
        found = self.counts.unknown_names
        return [
            UnknownName(kind, name, times)
            for kind in sorted(found)
            for name, times in sorted(found[kind].items())
            if name not in self.plan.confirmed
        ]

    def opened(self) -> Studies | Benchmark:
        """The study set or benchmark.

        Raises:
            CarinaError: No record could be used.
        """
        if self.is_empty:
            first = f" The first: {self.skipped[0].message}" if self.skipped else ""
            raise SourceError(
                f"{self.source.name}: none of {self.counts.records} records can be used, so nothing was written.{first}"
            )
        return open_studies(self.out) if self.source.brings == "studies" else open_benchmark(self.out)

    def to_frame(self) -> "pl.DataFrame":
        """The skipped records: study, target, stage, reason, detail."""
        import polars as pl  # noqa: PLC0415 - takes longer to import than most imports take

        rows = [_skipped_row(item) for item in self.skipped]
        return pl.DataFrame(rows, schema=dict.fromkeys(_SKIPPED_COLUMNS, pl.String), orient="row")

    def _summary(self) -> Mapping[str, object]:
        counts = self.counts
        return {"records": counts.records, self.source.brings: counts.kept, "skipped": len(counts.skipped)}


class DefectiveRecord(msgspec.Struct, frozen=True, array_like=True):
    """One defect of one record that is used."""

    defect: str
    times: int
    record: str
    """Id of the study or case."""
    file: str
    row: int
    """0 where the record is a file of its own, or the reader does not say."""


def write_tables(imported: Imported, defective: Iterable[DefectiveRecord]) -> None:
    """Write the counts, the skipped records, and the defects of a source that declares some."""
    content = msgspec.json.encode(imported.counts, order="deterministic")
    write_bytes(imported.out / COUNTS, msgspec.json.format(content, indent=2) + b"\n")
    rows = (_skipped_row(item) for item in imported.skipped)
    write_bytes(imported.out / SKIPPED, _format_csv(_SKIPPED_COLUMNS, rows))
    for name, content in imported.plan.files.items():
        write_bytes(imported.out / name, content)
    if imported.source.brings == "studies":
        implausible = (_implausible_row(each) for each in imported.implausible)
        write_bytes(imported.out / IMPLAUSIBLE, _format_csv(_IMPLAUSIBLE_COLUMNS, implausible))
    if imported.source.defects:
        done = imported.source.defects
        found = (
            (one.defect, str(one.times), one.record, one.file, str(one.row or ""), done[one.defect])
            for one in defective
            if one.defect in done
        )
        write_bytes(imported.out / DEFECTS, _format_csv(_DEFECT_COLUMNS, found))


def read_counts(out: Path) -> ImportCounts | None:
    """The counts of a finished import; None where they or the list of skipped records are missing or damaged."""
    try:
        counts = msgspec.json.decode((out / COUNTS).read_bytes(), type=ImportCounts)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    return counts if (out / SKIPPED).is_file() else None


def _skipped_row(item: Skipped) -> tuple[str, ...]:
    return item.study, item.target, item.stage, item.kind, item.message


def _implausible_row(each: ImplausibleImage) -> tuple[str, ...]:
    found = each.problem
    return (
        found.study, found.image, found.check, found.seen, found.expected, found.annotator, each.done,
    )  # fmt: skip


def _format_csv(headings: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(headings)
    writer.writerows(rows)
    return text.getvalue().encode("utf-8", "replace")
