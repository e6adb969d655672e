"""The masks, points and options of a percept case, decoded from its record, and measures of masks.

Nothing of the builder's code is used, so that its mistakes are not repeated here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.audits.gate import AuditContext
from carina.audits.percept.facts import ROLES, all_region_roles, read_rules
from carina.cases.model import Case, CaseView, Step
from carina.studies.region import Mask, Region

Part = Literal["expansion", "contraction", "distractor"]


class Point(NamedTuple):
    """A point that can be chosen in steps 3a and 3b; a key point states which revision is needed there."""

    option: str
    x: float
    y: float
    part: Part


@dataclass(frozen=True)
class CaseMasks:
    """The masks, points and options of one case."""

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
    """Option of step 3c -> region."""
    key: str | None
    """The right option of step 3c."""
    faults: tuple[str, ...]
    """What is missing."""

    def mask(self, role: str) -> Mask:
        """The mask with this role."""
        return self.masks[self.names[role]]

    def has(self, *roles: str) -> bool:
        """Whether there is a mask for each of these roles."""
        return all(role in self.names for role in roles)

    def window(self, point: Point) -> tuple[float, float]:
        """The coordinates of a point in the window of the masks."""
        return point.x - self.corner[0], point.y - self.corner[1]


class MaskDecoder:
    """Decodes each case once, however many gates ask for it."""

    cost = 100.0

    def __init__(self, context: AuditContext) -> None:
        self._frame = read_rules(context).frame
        self._case: Case | None = None
        self._masks: CaseMasks | None = None

    def read(self, case: Case) -> CaseMasks | None:
        """None for cases without regions: lesion-free ones, and imported images with the contours drawn in."""
        if case is not self._case:
            self._case, self._masks = case, _decode(case, self._frame)
        return self._masks


def step_of(case: Case, task: str) -> Step | None:
    """The step with this task."""
    return next((step for step in case.steps if step.task == task), None)


def _decode(case: Case, frame: int) -> CaseMasks | None:
    if case.protocol != "percept" or case.path not in ("RF", "RR") or not case.regions or not case.images:
        return None
    image = case.images[0]
    roles = all_region_roles(case)
    names = {text: name for name, text in roles.items() if text in ROLES}
    of_image = {region.name: region.region for region in case.regions if region.image == image.key}
    known = {n: r for n, r in of_image.items() if (r.width, r.height) == (image.width, image.height)}
    faults = []
    wanted = ROLES if case.path == "RR" else ("truth", "shown")
    for role in wanted:
        times = sum(text == role for text in roles.values())
        if times != 1:
            faults.append(f"has {times} regions with the role {role!r}, expected 1")
        elif names[role] not in known:
            faults.append(
                f"region {names[role]!r} ({role}) is missing, or does not have the size of the image"
            )
    names = {role: name for role, name in names.items() if name in known}
    options, key = _find_options(case, known)
    masks, corner = _decode_masks(known)
    return CaseMasks(
        case=case,
        names=names,
        masks=masks,
        corner=corner,
        pixel=max(image.width, image.height) / frame,
        points=tuple(_find_points(case)),
        options=options,
        key=key,
        faults=tuple(faults),
    )


def _decode_masks(regions: dict[str, Region]) -> tuple[dict[str, Mask], tuple[int, int]]:
    boxes = [box for region in regions.values() if (box := region.bbox) is not None]
    if not boxes:
        return {name: np.zeros((1, 1), bool) for name in regions}, (0, 0)
    left, top = min(box[0] for box in boxes), min(box[1] for box in boxes)
    right, bottom = max(box[0] + box[2] for box in boxes), max(box[1] + box[3] for box in boxes)
    window = (left, top, right - left, bottom - top)
    return {name: region.crop(*window).to_mask() for name, region in regions.items()}, (left, top)


def _find_options(case: Case, known: dict[str, Region]) -> tuple[dict[str, str], str | None]:
    step = step_of(case, "revision")
    if step is None:
        return {}, None
    views = {view.id: view for view in case.views}
    found = {}
    for option in step.options:
        region = drawn_region(views.get(option.view or ""))
        if region in known:
            found[option.id] = region
    key = step.key.options[0] if step.key.options else None
    return found, key if key in found else None


def drawn_region(view: CaseView | None) -> str:
    """The region that a view shows as an overlay; "" unless it shows exactly one."""
    overlays = [overlay.region for panel in view.panels for overlay in panel.overlays] if view else []
    return overlays[0] if len(overlays) == 1 else ""


def _find_points(case: Case) -> Iterator[Point]:
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
    """Distance from a point to the centre of the nearest pixel of a mask; inf for an empty mask."""
    y, x = np.nonzero(mask)
    if not x.size:
        return float("inf")
    return float(np.sqrt(((x + 0.5 - point[0]) ** 2 + (y + 0.5 - point[1]) ** 2).min()))


def edge(mask: Mask) -> Mask:
    """Pixels of a mask that touch its outside."""
    padded = np.pad(mask, 1).astype(np.uint8)
    inner = cv2.erode(padded, np.ones((3, 3), np.uint8))
    return np.asarray((padded > inner)[1:-1, 1:-1], bool)


def contains(mask: Mask, point: tuple[float, float]) -> bool:
    """Whether the pixel under a point belongs to the mask."""
    x, y = int(np.floor(point[0])), int(np.floor(point[1]))
    return 0 <= y < mask.shape[0] and 0 <= x < mask.shape[1] and bool(mask[y, x])


def components(mask: Mask, least: float) -> list[Mask]:
    """Connected components of at least `least` pixels."""
    n, labels, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=8)
    return [np.asarray(labels == at, bool) for at in range(1, n) if stats[at, cv2.CC_STAT_AREA] >= least]


def perimeter(mask: Mask) -> float:
    """Length of the outer and inner outlines, along pixel centres."""
    padded: NDArray[np.uint8] = np.pad(mask, 1).astype(np.uint8)
    outlines, _ = cv2.findContours(padded, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_NONE)
    return float(sum(cv2.arcLength(outline, closed=True) for outline in outlines))
