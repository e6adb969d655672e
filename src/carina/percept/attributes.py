"""Attributes of a lesion's mask: distribution, location, severity and comparison, with a margin around every cut.

A key is stated only where it would stay the same for any contour that a careful reader might draw. An attribute without
such a key is left out with the reason; the others can be asked nevertheless.
"""

from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final, Literal

import cv2
import msgspec
import numpy as np
from numpy.typing import NDArray

from carina.percept.anatomy import REGIONS, Anatomy, measure_overlap, measure_share
from carina.percept.rules import Band, Ineligible, Rules
from carina.studies.lungs import ZONE_COVERED
from carina.studies.region import Mask
from carina.studies.vocabulary import SIDES, ZONES

Severity = Literal["low", "mid", "high"]
Comparison = Literal["similar", "left", "right", "one"]
PRESENT: Final = 0.01
"""Least share of a lung that the lesion covers if it is in this lung (CheXpercept's reference code)."""
SIZE_RATIO: Final = 1.5
"""Least ratio of the larger to the smaller side if they are not similar (CheXpercept's reference code)."""
SEVERITY_CUTS: Final = (1 / 3, 2 / 3)
SEVERITIES: Final[tuple[Severity, ...]] = ("low", "mid", "high")
MANY_ZONES: Final = 4
"""Numbers of zones from this one on are one answer."""
LOCATION_OPTIONS: Final = 3
ATTRIBUTES: Final = ("distribution", "location", "severity", "comparison")
"""Tasks of the attribute questions."""


@dataclass(frozen=True)
class Attributes:
    """Keys of the four attribute questions and the shares that they rest on."""

    zones: dict[str, float]
    regions: dict[str, float]
    lungs: dict[str, float]
    sizes: dict[str, int]
    """Pixels of the lesion in each lung, by side."""
    affected: tuple[str, ...]
    """Zones that the lesion is clearly in."""
    distribution: str | None
    """The number of zones that the lesion is in, as the key states it; None where it is not clear."""
    inside: tuple[str, ...]
    """Regions that the lesion is clearly in; undecided regions are neither here nor in `outside`."""
    outside: tuple[str, ...]
    severity: dict[str, Severity]
    """By side, for each lung that clearly holds the lesion and whose share is not close to a cut."""
    comparison: Comparison | None
    """None where it is not clear."""
    outside_share: float
    """Share of the lesion that lies outside both lungs."""
    not_asked: dict[str, str]
    """By task of `ATTRIBUTES`, why it has no key."""


def measure_attributes(mask: Mask, anatomy: Anatomy, rules: Rules) -> Attributes:
    """The attributes of a mask, without those that are too close to a cut."""
    counts = anatomy.counts(mask)
    zones = _measure_shares(ZONES, counts, anatomy)
    regions = _measure_shares(REGIONS, counts, anatomy)
    lungs = {side: measure_share(f"{side} lung", counts, anatomy.totals) for side in SIDES}
    sizes = {
        "right": int(np.count_nonzero(mask & anatomy.right)),
        "left": int(np.count_nonzero(mask & anatomy.left)),
    }
    not_asked: dict[str, str] = {}
    distribution: str | None = None
    comparison: Comparison | None = None
    try:
        distribution = _count_zones(zones, rules)
    except Ineligible as cut:
        not_asked["distribution"] = str(cut)
    try:
        comparison = _compare_sides(lungs, sizes, rules)
    except Ineligible as cut:
        not_asked["comparison"] = str(cut)
    severity = _classify_severity(lungs, rules)
    if not severity:
        is_clear = any(share >= rules.presence.high for share in lungs.values())
        reason = "severity on a cut" if is_clear else "no lung covered"
        not_asked["severity"] = f"{reason}: {_format_shares(lungs)}"
    return Attributes(
        zones=zones,
        regions=regions,
        lungs=lungs,
        sizes=sizes,
        affected=tuple(name for name, share in zones.items() if share >= rules.region.high),
        distribution=distribution,
        inside=tuple(name for name, share in regions.items() if share >= rules.region.high),
        outside=tuple(
            name for name, share in regions.items() if share <= rules.region.low and share < rules.region.high
        ),
        severity=severity,
        comparison=comparison,
        outside_share=int(counts[0]) / max(int(counts.sum()), 1),
        not_asked=not_asked,
    )


def measure_stable_attributes(
    mask: Mask, redrawn: tuple[Mask, ...], anatomy: Anatomy, rules: Rules, *, scale: float
) -> Attributes:
    """The attributes of a mask that all masks have which a reader might have drawn instead.

    The other masks are the mask grown and shrunk by `rules.stable` pixels, and those in `redrawn`. They may be closer
    to a cut than the mask itself, but must lie on the same side of it. An attribute whose key changes is not asked.
    """
    attributes = measure_attributes(mask, anatomy, rules)
    reach = max(1, round(rules.stable * scale))
    for what, other in (
        (f"grown by {reach} px", _dilate_or_erode(mask, reach)),
        (f"shrunk by {reach} px", _dilate_or_erode(mask, -reach)),
        *(("redrawn", contour) for contour in redrawn),
    ):
        there = measure_attributes(other, anatomy, without_margins(rules))
        attributes = _keep_stable(attributes, there, f"unstable attribute: {what}")
    return attributes


