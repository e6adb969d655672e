"""PadChest-GR: sentences of reports with the boxes of two radiologists, and progression.

`boxes` and `extra_boxes` are two independent sets of boxes for the same sentence: they are kept as two readers, so that
one can be compared with the other. Coordinates are shares of the width and height, so that every image is opened.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from carina.sources._added import ADDED_DEFECTS, AddedFinding, Addition, add_to_study, unwrap, wrap
from carina.sources._defects import RecordPlace
from carina.sources._draft_images import ImageFolder, find_image
from carina.sources._json import decode_as, read_entries
from carina.sources._record import RecordError, SourceError
from carina.sources._series import UNKNOWN, Place, order_studies
from carina.sources._source import Inputs, Item, Skipped, Stream, source
from carina.sources._study_draft import DEFECTS, StudyDraft, make_or_skip
from carina.sources._tables import Row, read_rows
from carina.sources._values import read_age, read_sex, read_split
from carina.sources.padchest import read_date
from carina.store.errors import RegionError
from carina.studies.model import Annotation, Assessed, Image
from carina.studies.region import Region
from carina.studies.vocabulary import Trend

REPORTS: Final = "grounded_reports_20240819.json"
TABLE: Final = "master_table.csv"
READERS: Final = ("reader 1", "reader 2")
_FOLDERS: Final = ("Padchest_GR_files/PadChest_GR/", "Padchest_GR_files/", "PadChest_GR/", "images/", "")
_TRENDS: Final[Mapping[str | None, Trend | None]] = {
    None: None, "": None, "stable": "unchanged", "improved": "improved", "worsened": "worse",
}  # fmt: skip
_Box = tuple[float, float, float, float]


class _Sentence(msgspec.Struct):
    """One sentence; those without an abnormality may lack boxes and labels."""

    sentence_en: str
    abnormal: bool = False
    boxes: list[_Box] | None = None
    extra_boxes: list[_Box] | None = None
    labels: list[str] | None = None
    progression: str | None = None


class _Record(msgspec.Struct):
    StudyID: str
    ImageID: str
    findings: list[_Sentence]
    PreviousStudyID: str | None = None
    PreviousImageID: str | None = None


class _Known(NamedTuple):
    row: Row | None
    place: Place


def _find_reports(path: Path) -> Path:
    found = sorted(path.glob("grounded_reports_*.json"))
    if not found:
        raise SourceError(f"{path / REPORTS}: missing; put {REPORTS} and {TABLE} of PadChest-GR there")
    return found[-1]


def _inputs(path: Path) -> Inputs:
    return {"reports": _find_reports(path), "table": path / TABLE}


@source(
    name="padchest-gr",
    title="PadChest-GR: sentences with boxes by two readers",
    needs=f"a folder with {REPORTS}, {TABLE} (patients, splits, dates) and the PNG files of PadChest_GR.zip in "
    "Padchest_GR_files/PadChest_GR/.",
    tree="""
    grounded_reports_20240819.json
    master_table.csv
    Padchest_GR_files/
      PadChest_GR/    the 37 parts, joined and unpacked
    """,
    licence="BIMCV PadChest-GR research use agreement",
    truth=("sentences", "boxes", "two readers", "progression"),
    url="https://bimcv.cipf.es/bimcv-projects/padchest-gr/",
    citation="Castro DC, Bustos A, Bannur S, et al. PadChest-GR: A Bilingual Chest X-Ray Dataset for Grounded "
    "Radiology Report Generation. NEJM AI 2025.",
    inputs=_inputs,
    defects={
        **DEFECTS,
        **ADDED_DEFECTS,
        "patient": f"{TABLE} does not list the study: patient and split are unknown, and it counts as one of its own",
        "negative label": "a label of a sentence without an abnormality is not used: what it says is not documented",
        "progression": "a word for progression that is not known is left out",
        "no label": "a sentence about an abnormality names none: it is kept as text",
    },
    unit="studies",
)
def read_padchest_gr(path: Path, *, images: ImageFolder = None) -> Stream:
    """Read one study a record."""
    rows: dict[str, Row] = {}
    if (path / TABLE).is_file():
        for row in read_rows(path / TABLE, ("StudyID", "PatientID", "split")):
            rows.setdefault(row.values.get("StudyID", "").strip(), row)
    places = order_studies(
        (study, row.values.get("PatientID", ""), read_date(row.values.get("StudyDate_DICOM", "")))
        for study, row in rows.items()
    )
    file = _find_reports(path)
    for entry in read_entries(file):
        where = f"{file}: record {entry.number}"
        try:
            record = decode_as(entry.content, _Record)
        except RecordError as error:
            yield Skipped.from_error(error, where)
            continue
        study = record.StudyID
        known = _Known(rows.get(study), places.get(study, UNKNOWN))
        make = partial(_make_study, images or path, str(file), entry.number, record, known)
        yield partial(make_or_skip, make, where, study)


def _make_study(root: Path, file: str, number: int, record: _Record, known: _Known) -> Item:
    row, place = known
    patient = record.StudyID if row is None else row.required("PatientID")
    draft = StudyDraft(record.StudyID, patient=patient, source="padchest-gr", number=number, file=file)
    draft.defects["patient"] += row is None
    key = find_image(root, (f"{folder}{record.ImageID}" for folder in _FOLDERS))
    image = draft.add_image(root, key or f"{_FOLDERS[0]}{record.ImageID}", "unknown")
    values = {} if row is None else row.values
    draft.facts = {
        "order": place.order, "prior": record.PreviousStudyID or place.prior, "later": place.later,
        "date": read_date(values.get("StudyDate_DICOM", "")), "split": read_split(values.get("split", "")),
        "age": read_age(values.get("PatientAge", "")), "sex": read_sex(values.get("PatientSex_DICOM", "")),
    }  # fmt: skip
    item = draft.finish(assessed=Assessed(text=True))
    study, defects = unwrap(item)
    study = add_to_study(study, _describe(record, image), defects)
    return wrap(item, study, defects, RecordPlace(file, number))


def _describe(record: _Record, image: Image) -> Addition:
    """Every sentence, and a finding for each label of those about an abnormality."""
    defects: Counter[str] = Counter()
    findings: list[AddedFinding] = []
    for sentence in record.findings:
        labels = [label for label in sentence.labels or [] if label.strip()]
        if not sentence.abnormal:
            defects["negative label"] += len(labels)
            continue
        defects["no label"] += not labels
        if sentence.progression not in _TRENDS:
            defects["progression"] += 1
        drawn = tuple(_draw(sentence, image, defects)) if labels else ()
        findings += [
            AddedFinding(
                label=label,
                phrase=sentence.sentence_en.strip(),
                trend=_TRENDS.get(sentence.progression),
                annotations=drawn,
            )
            for label in labels
        ]
    phrases = tuple(text for sentence in record.findings if (text := sentence.sentence_en.strip()))
    return Addition(findings=tuple(findings), phrases=phrases, defects=defects)


def _draw(sentence: _Sentence, image: Image, defects: Counter[str]) -> Iterator[Annotation]:
    """The boxes of both readers, in pixels."""
    for reader, boxes in zip(READERS, (sentence.boxes, sentence.extra_boxes), strict=True):
        for x1, y1, x2, y2 in boxes or ():
            box = (x1 * image.width, y1 * image.height, (x2 - x1) * image.width, (y2 - y1) * image.height)
            try:
                region = Region.from_box(*box, height=image.height, width=image.width)
            except RegionError:
                region = Region.empty(image.height, image.width)
            is_share = all(0 <= share <= 1 for share in (x1, y1, x2, y2))
            if region.is_empty or not is_share:
                defects["region"] += 1
                continue
            yield Annotation(image=image.key, region=region, drawn="box", annotator=reader)
