"""The COVID-19 Image Data Collection, with lung masks by V7 and segmentations by General Blockchain.

The label of an image is the diagnosis of the patient, as a path such as Pneumonia/Viral/COVID-19, not what a reader
saw: nothing is known of what is not stated. `todo` is no label. Licences differ by image, see the column `license`.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import numpy as np
from msgspec import Meta

from carina.sources._draft_images import find_image
from carina.sources._labels import name_of
from carina.sources._record import RecordError
from carina.sources._series import Place, order_studies
from carina.sources._source import Item, Skipped, Stream, source
from carina.sources._study_draft import DEFECTS, StudyDraft, make_or_skip
from carina.sources._tables import Row, group_rows, read_rows
from carina.sources._values import read_age, read_sex, read_view
from carina.store.errors import CarinaError
from carina.studies.pixels import read_colour, read_pixels
from carina.studies.region import Region
from carina.studies.terms import find_term

TABLE: Final = "metadata.csv"
LUNGS: Final = "semantic_masks_v7labs_lungs"
SEGMENTS: Final = "segmentations"
_FILE: Final = "filename"
_LUNG: Final = 255
"""Value of a lung in the masks of V7; 127 marks something else."""
_SMALLEST_LUNG: Final = 0.2
"""Share of the larger lung below which a piece of a mask is not the other lung: our choice."""
_MIDDLE: Final = (0.3, 0.7)
"""Shares of the width between which the gap between two lungs is looked for: our choice."""
_ANATOMY: Final = ("Airways", "Cardiomediastinum", "Left Lung", "Right Lung")
_NO_LABEL: Final = ("todo", "Unknown", "")
_NORMAL: Final = "No Finding"


class _Entry(NamedTuple):
    row: Row
    place: Place
    segments: tuple[Row, ...]


@source(
    name="covid",
    title="COVID-19 Image Data Collection, with masks",
    needs=f"a folder with {TABLE} and the images in images/; masks of the lungs in {LUNGS}/, and structure.csv with "
    f"its masks in {SEGMENTS}/, where they are wanted.",
    tree="""
    metadata.csv
    images/
      53c9be49.jpg
    semantic_masks_v7labs_lungs/    where lung masks are wanted
      53c9be49.jpg
    segmentations/                  where lesion masks are wanted
      structure.csv
      masks/
    """,
    licence="Images: by image, see the column license; table: CC BY-NC-SA 4.0; masks of V7 and General Blockchain: "
    "CC BY 4.0",
    truth=("diagnosis", "lung masks", "lesion masks", "series"),
    url="https://github.com/ieee8023/covid-chestxray-dataset",
    citation="Cohen JP, Morrison P, Dao L, Roth K, Duong TQ, Ghassemi M. COVID-19 Image Data Collection: Prospective "
    "Predictions Are the Future. arXiv:2006.11988, 2020. Lung masks: V7 Labs. Segmentations: General Blockchain, Inc.",
    inputs=lambda path: {"table": path / TABLE, "segmentations": path / SEGMENTS / "structure.csv"},
    defects={
        **DEFECTS,
        "lungs": "a lung mask that does not show two lungs is left out",
        "licence": "the table states no licence for the image: ask before you share it",
    },
    unit="images",
)
def read_covid(
    path: Path,
    *,
    licence: Annotated[
        tuple[str, ...], Meta(description="Use only images under one of these licences, such as 'CC BY 4.0'.")
    ] = (),
) -> Stream:
    """Read one study an image; images of a patient are ordered by the day."""
    rows = list(
        read_rows(path / TABLE, ("patientid", "offset", "finding", "view", "modality", "folder", _FILE))
    )
    rows, others = _split_rows(rows)
    yield from others
    places = order_studies(_times(rows))
    structure = path / SEGMENTS / "structure.csv"
    columns = ("Template Name", "Filename", "Mask", "Top", "Left")
    segments = group_rows(read_rows(structure, columns), "Filename") if structure.exists() else {}
    for row in rows:
        name = row.values[_FILE].strip()
        entry = _Entry(row, places[name], tuple(segments.pop(name, ())))
        yield partial(make_or_skip, _make_study, row.place, _study_id(name), path, entry, licence)
    for name, rest in segments.items():
        reason = f"{name} has masks but no row in {TABLE}"
        yield Skipped(
            place=rest[0].place, field="Filename", reason=reason, kind="not joined", study=_study_id(name)
        )


def _split_rows(rows: Iterable[Row]) -> tuple[list[Row], list[Skipped]]:
    """Rows of radiographs, each file once; and why the others are not used."""
    used: dict[str, Row] = {}
    skipped: list[Skipped] = []
    for row in rows:
        name = row.values.get(_FILE, "").strip()
        modality = row.values.get("modality", "").strip()
        wrong = (
            ("modality", f"is {modality!r}, not a radiograph", "modality") if modality != "X-ray" else None
        )
        if wrong is None and (not name or _study_id(name) in used):
            wrong = (_FILE, "is empty or there twice", "duplicate")
        if wrong is None:
            used[_study_id(name)] = row
        else:
            field, reason, kind = wrong
            skipped.append(
                Skipped(place=row.place, field=field, reason=reason, kind=kind, study=_study_id(name))
            )
    return list(used.values()), skipped


def _times(rows: Iterable[Row]) -> Iterator[tuple[str, str, float | None]]:
    """Name, patient and day of every image; a day that cannot be read is unknown."""
    for row in rows:
        try:
            day = row.optional_number("offset")
        except RecordError:
            day = None
        yield row.values[_FILE].strip(), row.values.get("patientid", "").strip(), day


def _make_study(path: Path, entry: _Entry, licences: tuple[str, ...]) -> Item:
    row = entry.row
    name = row.required(_FILE)
    licence = row.values.get("license", "").strip()
    if licences and licence not in licences:
        raise RecordError("license", f"is {licence!r}, and was not asked for", kind="licence")
    draft = StudyDraft(
        _study_id(name), patient=row.required("patientid"), source="covid", number=row.number, file=row.file
    )
    draft.defects["licence"] += not licence
    key = f"{row.text('folder') or 'images'}/{name}"
    image = draft.add_image(path, key, read_view(row.text("view")))
    place = entry.place
    draft.facts = {
        "order": place.order, "prior": place.prior and _study_id(place.prior),
        "later": place.later and _study_id(place.later),
        "age": read_age(row.values.get("age", "")), "sex": read_sex(row.values.get("sex", "")),
    }  # fmt: skip
    _state_diagnosis(draft, row.text("finding"))
    masks = path / LUNGS / name
    if masks.is_file() and image.view != "lateral":
        _add_lungs(draft, key, masks)
    for segment in entry.segments:
        draft.defects.read_row(segment)
        _add_segment(draft, key, path / SEGMENTS, segment)
    return draft.finish()


def _state_diagnosis(draft: StudyDraft, label: str) -> None:
    if label == _NORMAL:
        draft.state_normal(label)
    elif label not in _NO_LABEL:
        parts = label.split("/")
        known = (words for words in (label, *reversed(parts)) if find_term(words) is not None)
        draft.state(label, words=next(known, label))


def _add_lungs(draft: StudyDraft, key: str, file: Path) -> None:
    """The two lungs of a mask: on a frontal image, the right lung is on the left."""
    try:
        both = Region.from_label_image(read_pixels(file), _LUNG)
    except CarinaError:
        draft.defects["region"] += 1
        return
    pieces = both.components()
    if len(pieces) == 2 and pieces[1].area >= _SMALLEST_LUNG * pieces[0].area:
        lungs = tuple(sorted(pieces, key=lambda piece: piece.centroid or (0, 0)))
    else:
        lungs = both.halves(*_MIDDLE) or ()
    if len(lungs) != 2 or min(lung.area for lung in lungs) < _SMALLEST_LUNG * max(
        lung.area for lung in lungs
    ):
        draft.defects["lungs"] += 1
        return
    for side, lung in zip(("right lung", "left lung"), lungs, strict=True):
        draft.add_anatomy(side, key, lung, annotator="V7")


def _add_segment(draft: StudyDraft, key: str, folder: Path, row: Row) -> None:
    """A mask that is cropped to its structure, pasted where the table says."""
    image, label = draft.image(key), row.required("Template Name")
    mask = find_image(folder, (row.required("Mask"),))
    try:
        cropped = Region.from_mask(np.asarray(read_colour(folder / (mask or "")).any(axis=2)))
        region = cropped.paste(
            row.integer("Left"), row.integer("Top"), height=image.height, width=image.width
        )
    except CarinaError:
        region = Region.empty(image.height, image.width)
    if label in _ANATOMY:
        draft.add_anatomy(name_of(label), key, region, annotator="General Blockchain")
    else:
        draft.add_region(label, key, region, annotator="General Blockchain")


def _study_id(name: str) -> str:
    return name.rsplit(".", 1)[0]
