"""ReXVQA: questions with options about the studies of ReXGradient-160K.

Indication, findings and impression stand beside every question, and an explanation of the answer: none of them is read.
"""

from functools import partial
from pathlib import Path
from typing import Annotated, Final, Literal

from msgspec import Meta

from carina.cases.model import Case, CaseImage
from carina.sources._json import Entry, read_entries
from carina.sources._questions import (
    DEFECTS,
    SECOND_ID,
    Subject,
    ask_options,
    decode_lenient,
    find_image,
    find_right,
    make_case,
    read_answer,
    read_in_batches,
    resolve_key,
)
from carina.sources._record import RecordError, SourceError
from carina.sources._source import Stream, source
from carina.sources._values import read_view
from carina.sources.swift_chat.record import Fields
from carina.sources.swift_chat.texts import split_labels
from carina.studies.vocabulary import Split

NAME: Final = "rexvqa"
METADATA: Final = "metadata"
_SPLITS: Final[dict[str, Split]] = {"train": "train", "valid": "val", "valid_mini": "val", "test": "test"}
_ENDING: Final = "_vqa_data.json"

RexSplit = Literal["train", "valid", "valid_mini", "test"]


def _file_of(path: Path, split: str) -> Path:
    return path / METADATA / f"{split}{_ENDING}"


@source(
    name=NAME,
    title="ReXVQA, questions with options",
    needs=f"a folder with {METADATA}/test{_ENDING} (or train, valid, valid_mini) and the images of ReXGradient-160K in "
    "deid_png/.",
    tree="""
    metadata/
      test_vqa_data.json
    deid_png/    of ReXGradient-160K, or --images with the folder that holds it
    """,
    licence="Gated, non-commercial research use (terms of ReXVQA and ReXGradient-160K)",
    truth=("questions", "keys"),
    brings="cases",
    url="https://huggingface.co/datasets/rajpurkarlab/ReXVQA",
    citation="Pal A, Lee JO, Zhang X, et al. ReXVQA: a large-scale visual question answering benchmark for generalist "
    "chest X-ray understanding. arXiv:2506.04353, 2025.",
    inputs=lambda path: {split: _file_of(path, split) for split in _SPLITS},
    defects=DEFECTS,
    second_id=SECOND_ID,
)
def read_rexvqa(
    path: Path,
    *,
    split: Annotated[RexSplit, Meta(description="Questions of which file are used.")] = "test",
    images: Annotated[
        Path | None,
        Meta(description="Folder that holds deid_png/, if it is not the folder of the questions."),
    ] = None,
) -> Stream:
    """Read one case a question, with all images of its study."""
    file = _file_of(path, split)
    if not file.is_file():
        raise SourceError(f"{file}: missing, expected the questions of the split {split}")
    make = partial(_make_case, images or path, _SPLITS[split])
    yield from read_in_batches(read_entries(file, "named records"), make, partial(_place, file))


def _place(file: Path, entry: Entry) -> str:
    return f"{file}: {entry.name}"


def _make_case(root: Path, split: Split, entry: Entry) -> Case:
    record = Fields(decode_lenient(entry.content))
    labels, options = split_labels(record.texts("options"))
    if len(options) < 2:
        raise RecordError("options", f"holds {len(options)}, expected two or more", kind="options")
    right = find_right(read_answer(record.value("correct_answer"), "correct_answer"), labels, options)
    task = (record.text("task_name") or record.text("category") or "other").strip().lower()
    question = ask_options(record.required("question"), options, [right], task=task)
    study = record.name("StudyInstanceUid") or record.name("study_id")
    if study is None:
        raise RecordError("StudyInstanceUid", "is missing", kind="empty")
    subject = Subject(case=f"{NAME}-{entry.name}", study=study, patient=record.name("PatientID"), split=split)
    return make_case(NAME, subject, question, _find_images(root, record))


def _find_images(root: Path, record: Fields) -> list[CaseImage]:
    """The images of the study; their paths start in the folder of the questions, and their views stand in a list of
    their own."""
    paths = record.texts("ImagePath")
    if not paths:
        raise RecordError("ImagePath", "is empty", kind="image missing")
    stated = record.value("ImageViewPosition")
    views = stated if isinstance(stated, list) else [stated] * len(paths)
    if len(views) != len(paths):
        raise RecordError(
            "ImageViewPosition", f"holds {len(views)} views of {len(paths)} images", kind="views"
        )
    return [
        find_image(
            root, resolve_key(path, start=METADATA), view=read_view(view if isinstance(view, str) else "")
        )
        for path, view in zip(paths, views, strict=True)
    ]
