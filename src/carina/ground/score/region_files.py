"""Regions that others drew, in files: CheXlocalize's segmentations and annotations, and COCO's JSON."""

import csv
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

import msgspec
import numpy as np
from PIL import Image, ImageDraw

from carina.errors import CarinaError, RegionError
from carina.ground.score.pointing import Box
from carina.studies import Region
from carina.studies.pixels import MAX_BYTES
from carina.studies.rle import check_size

SAME: Final = {"Airspace Opacity": "Lung Opacity"}
"""Findings with two names: CheXlocalize's code has the first, its tables the second."""
_CHEXPERT: Final = re.compile(r"(patient\d+)_")


@dataclass(frozen=True)
class Truth:
    """The regions of one finding in one image."""

    region: Region
    boxes: list[Box] = field(default_factory=list)
    """As they were drawn, and those about the masks that were drawn beside them; none where only masks were."""


Regions = dict[str, dict[str, Truth]]
"""By image, then by finding."""


def read_regions(path: Path) -> Regions:
    """Regions by image and finding; the layout is told by the file's own keys."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise CarinaError(f"{path}: more than the limit of {MAX_BYTES:,} bytes")
        held = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise CarinaError(f"{path}: cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise CarinaError(f"{path}: not JSON, or nested too deeply: {error}") from error
    if not isinstance(held, dict) or not held:
        raise CarinaError(f"{path}: expected an object, as CheXlocalize and COCO write it")
    if "annotations" in held and "images" in held:
        return _coco(path, held)
    return _chexlocalize(path, held)


def finding_name(name: str) -> str:
    """One name for findings that have two."""
    return SAME.get(name, name)


def patients_of(images: Collection[str], table: Path | None) -> dict[str, str]:
    """Each image's patient: as a CSV with columns id and patient says, as CheXpert's ids do, or the image itself."""
    if table is None:
        return {name: found[1] if (found := _CHEXPERT.match(name)) else name for name in images}
    try:
        with table.open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file))
    except OSError as error:
        raise CarinaError(f"{table}: cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise CarinaError(f"{table}: not a CSV file: {error}") from error
    if not rows or not {"id", "patient"} <= set(rows[0]):
        raise CarinaError(f"{table}: expected columns id and patient")
    known = {row["id"]: row["patient"] for row in rows}
    missing = sorted(set(images) - set(known))
    if missing:
        raise CarinaError(f"{table}: {len(missing)} images have no patient, {missing[0]!r} among them")
    return {name: known[name] for name in images}


# ---- CheXlocalize ----


def _chexlocalize(path: Path, held: dict[str, Any]) -> Regions:
    """Segmentations have every finding of every image. Annotations have those that were seen: others are empty."""
    made = {name: _image(path, name, own) for name, own in held.items()}
    findings = list(dict.fromkeys(finding for own in made.values() for finding in own))
    for name, own in made.items():
        size = held[name].get("img_size")
        if size is not None:
            absent = _truth(f"{path}: {name}, img_size", size, [])
            own.update({finding: absent for finding in findings if finding not in own})
    return made


def _image(path: Path, name: str, own: object) -> dict[str, Truth]:
    if not isinstance(own, dict):
        raise CarinaError(f"{path}: {name}: expected findings, as CheXlocalize writes them")
    size = own.get("img_size")
    return {
        finding_name(finding): _truth(f"{path}: {name}, {finding}", size, drawn)
        for finding, drawn in own.items()
        if finding != "img_size"
    }


def _truth(where: str, size: Any, drawn: Any) -> Truth:  # noqa: ANN401 - of a file
    try:
        return Truth(Region.from_coco(drawn) if size is None else _drawn(size, drawn))
    except (RegionError, TypeError, ValueError, AttributeError) as error:
        raise CarinaError(f"{where}: {error}") from error


def _drawn(size: Any, contours: Any) -> Region:  # noqa: ANN401 - of a file
    """Contours filled as CheXlocalize fills them: by Pillow, outline included, all of them united."""
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


def _coco(path: Path, held: dict[str, Any]) -> Regions:
    try:
        names = {one["id"]: finding_name(str(one["name"])) for one in held.get("categories", [])}
        images = {one["id"]: one for one in held["images"]}
        drawn: dict[str, dict[str, list[Truth]]] = {_stem(one): {} for one in images.values()}
        if len(drawn) < len(images):
            raise CarinaError(
                f"{path}: images: two have one name, which their maps could not be told apart by"
            )
        for at, annotation in enumerate(held["annotations"]):
            try:
                image = images[annotation["image_id"]]
                truth = _annotation(annotation, image)
                finding = names[annotation["category_id"]]
            except (RegionError, KeyError, TypeError, ValueError) as error:
                raise CarinaError(f"{path}: annotation {at}: {_told(error)}") from error
            drawn[_stem(image)].setdefault(finding, []).append(truth)
    except (KeyError, TypeError, AttributeError) as error:
        raise CarinaError(f"{path}: not COCO's layout: {_told(error)}") from error
    return {
        name: {finding: _united(f"{path}: {name}, {finding}", truths) for finding, truths in own.items()}
        for name, own in drawn.items()
    }


def _told(error: Exception) -> str:
    return f"no {error.args[0]!r}" if isinstance(error, KeyError) else str(error)


def _stem(image: dict[str, Any]) -> str:
    return PurePosixPath(str(image.get("file_name") or image["path"])).stem


def _annotation(annotation: dict[str, Any], image: dict[str, Any]) -> Truth:
    # MS-CXR tells the size with the annotation, others with the image.
    height, width = (int(image.get(side) or annotation[side]) for side in ("height", "width"))
    drawn = annotation.get("segmentation")
    if isinstance(drawn, dict):
        region = Region.from_coco(drawn)
        if (region.height, region.width) != (height, width):
            raise RegionError(f"a mask of {region.height} x {region.width} on an image of {height} x {width}")
        return Truth(region)
    if drawn:
        rings = [np.asarray(ring, np.float64).reshape(-1, 2) for ring in drawn]
        return Truth(Region.from_polygons(rings, height=height, width=width))
    x, y, w, h = (float(number) for number in annotation["bbox"])
    return Truth(Region.from_box(x, y, w, h, height=height, width=width), [(x, y, w, h)])


def _united(where: str, truths: Sequence[Truth]) -> Truth:
    """All pixels; where a box was drawn, each mask has the box about it too."""
    first, *others = (truth.region for truth in truths)
    try:
        region = first.union(*others)
    except RegionError as error:
        raise CarinaError(f"{where}: {error}") from error
    if not any(truth.boxes for truth in truths):
        return Truth(region)
    return Truth(region, [box for truth in truths for box in truth.boxes or _box_about(truth.region)])


def _box_about(mask: Region) -> list[Box]:
    """With its edges on the outermost pixels, as the boxes of a truth's pieces."""
    return [] if mask.bbox is None else [(x, y, w - 1, h - 1) for x, y, w, h in (mask.bbox,)]
