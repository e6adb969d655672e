"""The plan of a revision question, made before it is decided which of the four masks is right.

The four masks to choose from are a square: two sites, each with two versions of the contour. A version is what it adds
to the shown contour, or removes from it. Directions and sizes of all versions are sampled first; then a fair coin for
each site decides which of its versions is the truth. So what a mask adds to the shown contour and removes from it does
not tell whether it is right. What was edited follows: at a site whose right version is the shown contour, nothing.
"""

from dataclasses import dataclass, replace
from itertools import product
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from carina.percept.deform import Operation
from carina.percept.rules import Rules

RevisionKind = Literal["expansion", "contraction", "both"]
"""Which revisions a case asks for; the edits are their opposites."""
Mistake = Literal["left", "partial", "overshoot", "wrong_operation", "wrong_place"]
"""What the wrong version of a site is: as shown although an edit must be revised, half revised, revised too far,
revised in the wrong direction, or changed where the shown contour is right."""

OPPOSED_SHARE: Final = 0.3
"""Share of plans whose second site is revised in opposite directions by its two versions."""
CONTRARY_SHARE: Final = 0.5
"""Of the other plans, the share in which the two sites are revised in opposite directions."""
NEAR: Final = 0.20
STEP: Final = (0.06, 0.20)
"""Ranges of the revision sizes, as shares of the shown contour: the smaller version of the first site is up to `NEAR`
larger than the rules demand, the other one is larger by `STEP`."""
SECOND: Final = 0.12
"""The same for a version of the second site, and for an edit that all masks revise."""
SPARE: Final = 1.06
"""Factor by which planned edits are larger than the rules demand: drawing makes them smaller."""
OVERLAP_MARGINS: Final = (0.025, 0.015)
"""The four masks overlap the shown contour by what the rules demand of an edited contour, less these margins."""
APART: Final = 0.01
"""The four masks overlap each other by less than what the rules allow, less this margin."""
TURNS: Final = 6
"""How often directions are sampled, until some sizes keep the rules."""
DRAWS: Final = 400
"""Sizes that are sampled for given directions."""

_Values = NDArray[np.float64]


@dataclass(frozen=True)
class SitePlan:
    """The versions of the contour at one site, and which of them is the truth."""

    versions: tuple[float, float]
    """What each adds to the shown contour (positive) or removes from it (negative), as a share of it. An edit that all
    masks revise has the same version twice."""
    right: int = 0

    @property
    def revision(self) -> float:
        """The right version; 0 where nothing is edited."""
        return self.versions[self.right]

    @property
    def mistake_size(self) -> float:
        """By how much the wrong version differs from the right one: what it adds to the truth, or removes from it."""
        return self.versions[1 - self.right] - self.revision

    @property
    def mistake(self) -> Mistake | None:
        """What is wrong with the wrong version; None where there is none."""
        right, wrong = self.revision, self.versions[1 - self.right]
        if right == wrong:
            return None
        if right == 0:
            return "wrong_place"
        if wrong == 0:
            return "left"
        if right * wrong < 0:
            return "wrong_operation"
        return "partial" if abs(wrong) < abs(right) else "overshoot"


@dataclass(frozen=True)
class SquarePlan:
    """All sites of a question: the two of the square, then edits that all masks revise."""

    sites: tuple[SitePlan, ...]

    @property
    def growth(self) -> float:
        """Area of the truth divided by the area of the shown contour."""
        return 1 + sum(site.revision for site in self.sites)

    @property
    def edits(self) -> int:
        """How many sites are edited."""
        return sum(site.revision != 0 for site in self.sites)

    @property
    def kind(self) -> RevisionKind:
        """The revisions that are needed."""
        revisions = [site.revision for site in self.sites if site.revision]
        if min(revisions) < 0 < max(revisions):
            return "both"
        return "expansion" if revisions[0] > 0 else "contraction"

    def decide(self, right: tuple[int, int]) -> "SquarePlan":
        """The plan in which these versions of the first two sites are the truth."""
        sites = [replace(site, right=n) for site, n in zip(self.sites, right, strict=False)]
        return SquarePlan((*sites, *self.sites[2:]))


