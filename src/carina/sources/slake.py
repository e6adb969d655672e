"""SLAKE: questions in English and Chinese about radiographs and slices; those in English about chest radiographs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

from msgspec import Meta

from carina.cases.model import Case
from carina.sources._questions import (
    DEFECTS,
    SECOND_ID,
    ChosenSplit,
    RecordReader,
    Subject,
    ask_record,
    find_image,
    list_split_files,
    make_case,
    resolve_key,
)
from carina.sources._record import RecordError, describe
from carina.sources._source import Stream, source
from carina.sources.swift_chat.record import Fields
from carina.studies.vocabulary import Split

NAME: Final = "slake"
IMAGES: Final = "imgs"
FILES: Final[dict[Split, tuple[str, ...]]] = {
    "train": ("train.json",), "val": ("validate.json", "validation.json"), "test": ("test.json",),
}  # fmt: skip
_CHEST: Final = ("lung", "chest", "heart", "mediastin")
"""Beginnings of what SLAKE calls the location of a chest image."""


def _inputs(path: Path) -> dict[str, Path]:
    return {
        split: path / next((name for name in names if (path / name).is_file()), names[0])
        for split, names in FILES.items()
    }


@source(
    name=NAME,
    title="SLAKE, questions about chest radiographs",
    needs=f"the folder Slake1.0 with train.json, validate.json and test.json, and the images in {IMAGES}/.",
    tree="""
    train.json
    validate.json
    test.json
    imgs/
      xmlab1/
        source.jpg
    """,
    licence="CC BY-SA 4.0, as its page states; check your copy",
    truth=("questions", "keys"),
    brings="cases",
    url="https://www.med-vqa.com/slake/",
    citation="Liu B, Zhan LM, Xu L, Ma L, Yang Y, Wu XM. SLAKE: a semantically-labeled knowledge-enhanced dataset for "
    "medical visual question answering. ISBI 2021.",
    inputs=_inputs,
    defects=DEFECTS,
    second_id=SECOND_ID,
)
def read_slake(
    path: Path,
    *,
    modality: Annotated[
        Literal["X-Ray", "CT", "MRI", "all"], Meta(description="Images of which modality are used.")
    ] = "X-Ray",
    location: Annotated[
        Literal["chest", "all"], Meta(description="Images of the chest alone, or of any part of the body.")
    ] = "chest",
    knowledge: Annotated[
        Literal["include", "skip"],
        Meta(description="Questions that need knowledge beyond the image (kvqa): include or skip them."),
    ] = "include",
    split: Annotated[ChosenSplit, Meta(description="Questions of which split are used.")] = "test",
    images: Annotated[
        Path | None, Meta(description=f"Folder that holds xmlab0, xmlab1 and so on, if not {IMAGES}/.")
    ] = None,
) -> Stream:
    """Read one case a question; questions in Chinese are skipped, because the scores of free text read English."""
    for one, file in list_split_files(path, FILES, split):
        reader = _Reader(
            file=file,
            split=one,
            root=images or path,
            folder="" if images else f"{IMAGES}/",
            modality=modality,
            location=location,
            knowledge=knowledge,
        )
        yield from reader.read()


@dataclass(frozen=True, kw_only=True)
class _Reader(RecordReader):
    """Reads the records of one file."""

    split: Split
    root: Path
    folder: str
    """Folder of the images below the root, with a final slash."""
    modality: str
    location: str
    knowledge: str

    def make(self, number: int, record: Fields) -> Case:
        """As `RecordReader.make`."""
        del number
        self._check_wanted(record)
        name, key = record.required("qid"), resolve_key(record.required("img_name"))
        question = ask_record(record, (record.text("content_type") or "other").strip().lower())
        image = find_image(self.root, f"{self.folder}{key}", is_finished=True)
        study = key.split("/", maxsplit=1)[0]
        subject = Subject(case=f"{NAME}-{name}", study=study, patient=None, split=self.split)
        return make_case(NAME, subject, question, [image])

    def _check_wanted(self, record: Fields) -> None:
        """Refuse a question that was not asked for."""
        language, base, modality, location = (
            (record.text(field) or "").strip() for field in ("q_lang", "base_type", "modality", "location")
        )
        if language.lower() != "en":
            raise RecordError("q_lang", f"is {describe(language)}, not en", kind="language")
        if self.modality.lower() not in ("all", modality.lower()):
            raise RecordError("modality", f"is {describe(modality)}, not {self.modality}", kind="modality")
        if self.location == "chest" and not location.lower().startswith(_CHEST):
            raise RecordError("location", f"is {describe(location)}, not of the chest", kind="location")
        if self.knowledge == "skip" and base.lower() == "kvqa":
            raise RecordError(
                "base_type", "is kvqa, which needs knowledge beyond the image", kind="knowledge"
            )