def _keep_stable(here: Attributes, there: Attributes, reason: str) -> Attributes:
    """The attributes that two masks have in common; the others are not asked for this reason."""
    severity = {side: key for side, key in here.severity.items() if there.severity.get(side) == key}
    changed = {
        "distribution": here.distribution != there.distribution,
        "severity": not severity,
        "comparison": here.comparison != there.comparison,
    }
    # The reason that was found first stays.
    not_asked = {task: reason for task, is_changed in changed.items() if is_changed} | here.not_asked
    return replace(
        here,
        distribution=None if changed["distribution"] else here.distribution,
        severity=severity,
        comparison=None if changed["comparison"] else here.comparison,
        inside=tuple(name for name in here.inside if name in there.inside),
        outside=tuple(name for name in here.outside if name in there.outside),
        not_asked=not_asked,
    )


def without_margins(rules: Rules) -> Rules:
    """The same rules with cuts that have no margin, so that every mask gets a key."""
    return msgspec.structs.replace(
        rules,
        region=Band(low=ZONE_COVERED, high=ZONE_COVERED),
        presence=Band(low=PRESENT, high=PRESENT),
        ratio=Band(low=SIZE_RATIO, high=SIZE_RATIO),
        severity_margin=0.0,
    )


def _dilate_or_erode(mask: Mask, reach: int) -> Mask:
    """The mask grown by `reach` pixels in every direction, or shrunk where `reach` is negative."""
    # OpenCV's ellipse of one pixel is a cross; diagonal neighbours are one pixel away as well.
    shape = cv2.MORPH_RECT if abs(reach) == 1 else cv2.MORPH_ELLIPSE
    kernel = cv2.getStructuringElement(shape, (2 * abs(reach) + 1,) * 2)
    change = cv2.dilate if reach > 0 else cv2.erode
    return change(mask.view(np.uint8), kernel).astype(bool)


def _measure_shares(names: tuple[str, ...], counts: NDArray[np.int64], anatomy: Anatomy) -> dict[str, float]:
    shares = {name: measure_share(name, counts, anatomy.totals) for name in names}
    return {name: share for name, share in shares.items() if not np.isnan(share)}


def _count_zones(zones: dict[str, float], rules: Rules) -> str:
    """The key of the distribution question: a zone on a cut does not matter where there are many zones anyway."""
    affected = sum(share >= rules.region.high for share in zones.values())
    if affected >= MANY_ZONES:
        return f"{MANY_ZONES}+"
    grey = {name: share for name, share in zones.items() if rules.region.low < share < rules.region.high}
    if grey:
        raise Ineligible("zone on a cut", _format_shares(grey))
    if not affected:
        raise Ineligible("no zone covered", f"at most {max(zones.values(), default=0.0):.2f} of a zone")
    return str(affected)


def _classify_severity(lungs: dict[str, float], rules: Rules) -> dict[str, Severity]:
    return {
        side: SEVERITIES[sum(share >= cut for cut in SEVERITY_CUTS)]
        for side, share in lungs.items()
        if share >= rules.presence.high
        and all(abs(share - cut) >= rules.severity_margin for cut in SEVERITY_CUTS)
    }


def _compare_sides(lungs: dict[str, float], sizes: dict[str, int], rules: Rules) -> Comparison:
    grey = {
        f"{side} lung": share
        for side, share in lungs.items()
        if rules.presence.low < share < rules.presence.high
    }
    if grey:
        raise Ineligible("lung presence on a cut", _format_shares(grey))
    holding = [side for side, share in lungs.items() if share >= rules.presence.high]
    if not holding:
        raise Ineligible("no lung covered", _format_shares(lungs))
    if len(holding) == 1:
        return "one"
    larger = max(SIDES, key=lambda side: sizes[side])
    ratio = max(sizes.values()) / min(sizes.values())
    if rules.ratio.low < ratio < rules.ratio.high:
        raise Ineligible("size ratio on a cut", f"{ratio:.2f}")
    if ratio < rules.ratio.high:
        return "similar"
    return "left" if larger == "left" else "right"


def choose_regions(
    attributes: Attributes, anatomy: Anatomy, rules: Rules, *, right: int, chance: np.random.Generator
) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Regions for the location question, right and wrong ones: `right` of them hold the lesion, the others do not.

    No two regions overlap by more than the rules allow; None where there are not enough such regions.
    """
    inside = [attributes.inside[n] for n in chance.permutation(len(attributes.inside))]
    outside = [attributes.outside[n] for n in chance.permutation(len(attributes.outside))]
    chosen = _find_separate_regions(inside, right, (), anatomy, rules)
    if chosen is None:
        return None
    others = _find_separate_regions(outside, LOCATION_OPTIONS - right, chosen, anatomy, rules)
    return None if others is None else (chosen, others)


def _find_separate_regions(
    names: list[str], count: int, others: tuple[str, ...], anatomy: Anatomy, rules: Rules
) -> tuple[str, ...] | None:
    """The first `count` of the regions that overlap neither each other nor the others; None where there are none."""
    for chosen in combinations(names, count):
        if _are_separate((*others, *chosen), anatomy, rules):
            return chosen
    return None


def _are_separate(names: tuple[str, ...], anatomy: Anatomy, rules: Rules) -> bool:
    return all(
        measure_overlap(one, other, anatomy.totals) <= rules.option_overlap
        for one, other in combinations(names, 2)
    )


def _format_shares(shares: dict[str, float]) -> str:
    return ", ".join(f"{name} {share:.3f}" for name, share in shares.items())