CORNERS: Final[tuple[tuple[int, int], ...]] = tuple((one, other) for one, other in product((0, 1), repeat=2))
"""The four masks of a square: the version of each site."""


def as_operation(size: float) -> Operation:
    """The operation that adds so much to a contour, or removes so much from it."""
    return "expansion" if size > 0 else "contraction"


def draw_plan(
    area: int, rules: Rules, scale: float, chance: np.random.Generator, *, extra: bool, smallest: float = 1.0
) -> SquarePlan | None:
    """A plan for a lesion in random directions; None where no sampled sizes keep the rules.

    Whichever version of each site will be the truth, the rules can be kept: sizes do not depend on that.

    Args:
        area: Pixels of the lesion.
        rules: Limits of overlaps and of edits.
        scale: Pixels for each pixel of the frame.
        chance: Generator for sampling.
        extra: Whether to plan an edit that all masks revise.
        smallest: Share of the sampled plans, from those with the smallest changes on, from which one is taken.
    """
    least = SPARE * max(rules.edit_share, rules.edit_area * scale**2 / area)
    for _ in range(TURNS):
        versions = _draw_versions(least, chance, extra=extra)
        kept = np.flatnonzero(_keep_rules(versions, least, rules))
        if kept.size:
            break
    else:
        return None
    total = np.abs(versions[:, :, kept]).sum(axis=(0, 1))
    kept = kept[np.argsort(total, kind="stable")][: max(1, round(smallest * kept.size))]
    found = versions[:, :, kept[chance.integers(kept.size)]]
    return SquarePlan(tuple(SitePlan((float(one), float(other))) for one, other in found))


def _draw_versions(least: float, chance: np.random.Generator, *, extra: bool) -> _Values:
    """Sampled versions, (sites, versions, draws), in the same directions."""
    first, second = (1.0 if coin else -1.0 for coin in chance.integers(0, 2, 2))
    is_opposed = bool(chance.random() < OPPOSED_SHARE)
    if not is_opposed:
        second = -first if chance.random() < CONTRARY_SHARE else first
    near = least * 0.9 + chance.uniform(0, NEAR, DRAWS)
    far = near + chance.uniform(*STEP, DRAWS)
    one, other, common = least * 0.9 + chance.uniform(0, SECOND, (3, DRAWS))
    sites = [
        [first * near, first * far],
        [second * one, -second * other] if is_opposed else [np.zeros(DRAWS), second * one],
    ]
    return np.array([*sites, [first * common, first * common]] if extra else sites)


def _keep_rules(versions: _Values, least: float, rules: Rules) -> NDArray[np.bool_]:
    """Which draws keep the rules whichever mask is right."""
    corners = np.array([[*corner, *[0] * (len(versions) - 2)] for corner in CORNERS])
    sizes = np.array([[site[at] for site, at in zip(versions, corner, strict=True)] for corner in corners])
    added, removed = np.maximum(sizes, 0).sum(axis=1), np.maximum(-sizes, 0).sum(axis=1)
    areas = 1 + added - removed
    shown = (1 - removed) / (1 + added)
    low, high = rules.revise_low + OVERLAP_MARGINS[0], rules.revise_high - OVERLAP_MARGINS[1]
    is_kept = ((shown >= low) & (shown <= high)).all(axis=0)
    most = min(rules.option_iou_key, rules.option_iou) - APART
    for one in range(len(CORNERS)):
        # Edits, and a change where nothing is edited, are major compared with the truth.
        wrong = [[site[1 - at] for site, at in zip(versions, corners[one], strict=True)]]
        major = np.where(sizes[one] == 0, wrong[0], sizes[one])
        is_kept &= (np.abs(major) >= least * areas[one]).all(axis=0)
        for other in range(one):
            away = np.abs(sizes[one] - sizes[other]).sum(axis=0)
            both = areas[one] + areas[other]
            is_kept &= (both - away) / (both + away) <= most
    return np.asarray(is_kept)
