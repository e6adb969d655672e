"""MIMIC-Ext-MIMIC-CXR-VQA: templated questions about images of MIMIC-CXR-JPG, with answers from a closed set.

| questions | become | right with |
|---|---|---|
| verify | yes/no questions | the label of the key |
| choose | options: the candidates that the question names, and "none of these" | exactly the right options |
| query | options: all answers to questions of that content, and "none of these" | exactly the right options |
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from msgspec import Meta

from carina.cases.model import Case
from carina.sources._json import read_entries
from carina.sources._mimic_images import MimicFolder, MimicImages, read_mimic_id
from carina.sources._questions import (
    CREDENTIALED,
    DEFECTS,
    SECOND_ID,
    ChosenSplit,
    Question,
    RecordReader,
    Subject,
    ask,
    ask_options,
    decode_lenient,
    list_split_files,
    make_case,
    read_json,
)
from carina.sources._record import RecordError, SourceError, describe
from carina.sources._source import Stream, source
from carina.sources.swift_chat.record import Fields
from carina.studies.vocabulary import Split

NAME: Final = "mimic-cxr-vqa"
ANSWERS: Final = "ans2idx.json"
FILES: Final[dict[Split, tuple[str, ...]]] = {
    "train": ("train.json",), "val": ("valid.json",), "test": ("test.json",),
}  # fmt: skip
_FOLDERS: Final = ("dataset", "", "mimiccxrvqa/dataset")
_SPOKEN: Final = {"m": "male", "f": "female", "ap": "AP", "pa": "PA"}
"""Answers that are codes, in words."""
_NONE: Final = "none of these"
_SINGLE: Final = {"gender": ("m", "f"), "plane": ("ap", "pa")}
"""Contents of which exactly one answer is right, and their answers."""


def _find_folder(path: Path) -> Path:
    for folder in _FOLDERS:
        if (path / folder / ANSWERS).is_file():
            return path / folder
    raise SourceError(
        f"{path / 'dataset' / ANSWERS}: missing; put {ANSWERS} and the files of questions into one folder"
    )


def _inputs(path: Path) -> dict[str, Path]:
    folder = _find_folder(path)
    return {"answers": folder / ANSWERS, **{split: folder / names[0] for split, names in FILES.items()}}


@source(
    name=NAME,
    title="MIMIC-Ext-MIMIC-CXR-VQA, templated questions",
    needs=f"a folder with dataset/{ANSWERS} and dataset/train.json, valid.json and test.json, with answers; and with "
    "--images the folder of MIMIC-CXR-JPG.",
    tree="""
    dataset/
      ans2idx.json
      train.json
      valid.json
      test.json
    files/    in the folder of MIMIC-CXR-JPG, named with --images
    """,
    licence=CREDENTIALED,
    truth=("questions", "keys"),
    brings="cases",
    url="https://physionet.org/content/mimic-ext-mimic-cxr-vqa/1.0.0/",
    citation="Bae S, Kyung D, Ryu J, et al. EHRXQA: a multi-modal question answering dataset for electronic health "
    "records with chest X-ray images. NeurIPS Datasets and Benchmarks 2023.",
    inputs=_inputs,
    image_root="images",
    defects=DEFECTS,
    second_id=SECOND_ID,
)
def read_mimic_cxr_vqa(
    path: Path,
    *,
    split: Annotated[ChosenSplit, Meta(description="Questions of which split are used.")] = "test",
    images: MimicFolder = None,
) -> Stream:
    """Read one case a question."""
    folder = _find_folder(path)
    found = MimicImages.at(images, NAME)
    listed, answered = _list_answers(folder)
    chosen = list(list_split_files(folder, FILES, split))
    for _, file in chosen:
        if file not in answered:
            raise SourceError(
                f"{file}: no question has an answer; the open release has none until the authors' script adds them"
            )
    for one, file in chosen:
        reader = _Reader(file=file, split=one, images=found, answers=listed)
        yield from reader.read()


def _list_answers(folder: Path) -> tuple[dict[str, tuple[str, ...]], frozenset[Path]]:
    """The closed set of answers by content, from all files, in the published order; and the files that hold answers.

    A file holds none before the authors' script has joined them. Then the empty list does not mean "none of these".
    """
    order = read_json(folder / ANSWERS, "an object from answer to number")
    if not isinstance(order, dict):
        raise SourceError(f"{folder / ANSWERS}: expected an object from answer to number")
    used: defaultdict[str, set[str]] = defaultdict(set)
    answered: set[Path] = set()
    for _, file in list_split_files(folder, FILES, "all"):
        for entry in read_entries(file):
            try:
                record = Fields(decode_lenient(entry.content))
                answers = _read_answers(record)
                used[record.text("content_type") or ""].update(answers)
                if answers:
                    answered.add(file)
            except RecordError:
                continue  # told when the record is read
    listed = {
        content: tuple(answer for answer in order if answer in answers) for content, answers in used.items()
    }
    return listed, frozenset(answered)


def _read_answers(record: Fields) -> list[str]:
    if not record.has("answer"):
        raise RecordError("answer", "is missing", kind="blank answer")
    return [answer.strip().lower() for answer in record.texts("answer")]


@dataclass(frozen=True, kw_only=True)
class _Reader(RecordReader):
    """Reads the records of one file."""

    split: Split
    images: MimicImages
    answers: Mapping[str, tuple[str, ...]]
    """The closed set of answers by content."""

    def make(self, number: int, record: Fields) -> Case:
        """As `RecordReader.make`."""
        del number
        patient, study = (
            read_mimic_id(record.required(field), field) for field in ("subject_id", "study_id")
        )
        image = self.images.find(patient, study, record.required("image_id"))
        subject = Subject(
            case=f"{NAME}-{self.split}-{record.required('idx')}",
            study=study,
            patient=patient,
            split=self.split,
        )
        return make_case(NAME, subject, self._read_question(record), [image])

    def _read_question(self, record: Fields) -> Question:
        text, content, kind = (
            record.required(field) for field in ("question", "content_type", "semantic_type")
        )
        right = _read_answers(record)
        if kind == "verify":
            if right not in (["yes"], ["no"]):
                raise RecordError(
                    "answer",
                    f"is {describe(right)}, expected yes or no",
                    kind="blank answer" if not right else "answer",
                )
            return ask(text, right[0], task=content)
        if kind == "choose":
            candidates = _SINGLE.get(content) or _read_candidates(record)
        elif kind == "query":
            candidates = _SINGLE.get(content) or self.answers.get(content, ())
        else:
            raise RecordError(
                "semantic_type", f"is {describe(kind)}, expected verify, choose or query", kind="type"
            )
        return _ask_candidates(text, candidates, right, content)


def _read_candidates(record: Fields) -> tuple[str, ...]:
    """The answers that a question with a choice names: the arguments of which its template has two or more."""
    arguments = record.value("template_arguments")
    several = [
        values
        for given in (arguments.values() if isinstance(arguments, dict) else ())
        if len(values := _list_values(given)) > 1
    ]
    if len(several) != 1:
        raise RecordError("template_arguments", "does not name one list of candidates", kind="options")
    return several[0]


def _list_values(given: Any) -> tuple[str, ...]:  # noqa: ANN401 - JSON
    """Arguments of a template, which are numbered or listed."""
    values = given.values() if isinstance(given, dict) else given if isinstance(given, list) else ()
    return tuple(value.strip().lower() for value in values if isinstance(value, str) and value.strip())


def _ask_candidates(text: str, candidates: Sequence[str], right: Sequence[str], content: str) -> Question:
    unknown = sorted(set(right) - set(candidates))
    if unknown:
        raise RecordError(
            "answer", f"{describe(unknown[0])} is none of the {len(candidates)} candidates", kind="answer"
        )
    if content in _SINGLE:
        if len(right) != 1:
            raise RecordError(
                "answer",
                f"holds {len(right)} answers, expected one",
                kind="blank answer" if not right else "answer",
            )
        options, none = list(candidates), None
    else:
        options, none = [*candidates, _NONE], len(candidates)
    places = [options.index(answer) for answer in right] if right else [none or 0]
    spoken = [_SPOKEN.get(option, option) for option in options]
    return ask_options(text, spoken, places, task=content, multiple=none is not None)
