"""MIMIC-CXR-JPG: images, views, dates, priors, labels mined from reports, expert labels of test studies, and reports.

The tables state the size of every image, so that no image is opened unless that is asked for. Labels of CheXpert and
NegBio were mined from the reports: a blank label is not mentioned, which is not absent. The labels of
`mimic-cxr-2.1.0-test-set-labeled.csv` are by a radiologist, who read the reports, and count more; blank is not absent
there either. Studies of a patient are ordered by date and
time of day, never by their ids, which are random.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

from msgspec import Meta

from carina.reports.sections import split_sections
from carina.sources._added import add_report_facts
from carina.sources._archives import Archive
from carina.sources._chexpert_labels import NO_DEVICES, assess_expert, list_filled, state_labels
from carina.sources._draft_images import ImageFolder
from carina.sources._record import RecordError, SourceError
from carina.sources._series import UNKNOWN, Place, order_studies
from carina.sources._source import Inputs, Item, Stream, source
from carina.sources._study_draft import DEFECTS, StudyDraft, make_or_skip
from carina.sources.mimic_cxr_jpg.tables import (
    EXPERT,
    TABLES,
    StudyRows,
    count_unknown,
    find_table,
    read_label_table,
    read_metadata,
    read_splits,
)
from carina.studies.model import Assessed
from carina.studies.vocabulary import Split

ARCHIVE: Final = "mimic-cxr-reports.zip"
MAX_REPORT: Final = 1 << 20
"""Bytes of one report: a hundred times the usual."""
_LABELS: Final = {
    "chexpert": ("chexpert",), "negbio": ("negbio",), "both": ("chexpert", "negbio"), "none": (), "expert": (),
}  # fmt: skip
Labels = Literal["chexpert", "negbio", "both", "expert", "none"]


class _Known(NamedTuple):
    """What the tables say about one study."""

    study: str
    entry: StudyRows
    place: Place
    split: Split | None
    expert: tuple[str, Mapping[str, str]] | None
    mined: tuple[tuple[str, Mapping[str, str]], ...]


def _inputs(path: Path) -> Inputs:
    found = {name: find_table(path, name) for name in (*TABLES, EXPERT)}
    return {name: file for name, file in found.items() if file is not None} | {"reports": path / ARCHIVE}


@source(
    name="mimic-cxr-jpg",
    title="MIMIC-CXR-JPG with views, priors, labels and reports",
    needs="a folder with mimic-cxr-2.0.0-metadata.csv.gz; the tables split, chexpert, negbio and "
    f"mimic-cxr-2.1.0-test-set-labeled.csv and {ARCHIVE} of MIMIC-CXR where they are wanted, and the images in files/.",
    tree="""
    mimic-cxr-2.0.0-metadata.csv.gz
    mimic-cxr-2.0.0-split.csv.gz             where the split is wanted
    mimic-cxr-2.0.0-chexpert.csv.gz          where these labels are wanted
    mimic-cxr-2.0.0-negbio.csv.gz            with --labels negbio or both
    mimic-cxr-2.1.0-test-set-labeled.csv     where labels by a radiologist are wanted
    mimic-cxr-reports.zip                    or --reports PATH, where reports are wanted
    files/
      p10/
        p10000001/
          s50000001/
            00000000-00000000-00000000-00000000-00000001.jpg
    """,
    licence="PhysioNet Credentialed Health Data License 1.5.0",
    truth=("labels", "expert labels", "report", "series"),
    url="https://physionet.org/content/mimic-cxr-jpg/2.1.0/",
    citation="Johnson AEW, Pollard TJ, Greenbaum NR, et al. MIMIC-CXR-JPG, a large publicly available database of "
    "labeled chest radiographs. arXiv:1901.07042, 2019. Johnson AEW, Pollard TJ, Berkowitz SJ, et al. MIMIC-CXR, a "
    "de-identified publicly available database of chest radiographs with free-text reports. Scientific Data 2019.",
    inputs=_inputs,
    defects={
        **DEFECTS,
        "no report": "the study has no report among those that were given",
        "no split": "the table of splits does not list the study",
        "no label": "the tables of mined labels do not list the study",
    },
    unit="studies",
)
def read_mimic_cxr_jpg(
    path: Path,
    *,
    reports: Annotated[
        Path | None,
        Meta(
            description=f"{ARCHIVE}, or the folder that holds its files/. Without it, {ARCHIVE} in PATH if it is there."
        ),
    ] = None,
    labels: Annotated[
        Labels,
        Meta(
            description="Labels mined from reports: those of chexpert, negbio, both (chexpert counts more) or none. "
            "Labels by a radiologist are used in any case and count more; expert imports only studies with them."
        ),
    ] = "chexpert",
    facts: Annotated[
        bool, Meta(description="Also read findings from the text of the reports, by rules. Takes minutes.")
    ] = False,
    open_images: Annotated[
        bool,
        Meta(
            description="Open every image file; skip studies whose files are missing or not of the size that the table "
            "states. Without it, no image is opened."
        ),
    ] = False,
    images: ImageFolder = None,
) -> Stream:
    """Read one study a study id, with all its images."""
    entries: dict[str, StudyRows] = {}
    yield from read_metadata(path, entries)
    places = order_studies((study, entry.patient, entry.time) for study, entry in entries.items())
    has_split, splits = read_splits(path)
    expert = read_label_table(path, EXPERT)
    mined = [table for name in _LABELS[labels] if (table := read_label_table(path, name)) is not None]
    for table in (expert, *mined):
        if table is not None:
            yield from count_unknown(table, entries)
    texts = _Reports.find(path, reports)
    for study, entry in entries.items():
        if labels == "expert" and (expert is None or study not in expert.rows):
            continue
        known = _Known(
            study=study,
            entry=entry,
            place=places.get(study, UNKNOWN),
            split=splits.get(study),
            expert=None
            if expert is None or study not in expert.rows
            else (expert.rows[study], expert.columns),
            mined=tuple((table.rows[study], table.columns) for table in mined if study in table.rows),
        )
        expected = {"no report": texts is not None, "no split": has_split, "no label": bool(mined)}
        make = partial(
            _make_study,
            known,
            images or path,
            reports=texts,
            expected=expected,
            facts=facts,
            open_images=open_images,
        )
        yield partial(make_or_skip, make, f"{path}: {study}", study)


# ---- reports --------------------------------------------------------------------------------------------------------


class _Reports(NamedTuple):
    """Reports in the archive, or in its unpacked tree."""

    archive: Archive
    prefix: str
    """Folder that holds p10 to p19, with a final slash; or nothing."""

    @classmethod
    def find(cls, path: Path, given: Path | None) -> "_Reports | None":
        where = given or path / ARCHIVE
        if given is None and not where.is_file():
            return None
        if where.is_dir():
            return cls(Archive(where), "files/" if (where / "files").is_dir() else "")
        if not where.is_file():
            raise SourceError(f"{where}: missing; give {ARCHIVE} or the folder that holds its files/")
        archive = Archive(where)
        first = next((name for name in archive.names() if name.endswith(".txt")), "files/p/p/s.txt")
        return cls(archive, "".join(f"{part}/" for part in first.split("/")[:-3]))

    def read(self, patient: str, study: str) -> str | None:
        """The text of a report; None where there is none."""
        name = f"{self.prefix}{patient[:3]}/{patient}/{study}.txt"
        try:
            content = self.archive.read(name, max_bytes=MAX_REPORT)
        except RecordError as error:
            if error.kind == "not joined":
                return None
            raise RecordError("report", error.reason, kind="report") from error
        return content.decode("utf-8", "replace").strip()


# ---- the study ------------------------------------------------------------------------------------------------------


def _make_study(
    known: _Known,
    root: Path,
    *,
    reports: _Reports | None,
    expected: Mapping[str, bool],
    facts: bool,
    open_images: bool,
) -> Item:
    entry = known.entry
    draft = StudyDraft(
        known.study, patient=entry.patient, source="mimic-cxr-jpg", number=entry.number, file=entry.file
    )
    folder = f"files/{entry.patient[:3]}/{entry.patient}/{known.study}"
    for dicom_id, view, width, height in entry.images:
        key = f"{folder}/{dicom_id}.jpg"
        if open_images:
            draft.add_image(root, key, view, size=(width, height))
        else:
            draft.describe_image(key, view, (width, height))
    written = None if reports is None else reports.read(entry.patient, known.study)
    report = split_sections(written) if written else None
    if known.expert is not None:
        state_labels(draft, *known.expert)
    for rank, (labels, columns) in enumerate(known.mined, start=1):
        draft.rank, draft.is_by_program = rank, True
        state_labels(draft, labels, columns, covered=NO_DEVICES if known.expert is None else ())
    for defect, has in (("no report", report), ("no split", known.split), ("no label", known.mined)):
        draft.defects[defect] += bool(expected[defect] and not has)
    draft.facts = {
        "order": known.place.order, "prior": known.place.prior, "later": known.place.later,
        "date": entry.date, "split": known.split, "report": report, "indication": report and report.text("indication"),
    }  # fmt: skip
    item = draft.finish(assessed=_assess(known, is_report_read=facts and report is not None))
    trusted = () if known.expert is None else list_filled(known.expert[0])
    if not facts or report is None:
        return item
    return add_report_facts(item, trusted=trusted, number=entry.number, file=entry.file)


def _assess(known: _Known, *, is_report_read: bool) -> Assessed:
    """What was looked for in the report by a radiologist; programs looked for what "No Finding" covers."""
    if known.expert is not None:
        return assess_expert(known.expert[0], text=True)
    return Assessed(text=bool(known.mined) or is_report_read)
