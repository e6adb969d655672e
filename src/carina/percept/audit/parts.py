"""A percept case taken apart for the audit: its masks, points and options, found by role and decoded from the record.

Reads the case and nothing else. Nothing of the builder is used, so that its mistakes are not made twice.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.cases.model import Case, CaseView, Step
from carina.studies.region import Mask, Region

ROLES: Final = ("truth", "shown", "revised")
Part = Literal["expansion", "contraction", "distractor"]


class Point(NamedTuple):
    """A point that may be chosen in 3a and 3b; a key point names the revision that is needed there."""

    option: str
    x: float
    y: float
    part: Part


@dataclass(frozen=True)
class Parts:
    """What the gates of percept measure."""

    case: Case
    names: dict[str, str]
    """Role -> region."""
    masks: dict[str, Mask]
    """Region -> pixels, all in one window of the image."""
    corner: tuple[int, int]
    """x, y of the window in the image."""
    pixel: float
    """Length of a pixel of the protocol's frame, in pixels of the image."""
    points: tuple[Point, ...]
    options: dict[str, str]
    """Option of 3c -> region."""
    key: str | None
    """The right option of 3c."""
    faults: tuple[str, ...]
    """What could not be found."""

    def mask(self, role: str) -> Mask:
        return self.masks[self.names[role]]

    def has(self, *roles: str) -> bool:
        return all(role in self.names for role in roles)

    def window(self, point: Point) -> tuple[float, float]:
        """A point in the window of the masks."""
        return point.x - self.corner[0], point.y - self.corner[1]


class Decoder:
    """Takes a case apart once for all gates that ask in turn."""

    cost = 100.0

    def __init__(self, frame: int) -> None:
        self._frame = frame
        self._case: Case | None = None
        self._parts: Parts | None = None

    def parts(self, case: Case) -> Parts | None:
        """None for cases without regions: lesion-free ones, and pictures drawn by somebody else."""
        if case is not self._case:
            self._case, self._parts = case, _taken_apart(case, self._frame)
        return self._parts


def step_of(case: Case, task: str) -> Step | None:
    """The step with this task."""
    return next((step for step in case.steps if step.task == task), None)


def _taken_apart(case: Case, frame: int) -> Parts | None:
    if case.protocol != "percept" or case.path not in ("RF", "RR") or not case.regions or not case.images:
        return None
    image = case.images[0]
    roles = {fact.about: fact.text for fact in case.facts if fact.name == "role"}
    names = {text: name for name, text in roles.items() if text in ROLES}
    known = {region.name: region.region for region in case.regions if region.image == image.key}
    known = {name: r for name, r in known.items() if (r.width, r.height) == (image.width, image.height)}
    faults = []
    wanted = ROLES if case.path == "RR" else ("truth", "shown")
    for role in wanted:
        times = sum(text == role for text in roles.values())
        if times != 1:
            faults.append(f"has {times} regions with the role {role!r}, expected 1")
        elif names[role] not in known:
            faults.append(f"region {names[role]!r} ({role}) is not there or not of the image")
    names = {role: name for role, name in names.items() if name in known}
    options, key = _options(case, known)
    masks, corner = _masks(known)
    return Parts(
        case=case,
        names=names,
        masks=masks,
        corner=corner,
        pixel=max(image.width, image.height) / frame,
        points=tuple(_points(case)),
        options=options,
        key=key,
        faults=tuple(faults),
    )


def _masks(regions: dict[str, Region]) -> tuple[dict[str, Mask], tuple[int, int]]:
    boxes = [box for region in regions.values() if (box := region.bbox) is not None]
    if not boxes:
        return {name: np.zeros((1, 1), bool) for name in regions}, (0, 0)
    left, top = min(box[0] for box in boxes), min(box[1] for box in boxes)
    right, bottom = max(box[0] + box[2] for box in boxes), max(box[1] + box[3] for box in boxes)
    window = (left, top, right - left, bottom - top)
    return {name: region.crop(*window).to_mask() for name, region in regions.items()}, (left, top)


def _options(case: Case, known: dict[str, Region]) -> tuple[dict[str, str], str | None]:
    step = step_of(case, "revision")
    if step is None:
        return {}, None
    views = {view.id: view for view in case.views}
    found = {}
    for option in step.options:
        region = drawn(views.get(option.view or ""))
        if region in known:
            found[option.id] = region
    key = step.key.options[0] if step.key.options else None
    return found, key if key in found else None


def drawn(view: CaseView | None) -> str:
    """The region that a view draws, where it draws one."""
    overlays = [overlay.region for panel in view.panels for overlay in panel.overlays] if view else []
    return overlays[0] if len(overlays) == 1 else ""


def _points(case: Case) -> Iterator[Point]:
    expand, contract = step_of(case, "expansion"), step_of(case, "contraction")
    if expand is None or contract is None:
        return
    views = {view.id: view for view in case.views}
    marks = {m.text: m for v in expand.uses if v in views for panel in views[v].panels for m in panel.marks}
    for option in expand.options:
        mark = marks.get(option.mark or "")
        if mark is None:
            continue
        part: Part = "distractor"
        if option.id in expand.key.options:
            part = "expansion"
        elif option.id in contract.key.options:
            part = "contraction"
        yield Point(option.id, mark.x, mark.y, part)


# ---- measures -----------------------------------------------------------------------------------------------------


def iou(one: Mask, other: Mask) -> float:
    """Intersection over union; 1 where both are empty."""
    either = int(np.count_nonzero(one | other))
    return int(np.count_nonzero(one & other)) / either if either else 1.0


def distance(point: tuple[float, float], mask: Mask) -> float:
    """From a point to the centre of the nearest pixel of a mask; inf for an empty one."""
    y, x = np.nonzero(mask)
    if not x.size:
        return float("inf")
    return float(np.sqrt(((x + 0.5 - point[0]) ** 2 + (y + 0.5 - point[1]) ** 2).min()))


def edge(mask: Mask) -> Mask:
    """Pixels of a mask beside its outside."""
    padded = np.pad(mask, 1).astype(np.uint8)
    inner = cv2.erode(padded, np.ones((3, 3), np.uint8))
    return np.asarray((padded > inner)[1:-1, 1:-1], bool)


def holds(mask: Mask, point: tuple[float, float]) -> bool:
    """Whether the pixel under a point belongs to the mask."""
    x, y = int(np.floor(point[0])), int(np.floor(point[1]))
    return 0 <= y < mask.shape[0] and 0 <= x < mask.shape[1] and bool(mask[y, x])


def pieces(mask: Mask, least: float) -> list[Mask]:
    """Connected pieces of at least so many pixels."""
    n, labels, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=8)
    return [np.asarray(labels == at, bool) for at in range(1, n) if stats[at, cv2.CC_STAT_AREA] >= least]


def perimeter(mask: Mask) -> float:
    """Length of the outer and inner outlines, along pixel centres."""
    padded: NDArray[np.uint8] = np.pad(mask, 1).astype(np.uint8)
    outlines, _ = cv2.findContours(padded, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_NONE)
    return float(sum(cv2.arcLength(outline, closed=True) for outline in outlines))
