"""VQA-RAD: questions of clinicians about radiographs and slices of head, chest and abdomen."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

from msgspec import Meta

from carina.cases.model import Case
from carina.sources._json import read_entries
from carina.sources._questions import (
    DEFECTS,
    SECOND_ID,
    RecordReader,
    Subject,
    ask_record,
    choose_splits,
    decode_lenient,
    find_image,
    find_questions,
    make_case,
)
from carina.sources._record import RecordError, describe
from carina.sources._source import Repaired, Stream, source
from carina.sources.swift_chat.record import Fields
from carina.studies.vocabulary import Split

NAME: Final = "vqa-rad"
QUESTIONS: Final = "VQA_RAD Dataset Public.json"
IMAGES: Final = "VQA_RAD Image Folder"
_BOTH_SPLITS: Final = "image in both splits"
_TEST: Final = "test_"
"""Beginning of the phrase types of test questions."""

Organ = Literal["CHEST", "HEAD", "ABD", "all"]


def _find_file(path: Path) -> Path:
    return find_questions(path, QUESTIONS, f"; put the file of questions beside the folder {IMAGES!r}")


@source(
    name=NAME,
    title="VQA-RAD, questions of clinicians",
    needs=f"a folder with {QUESTIONS!r} and the images in {IMAGES!r}.",
    tree="""
    VQA_RAD Dataset Public.json
    VQA_RAD Image Folder/
      synpic100.jpg
    """,
    licence="CC0 1.0, as its page states; check your copy",
    truth=("questions", "keys"),
    brings="cases",
    url="https://osf.io/89kps/",
    citation="Lau JJ, Gayen S, Ben Abacha A, Demner-Fushman D. A dataset of clinically generated visual questions and "
    "answers about radiology images. Scientific Data 2018;5:180251.",
    inputs=lambda path: {"questions": _find_file(path)},
    defects={
        **DEFECTS,
        _BOTH_SPLITS: "kept; models that were trained on VQA-RAD have seen the image",
    },
    second_id=SECOND_ID,
)
def read_vqa_rad(
    path: Path,
    *,
    organ: Annotated[Organ, Meta(description="Images of which organ are used.")] = "CHEST",
    split: Annotated[
        Literal["train", "test", "all"], Meta(description="Questions of which split are used.")
    ] = "test",
    images: Annotated[
        Path | None,
        Meta(description=f"Folder that holds the images, if not {IMAGES!r} beside the questions."),
    ] = None,
) -> Stream:
    """Read one case a question."""
    file = _find_file(path)
    reader = _Reader(
        file=file,
        root=images or file.parent,
        folder="" if images else f"{IMAGES}/",
        organ=organ,
        splits=choose_splits(split),
        shared=_find_shared_images(file),
    )
    yield from reader.read()


def _find_shared_images(file: Path) -> frozenset[str]:
    """Images that have questions in both splits."""
    images: dict[Split, set[str]] = {"train": set(), "test": set()}
    for entry in read_entries(file):
        try:
            record = Fields(decode_lenient(entry.content))
            images[_read_split(record)].add(record.name("image_name") or "")
        except RecordError:
            continue  # told when the record is read
    return frozenset(images["train"] & images["test"])


def _read_split(record: Fields) -> Split:
    phrase = (record.text("phrase_type") or "").strip().lower()
    if not phrase:
        raise RecordError("phrase_type", "is missing, so that the split is unknown", kind="split")
    return "test" if phrase.startswith(_TEST) else "train"


@dataclass(frozen=True, kw_only=True)
class _Reader(RecordReader):
    """Reads the records of the file."""

    root: Path
    folder: str
    """Folder of the images below the root, with a final slash."""
    organ: Organ
    splits: tuple[Split, ...]
    shared: frozenset[str]
    """Images that have questions in both splits."""

    def make(self, number: int, record: Fields) -> Case | Repaired | None:
        """As `RecordReader.make`."""
        split = _read_split(record)
        if split not in self.splits:
            return None
        organ = (record.text("image_organ") or "").strip().upper()
        if self.organ not in ("all", organ):
            raise RecordError("image_organ", f"is {describe(organ)}, not {self.organ}", kind="organ")
        name, image = record.required("qid"), record.required("image_name")
        kind = (record.text("question_type") or "").split(",")[0].strip().lower() or "other"
        question = ask_record(record, kind)
        found = find_image(self.root, f"{self.folder}{image}", is_finished=True)
        subject = Subject(case=f"{NAME}-{name}", study=image.rsplit(".", 1)[0], patient=None, split=split)
        case = make_case(NAME, subject, question, [found])
        if image not in self.shared:
            return case
        return Repaired(record=case, number=number, file=str(self.file), defects={_BOTH_SPLITS: 1})
