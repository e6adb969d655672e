"""CheXlocalize: expert masks of ten findings on images of CheXpert, and a human benchmark by other radiologists.

The masks of `gt_segmentations_*.json`, or the polygons of `gt_annotations_*.json` where those are missing, are the
truth; those of `hb_*` are kept beside them as a second annotator. The points that radiologists marked as most salient
have no place in a study and are counted.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from carina.sources._chexpert_labels import SYNONYMS, assess_expert, find_columns, read_labels, state_labels
from carina.sources._json import decode, read_entries
from carina.sources._record import RecordError, SourceError
from carina.sources._source import Inputs, Item, Skipped, Stream, source
from carina.sources._study_draft import (
    DEFECTS,
    ImageFolder,
    MissingImages,
    StudyDraft,
    assess_labels,
    find_image,
    make_or_skip,
)  # fmt: skip
from carina.sources._tables import Row, read_rows
from carina.sources._values import read_view
from carina.sources.chexpert import read_image_name
from carina.store.errors import RegionError
from carina.studies.model import Image
from carina.studies.region import Region
from carina.studies.vocabulary import Drawn, Split, View

TASKS: Final = (
    "Enlarged Cardiomediastinum", "Cardiomegaly", "Lung Lesion", "Airspace Opacity", "Edema", "Consolidation",
    "Atelectasis", "Pneumothorax", "Pleural Effusion", "Support Devices",
)  # fmt: skip
SPLITS: Final[tuple[Split, ...]] = ("val", "test")
EXPERTS: Final = "two radiologists"
HUMAN: Final = "human benchmark"
_FORMS: Final = ("segmentations", "annotations")


class _Drawn(NamedTuple):
    """What one group of radiologists drew on one image: text of the record, and its form."""

    annotator: str
    form: str
    content: bytes


class _Entry(NamedTuple):
    name: str
    split: Split
    number: int
    row: Row | None
    drawn: tuple[_Drawn, ...]
    has_points: bool


def _find(path: Path, prefix: str, split: str) -> tuple[str, Path] | None:
    """The form and the file: masks before polygons, in the folder itself or in CheXlocalize/."""
    for form in _FORMS:
        for folder in (path, path / "CheXlocalize"):
            if (file := folder / f"{prefix}_{form}_{split}.json").is_file():
                return form, file
    return None


def _find_labels(path: Path, split: str) -> Path | None:
    names = ("val_labels.csv", "valid.csv") if split == "val" else ("test_labels.csv",)
    files = (folder / name for folder in (path / "CheXpert", path) for name in names)
    return next((file for file in files if file.is_file()), None)


def _inputs(path: Path) -> Inputs:
    inputs: dict[str, Path] = {}
    for split in SPLITS:
        for prefix in ("gt", "hb"):
            if found := _find(path, prefix, split):
                inputs[f"{prefix} {split}"] = found[1]
        if labels := _find_labels(path, split):
            inputs[f"labels {split}"] = labels
    return inputs


@source(
    name="chexlocalize",
    title="CheXlocalize: expert masks on CheXpert images",
    needs="a folder with CheXlocalize/gt_segmentations_val.json or gt_segmentations_test.json (or gt_annotations_*), "
    "hb_segmentations_test.json where the human benchmark is wanted, and CheXpert/ with val_labels.csv, "
    "test_labels.csv and the images; the JSON files alone with --missing-images keep.",
    tree="""
    CheXlocalize/
      gt_segmentations_val.json
      gt_segmentations_test.json
      hb_segmentations_test.json     where the human benchmark is wanted
    CheXpert/
      val_labels.csv
      test_labels.csv
      val/
        patient64541/study1/view1_frontal.jpg
      test/
    """,
    licence="Stanford University Dataset Research Use Agreement (Stanford AIMI)",
    truth=("masks", "expert labels", "second annotator"),
    url="https://stanfordaimi.azurewebsites.net/datasets/abfb76e5-70d5-4315-badc-c94dd82e3d6d",
    citation="Saporta A, Gui X, Agrawal A, et al. Benchmarking saliency methods for chest X-ray interpretation. Nature "
    "Machine Intelligence 2022;4:867-878.",
    inputs=_inputs,
    defects=DEFECTS,
    unit="images",
)
def read_chexlocalize(
    path: Path, *, missing_images: MissingImages = "skip", images: ImageFolder = None
) -> Stream:
    """Read one study an image."""
    root = images or path
    found = False
    for split in SPLITS:
        truth = _find(path, "gt", split)
        if truth is None:
            continue
        found = True
        for entry in _join(path, split, truth):
            if isinstance(entry, Skipped):
                yield entry
            else:
                place = f"{truth[1]}: {entry.name}"
                yield partial(make_or_skip, _make_study, place, entry.name, root, entry, missing_images)
    if not found:
        where = path / "CheXlocalize" / "gt_segmentations_test.json"
        raise SourceError(f"{where}: missing; put the JSON files of CheXlocalize there")


def _join(path: Path, split: Split, truth: tuple[str, Path]) -> Iterator[_Entry | Skipped]:
    """Images of the table of labels and of the truth, with everything that is known about each."""
    rows: dict[str, Row] = {}
    if (table := _find_labels(path, split)) is not None:
        for row in read_rows(table, ("Path",)):
            try:
                rows[read_image_name(row.required("Path")).path.split("/", 1)[1].replace("/", "_")] = row
            except RecordError as error:
                yield Skipped.from_error(error, row.place)
    experts = {entry.name: entry.content for entry in read_entries(truth[1], "named records")}
    human = _find(path, "hb", split)
    others = {} if human is None else {e.name: e.content for e in read_entries(human[1], "named records")}
    points = truth[1].parent / f"hb_salient_pt_{split}.json"
    salient = {e.name for e in read_entries(points, "named records")} if points.is_file() else set()
    for number, name in enumerate(dict.fromkeys((*rows, *experts)), start=1):
        drawn = [_Drawn(EXPERTS, truth[0], experts[name])] if name in experts else []
        if human is not None and name in others:
            drawn.append(_Drawn(HUMAN, human[0], others[name]))
        yield _Entry(name, split, number, rows.get(name), tuple(drawn), name in salient)
    for name in sorted(others.keys() - experts.keys() - rows.keys()):
        reason = "has masks of the human benchmark but no truth"
        yield Skipped(place=f"{human and human[1]}: {name}", reason=reason, kind="not joined", study=name)


def _make_study(root: Path, entry: _Entry, missing: MissingImages) -> Item:
    drawn = [(one, decode(one.content)) for one in entry.drawn]
    parts = entry.name.split("_")
    if len(parts) != 4 or not parts[0].startswith("patient"):
        raise RecordError("name", "expected such as patient64541_study1_view1_frontal", kind="path")
    draft = StudyDraft(entry.name, patient=parts[0], source="chexlocalize", number=entry.number)
    tail = f"{parts[0]}/{parts[1]}/{parts[2]}_{parts[3]}.jpg"
    folders = [f"{top}{name}/" for top in ("CheXpert/", "") for name in (entry.split, "valid")]
    key = find_image(root, (f"{folder}{tail}" for folder in folders)) or f"{folders[0]}{tail}"
    size = _find_size(drawn) or (0, 0)
    known = size if find_image(root, (key,)) is None or size != (0, 0) else None
    draft.add_image(root, key, _read_view(parts[3], entry.row), size=known, missing=missing)
    draft.facts = {"split": entry.split}
    draft.unmapped = ("salient points",) if entry.has_points else ()
    assessed = assess_labels(TASKS)
    if entry.row is not None:
        columns = find_columns(tuple(entry.row.values))
        labels = read_labels(entry.row, columns)
        state_labels(draft, labels, columns)
        assessed = assess_expert(labels, text=False)
    for one, record in drawn:
        _add_regions(draft, key, one, record, is_absence_stated=entry.row is not None)
    return draft.finish(assessed=assessed)


def _find_size(drawn: list[tuple[_Drawn, Any]]) -> tuple[int, int] | None:
    """Width and height as the truth states them."""
    for one, record in drawn:
        if isinstance(record, dict):
            sizes = [record.get("img_size")] if one.form == "annotations" else [
                mask.get("size") for mask in record.values() if isinstance(mask, dict)
            ]  # fmt: skip
            for size in sizes:
                if isinstance(size, list) and len(size) == 2 and all(isinstance(side, int) for side in size):
                    return size[1], size[0]
    return None


def _read_view(side: str, row: Row | None) -> View:
    view = read_view(row.values.get("AP/PA", "")) if row is not None else "unknown"
    return "lateral" if side == "lateral" else view if view != "lateral" else "unknown"


def _add_regions(draft: StudyDraft, key: str, one: _Drawn, record: Any, *, is_absence_stated: bool) -> None:  # noqa: ANN401 - JSON
    """Add what was drawn; an empty mask of the truth is a finding that is absent, unless the labels say so already."""
    if not isinstance(record, Mapping):
        raise RecordError("", "expected an object of regions by finding", kind="json")
    for task, value in record.items():
        if task == "img_size":
            continue
        label = SYNONYMS.get(task, task)
        region = _make_region(one.form, value, draft.image(key))
        if region is not None and region.is_empty:
            if one.annotator == EXPERTS and not is_absence_stated:
                draft.state(task, "absent", words=label)
        elif draft.state(task, words=label).certainty != "absent":
            drawn: Drawn = "polygon" if one.form == "annotations" else "mask"
            # Where the region cannot be read, an empty one counts as a defect.
            shape = region or Region.empty(1, 1)
            draft.add_region(label, key, shape, annotator=one.annotator, drawn=drawn)


def _make_region(form: str, value: Any, image: Image) -> Region | None:  # noqa: ANN401 - JSON
    """The region; None where it cannot be read."""
    try:
        if form == "annotations":
            return Region.from_polygons(value, height=image.height, width=image.width)
        return Region.from_coco(value)
    except (RegionError, TypeError):
        return None
