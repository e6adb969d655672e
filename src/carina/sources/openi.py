"""Open-i, the chest X-ray collection of Indiana University: reports, as XML or in the form of Kaggle.

The XML names the images of a report and not their views: `indiana_projections.csv` of Kaggle states which are frontal
and which lateral, and is used where it is there. `XXXX` in the text stands for what was removed, and stays. Findings
are read from the text when a benchmark is built. Patients are unknown: each report is its own patient.
"""

import re
import tarfile
import xml.etree.ElementTree as ET
import zlib
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

from msgspec import Meta

from carina.sources._draft_images import ImageFolder, find_image
from carina.sources._record import RecordError, SourceError, printable
from carina.sources._source import Item, Skipped, Stream, source
from carina.sources._study_draft import DEFECTS, REPEATS, SECOND_RECORD, StudyDraft, make_or_skip
from carina.sources._tables import Row, group_rows, read_rows
from carina.studies.model import Report, ReportSection
from carina.studies.vocabulary import Section, View

ARCHIVE: Final = "NLMCXR_reports.tgz"
FOLDER: Final = "ecgen-radiology"
TABLE: Final = "indiana_reports.csv"
PROJECTIONS: Final = "indiana_projections.csv"
MAX_XML: Final = 1 << 20
"""Bytes of one report: a hundred times the usual."""
_SECTIONS: Final[tuple[Section, ...]] = ("comparison", "indication", "findings", "impression")
_FOLDERS: Final = ("", "NLMCXR_png/", "images/", "images/images_normalized/", "images_normalized/")
_VIEWS: Final = re.compile(r"\b(PA|AP)\b")


class _Report(NamedTuple):
    """One report, in either form."""

    uid: str
    file: str
    number: int
    """Of the row; 0 where the report is a file of its own."""
    sections: Mapping[Section, str]
    images: tuple[str, ...]
    """Names of image files without folder and ending, as the XML has them."""
    caption: str
    unmapped: tuple[str, ...]


@source(
    name="openi",
    title="Open-i: chest X-rays with reports of Indiana University",
    needs=f"a folder with {ARCHIVE} (or the unpacked {FOLDER}/) and the PNG files of NLMCXR_png.tgz in NLMCXR_png/, or "
    f"with {TABLE}, {PROJECTIONS} and images/images_normalized/ of Kaggle; reports alone with --missing-images keep.",
    tree="""
    NLMCXR_reports.tgz           or ecgen-radiology/, or indiana_reports.csv of Kaggle
    indiana_projections.csv      where views are wanted
    NLMCXR_png/
      CXR1_1_IM-0001-3001.png    or images/images_normalized/1_IM-0001-3001.dcm.png of Kaggle
    """,
    licence="CC BY-NC-ND 4.0",
    truth=("report",),
    url="https://openi.nlm.nih.gov/faq#collection",
    citation="Demner-Fushman D, Kohli MD, Rosenman MB, et al. Preparing a collection of radiology examinations for "
    "distribution and retrieval. Journal of the American Medical Informatics Association 2016;23(2):304-310.",
    inputs=lambda path: {
        "reports": path if path.is_file() else path / ARCHIVE,
        "table": path / TABLE,
        "projections": path / PROJECTIONS,
    },
    defects={
        **DEFECTS,
        **REPEATS,
        "image missing": "an image of the report is not there: left out, or kept without its size",
    },
    second_id=SECOND_RECORD,
    unit="reports",
)
def read_openi(
    path: Path,
    *,
    missing_images: Annotated[
        Literal["skip", "keep"],
        Meta(
            description="A report without any image file: skip it, or keep it. Images that are kept have no size: "
            "questions can be made from the text, and shown once the images are there and imported again."
        ),
    ] = "skip",
    images: ImageFolder = None,
) -> Stream:
    """Read one study a report."""
    folder = path if path.is_dir() else path.parent
    root = images or folder
    table = folder / PROJECTIONS
    rows = list(read_rows(table, ("uid", "filename", "projection"))) if table.exists() else []
    projections = {
        _plain_name(row.values.get("filename", "")): row.values.get("projection", "") for row in rows
    }
    if not _has_xml(path) and (folder / TABLE).exists():
        by_report = {uid: tuple(_name_of(row) for row in own) for uid, own in group_rows(rows, "uid").items()}
        for row in read_rows(folder / TABLE, ("uid", *_SECTIONS)):
            names = by_report.get(row.values.get("uid", "").strip(), ())
            views = {name: projections.get(name, "") for name in names}
            uid = f"CXR{row.values.get('uid', '').strip()}"
            yield partial(make_or_skip, _read_row, row.place, uid, row, names, root, views, missing_images)
        return
    for name, content in _read_xml(path):
        place, uid = f"{path}: {printable(name)}", f"CXR{Path(name).stem}"
        if content is None:
            yield Skipped(place=place, reason=f"more than {MAX_XML:,} bytes", kind="xml", study=uid)
        else:
            make = partial(_read_document, content, f"{path}/{printable(name)}", root, projections)
            yield partial(make_or_skip, make, place, uid, missing_images)


# ---- the two forms --------------------------------------------------------------------------------------------------


def _has_xml(path: Path) -> bool:
    return path.is_file() or (path / ARCHIVE).is_file() or (path / FOLDER).is_dir()


