"""MIMIC-Ext-CXR-QBA: questions about studies of MIMIC-CXR-JPG with answers in words and boxes, graded by quality.

The tables of questions are filtered by grade before the answers are read from the zip file, study by study. Scene
graphs are not read.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_args

import msgspec
from msgspec import Meta

from carina.cases.model import Box, Case, CaseImage
from carina.sources._archives import Archive
from carina.sources._json import MAX_RECORD
from carina.sources._mimic_images import MimicFolder, MimicImages, read_mimic_id
from carina.sources._questions import CREDENTIALED, Subject, ask, decode_lenient, make_case
from carina.sources._record import RecordError, SourceError, describe, printable
from carina.sources._source import Item, Repaired, Skipped, Stream, source
from carina.sources.swift_chat.record import Fields

if TYPE_CHECKING:
    import polars as pl

NAME: Final = "cxr-qba"
ANSWERS: Final = "qa.zip"
QUESTION_TABLE: Final = "question_metadata"
IMAGE_TABLE: Final = "question_image_metadata"
_ENDINGS: Final = (".parquet", ".csv.gz", ".csv")
_KEYS: Final = ("patient_id", "study_id", "question_id")
_RATING: Final = "question.quality.rating"
_MAIN: Final = "main_answer"
_QUESTIONS_AT_ONCE: Final = 1_000_000
"""Questions whose ids are held in memory at a time."""
_BOX: Final = "box"

Grade = Literal["A++", "A+", "A", "B", "C", "U"]
GRADES: Final[tuple[str, ...]] = get_args(Grade)
"""From the best to those that are not rated."""


@source(
    name=NAME,
    title="MIMIC-Ext-CXR-QBA, answers in words and boxes",
    needs=f"a folder with {ANSWERS} and metadata/{QUESTION_TABLE} and metadata/{IMAGE_TABLE} (.parquet or .csv.gz), "
    "and with --images the folder of MIMIC-CXR-JPG.",
    tree="""
    qa.zip
    metadata/
      question_metadata.parquet          or .csv.gz
      question_image_metadata.parquet    or .csv.gz
    files/    in the folder of MIMIC-CXR-JPG, named with --images
    """,
    licence=CREDENTIALED,
    truth=("questions", "keys", "boxes"),
    brings="cases",
    url="https://physionet.org/content/mimic-ext-cxr-qba/1.0.0/",
    citation="Müller P, Friedrich F, Kaissis G, Rueckert D. MIMIC-Ext-CXR-QBA: a structured, tagged and localized "
    "visual question answering dataset with question-box-answer triplets and scene graphs. PhysioNet 2025.",
    inputs=lambda path: {"questions": _find_table(path / "metadata", QUESTION_TABLE)},
    image_root="images",
    defects={_BOX: "a box with impossible numbers, or outside its image, is left out of the key"},
    unit="questions",
)
def read_cxr_qba(
    path: Path,
    *,
    grade: Annotated[
        Grade, Meta(description="Lowest grade of a question that is used; U is not rated.")
    ] = "A",
    tables: Annotated[
        Path | None,
        Meta(
            description=f"Folder with {QUESTION_TABLE} and {IMAGE_TABLE}, such as exports/A_frontal/metadata/q1M; "
            "without it, metadata/ of the source."
        ),
    ] = None,
    images: MimicFolder = None,
) -> Stream:
    """Read one case a question, with the images that the table names for it."""
    folder = tables or path / "metadata"
    if not (path / ANSWERS).is_file():
        raise SourceError(f"{path / ANSWERS}: missing, expected the questions and answers of all studies")
    archive = Archive(path / ANSWERS)
    reader = _Reader(archive=archive, prefix=_find_prefix(archive), images=MimicImages.at(images, NAME))
    for (patient, study), wanted in _select_questions(folder, grade):
        yield partial(reader.read, patient, study, wanted)


# ---- tables ---------------------------------------------------------------------------------------------------------


def _select_questions(folder: Path, grade: Grade) -> Iterator[tuple[tuple[str, str], dict[str, list[str]]]]:
    """By patient and study, the images of every question of the grade or better."""
    import polars as pl  # noqa: PLC0415 - takes longer to import than most readers take to start

    questions = _scan_table(folder, QUESTION_TABLE, (*_KEYS, _RATING))
    rated = _collect(folder, questions.select(pl.col(_RATING).unique()))[_RATING].to_list()
    unknown = sorted(str(word) for word in rated if word not in GRADES)
    if unknown:
        raise SourceError(
            f"{folder / QUESTION_TABLE}: {_RATING} is {describe(unknown[0])}, expected one of {', '.join(GRADES)}"
        )
    accepted = GRADES[: GRADES.index(grade) + 1]
    keys = questions.filter(pl.col(_RATING).is_in(accepted)).select(_KEYS)
    shown = _scan_table(folder, IMAGE_TABLE, (*_KEYS, "image_id")).select(*_KEYS, "image_id")
    counts = _collect(folder, keys.group_by("patient_id").len().sort("patient_id"))
    for first, last in _divide_patients(counts.iter_rows()):
        share = pl.col("patient_id").is_between(pl.lit(first), pl.lit(last))
        some, images = (table.filter(share).unique() for table in (keys, shown))
        joined = some.join(images, on=list(_KEYS), how="left").sort(*_KEYS, "image_id")
        yield from _group_by_study(_collect(folder, joined))


def _divide_patients(counts: Iterable[tuple[str | None, int]]) -> Iterator[tuple[str, str]]:
    """First and last patient of every share of the questions: 42 million are too many to be sorted at once."""
    first, last, held = "", "", 0
    for patient, questions in counts:
        if patient is None:
            raise SourceError(f"{QUESTION_TABLE}: {questions} rows have no patient_id")
        first, last, held = first or patient, patient, held + questions
        if held >= _QUESTIONS_AT_ONCE:
            yield first, last
            first, held = "", 0
    if held:
        yield first, last


def _collect(folder: Path, table: "pl.LazyFrame") -> "pl.DataFrame":
    import polars as pl  # noqa: PLC0415

    try:
        return table.collect(engine="streaming")
    except (OSError, pl.exceptions.PolarsError) as error:
        raise SourceError(
            f"{folder}: a table cannot be read: {printable(str(error), longest=200)}"
        ) from error


def _group_by_study(rows: "pl.DataFrame") -> Iterator[tuple[tuple[str, str], dict[str, list[str]]]]:
    for (patient, study), own in rows.group_by(["patient_id", "study_id"], maintain_order=True):
        found: dict[str, list[str]] = {}
        for question, image in own.select("question_id", "image_id").iter_rows():
            found.setdefault(str(question), []).extend([] if image is None else [str(image)])
        yield (str(patient), str(study)), found


def _find_table(folder: Path, name: str) -> Path:
    files = [folder / f"{name}{ending}" for ending in _ENDINGS]
    return next((file for file in files if file.is_file()), files[0])


def _scan_table(folder: Path, name: str, columns: tuple[str, ...]) -> "pl.LazyFrame":
    """A table as Parquet or CSV, whose index became columns; ids as text."""
    import polars as pl  # noqa: PLC0415

    file = _find_table(folder, name)
    if not file.is_file():
        raise SourceError(f"{file}: missing, expected a table with {', '.join(columns)}")
    try:
        if file.suffix == ".parquet":
            table = pl.scan_parquet(file, glob=False, hive_partitioning=False)
        else:
            table = pl.scan_csv(file, infer_schema=False, glob=False)
        names = table.collect_schema().names()
    except (OSError, pl.exceptions.PolarsError) as error:
        raise SourceError(f"{file}: cannot be read: {printable(str(error), longest=200)}") from error
    for column in columns:
        if column not in names:
            raise SourceError(f"{file}: no column {column!r}, expected {', '.join(columns)}")
    return table.with_columns(pl.col(columns).cast(pl.String))


# ---- answers --------------------------------------------------------------------------------------------------------


def _find_prefix(archive: Archive) -> str:
    """What stands before the folder of patients in names of members; releases differ."""
    name = next((name for name in archive.names() if name.endswith(".qa.json")), None)
    if name is None or name.count("/") < 2:
        raise SourceError(f"{archive.path}: holds no member such as qa/p10/p10000001/s50000001.qa.json")
    return "".join(f"{part}/" for part in name.split("/")[:-3])


@dataclass(frozen=True, kw_only=True)
class _Reader:
    """Reads the questions of one study."""

    archive: Archive
    prefix: str
    images: MimicImages

    def read(self, patient: str, study: str, wanted: Mapping[str, list[str]]) -> list[Item]:
        """The cases of the wanted questions, or why they cannot be used."""
        place = f"{self.archive.path}: {patient}/{study}"
        try:
            patient, study = read_mimic_id(patient, "patient_id"), read_mimic_id(study, "study_id")
            records = self._read_records(patient, study)
        except RecordError as error:
            return [Skipped.from_error(error, f"{place}/{question}") for question in wanted]
        items: list[Item] = []
        for question, shown in wanted.items():
            try:
                record = _take_record(records, question)
                items.append(self._make_case(patient, study, record, shown))
            except RecordError as error:
                items.append(Skipped.from_error(error, f"{place}/{question}", study=study))
        return items

    def _read_records(self, patient: str, study: str) -> dict[str, list[Fields]]:
        """The questions of the file of a study by id."""
        member = f"{self.prefix}p{patient[:2]}/p{patient}/s{study}.qa.json"
        content = self.archive.read(member, max_bytes=MAX_RECORD)
        found: dict[str, list[Fields]] = {}
        for record in Fields(decode_lenient(content)).objects("questions"):
            found.setdefault(record.name("question_id") or "", []).append(record)
        return found

    def _make_case(self, patient: str, study: str, record: Fields, shown: list[str]) -> Case | Repaired:
        if not shown:
            raise RecordError(
                "image_id", f"{IMAGE_TABLE} names no image for the question", kind="image missing"
            )
        images = {name: self.images.find(patient, study, name) for name in shown}
        answers = [answer for answer in record.objects("answers") if answer.text("answer_type") == _MAIN]
        texts = [text.strip() for answer in answers if (text := answer.text("text")) and text.strip()]
        if not texts:
            raise RecordError("answers", f"none of type {_MAIN} has a text", kind="blank answer")
        question = ask(record.required("question"), " ".join(texts), task=record.required("question_type"))
        boxes, wrong = _read_boxes(answers, images)
        question = replace(question, key=msgspec.structs.replace(question.key, boxes=boxes))
        name = record.required("question_id")
        subject = Subject(case=f"{NAME}-{study}-{name}", study=study, patient=patient)
        case = make_case(NAME, subject, question, list(images.values()))
        return Repaired(record=case, number=1, defects={_BOX: wrong}) if wrong else case


def _take_record(records: Mapping[str, list[Fields]], question: str) -> Fields:
    """The only record of a question."""
    if question not in records:
        raise RecordError(
            "question_id", "is in the table but not in the file of the study", kind="not joined"
        )
    if len(records[question]) > 1:
        raise RecordError("question_id", "several questions of the study have it", kind="id")
    return records[question][0]


def _read_boxes(answers: list[Fields], images: Mapping[str, CaseImage]) -> tuple[tuple[Box, ...], int]:
    """The boxes of the answers on the images that are shown, in pixels, and the number of those that are wrong."""
    boxes: dict[Box, None] = {}
    wrong = 0
    for answer in answers:
        localization = answer.value("localization")
        for name, stated in localization.items() if isinstance(localization, dict) else ():
            image = images.get(str(name))
            corners = stated.get("bboxes") if isinstance(stated, dict) else None
            for box in corners if image is not None and isinstance(corners, list) else ():
                found = _read_box(box, image) if image is not None else None
                if found is None:
                    wrong += 1
                else:
                    boxes[found] = None
    return tuple(boxes), wrong


def _read_box(box: Any, image: CaseImage) -> Box | None:  # noqa: ANN401 - JSON
    """A box within its image; None for one that is none."""
    if not isinstance(box, list) or len(box) != 4 or not all(isinstance(value, int | float) for value in box):
        return None
    x1, y1, x2, y2 = map(float, box)
    is_within = 0 <= x1 < x2 <= image.width and 0 <= y1 < y2 <= image.height
    return Box(image=image.key, xyxy=(x1, y1, x2, y2)) if is_within else None
