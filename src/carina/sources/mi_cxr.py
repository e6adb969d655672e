"""MI-CXR: questions with five options about the course of a patient over five visits, on images of MIMIC-CXR-JPG."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from carina.cases.model import Case
from carina.sources._mimic_images import MimicFolder, MimicImages, read_path_ids
from carina.sources._questions import (
    CREDENTIALED,
    DEFECTS,
    SECOND_ID,
    RecordReader,
    Subject,
    ask_options,
    find_questions,
    find_right,
    make_case,
    read_answer,
)
from carina.sources._record import RecordError, describe
from carina.sources._source import Stream, source
from carina.sources.swift_chat.record import Fields
from carina.sources.swift_chat.texts import split_labels

NAME: Final = "mi-cxr"
QUESTIONS: Final = "micxr_test.jsonl"
VISITS: Final = 5
_VISIT_NAMES: Final = tuple(f"T{number}" for number in range(1, VISITS + 1))
_CONTEXT: Final = "The five images show five visits of one patient in order of time: T1, T2, T3, T4 and T5."


def _find_file(path: Path) -> Path:
    return find_questions(path, QUESTIONS, ", expected the questions as JSON lines")


@source(
    name=NAME,
    title="MI-CXR, the course over five visits",
    needs=f"the file {QUESTIONS} (or its folder), and with --images the folder of MIMIC-CXR-JPG.",
    tree="""
    micxr_test.jsonl
    files/    in the folder of MIMIC-CXR-JPG, named with --images
    """,
    licence=f"Questions public, images and findings of MIMIC-CXR: {CREDENTIALED}",
    truth=("questions", "keys"),
    brings="cases",
    url="https://github.com/AIDASLab/MI-CXR",
    citation="Cho SS, Han Y, Do J. MI-CXR: a benchmark for longitudinal reasoning over multi-interval chest X-rays. "
    "arXiv:2605.15574, 2026.",
    inputs=lambda path: {"questions": _find_file(path)},
    image_root="images",
    defects=DEFECTS,
    second_id=SECOND_ID,
)
def read_mi_cxr(path: Path, *, images: MimicFolder = None) -> Stream:
    """Read one case a question, with the five images in order of time."""
    file = _find_file(path)
    reader = _Reader(file=file, images=MimicImages.at(images, NAME))
    yield from reader.read()


@dataclass(frozen=True, kw_only=True)
class _Reader(RecordReader):
    """Reads the records of the file."""

    images: MimicImages

    def make(self, number: int, record: Fields) -> Case:
        """As `RecordReader.make`."""
        del number
        labels, options = _read_choices(record)
        right = find_right(read_answer(record.value("answer")), labels, options)
        task = record.name("qtype") or record.required("group_type")
        question = ask_options(record.required("question"), options, [right], task=task)
        paths = _read_visits(record)
        patient, study = read_path_ids(paths[-1])
        others = {read_path_ids(path)[0] for path in paths} - {patient}
        if others:
            raise RecordError("images", f"are of patients {patient} and {min(others)}", kind="patients")
        subject = Subject(
            case=f"{NAME}-{record.required('qid')}",
            study=study,
            patient=patient,
            split="test",
            path=record.name("group_type"),
        )
        return make_case(
            NAME, subject, question, [self.images.find_path(path) for path in paths], context=_CONTEXT
        )


def _read_choices(record: Fields) -> tuple[list[str], list[str]]:
    """Labels and texts of the options: an object by letter, or a list."""
    choices = record.value("choices")
    if isinstance(choices, dict):
        if not all(isinstance(text, str) for text in choices.values()):
            raise RecordError("choices", "expected texts by letter", kind="options")
        ordered = dict(sorted(choices.items()))
        return list(ordered), list(ordered.values())
    labels, options = split_labels(record.texts("choices"))
    if len(options) < 2:
        raise RecordError("choices", f"is {describe(choices)}, expected options by letter", kind="options")
    return labels, options


def _read_visits(record: Fields) -> list[str]:
    """Paths of the images in order of time: a list, or an object from T1 to T5."""
    images = record.value("images")
    if isinstance(images, dict):
        images = [images.get(name) for name in _VISIT_NAMES if images.get(name)]
    if (
        not isinstance(images, list)
        or len(images) != VISITS
        or not all(isinstance(path, str) for path in images)
    ):
        raise RecordError("images", f"expected the paths of {VISITS} images in order of time", kind="visits")
    return images
