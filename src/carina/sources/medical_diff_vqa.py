"""Medical-Diff-VQA: questions about one study of MIMIC-CXR-JPG, and about its difference from another of the patient.

The other study, the reference, may be the later one: ids do not tell the order, dates do. The path of a case says which
it is, so that reports tell both kinds apart.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

from msgspec import Meta

from carina.cases.model import Case, CaseImage, Role
from carina.sources._mimic_images import MimicFolder, MimicImages, read_mimic_id
from carina.sources._questions import (
    CREDENTIALED,
    ChosenSplit,
    Subject,
    ask,
    choose_splits,
    make_case,
    read_answer,
    read_in_batches,
)
from carina.sources._record import RecordError, SourceError, describe
from carina.sources._source import Stream, source
from carina.sources._tables import Row, read_rows
from carina.sources._values import read_split, read_view
from carina.studies.vocabulary import Split, View

NAME: Final = "medical-diff-vqa"
QUESTIONS: Final = "mimic_pair_questions.csv"
STUDIES: Final = "mimic_all.csv"
_COLUMNS: Final = ("study_id", "subject_id", "ref_id", "question_type", "question", "answer", "split")
_DIFFERENCE: Final = "difference"
_DATE: Final = re.compile(r"(\d{4})-?(\d{2})-?(\d{2})(?:\.0)?")

Order = Literal["reference earlier", "reference later", "order unknown"]


class _Study(NamedTuple):
    """What is known of a study: its image and its time, which can be compared; None where it is unknown."""

    patient: str
    image: str
    view: View
    time: tuple[int, float] | None


@source(
    name=NAME,
    title="Medical-Diff-VQA, one study or two of a patient",
    needs=f"a folder with {QUESTIONS} and {STUDIES}; with --images the folder of MIMIC-CXR-JPG, and with --metadata "
    "its table mimic-cxr-2.0.0-metadata.csv.gz for the order of studies.",
    tree="""
    mimic_pair_questions.csv
    mimic_all.csv
    files/    in the folder of MIMIC-CXR-JPG, named with --images
    """,
    licence=CREDENTIALED,
    truth=("questions", "keys"),
    brings="cases",
    url="https://physionet.org/content/medical-diff-vqa/1.0.1/",
    citation="Hu X, Gu L, An Q, et al. Expert knowledge-aware image difference graph representation learning for "
    "difference-aware medical visual question answering. KDD 2023.",
    inputs=lambda path: {"questions": path / QUESTIONS, "studies": path / STUDIES},
    image_root="images",
)
def read_medical_diff_vqa(
    path: Path,
    *,
    metadata: Annotated[
        Path | None,
        Meta(
            description="Table of MIMIC-CXR-JPG (mimic-cxr-2.0.0-metadata.csv.gz) with date and time of every study. "
            f"Without it, the dates of {STUDIES} count, and two studies of one day have no order."
        ),
    ] = None,
    later_reference: Annotated[
        Literal["keep", "skip"],
        Meta(description="Differences from a reference that is the later study: keep or skip them."),
    ] = "keep",
    split: Annotated[ChosenSplit, Meta(description="Questions of which split are used.")] = "test",
    images: MimicFolder = None,
) -> Stream:
    """Read one case a question."""
    reader = _Reader(images=MimicImages.at(images, NAME), later_reference=later_reference)
    studies = _read_studies(path / STUDIES, None if metadata is None else _read_times(metadata))
    rows = read_rows(path / QUESTIONS, _COLUMNS)
    yield from read_in_batches(_join(rows, studies, choose_splits(split)), reader.make, _place)


def _place(joined: "_JoinedRow") -> str:
    return joined.row.place


class _JoinedRow(NamedTuple):
    """A row with its studies; None for one that the table of studies does not hold."""

    row: Row
    study: _Study | None
    reference: _Study | None


def _join(
    rows: Iterable[Row], studies: Mapping[str, _Study], splits: tuple[Split, ...]
) -> Iterator[_JoinedRow]:
    """The rows of the chosen splits; those whose split cannot be read are told later."""
    for row in rows:
        try:
            split = read_split(row.text("split"))
        except RecordError:
            yield _JoinedRow(row, None, None)
            continue
        if split in splits:
            main, other = (
                studies.get(_digits(row.values.get(column, ""))) for column in ("study_id", "ref_id")
            )
            yield _JoinedRow(row, main, other)


def _digits(text: str) -> str:
    """The digits of an id, which may have its letter before them."""
    return text.strip().lstrip("ps").removesuffix(".0")


def _read_studies(path: Path, times: Mapping[str, tuple[int, float]] | None) -> dict[str, _Study]:
    """Studies by id, with the times of the metadata, or else the dates of the table itself."""
    columns = ("subject_id", "study_id", "dicom_id", "view", "study_date")
    studies: dict[str, _Study] = {}
    for row in read_rows(path, columns):
        try:
            study = read_mimic_id(row.required("study_id"), "study_id")
            studies[study] = _Study(
                read_mimic_id(row.required("subject_id"), "subject_id"),
                row.required("dicom_id"),
                read_view(row.text("view")),
                _read_date(row) if times is None else times.get(study),
            )
        except RecordError as error:
            raise SourceError(f"{row.place}: {error}") from error
    return studies


def _read_date(row: Row) -> tuple[int, float] | None:
    text = row.text("study_date")
    found = _DATE.fullmatch(text)
    if text and found is None:
        raise RecordError("study_date", f"is {describe(text)}, expected yyyymmdd or yyyy-mm-dd", kind="date")
    return None if found is None else (int("".join(found.groups())), 0.0)


def _read_times(path: Path) -> dict[str, tuple[int, float]]:
    """Date and time of every study: of its first image. Times are numbers that lost their leading zeros."""
    times: dict[str, tuple[int, float]] = {}
    for row in read_rows(path, ("study_id", "StudyDate", "StudyTime")):
        try:
            study = read_mimic_id(row.required("study_id"), "study_id")
            date, time = row.optional_number("StudyDate"), row.optional_number("StudyTime")
        except RecordError as error:
            raise SourceError(f"{row.place}: {error}") from error
        if date is not None and time is not None:
            moment = (int(date), time)
            times[study] = min(moment, times.get(study, moment))
    return times


@dataclass(frozen=True, kw_only=True)
class _Reader:
    """Makes the cases of rows."""

    images: MimicImages
    later_reference: str

    def make(self, joined: _JoinedRow) -> Case:
        row = joined.row
        split = read_split(row.text("split"))
        task = row.required("question_type").lower()
        question = ask(row.required("question"), read_answer(row.values.get("answer")), task=task)
        patient = read_mimic_id(row.required("subject_id"), "subject_id")
        study, shown = _find(row, "study_id", joined.study, patient)
        number = f"{NAME}-{row.number - 1}"  # of the question: the header is row 1
        if task != _DIFFERENCE:
            subject = Subject(case=number, study=study, patient=patient, split=split)
            return make_case(NAME, subject, question, [self._image(study, shown, "current")])
        reference, other = _find(row, "ref_id", joined.reference, patient)
        order = _compare(shown, other)
        if order == "reference later" and self.later_reference == "skip":
            raise RecordError("ref_id", "is the later study", kind="later reference")
        subject = Subject(
            case=number, study=study, patient=patient, split=split, reference_study=reference, path=order
        )
        pair = [self._image(study, shown, "current"), self._image(reference, other, "reference")]
        return make_case(NAME, subject, question, pair)

    def _image(self, study: str, known: _Study, role: Role) -> CaseImage:
        return self.images.find(known.patient, study, known.image, role=role, view=known.view)


def _find(row: Row, field: str, found: _Study | None, patient: str) -> tuple[str, _Study]:
    """The id of a study of the row, and the study, which must be one of the patient."""
    study = read_mimic_id(row.required(field), field)
    if found is None:
        raise RecordError(field, f"{study} has no row in {STUDIES}", kind="not joined")
    if found.patient != patient:
        raise RecordError(
            field, f"{study} is of patient {found.patient} in {STUDIES}, not of {patient}", kind="not joined"
        )
    return study, found


def _compare(study: _Study, reference: _Study) -> Order:
    if study.time is None or reference.time is None or study.time == reference.time:
        return "order unknown"
    return "reference earlier" if reference.time < study.time else "reference later"
