"""Read regions from files: the segmentations and annotations of CheXlocalize, COCO's JSON, and directories of masks."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

import numpy as np
from PIL import Image, ImageDraw

from carina.maps.index_files import INDEX, read_index
from carina.maps.map_files import SUFFIXES, read_map
from carina.maps.pointing import Box
from carina.store.documents import read_csv, read_json
from carina.store.errors import CarinaError, RegionError
from carina.store.layout import layout_of
from carina.studies import Region
from carina.studies.rle import check_size

FINDING_SYNONYMS: Final = {"Airspace Opacity": "Lung Opacity"}
"""Name that the code of CheXlocalize uses for a finding, and name in its tables."""
_CHEXPERT_PATIENT: Final = re.compile(r"(patient\d+)_")


@dataclass(frozen=True)
class Truth:
    """The regions of one finding in one image."""

    region: Region
    boxes: list[Box] = field(default_factory=list)
    """Annotated boxes, and boxes around masks that were annotated beside them; empty where only masks were."""


Regions = dict[str, dict[str, Truth]]
"""Truth by image, then by finding."""


def read_regions(path: Path) -> Regions:
    """Read regions by image and finding; the keys of a file show whether it is CheXlocalize's or COCO's.

    A directory holds masks, `FINDING/IMAGE.png` (or .tif, .npy, .npz), or has an `index.csv` that lists them. A pixel
    of any value but 0 is part of the region; a mask of zeros says that the finding is absent.

    Raises:
        CarinaError: The file or a mask cannot be read, or is not in one of these layouts.
    """
    if path.is_dir():
        return _read_masks(path)
    content: object = read_json(path, Any, what="JSON")
    if not isinstance(content, dict) or not content:
        raise CarinaError(f"{path}: expected a JSON object in the layout of CheXlocalize or COCO")
    if "annotations" in content and "images" in content:
        return _read_coco(path, content)
    return _read_chexlocalize(path, content)


def unify_finding(name: str) -> str:
    """One name for findings that have two."""
    return FINDING_SYNONYMS.get(name, name)


def find_patients(images: Collection[str], table: Path | None) -> dict[str, str]:
    """The patient of each image.

    Args:
        images: Ids of the images.
        table: CSV with columns id and patient. Without it, patients are read from CheXpert's image ids, and any other
            image counts as a patient of its own.

    Raises:
        CarinaError: The table cannot be read, or lacks an image.
    """
    if table is None:
        return {name: match[1] if (match := _CHEXPERT_PATIENT.match(name)) else name for name in images}
    rows = read_csv(table)
    if not rows or not {"id", "patient"} <= set(rows[0]):
        raise CarinaError(f"{table}: expected columns id and patient")
    known = {row["id"]: row["patient"] for row in rows}
    missing = sorted(set(images) - set(known))
    if missing:
        raise CarinaError(f"{table}: {len(missing)} images have no patient, such as {missing[0]!r}")
    return {name: known[name] for name in images}


# ---- masks ----


def _read_masks(directory: Path) -> Regions:
    layout = layout_of(directory)
    if layout is not None:
        raise CarinaError(
            f"{directory}: is a {layout.title}, expected masks; score maps of its images with `carina build ground` "
            "and `carina explain PROBES --model files:DIR`"
        )
    if (directory / INDEX).is_file():
        files = read_index(directory, "mask")
    else:
        found = sorted(path for path in directory.glob("*/*") if path.suffix.lower() in SUFFIXES)
        files = {(path.stem, path.parent.name): path for path in found}
        if len(files) < len(found):
            raise CarinaError(
                f"{directory}: two masks are of the same image and finding; keep one of the two"
            )
    if not files:
        raise CarinaError(f"{directory}: expected masks FINDING/IMAGE.png, or {INDEX}; found none")
    regions: Regions = {}
    for (image, finding), path in files.items():
        values = read_map(path).values
        if np.isnan(values).any():
            raise CarinaError(f"{path}: expected a mask of numbers, found NaN")
        regions.setdefault(image, {})[unify_finding(finding)] = Truth(Region.from_mask(values != 0))
    for image, truths in regions.items():
        sizes = {(truth.region.height, truth.region.width) for truth in truths.values()}
        if len(sizes) > 1:
            listed = " and ".join(f"{height} x {width}" for height, width in sorted(sizes))
            raise CarinaError(f"{directory}: masks of image {image!r} have different sizes, {listed}")
    return regions


# ---- CheXlocalize ----


def _read_chexlocalize(path: Path, content: dict[str, Any]) -> Regions:
    """Segmentations hold every finding of every image; annotations only present ones, so that others are empty."""
    regions = {name: _read_chexlocalize_image(path, name, image) for name, image in content.items()}
    findings = list(dict.fromkeys(finding for truths in regions.values() for finding in truths))
    for name, truths in regions.items():
        size = content[name].get("img_size")
        if size is not None:
            absent = _read_chexlocalize_truth(f"{path}: {name}, img_size", size, [])
            truths.update({finding: absent for finding in findings if finding not in truths})
    return regions


def _read_chexlocalize_image(path: Path, name: str, image: object) -> dict[str, Truth]:
    if not isinstance(image, dict):
        raise CarinaError(f"{path}: {name}: expected an object of findings, as CheXlocalize writes it")
    size = image.get("img_size")
    return {
        unify_finding(finding): _read_chexlocalize_truth(f"{path}: {name}, {finding}", size, value)
        for finding, value in image.items()
        if finding != "img_size"
    }


def _read_chexlocalize_truth(where: str, size: Any, value: Any) -> Truth:  # noqa: ANN401 - JSON
    try:
        return Truth(Region.from_coco(value) if size is None else _fill_contours(size, value))
    except (RegionError, TypeError, ValueError, AttributeError) as error:
        raise CarinaError(f"{where}: {error}") from error


def _fill_contours(size: Any, contours: Any) -> Region:  # noqa: ANN401 - JSON
    """The union of contours, filled by Pillow with their outline, as CheXlocalize fills them."""
    height, width = (int(length) for length in size)
    check_size(height, width)
    canvas = Image.new("1", (width, height))
    pen = ImageDraw.Draw(canvas)
    for contour in contours:
        points = [(float(x), float(y)) for x, y in contour]
        if len(points) > 1:
            pen.polygon(points, outline=1, fill=1)
    return Region.from_mask(np.array(canvas, bool))


# ---- COCO ----


def _read_coco(path: Path, content: dict[str, Any]) -> Regions:
    try:
        names = {
            category["id"]: unify_finding(str(category["name"])) for category in content.get("categories", [])
        }
        images = {image["id"]: image for image in content["images"]}
        truths: dict[str, dict[str, list[Truth]]] = {_image_name(image): {} for image in images.values()}
        if len(truths) < len(images):
            raise CarinaError(
                f"{path}: images: two have the same name, so that their maps cannot be distinguished"
            )
        for index, annotation in enumerate(content["annotations"]):
            try:
                image = images[annotation["image_id"]]
                truth = _read_coco_annotation(annotation, image)
                finding = names[annotation["category_id"]]
            except (RegionError, KeyError, TypeError, ValueError) as error:
                raise CarinaError(f"{path}: annotation {index}: {_describe_error(error)}") from error
            truths[_image_name(image)].setdefault(finding, []).append(truth)
    except (KeyError, TypeError, AttributeError) as error:
        raise CarinaError(f"{path}: not COCO's layout: {_describe_error(error)}") from error
    return {
        name: {
            finding: _unite(f"{path}: {name}, {finding}", truths_of_finding)
            for finding, truths_of_finding in by_finding.items()
        }
        for name, by_finding in truths.items()
    }


def _describe_error(error: Exception) -> str:
    return f"no {error.args[0]!r}" if isinstance(error, KeyError) else str(error)


def _image_name(image: dict[str, Any]) -> str:
    return PurePosixPath(str(image.get("file_name") or image["path"])).stem


def _read_coco_annotation(annotation: dict[str, Any], image: dict[str, Any]) -> Truth:
    # MS-CXR holds the size with the annotation, other files with the image.
    height, width = (int(image.get(side) or annotation[side]) for side in ("height", "width"))
    segmentation = annotation.get("segmentation")
    if isinstance(segmentation, dict):
        region = Region.from_coco(segmentation)
        if (region.height, region.width) != (height, width):
            raise RegionError(
                f"expected a mask of the size of its image, {height} x {width}, found {region.height} x {region.width}"
            )
        return Truth(region)
    if segmentation:
        rings = [np.asarray(ring, np.float64).reshape(-1, 2) for ring in segmentation]
        return Truth(Region.from_polygons(rings, height=height, width=width))
    x, y, w, h = (float(number) for number in annotation["bbox"])
    return Truth(Region.from_box(x, y, w, h, height=height, width=width), [(x, y, w, h)])


def _unite(where: str, truths: Sequence[Truth]) -> Truth:
    """The union of regions; where any was annotated by a box, each mask adds the box around it."""
    first, *others = (truth.region for truth in truths)
    try:
        region = first.union(*others)
    except RegionError as error:
        raise CarinaError(f"{where}: {error}") from error
    if not any(truth.boxes for truth in truths):
        return Truth(region)
    return Truth(region, [box for truth in truths for box in truth.boxes or _box_around(truth.region)])


def _box_around(mask: Region) -> list[Box]:
    """The box whose edges lie on the outermost pixels of a mask, as in `component_boxes`."""
    return [] if mask.bbox is None else [(x, y, w - 1, h - 1) for x, y, w, h in (mask.bbox,)]
