"""CheXlocalize: expert masks of ten findings on images of CheXpert, and a human benchmark by other radiologists.

The masks of `gt_segmentations_*.json`, or the polygons of `gt_annotations_*.json` where those are missing, are the
truth. Those of `hb_*`, and the points of `hb_salient_pt_*.json` that the same radiologists marked as most salient, are
kept beside it for comparison, where the truth calls the finding present.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from carina.sources._chexpert_labels import (
    SYNONYMS,
    assess_expert,
    find_columns,
    list_filled,
    read_labels,
    state_labels,
)
from carina.sources._defects import RecordPlace
from carina.sources._draft_images import ImageFolder, MissingImages, find_image
from carina.sources._json import decode, read_entries
from carina.sources._labels import assess_labels
from carina.sources._record import RecordError, SourceError
from carina.sources._source import Inputs, Item, Skipped, Stream, source
from carina.sources._study_draft import DEFECTS, Drawing, StudyDraft, make_or_skip
from carina.sources._tables import Row, read_rows
from carina.sources._values import read_view
from carina.sources.chexpert import read_image_name
from carina.store.errors import RegionError
from carina.studies.model import Image, SalientPoint
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
    """What one group of radiologists drew on one image: form and text of the record."""

    form: str
    content: bytes


class _Entry(NamedTuple):
    name: str
    split: Split
    file: str
    """The file of the truth."""
    row: Row | None
    truth: _Drawn | None
    human: _Drawn | None
    points: bytes | None
    """Text of the record of salient points."""


def _find(path: Path, prefix: str, split: str) -> tuple[str, Path] | None:
    """The form and the file: masks before polygons, in the folder itself or in CheXlocalize/."""
    for form in _FORMS:
        for folder in (path, path / "CheXlocalize"):
            if (file := folder / f"{prefix}_{form}_{split}.json").is_file():
                return form, file
    return None


def _find_points(path: Path, split: str) -> Path | None:
    files = (folder / f"hb_salient_pt_{split}.json" for folder in (path, path / "CheXlocalize"))
    return next((file for file in files if file.is_file()), None)


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
        if points := _find_points(path, split):
            inputs[f"points {split}"] = points
        if labels := _find_labels(path, split):
            inputs[f"labels {split}"] = labels
    return inputs


@source(
    name="chexlocalize",
    title="CheXlocalize: expert masks on CheXpert images",
    needs="a folder with CheXlocalize/gt_segmentations_val.json or gt_segmentations_test.json (or gt_annotations_*), "
    "hb_segmentations_test.json and hb_salient_pt_test.json where the human benchmark is wanted, and "
    "CheXpert/ with val_labels.csv, test_labels.csv and the images; the JSON files alone with --missing-images keep.",
    tree="""
    CheXlocalize/
      gt_segmentations_val.json
      gt_segmentations_test.json
      hb_segmentations_test.json     where the human benchmark is wanted
      hb_salient_pt_test.json        where its points are wanted
    CheXpert/
      val_labels.csv
      test_labels.csv
      val/
        patient64541/study1/view1_frontal.jpg
      test/
    """,
    licence="Stanford University Dataset Research Use Agreement (Stanford AIMI)",
    truth=("masks", "expert labels", "human benchmark"),
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
    benchmark, points = _find(path, "hb", split), _find_points(path, split)
    experts, human = _read_drawn(truth), _read_drawn(benchmark)
    salient = {} if points is None else {e.name: e.content for e in read_entries(points, "named records")}
    for name in dict.fromkeys((*rows, *experts)):
        drawn = (experts.get(name), human.get(name), salient.get(name))
        yield _Entry(name, split, str(truth[1]), rows.get(name), *drawn)
    for name in sorted({*human, *salient} - experts.keys() - rows.keys()):
        file = benchmark[1] if benchmark is not None and name in human else points
        reason = "has masks or points of the human benchmark but no truth"
        yield Skipped(place=f"{file}: {name}", reason=reason, kind="not joined", study=name)


def _read_drawn(found: tuple[str, Path] | None) -> dict[str, _Drawn]:
    """By image, what a file holds; nothing where there is no file."""
    if found is None:
        return {}
    form, file = found
    return {entry.name: _Drawn(form, entry.content) for entry in read_entries(file, "named records")}


def _make_study(root: Path, entry: _Entry, missing: MissingImages) -> Item:
    truth, human = (_decode(drawn) for drawn in (entry.truth, entry.human))
    parts = entry.name.split("_")
    if len(parts) != 4 or not parts[0].startswith("patient"):
        raise RecordError("name", "expected such as patient64541_study1_view1_frontal", kind="path")
    draft = StudyDraft(entry.name, patient=parts[0], source="chexlocalize", number=0, file=entry.file)
    tail = f"{parts[0]}/{parts[1]}/{parts[2]}_{parts[3]}.jpg"
    folders = [f"{top}{name}/" for top in ("CheXpert/", "") for name in (entry.split, "valid")]
    key = find_image(root, (f"{folder}{tail}" for folder in folders)) or f"{folders[0]}{tail}"
    size = next((one.size for one in (truth, human) if one is not None and one.size), (0, 0))
    known = size if find_image(root, (key,)) is None or size != (0, 0) else None
    draft.add_image(root, key, _read_view(parts[3], entry.row), size=known, missing=missing)
    draft.facts = {"split": entry.split}
    labels = _state_row(draft, entry.row)
    draft.defects.place = RecordPlace(entry.file)
    if truth is not None:
        _add_truth(draft, key, truth, () if labels is None else list_filled(labels))
    if human is not None:
        _add_human(draft, key, human)
    if entry.points is not None:
        _add_points(draft, key, decode(entry.points))
    return draft.finish(
        assessed=assess_labels(TASKS) if labels is None else assess_expert(labels, text=False)
    )


def _state_row(draft: StudyDraft, row: Row | None) -> str | None:
    """State what a row of the table of labels says; returns the row, as `read_labels` gives it."""
    if row is None:
        return None
    draft.defects.read_row(row)
    columns = find_columns(tuple(row.values))
    labels = read_labels(row, columns)
    state_labels(draft, labels, columns)
    return labels


class _Record(NamedTuple):
    """What one group of radiologists drew on one image."""

    form: str
    regions: Mapping[str, Any]
    """By task, as the file writes it."""
    size: tuple[int, int] | None
    """Width and height, where the file states them."""

    @property
    def drawn(self) -> Drawn:
        """How the regions were drawn."""
        return "polygon" if self.form == "annotations" else "mask"


def _decode(drawn: _Drawn | None) -> _Record | None:
    if drawn is None:
        return None
    record = _read_object(decode(drawn.content))
    regions = {task: value for task, value in record.items() if task != "img_size"}
    sizes = [record.get("img_size")] if drawn.form == "annotations" else [
        mask.get("size") for mask in regions.values() if isinstance(mask, dict)
    ]  # fmt: skip
    return _Record(drawn.form, regions, _find_size(sizes))


def _read_object(record: Any) -> Mapping[str, Any]:  # noqa: ANN401 - JSON
    if not isinstance(record, Mapping):
        raise RecordError("", "expected an object of regions by finding", kind="json")
    return record


def _find_size(sizes: Iterable[Any]) -> tuple[int, int] | None:
    """Width and height by the first of several pairs of height and width."""
    for size in sizes:
        if isinstance(size, list) and len(size) == 2 and all(isinstance(side, int) for side in size):
            return size[1], size[0]
    return None


def _read_view(side: str, row: Row | None) -> View:
    view = read_view(row.values.get("AP/PA", "")) if row is not None else "unknown"
    return "lateral" if side == "lateral" else view if view != "lateral" else "unknown"


def _add_truth(draft: StudyDraft, key: str, record: _Record, labelled: Collection[str]) -> None:
    """Add what the experts drew; an empty mask is a finding that is absent, unless the labels say so already."""
    for task, value in record.regions.items():
        label = SYNONYMS.get(task, task)
        region = _make_region(record.form, value, draft.image(key))
        if region is not None and region.is_empty:
            if label not in labelled:
                draft.state(task, "absent", words=label)
        elif draft.state(task, words=label).certainty != "absent":
            # Where the region cannot be read, an empty one counts as a defect.
            shape = region or Region.empty(1, 1)
            draft.add_region(label, key, shape, annotator=EXPERTS, drawn=record.drawn)


def _add_human(draft: StudyDraft, key: str, record: _Record) -> None:
    """Add what the human benchmark drew of what the truth calls present; polygons name only what was drawn."""
    regions = dict(record.regions)
    if record.form == "annotations":
        regions = {**dict.fromkeys(TASKS), **regions}
    for task, value in regions.items():
        drawing = Drawing(SYNONYMS.get(task, task), key, record.drawn, HUMAN)
        region = None if value is None else _make_region(record.form, value, draft.image(key))
        is_drawn = value is not None and (region is None or not region.is_empty)
        draft.compare_region(drawing, (region or Region.empty(1, 1)) if is_drawn else None)


def _add_points(draft: StudyDraft, key: str, record: Any) -> None:  # noqa: ANN401 - JSON
    """Add the points that the human benchmark marked as most salient."""
    for task, points in _read_object(record).items():
        label = SYNONYMS.get(task, task)
        for point in points if isinstance(points, list) else ():
            x, y = _read_point(point)
            draft.compare_point(label, SalientPoint(image=key, x=x, y=y, annotator=HUMAN))


def _read_point(point: Any) -> tuple[float, float]:  # noqa: ANN401 - JSON
    """Position of a point; one that is no pair of numbers lies nowhere, and is counted."""
    try:
        x, y = map(float, point)
    except (TypeError, ValueError):
        return float("nan"), float("nan")
    return x, y


def _make_region(form: str, value: Any, image: Image) -> Region | None:  # noqa: ANN401 - JSON
    """The region; None where it cannot be read."""
    try:
        if form == "annotations":
            return Region.from_polygons(value, height=image.height, width=image.width)
        return Region.from_coco(value)
    except (RegionError, TypeError):
        return None
