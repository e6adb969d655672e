"""NIH ChestX-ray14: text-mined labels, boxes of radiologists, follow-up series, and Google's re-read by experts.

The labels were mined from reports that are not public: a label that is not listed was not found in the report, which
does not say that the finding is absent. Only "No Finding" says so of the fourteen labels. The boxes and the re-read are
by radiologists, and count more than the labels, also where they speak of the same thing by a wider name: there is no
consolidation where the re-read finds no airspace opacity.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

from msgspec import Meta

from carina.sources._draft_images import MissingImages, find_image
from carina.sources._labels import assess_labels, name_of
from carina.sources._record import RecordError, SourceError
from carina.sources._series import UNKNOWN, Place, order_studies
from carina.sources._source import Item, Skipped, Stream, source
from carina.sources._study_draft import DEFECTS, StudyDraft, make_or_skip
from carina.sources._tables import Row, group_rows, read_rows
from carina.sources._values import read_age, read_sex, read_view
from carina.studies.terms import ancestors, is_kind_of
from carina.studies.vocabulary import Certainty

TABLES: Final = ("Data_Entry_2017_v2020.csv", "Data_Entry_2017.csv")
"""The corrected release first: only its follow-up numbers are in order of time."""
BOXES: Final = "BBox_List_2017.csv"
LABELS: Final = (
    "Atelectasis", "Cardiomegaly", "Consolidation", "Edema", "Effusion", "Emphysema", "Fibrosis", "Hernia",
    "Infiltration", "Mass", "Nodule", "Pleural_Thickening", "Pneumonia", "Pneumothorax",
)  # fmt: skip
SIDE: Final = 1024
"""Width and height of every published image."""
_NO_FINDING: Final = "No Finding"
_REREAD: Final = ("Fracture", "Pneumothorax", "Airspace opacity", "Nodule or mass")
_YES_NO: Final[Mapping[str, Certainty]] = {"YES": "present", "NO": "absent"}
_IMAGE: Final = "Image Index"
_ORIGINAL_SIZE: Final = ("OriginalImage[Width", "Height]")
_ORIGINAL_SPACING: Final = ("OriginalImagePixelSpacing[x", "y]")


class _Entry(NamedTuple):
    """What is known about one image before its file is opened."""

    row: Row
    place: Place
    boxes: tuple[Row, ...]
    reread: Row | None


class _Options(NamedTuple):
    path: Path
    folders: tuple[str, ...]
    missing: MissingImages
    is_silence_absence: bool
    """Whether a label that is not listed counts as absent."""


def _inputs(path: Path) -> dict[str, Path]:
    return {"labels": _find_table(path), "boxes": path / BOXES}


@source(
    name="nih",
    title="NIH ChestX-ray14, with boxes and follow-up series",
    needs=f"a folder with {TABLES[0]} (or {TABLES[1]}), {BOXES} where boxes are wanted, and the PNG files in images/ "
    "or in images_001/images to images_012/images.",
    tree="""
    Data_Entry_2017_v2020.csv    or Data_Entry_2017.csv
    BBox_List_2017.csv           where boxes are wanted
    images/
      00000001_000.png
    """,
    licence="Open; cite the paper, link to the download page and acknowledge the NIH Clinical Center",
    truth=("labels", "boxes", "series"),
    url="https://nihcc.app.box.com/v/ChestXray-NIHCC",
    citation="Wang X, Peng Y, Lu L, Lu Z, Bagheri M, Summers RM. ChestX-ray8: Hospital-scale Chest X-ray Database and "
    "Benchmarks on Weakly-Supervised Classification and Localization of Common Thorax Diseases. CVPR 2017. The NIH "
    "Clinical Center provided the data.",
    inputs=_inputs,
    defects={**DEFECTS, "unlisted box": "a box whose finding the labels do not list: the box counts"},
    unit="images",
)
def read_nih(
    path: Path,
    *,
    google: Annotated[
        Path | None,
        Meta(description="CSV file of Google's re-read of 2019, which counts more than the labels."),
    ] = None,
    unlisted: Annotated[
        Literal["unknown", "absent"],
        Meta(
            description="What a label that is not listed says: nothing, or that the finding is absent, as many "
            "publications take it. Radiologists drew boxes of findings that the labels do not list."
        ),
    ] = "unknown",
    missing_images: MissingImages = "skip",
) -> Stream:
    """Read one study an image; images of a patient are ordered by the follow-up number of the release of 2020."""
    table = _find_table(path)
    is_ordered = table.name == TABLES[0]
    rows = list(read_rows(table, (_IMAGE, "Finding Labels", "Follow-up #", "Patient ID", "View Position")))
    places = order_studies(_times(rows)) if is_ordered else {}
    drawn = read_rows(path / BOXES, (_IMAGE, "Finding Label", "Bbox [x", "y", "w", "h]"))
    boxes = group_rows(drawn, _IMAGE) if (path / BOXES).exists() else {}
    reread = {} if google is None else group_rows(read_rows(google, (_IMAGE, *_REREAD)), _IMAGE)
    folders = _find_folders(path)
    seen: set[str] = set()
    for row in rows:
        name = row.values.get(_IMAGE, "").strip()
        if name in seen:
            yield Skipped(
                place=row.place, field=_IMAGE, reason="is there twice", kind="duplicate", study=name
            )
            continue
        seen.add(name)
        again = next(iter(reread.get(name, ())), None)
        entry = _Entry(row, places.get(name, UNKNOWN), tuple(boxes.pop(name, ())), again)
        options = _Options(path, folders, missing_images, is_silence_absence=unlisted == "absent")
        yield partial(make_or_skip, _make_study, row.place, name, entry, options)
    for name, rest in boxes.items():
        reason = f"has boxes but no row in {table.name}"
        yield Skipped(place=rest[0].place, field=_IMAGE, reason=reason, kind="not joined", study=name)


def _make_study(entry: _Entry, options: _Options) -> Item:
    row, path = entry.row, options.path
    name = row.required(_IMAGE)
    patient = f"{int(row.integer('Patient ID')):08d}"
    draft = StudyDraft(
        name.rsplit(".", 1)[0], patient=patient, source="nih", number=row.number, file=row.file
    )
    key = find_image(path, (f"{folder}/{name}" for folder in options.folders)) or f"images/{name}"
    draft.add_image(
        path,
        key,
        read_view(row.text("View Position")),
        size=(SIDE, SIDE),
        missing=options.missing,
        spacing_mm=_spacing(row),
    )
    draft.facts = {
        "order": entry.place.order, "prior": _study_id(entry.place.prior), "later": _study_id(entry.place.later),
        "age": read_age(row.values.get("Patient Age", "")), "sex": read_sex(_sex(row)),
    }  # fmt: skip
    listed = {label.strip() for label in row.required("Finding Labels").split("|")}
    answers: dict[str, Certainty] = {}
    if entry.reread is not None:
        for label in _REREAD:
            answers[name_of(label)] = draft.state(label, entry.reread.choice(label, _YES_NO)).certainty
    for box in entry.boxes:
        draft.defects.read_row(box)
        label = box.required("Finding Label")
        if _is_denied(label, answers):
            draft.defects["conflict"] += 1
            continue
        if name_of(label) not in {name_of(other) for other in listed}:
            draft.defects["unlisted box"] += 1
        corner = [box.number_of(column) for column in ("Bbox [x", "y", "w", "h]")]
        draft.add_box(label, key, corner, annotator="radiologist")
    draft.defects.read_row(row)
    draft.rank, draft.is_by_program = 1, True  # the labels were mined from reports
    if _NO_FINDING in listed:
        # Where a radiologist drew a box, or there are other labels, it is not trusted, even if these are denied.
        draft.state_no_finding(() if entry.boxes or listed > {_NO_FINDING} else LABELS)
    for label in sorted(listed - {_NO_FINDING}):
        if _is_denied(label, answers):
            draft.defects["conflict"] += 1
        else:
            draft.state(label)
    mined: tuple[str, ...] = LABELS if options.is_silence_absence else ()
    present = {name for name, answer in answers.items() if answer == "present"}
    # Where a mass or nodule is present, silence does not say which of them is absent.
    mined = tuple(label for label in mined if present.isdisjoint(ancestors(name_of(label))))
    labels = (*mined, *(_REREAD if entry.reread is not None else ()))
    return draft.finish(assessed=assess_labels(labels, text=True), mined=mined)


def _is_denied(label: str, answers: Mapping[str, Certainty]) -> bool:
    """Whether the re-read says that nothing of the kind is there: no mass where there is no nodule or mass.

    The answer that is nearest to the label counts: a nodule is asked for as "Nodule or mass", although it is a lung
    opacity, too. A label that the re-read has under its own name is compared by the draft.
    """
    name = name_of(label)
    asked = [other for other in answers if is_kind_of(name, other)]
    nearest = [other for other in asked if not any(is_kind_of(one, other) for one in asked)]
    return name not in answers and any(answers[other] == "absent" for other in nearest)


def _find_table(path: Path) -> Path:
    for name in TABLES:
        if (path / name).is_file():
            return path / name
    raise SourceError(f"{path / TABLES[0]}: missing; put the table of labels beside the folder of images")


def _find_folders(path: Path) -> tuple[str, ...]:
    """Folders of images: one, or the twelve as they are downloaded."""
    split = sorted(folder.parent.name + "/images" for folder in path.glob("images_*/images"))
    return ("images", *split)


def _times(rows: Iterable[Row]) -> Iterator[tuple[str, str, int | None]]:
    """Id, patient and follow-up number of every image; a number that cannot be read is unknown."""
    for row in rows:
        try:
            time: int | None = row.integer("Follow-up #")
        except RecordError:
            time = None
        yield row.values.get(_IMAGE, "").strip(), row.values.get("Patient ID", "").strip(), time


def _study_id(name: str | None) -> str | None:
    return None if name is None else name.rsplit(".", 1)[0]


def _spacing(row: Row) -> tuple[float, float] | None:
    """Size of a pixel of the published image, which is the original one reduced to 1024 pixels a side."""
    size, spacing = (_pair(row, names) for names in (_ORIGINAL_SIZE, _ORIGINAL_SPACING))
    if size is None or spacing is None:
        return None
    (width, height), (across, down) = size, spacing
    return down * height / SIDE, across * width / SIDE


def _pair(row: Row, columns: tuple[str, str]) -> tuple[float, float] | None:
    values = [row.optional_number(column) for column in columns if column in row.values]
    first, second = values if len(values) == 2 else (None, None)
    return (first, second) if first and second and first > 0 and second > 0 else None


def _sex(row: Row) -> str:
    """The column has the same name in both releases but for its capitals."""
    return row.values.get("Patient Gender") or row.values.get("Patient Sex") or ""
