"""MS-CXR-T: how five findings changed between two images of MIMIC-CXR-JPG, as radiologists labelled it.

Each row compares an image with one of a prior study. A finding that is worsening is present now, one that is improving
was present before and may have resolved since, and a stable one is present in both: the set has no other classes. The
five findings are labelled only where there is something to compare, so that a blank label is not absent.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

from msgspec import Meta

from carina.sources._added import (
    ADDED_DEFECTS,
    CERTAINTY_BY_TREND,
    AddedFinding,
    Addition,
    add_to_study,
    unwrap,
    wrap,
)
from carina.sources._defects import DefectCounts, RecordPlace
from carina.sources._draft_images import ImageFolder, MissingImages
from carina.sources._joining import Join
from carina.sources._mimic_images import read_mimic_id
from carina.sources._record import RecordError, SourceError, describe
from carina.sources._source import Inputs, Item, Skipped, Stream, source
from carina.sources._study_draft import DEFECTS, StudyDraft, make_or_skip
from carina.sources._tables import Row, RowPlace, index_rows, read_row
from carina.studies.model import Image
from carina.studies.vocabulary import Trend

FILE: Final = "MS_CXR_T_temporal_image_classification_v1.0.0.csv"
FINDINGS: Final = ("consolidation", "edema", "pleural_effusion", "pneumonia", "pneumothorax")
_COLUMNS: Final = (
    "dicom_id", "previous_dicom_id", "subject_id", "study_id", "previous_study_id",
    *(f"{finding}_progression" for finding in FINDINGS),
)  # fmt: skip
_TRENDS: Final[Mapping[str, Trend | None]] = {
    "": None, "improving": "improved", "stable": "unchanged", "worsening": "worse",
}  # fmt: skip
_WAS_PRESENT: Final = ("unchanged", "improved")
_QUALITIES: Final = {"": 1, "one_expert": 1, "multiple_experts": 2, "disagreement": 0}
_PATH: Final = re.compile(r"(?:.*/)?p\d\d/(p\d+)/(s\d+)/([^/]+?)(?:\.(?:jpg|dcm))?")
LabelQuality = Literal["any", "agreed", "several-experts"]
_LEAST: Final[Mapping[LabelQuality, int]] = {"any": 0, "agreed": 1, "several-experts": 2}


class _Pair(NamedTuple):
    """One row: an image, the image that it is compared with, and trend and quality by finding."""

    patient: str
    study: str
    image: str
    previous_study: str
    previous_image: str
    trends: Mapping[str, tuple[Trend, int]]
    place: RecordPlace


def _find_file(path: Path) -> Path:
    if path.is_file():
        return path
    found = sorted(path.glob("MS_CXR_T_temporal_image_classification_v*.csv"))
    if not found:
        raise SourceError(f"{path / FILE}: missing; put {FILE} of MS-CXR-T there")
    return found[-1]


def _inputs(path: Path) -> Inputs:
    return {"file": _find_file(path)}


def _index(path: Path) -> Iterator[tuple[str, RowPlace] | str]:
    for row, place in index_rows(_find_file(path), _COLUMNS):
        try:
            yield _parse_row(row).image, place
        except RecordError as error:
            yield error.kind


def _make_addition(path: Path, places: Sequence[RowPlace], _image: Image) -> Addition:
    pairs = [_parse_row(read_row(_find_file(path), place)) for place in places]
    return _describe(pairs, "agreed")


@source(
    name="ms-cxr-t",
    title="MS-CXR-T: expert labels of progression",
    needs=f"a folder with {FILE}, or that file; the folder of MIMIC-CXR-JPG by --images, or the file alone with "
    "--missing-images keep.",
    tree=f"""
    {FILE}
    files/    or --images with the folder of MIMIC-CXR-JPG
    """,
    licence="PhysioNet Credentialed Health Data License 1.5.0",
    truth=("expert progression labels", "series"),
    url="https://physionet.org/content/ms-cxr-t/1.0.0/",
    citation="Bannur S, Hyland S, Liu Q, et al. Learning to Exploit Temporal Structure for Biomedical Vision-Language "
    "Processing. CVPR 2023.",
    inputs=_inputs,
    defects={
        **DEFECTS,
        **ADDED_DEFECTS,
        "quality": "a label of less quality than --label-quality asks for is left out",
        "second prior": "a row that compares the study with another prior study than its first row does is left out",
        "second trend": "two rows of a study give different trends of a finding: both are left out",
    },
    unit="studies",
    join=Join(key="the last part of dicom_id", index=_index, make=_make_addition),
)
def read_ms_cxr_t(
    path: Path,
    *,
    label_quality: Annotated[
        LabelQuality,
        Meta(
            description="Labels to use: any; agreed, without those that experts disagreed about; or only those of "
            "several-experts who agreed."
        ),
    ] = "agreed",
    missing_images: MissingImages = "skip",
    images: ImageFolder = None,
) -> Stream:
    """Read one study a current or prior study, with the images that are compared."""
    file = _find_file(path)
    entries: dict[str, _Entry] = {}
    for row, _ in index_rows(file, _COLUMNS):
        try:
            _add_pair(entries, _parse_row(row), row)
        except RecordError as error:
            yield Skipped.from_error(error, row.place)
    orders = _order_series(entries)
    root = images or (path if path.is_dir() else path.parent)
    for study, entry in entries.items():
        make = partial(
            _make_study,
            root,
            study,
            entry,
            order=orders.get(study),
            quality=label_quality,
            missing=missing_images,
        )
        yield partial(make_or_skip, make, f"{file}: {study}", study)


# ---- rows -----------------------------------------------------------------------------------------------------------


def _parse_row(row: Row) -> _Pair:
    patient = f"p{read_mimic_id(row.required('subject_id'), 'subject_id')}"
    study, previous = (
        f"s{read_mimic_id(row.required(column), column)}" for column in ("study_id", "previous_study_id")
    )
    if study == previous:
        raise RecordError("previous_study_id", f"is {previous}, the study itself", kind="id")
    trends: dict[str, tuple[Trend, int]] = {}
    for finding in FINDINGS:
        trend = row.choice(f"{finding}_progression", _TRENDS)
        column = f"{finding}_label_quality"
        quality = row.choice(column, _QUALITIES) if column in row.values else 1
        if trend is not None:
            trends[finding] = trend, quality
    return _Pair(
        patient,
        study,
        _read_image(row, "dicom_id", patient, study),
        previous,
        _read_image(row, "previous_dicom_id", patient, previous),
        trends,
        RecordPlace(row.file, row.number),
    )


def _read_image(row: Row, column: str, patient: str, study: str) -> str:
    """The id of an image; the column holds its path without files/ and ending, which must agree with the other ids."""
    text = row.required(column)
    match = _PATH.fullmatch(text)
    if match is not None and match.groups()[:2] != (patient, study):
        raise RecordError(column, f"is {describe(text)}, but the row names {patient} and {study}", kind="id")
    name = text if match is None else match[3]
    if "/" in name or name in (".", ".."):
        raise RecordError(
            column, f"is {describe(text)}, expected p10/p10000001/s50000001/ and an id", kind="id"
        )
    return name


# ---- studies --------------------------------------------------------------------------------------------------------


@dataclass
class _Entry:
    """One study: rows that compare it with a prior study, and rows in which it is the prior study."""

    patient: str
    file: str
    number: int
    pairs: list[_Pair] = field(default_factory=list)
    later: list[_Pair] = field(default_factory=list)

    @property
    def images(self) -> list[str]:
        return list(
            dict.fromkeys(
                [*(pair.image for pair in self.pairs), *(pair.previous_image for pair in self.later)]
            )
        )


def _add_pair(entries: dict[str, _Entry], pair: _Pair, row: Row) -> None:
    for study in (pair.previous_study, pair.study):
        if study in entries and entries[study].patient != pair.patient:
            raise RecordError(
                "subject_id", f"is {pair.patient}, but {study} is of {entries[study].patient}", kind="id"
            )
    entries.setdefault(pair.previous_study, _Entry(pair.patient, row.file, row.number)).later.append(pair)
    entries.setdefault(pair.study, _Entry(pair.patient, row.file, row.number)).pairs.append(pair)


def _order_series(entries: Mapping[str, _Entry]) -> dict[str, int]:
    """Places in time of the studies of a patient, where the pairs put all of them into one series."""
    by_patient: dict[str, list[str]] = {}
    for study, entry in entries.items():
        by_patient.setdefault(entry.patient, []).append(study)
    orders: dict[str, int] = {}
    for studies in by_patient.values():
        follows = {pair.previous_study: pair.study for study in studies for pair in entries[study].pairs}
        first = [study for study in studies if not entries[study].pairs]
        series = first[:1]
        while series and (later := follows.get(series[-1])) is not None and later not in series:
            series.append(later)
        if len(series) == len(studies):
            orders.update({study: place for place, study in enumerate(series)})
    return orders


def _make_study(
    root: Path,
    study: str,
    entry: _Entry,
    *,
    order: int | None,
    quality: LabelQuality,
    missing: MissingImages,
) -> Item:
    draft = StudyDraft(study, patient=entry.patient, source="ms-cxr-t", number=entry.number, file=entry.file)
    for image in entry.images:
        key = f"files/{entry.patient[:3]}/{entry.patient}/{study}/{image}.jpg"
        draft.find_image(root, (key,), "unknown", missing)
    later = {pair.study for pair in entry.later}
    draft.facts = {
        "order": order,
        "prior": entry.pairs[0].previous_study if entry.pairs else None,
        "later": later.pop() if len(later) == 1 else None,
    }
    item = draft.finish()
    made, defects = unwrap(item)
    made = add_to_study(made, _describe_prior(entry.later, quality), defects)
    if entry.pairs:
        made = add_to_study(made, _describe(entry.pairs, quality), defects)
    return wrap(item, made, defects, RecordPlace(entry.file, entry.number))


def _describe(pairs: Sequence[_Pair], quality: LabelQuality) -> Addition:
    """The findings of a current study, with their trends."""
    defects = DefectCounts()
    prior = pairs[0].previous_study
    trends: dict[str, dict[Trend, RecordPlace]] = {}
    for pair in pairs:
        defects.place = pair.place
        if pair.previous_study != prior:
            defects["second prior"] += 1
            continue
        for finding, (trend, experts) in pair.trends.items():
            if experts < _LEAST[quality]:
                defects["quality"] += 1
            else:
                trends.setdefault(finding, {}).setdefault(trend, pair.place)
    findings = []
    for finding, own in trends.items():
        *_, (trend, place) = own.items()
        if len(own) > 1:
            defects.place = place
            defects["second trend"] += 1
            continue
        findings.append(
            AddedFinding(label=finding, certainty=CERTAINTY_BY_TREND[trend], trend=trend, place=place)
        )
    return Addition(findings=tuple(findings), prior=prior, place=pairs[0].place, defects=defects)


def _describe_prior(pairs: Sequence[_Pair], quality: LabelQuality) -> Addition:
    """The findings that a prior study must have had; quality is counted with the current study."""
    found = {
        finding: None
        for pair in pairs
        for finding, (trend, experts) in pair.trends.items()
        if trend in _WAS_PRESENT and experts >= _LEAST[quality]
    }
    return Addition(findings=tuple(AddedFinding(label=finding) for finding in found))