def _read_xml(path: Path) -> Iterator[tuple[str, bytes | None]]:
    """Name and content of every report; None for one that is too large."""
    if path.is_dir() and (path / FOLDER).is_dir():
        files = sorted((path / FOLDER).glob("*.xml"), key=lambda file: (len(file.stem), file.stem))
        for file in files:
            yield f"{FOLDER}/{file.name}", file.read_bytes() if file.stat().st_size <= MAX_XML else None
        return
    archive = path / ARCHIVE if path.is_dir() else path
    if not archive.is_file():
        raise SourceError(f"{archive}: missing; put {ARCHIVE}, {FOLDER}/ or {TABLE} of Kaggle there")
    try:
        with tarfile.open(archive) as members:
            for member in members:
                if member.isreg() and member.name.endswith(".xml"):
                    held = members.extractfile(member) if member.size <= MAX_XML else None
                    yield member.name, None if held is None else held.read()
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        raise SourceError(f"{archive}: cannot be read: {printable(str(error))}") from error


def _read_document(
    content: bytes,
    file: str,
    root: Path,
    projections: Mapping[str, str],
    missing: Literal["skip", "keep"],
) -> Item:
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise RecordError("", "declares entities, which a report does not", kind="xml")
    try:
        document = ET.fromstring(content)  # noqa: S314 - entities are refused above
    except ET.ParseError as error:
        raise RecordError("", f"not XML: {error}", kind="xml") from error
    uid = document.find("uId")
    if uid is None or not uid.get("id"):
        raise RecordError("uId", "is missing", kind="xml")
    sections = {(part.get("Label") or "").lower(): part.text or "" for part in document.iter("AbstractText")}
    shown = list(document.iter("parentImage"))
    report = _Report(
        uid=uid.get("id") or "",
        file=file,
        number=0,
        sections=_keep_sections(sections),
        images=tuple(image.get("id") or "" for image in shown),
        caption=" ".join(caption.text or "" for image in shown for caption in image.iter("caption")),
        unmapped=("MeSH",) if document.find("MeSH") is not None else (),
    )
    return _make_study(report, root, projections, missing)


def _read_row(
    row: Row,
    images: tuple[str, ...],
    root: Path,
    projections: Mapping[str, str],
    missing: Literal["skip", "keep"],
) -> Item:
    coded = tuple(column for column in ("MeSH", "Problems") if row.values.get(column, "").strip())
    report = _Report(
        uid=f"CXR{row.integer('uid')}",
        file=row.file,
        number=row.number,
        # Not by `Row.text`: "None" is what a report says of earlier images.
        sections=_keep_sections({name: row.values.get(name, "") for name in _SECTIONS}),
        images=images,
        caption=row.values.get("image", ""),
        unmapped=coded,
    )
    return _make_study(report, root, projections, missing)


def _keep_sections(texts: Mapping[str, str]) -> dict[Section, str]:
    """The sections that have text, in the order of the reports."""
    return {name: text for name in _SECTIONS if (text := texts.get(name, "").strip()) and text != "nan"}


# ---- the study ------------------------------------------------------------------------------------------------------


def _make_study(
    report: _Report, root: Path, projections: Mapping[str, str], missing: Literal["skip", "keep"]
) -> Item:
    if not report.images:
        raise RecordError("parentImage", "the report names no image", kind="no image")
    if not report.sections:
        raise RecordError("AbstractText", "no section has text", kind="no text")
    draft = StudyDraft(report.uid, patient=report.uid, source="openi", number=report.number, file=report.file)
    draft.unmapped = report.unmapped
    for name in dict.fromkeys(report.images):
        key = find_image(root, _possible_keys(name))
        draft.defects["image missing"] += key is None
        if key is not None or missing == "keep":
            view = _view(projections.get(_plain_name(name), ""), report.caption)
            draft.add_image(
                root, key or f"NLMCXR_png/{name}.png", view, size=None if key else (0, 0), missing="keep"
            )
    if not draft.images:
        reason = (
            f"none of {', '.join(report.images)} is there: unpack NLMCXR_png.tgz into {root / 'NLMCXR_png'}"
        )
        raise RecordError("image", reason, kind="image missing")
    sections = tuple(ReportSection(name=name, text=text) for name, text in report.sections.items())
    draft.facts = {"report": Report(sections=sections), "indication": report.sections.get("indication")}
    return draft.finish()


def _possible_keys(name: str) -> Iterable[str]:
    """Where the file of an image may be: under its name in the XML, or under that of Kaggle."""
    files = (f"{name}.png", f"{_plain_name(name)}.dcm.png")
    return (f"{folder}{file}" for folder in _FOLDERS for file in files)


def _plain_name(name: str) -> str:
    """The name of an image that both forms share: CXR1_1_IM-0001-3001 and 1_IM-0001-3001.dcm.png are one image."""
    name = name.strip().removesuffix(".png").removesuffix(".dcm")
    match = re.fullmatch(r"CXR(\d+)_(?:(\d+)_)?(IM-.*)", name)
    return name if match is None else f"{match[1]}_{match[3]}"


def _name_of(row: Row) -> str:
    return _plain_name(row.values.get("filename", ""))


def _view(projection: str, caption: str) -> View:
    """Lateral or not is stated by the projection; whether PA or AP by the caption, where it names only one."""
    if projection.strip().lower() == "lateral":
        return "lateral"
    named = set(_VIEWS.findall(caption)) if projection.strip().lower() == "frontal" else set()
    return "PA" if named == {"PA"} else "AP" if named == {"AP"} else "unknown"
