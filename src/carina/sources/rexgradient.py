"""ReXGradient-160K: studies with reports, several views each, and follow-up studies.

The files hold bare NaN, "None" as text, and paths that begin with `../`: they are read from the folder that holds
deid_png/, and never lead out of it. Findings are read from the text when a benchmark is built.
"""

import datetime
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from carina.sources._draft_images import ImageFolder, MissingImages, find_image
from carina.sources._json import Entry, decode_with_nan, read_entries
from carina.sources._record import RecordError, SourceError, describe
from carina.sources._series import UNKNOWN, Place, order_studies
from carina.sources._source import Inputs, Item, Stream, source
from carina.sources._study_draft import DEFECTS, StudyDraft, make_or_skip
from carina.sources._tables import BLANK
from carina.sources._values import read_age, read_sex, read_view
from carina.studies.model import Report, ReportSection
from carina.studies.vocabulary import Section, Split

FILES: Final[dict[Split, str]] = {
    "train": "train_metadata_view_position.json",
    "val": "valid_metadata_view_position.json",
    "test": "test_metadata_view_position.json",
}
_SECTIONS: Final[dict[str, Section]] = {
    "Indication": "indication", "Comparison": "comparison", "Findings": "findings", "Impression": "impression",
}  # fmt: skip
_DATE: Final = re.compile(r"(\d{4})-?(\d{2})-?(\d{2})")


def _find_files(path: Path) -> list[tuple[Split, Path]]:
    files = [
        (split, folder / name)
        for split, name in FILES.items()
        for folder in (path / "metadata", path)
        if (folder / name).is_file()
    ]
    if not files:
        raise SourceError(
            f"{path / 'metadata' / FILES['test']}: missing; put the JSON files of ReXGradient there"
        )
    return files


def _inputs(path: Path) -> Inputs:
    return dict(_find_files(path))


@source(
    name="rexgradient",
    title="ReXGradient-160K: chest X-rays with reports",
    needs="a folder with metadata/train_metadata_view_position.json (or valid or test) and the unpacked deid_png/; the "
    "JSON files alone with --missing-images keep.",
    tree="""
    metadata/
      train_metadata_view_position.json    or valid_..., or test_...
    deid_png/
    """,
    licence="ReXGradient-160K terms of use: gated, non-commercial",
    truth=("report", "series"),
    url="https://huggingface.co/datasets/rajpurkarlab/ReXGradient-160K",
    citation="Zhang X, Acosta JN, Miller J, Huang O, Rajpurkar P. ReXGradient-160K: A Large-Scale Publicly Available "
    "Dataset of Chest Radiographs with Free-text Reports. arXiv:2505.00228, 2025.",
    inputs=_inputs,
    defects={
        **DEFECTS,
        "image missing": "an image of the study is not there: left out, or kept with the size that the file states",
        "size": "the file states no size that can be read, and the image is not there: its size is unknown",
    },
    unit="studies",
)
def read_rexgradient(
    path: Path, *, missing_images: MissingImages = "skip", images: ImageFolder = None
) -> Stream:
    """Read one study a record."""
    files = _find_files(path)
    places = order_studies(time for _, file in files for time in _read_times(file))
    for split, file in files:
        for entry in read_entries(file, "named records"):
            make = partial(
                _make_study,
                entry,
                file,
                images or path,
                split=split,
                place=places.get(entry.name, UNKNOWN),
                missing=missing_images,
            )
            yield partial(make_or_skip, make, f"{file}: {entry.name}", entry.name)


def _read_times(file: Path) -> Iterator[tuple[str, str, datetime.date | None]]:
    for entry in read_entries(file, "named records"):
        try:
            record = _read_record(entry.content)
        except RecordError:
            continue  # reported when the study is made
        yield entry.name, _text(record, "PatientID"), _read_date(_text(record, "StudyDate"))


def _read_record(content: bytes) -> dict[str, Any]:
    record = decode_with_nan(content)
    if not isinstance(record, dict):
        raise RecordError("record", f"is {describe(record)}, expected an object", kind="json")
    return record


def _text(record: dict[str, Any], field: str) -> str:
    """A text; empty where the file says in any of its ways that there is none."""
    value = record.get(field)
    text = "" if value is None else str(value).strip()
    return "" if text.lower() in BLANK else text


def _list(record: dict[str, Any], field: str, length: int | None = None) -> list[Any]:
    value = record.get(field)
    if value is None and length is not None:
        return [None] * length
    if not isinstance(value, list) or (length is not None and len(value) != length):
        expected = "a list" if length is None else f"a list of {length}, one for each image"
        found = f"{len(value)} of them" if isinstance(value, list) else describe(value)
        raise RecordError(field, f"is {found}, expected {expected}", kind="json")
    return value


def _read_date(text: str) -> datetime.date | None:
    match = _DATE.match(text)
    try:
        return None if match is None else datetime.date(*map(int, match.groups()))
    except ValueError:
        return None


def _read_size(shape: Any) -> tuple[int, int] | None:  # noqa: ANN401 - JSON
    """Width and height of [height, width], with or without channels behind."""
    if (
        isinstance(shape, list)
        and len(shape) >= 2
        and all(isinstance(side, int) and side > 0 for side in shape[:2])
    ):
        return shape[1], shape[0]
    return None


def _make_study(
    entry: Entry, file: Path, root: Path, *, split: Split, place: Place, missing: MissingImages
) -> Item:
    record = _read_record(entry.content)
    patient = _text(record, "PatientID")
    if not patient:
        raise RecordError("PatientID", "is empty", kind="empty")
    draft = StudyDraft(entry.name, patient=patient, source="rexgradient", number=entry.number, file=str(file))
    paths = _list(record, "ImagePath")
    views, shapes = (_list(record, field, len(paths)) for field in ("ImageViewPosition", "ImageShape"))
    for text, view, shape in zip(paths, views, shapes, strict=True):
        # The paths start beside the folder of the JSON files.
        key = str(text).removeprefix("../")
        is_there = find_image(root, (key,)) is not None
        draft.defects["image missing"] += not is_there
        if not is_there and missing == "skip" and ".." not in key:
            continue
        size = None if is_there else _read_size(shape)
        draft.defects["size"] += not is_there and size is None
        draft.add_image(
            root, key, read_view(str(view or "")), size=size or (None if is_there else (0, 0)), missing="keep"
        )
    if not draft.images:
        raise RecordError("ImagePath", "none of the images is there: unpack deid_png", kind="image missing")
    sections = tuple(
        ReportSection(name=section, text=text)
        for field, section in _SECTIONS.items()
        if (text := _text(record, field))
    )
    draft.facts = {
        "order": place.order, "prior": place.prior, "later": place.later, "split": split,
        "date": _read_date(_text(record, "StudyDate")),
        "age": read_age(_text(record, "PatientAge")), "sex": read_sex(_text(record, "PatientSex")),
        "report": Report(sections=sections) if sections else None,
        "indication": _text(record, "Indication") or None,
    }  # fmt: skip
    return draft.finish()
