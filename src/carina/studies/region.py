"""Region: a set of pixels of one image, in one storage form (COCO run-length encoding).

Coordinates are continuous: x runs right and y down from the image's top left corner, pixel (row i, column j)
covers [j, j+1) x [i, i+1), and its centre is (j + 0.5, i + 0.5). Drawing is elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

import cv2
import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray
from pycocotools import mask as coco

from carina.store.errors import RegionError
from carina.studies import rle
from carina.studies.rle import ColumnRuns, Counts, Mask

__all__ = ["CocoRle", "Mask", "Region", "Ring", "bounding_boxes"]

Ring = NDArray[np.int64]
"""Corners of a closed boundary, shape (n, 2), each (x, y); the last is joined to the first."""


class CocoRle(TypedDict):
    """COCO's JSON form of a mask."""

    size: list[int]
    counts: str


class Region(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """Pixels of an image of `height` x `width`; `counts` is COCO's compressed run-length string.

    The constructors below check what they are given. A region that was decoded from a file is checked when it
    is first used, or at once by `validate`: no operation hands unchecked counts to pycocotools' C code.

    Example:
        >>> region = Region.from_box(2, 1, 4, 3, height=10, width=20)
        >>> region.area, region.to_mask().shape
        (12, (10, 20))
    """

    height: int
    width: int
    counts: str

    # ---- made from ----

    @classmethod
    def from_mask(cls, mask: Mask) -> Region:
        """Make a region from a boolean array of shape (height, width)."""
        _check_image(mask, "mask", boolean=True)
        return cls(mask.shape[0], mask.shape[1], rle.encode_coco(rle.mask_to_counts(mask)))

    @classmethod
    def from_label_image(cls, labels: NDArray[np.integer[Any]], value: int) -> Region:
        """The pixels of an integer image that carry one value; none do where the value is absent."""
        _check_image(labels, "label image", boolean=False)
        return cls.from_mask(np.asarray(labels == value))

    @classmethod
    def empty(cls, height: int, width: int) -> Region:
        """No pixel."""
        rle.check_size(height, width)
        return cls(height, width, rle.encode_empty(height, width))

    @classmethod
    def full(cls, height: int, width: int) -> Region:
        """Every pixel."""
        rle.check_size(height, width)
        return cls._of(np.array([0, height * width]), height, width)

    @classmethod
    def from_box(cls, x: float, y: float, w: float, h: float, *, height: int, width: int) -> Region:
        """The pixels whose centre lies in the box or on its edge, cut off at the image's border.

        Both edges count, so mirroring the box mirrors the region; a fractional box may hold no centre at all.
        """
        rle.check_size(height, width)
        if not (
            0 < w < math.inf and 0 < h < math.inf and -math.inf < x < math.inf and -math.inf < y < math.inf
        ):
            raise RegionError(
                f"box (x {x}, y {y}, w {w}, h {h}): expected finite numbers, and w and h above 0"
            )
        if x >= width or y >= height or x + w <= 0 or y + h <= 0:
            box = f"box (x {x}, y {y}, w {w}, h {h})"
            raise RegionError(f"{box} lies outside the image of {height} x {width} (height x width)")
        left, right = max(0, math.ceil(x - 0.5)), min(width, math.floor(x + w - 0.5) + 1)
        top, bottom = max(0, math.ceil(y - 0.5)), min(height, math.floor(y + h - 0.5) + 1)
        if top >= bottom or left >= right:
            return cls.empty(height, width)
        return cls(height, width, rle.encode_box(range(left, right), range(top, bottom), height, width))

    @classmethod
    def from_polygons(cls, rings: Sequence[ArrayLike], *, height: int, width: int) -> Region:
        """The union of closed rings [(x, y), ...], filled exactly as pycocotools fills them.

        Points that repeat their predecessor, or the first point at the end, are dropped. Parts outside the
        image are cut off.
        """
        rle.check_size(height, width)
        if not len(rings):
            return cls.empty(height, width)
        flat = [_check_ring(ring, at, height, width).ravel().tolist() for at, ring in enumerate(rings)]
        merged = coco.merge(coco.frPyObjects(flat, height, width))
        return cls._of(rle.decode_coco(merged["counts"], height, width), height, width)

    @classmethod
    def from_coco(cls, encoded: Mapping[str, Any]) -> Region:
        """Make a region from COCO's {"size": [height, width], "counts": ...}, compressed or a list of runs."""
        match encoded:
            case {"size": [int(height), int(width)], "counts": str() | bytes() | list() | tuple() as counts}:
                return cls._of(rle.decode_coco(counts, height, width), height, width)
        raise RegionError('expected COCO\'s {"size": [height, width], "counts": a string or a list of runs}')

    @classmethod
    def from_siim(cls, text: str, *, height: int, width: int) -> Region:
        """Make a region from SIIM-ACR's column-major runs with relative starts; "-1" is empty."""
        return cls._of(rle.decode_siim(text, height, width), height, width)

    @classmethod
    def from_chexmask(cls, text: str, *, height: int, width: int) -> Region:
        """Make a region from CheXmask's row-major runs with absolute starts that count from 1."""
        return cls._of(rle.decode_chexmask(text, height, width), height, width)

    @classmethod
    def _of(cls, counts: Counts, height: int, width: int) -> Region:
        return cls(height, width, rle.encode_coco(counts))

    @classmethod
    def _of_runs(cls, runs: ColumnRuns, height: int, width: int) -> Region:
        return cls._of(rle.join_column_runs(runs, height, width), height, width)

    # ---- written as ----

    def to_mask(self) -> Mask:
        """The region as a boolean array of shape (height, width)."""
        return rle.counts_to_mask(self._counts(), self.height, self.width)

    def to_coco(self) -> CocoRle:
        """The region in COCO's JSON form with a compressed string."""
        return {"size": [self.height, self.width], "counts": self.counts}

    def to_siim(self) -> str:
        """The region as SIIM-ACR's text."""
        return rle.encode_siim(self._counts())

    def to_chexmask(self) -> str:
        """The region as CheXmask's text."""
        return rle.encode_chexmask(self._counts(), self.height, self.width)

    def validate(self) -> None:
        """Raise RegionError unless `counts` is exactly what an encoder would write for this size."""
        size = (self.height, self.width)
        if rle.is_encoded_box(self.counts, *size) or rle.is_box(self.counts, *size):
            return
        if rle.encode_coco(self._counts()) != self.counts:
            raise RegionError("COCO counts are longer than needed; others' encodings are read with from_coco")

    def _counts(self) -> Counts:
        return rle.decode_own(self.counts, self.height, self.width)

    def _column_runs(self) -> ColumnRuns:
        return rle.column_runs(self._counts(), self.height)

    # ---- measured ----

    @property
    def area(self) -> int:
        """Number of pixels."""
        return int(self._counts()[1::2].sum())

    @property
    def is_empty(self) -> bool:
        return self._counts().size == 1

    @property
    def bbox(self) -> tuple[int, int, int, int] | None:
        """Smallest (x, y, w, h) that holds every pixel, or None for an empty region."""
        column, top, bottom = self._column_runs()
        if not column.size:
            return None
        x, y = int(column[0]), int(top.min())
        return x, y, int(column[-1]) + 1 - x, int(bottom.max()) - y

    @property
    def centroid(self) -> tuple[float, float] | None:
        """Mean (x, y) of the pixels' centres, or None for an empty region; the first pixel has (0.5, 0.5)."""
        column, top, bottom = self._column_runs()
        if not column.size:
            return None
        length = bottom - top
        area = int(length.sum())
        # Twice the coordinates are whole numbers, so the sums are exact.
        x, y = int(((2 * column + 1) * length).sum()), int(((top + bottom) * length).sum())
        return x / (2 * area), y / (2 * area)

    def contains(self, x: float, y: float) -> bool:
        """Whether the pixel under the point (x, y) belongs; a point outside the image does not."""
        if not (0 <= x < self.width and 0 <= y < self.height):
            return False
        at = math.floor(x) * self.height + math.floor(y)
        return bool(np.searchsorted(np.cumsum(self._counts()), at, side="right") % 2)

    # ---- combined ----

    def union(self, *others: Region) -> Region:
        """Pixels of this region or any of the others."""
        return self._merge(others, intersect=False)

    def intersection(self, *others: Region) -> Region:
        """Pixels of this region and all the others."""
        return self._merge(others, intersect=True)

    def difference(self, other: Region) -> Region:
        """Pixels of this region that are not in the other."""
        return self.intersection(other.complement())

    def complement(self) -> Region:
        """Pixels of the image that are not in this region."""
        return self._of(rle.complement(self._counts()), self.height, self.width)

    def iou(self, other: Region) -> float:
        """Intersection over union; NaN where both are empty, since nothing can be compared."""
        shared = self.intersection(other).area
        either = self.area + other.area - shared
        return shared / either if either else math.nan

    def _merge(self, others: tuple[Region, ...], *, intersect: bool) -> Region:
        for other in others:
            if (other.height, other.width) != (self.height, self.width):
                raise RegionError(
                    f"regions of {self.height} x {self.width} and {other.height} x {other.width} "
                    "(height x width) lie on different images"
                )
        for region in (self, *others):
            region._counts()
        merged = coco.merge([region.to_coco() for region in (self, *others)], intersect=intersect)
        return Region(self.height, self.width, merged["counts"].decode("ascii"))

    # ---- moved ----

    def mirror(self) -> Region:
        """Flipped left to right."""
        column, top, bottom = self._column_runs()
        mirrored = self.width - 1 - column
        order = np.argsort(mirrored, kind="stable")
        return self._of_runs((mirrored[order], top[order], bottom[order]), self.height, self.width)

    def crop(self, x: int, y: int, w: int, h: int) -> Region:
        """The part within a box of whole pixels, as a region of an image of h x w."""
        rle.check_size(h, w)
        if x < 0 or y < 0 or x + w > self.width or y + h > self.height:
            raise RegionError(
                f"crop (x {x}, y {y}, w {w}, h {h}) leaves the image of {self.height} x {self.width} "
                "(height x width)"
            )
        column, top, bottom = self._column_runs()
        top, bottom = np.maximum(top - y, 0), np.minimum(bottom - y, h)
        inside = (column >= x) & (column < x + w) & (top < bottom)
        return self._of_runs((column[inside] - x, top[inside], bottom[inside]), h, w)

    def paste(self, x: int, y: int, *, height: int, width: int) -> Region:
        """Place the region on a larger image, with its own image at (x, y): the inverse of `crop`."""
        rle.check_size(height, width)
        if x < 0 or y < 0 or x + self.width > width or y + self.height > height:
            raise RegionError(
                f"an image of {self.height} x {self.width} at (x {x}, y {y}) leaves the image of "
                f"{height} x {width} (height x width)"
            )
        column, top, bottom = self._column_runs()
        return self._of_runs((column + x, top + y, bottom + y), height, width)

    def resize(self, height: int, width: int) -> Region:
        """Resample the region for a resized image: each new pixel takes the old pixel under its centre.

        A centre on the line between two old pixels takes the right or lower one. No pixel grows or shrinks on
        its way, so areas scale as the image does, up to the sampling of the border.
        """
        rle.check_size(height, width)
        rows = (2 * np.arange(height) + 1) * self.height // (2 * height)
        columns = (2 * np.arange(width) + 1) * self.width // (2 * width)
        return self.from_mask(self.to_mask().take(rows, axis=0).take(columns, axis=1))

    # ---- taken apart ----

    def components(self, connectivity: Literal[4, 8] = 8) -> list[Region]:
        """Connected pieces, the largest first, equal ones in reading order of their first pixel."""
        box = self.bbox
        if box is None:
            return []
        left, upper, _, _ = box
        mask = self.crop(*box).to_mask()
        _, labels, stats, _ = cv2.connectedComponentsWithStats(mask.view(np.uint8), connectivity=connectivity)
        pieces = []
        for label, (x, y, w, h, area) in enumerate(stats.tolist()[1:], start=1):
            piece = labels[y : y + h, x : x + w] == label
            first = (y, x + int(piece[0].argmax()))
            region = Region.from_mask(piece).paste(left + x, upper + y, height=self.height, width=self.width)
            pieces.append((-area, first, region))
        return [region for _, _, region in sorted(pieces, key=lambda piece: piece[:2])]

    def halves(self, low: float = 0.0, high: float = 1.0) -> tuple[Region, Region] | None:
        """Split the region at the widest band of empty columns; None if there is no such band.

        Bands count whose middle lies between these shares of the width.
        """
        column, top, bottom = self._column_runs()
        empty = np.diff(column) - 1
        middle = (column[1:] + column[:-1] + 1) / (2 * self.width)
        bands = np.where((low <= middle) & (middle <= high), empty, 0)
        if not bands.size or bands.max() < 1:
            return None
        cut = int(bands.argmax()) + 1
        one, other = (
            Region._of_runs((column[part], top[part], bottom[part]), self.height, self.width)
            for part in (slice(None, cut), slice(cut, None))
        )
        return one, other

    def contours(self, *, holes: bool = True) -> list[Ring]:
        """Closed boundaries along the pixels' edges, as corners, in reading order of their first corner.

        Outer rings run clockwise on the screen (positive shoelace area), holes the other way round, so the
        areas of all rings sum to the region's. Pixels that touch at a corner are joined, as in `components`.
        """
        box = self.bbox
        if box is None:
            return []
        offset = np.array(box[:2])
        rings = _trace(self.crop(*box).to_mask())
        return [ring + offset for ring, is_hole in rings if holes or not is_hole]


def _check_image(image: object, what: str, *, boolean: bool) -> None:
    """Refuse anything but a two-dimensional array of booleans, or else of whole numbers."""
    if not isinstance(image, np.ndarray):
        raise RegionError(f"{what}: expected an array of shape (height, width), got {type(image).__name__}")
    if image.ndim != 2:
        raise RegionError(f"{what}: expected shape (height, width), got {image.shape}")
    if image.dtype.kind not in ("b" if boolean else "iu"):
        raise RegionError(f"{what}: expected {'boolean' if boolean else 'integer'} pixels, got {image.dtype}")
    rle.check_size(*image.shape)


def _check_ring(ring: ArrayLike, at: int, height: int, width: int) -> NDArray[np.float64]:
    """The ring's points without repetitions; wild coordinates would make pycocotools' C code overflow."""
    try:
        points = np.asarray(ring, dtype=np.float64)
    except (TypeError, ValueError):
        raise RegionError(f"ring {at}: expected points (x, y) of numbers") from None
    if points.ndim != 2 or points.shape[1] != 2:
        raise RegionError(f"ring {at}: expected points (x, y), got an array of shape {points.shape}")
    size = np.array([width, height])
    wild = ~((points >= -size) & (points <= 2 * size)).all(axis=1)
    if wild.any():
        x, y = points[int(wild.argmax())].tolist()
        raise RegionError(
            f"ring {at}: point ({x}, {y}) is not near the image of {height} x {width} (height x width)"
        )
    points = np.compress((points != np.roll(points, 1, axis=0)).any(axis=1), points, axis=0)
    if len(points) < 3:
        raise RegionError(f"ring {at}: expected at least 3 different points, got {len(points)}")
    return points


def _trace(mask: Mask) -> list[tuple[Ring, bool]]:
    """Boundary rings of a mask, each with whether it is a hole.

    Along every row of the pixel grid, boundary edges run from an odd to the next even corner, and likewise
    along every column; so sorting the corners both ways links them all, without following single pixels.
    """
    pixels = np.pad(mask, 1)
    edge = pixels[1:] != pixels[:-1]
    left, right = edge[:, :-1], edge[:, 1:]
    # Where two pixels touch at a corner, that corner is passed twice.
    crossing = left & right & (pixels[:-1, :-1] != pixels[:-1, 1:])
    y, x = np.nonzero((left != right) | crossing)
    twice = crossing[y, x]
    rank = np.repeat(np.arange(y.size), 1 + twice)
    second = np.concatenate([[False], rank[1:] == rank[:-1]])
    y, x, twice = y[rank], x[rank], twice[rank]
    # The first visit ends the edge from the left, the second starts the edge to the right. To keep the two
    # pixels joined, the first turns down where the upper left pixel is set, and up where it is not.
    swap = twice & pixels[y, x]
    by_column = np.lexsort((second ^ swap, y, x))
    vertical = np.empty_like(by_column)
    vertical[by_column[0::2]], vertical[by_column[1::2]] = by_column[1::2], by_column[0::2]
    follow = vertical.tolist()
    corners = np.stack([x, y], axis=1)

    rings = []
    seen = bytearray(len(follow))
    for start in range(0, len(follow), 2):
        if seen[start]:
            continue
        order = []
        at = start
        while not seen[at]:
            beside = at ^ 1
            seen[at] = seen[beside] = 1
            order += [at, beside]
            at = follow[beside]
        is_hole = not pixels[y[start] + 1, x[start] + 1]
        ring = corners[order]
        rings.append((ring[::-1] if is_hole else ring, is_hole))
    return rings


def bounding_boxes(regions: Sequence[Region]) -> list[tuple[int, int, int, int] | None]:
    """`Region.bbox` of many regions at once, some ten times as fast; for regions whose runs need not be checked.

    pycocotools' parser stays within any text, so only sizes are checked before and boxes after: runs that are damaged
    and still within the image give a wrong box here, where `bbox` raises.
    """
    for region in regions:
        rle.check_size(region.height, region.width)
        if not region.counts.isascii():
            raise RegionError("run lengths hold other characters than those of COCO's strings")
    if not regions:
        return []
    found = coco.toBbox([{"size": [r.height, r.width], "counts": r.counts} for r in regions])
    boxes: list[tuple[int, int, int, int] | None] = []
    for region, (x, y, width, height) in zip(regions, found.astype(int).tolist(), strict=True):
        if width <= 0 or height <= 0:
            boxes.append(None)
        elif x < 0 or y < 0 or x + width > region.width or y + height > region.height:
            raise RegionError(f"run lengths leave the image of {region.width} x {region.height}")
        else:
            boxes.append((x, y, width, height))
    return boxes
