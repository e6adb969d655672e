"""Attributes of a lesion's mask: distribution, location, severity and comparison, with a margin around every cut.

A key is stated only where it would stay the same for any contour that a careful reader might draw.
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


@dataclass(frozen=True)
class Attributes:
    """Keys of the four attribute questions and the shares that they rest on."""

    zones: dict[str, float]
    regions: dict[str, float]
    lungs: dict[str, float]
    sizes: dict[str, int]
    """Pixels of the lesion in each lung, by side."""
    affected: tuple[str, ...]
    """Zones that the lesion is in."""
    inside: tuple[str, ...]
    """Regions that the lesion is clearly in; undecided regions are neither here nor in `outside`."""
    outside: tuple[str, ...]
    severity: dict[str, Severity]
    """By side, for each lung that clearly holds the lesion and whose share is not close to a cut."""
    comparison: Comparison
    outside_share: float
    """Share of the lesion that lies outside both lungs."""


def measure_attributes(mask: Mask, anatomy: Anatomy, rules: Rules) -> Attributes:
    """The attributes of a mask; `Ineligible` where one of them is too close to a cut."""
    counts = anatomy.counts(mask)
    zones = _measure_shares(ZONES, counts, anatomy)
    regions = _measure_shares(REGIONS, counts, anatomy)
    lungs = {side: measure_share(f"{side} lung", counts, anatomy.totals) for side in SIDES}
    sizes = {
        "right": int(np.count_nonzero(mask & anatomy.right)),
        "left": int(np.count_nonzero(mask & anatomy.left)),
    }
    return Attributes(
        zones=zones,
        regions=regions,
        lungs=lungs,
        sizes=sizes,
        affected=_find_affected_zones(zones, rules),
        inside=tuple(name for name, share in regions.items() if share >= rules.region.high),
        outside=tuple(
            name for name, share in regions.items() if share <= rules.region.low and share < rules.region.high
        ),
        severity=_classify_severity(lungs, rules),
        comparison=_compare_sides(lungs, sizes, rules),
        outside_share=int(counts[0]) / max(int(counts.sum()), 1),
    )


def measure_stable_attributes(
    mask: Mask, redrawn: tuple[Mask, ...], anatomy: Anatomy, rules: Rules, *, scale: float
) -> Attributes:
    """The attributes of a mask, if all masks that a reader might have drawn instead have the same keys.

    The other masks are the mask grown and shrunk by `rules.stable` pixels, and those in `redrawn`. They may be closer
    to a cut than the mask itself, but must lie on the same side of it. Raises `Ineligible` where a key changes.
    """
    attributes = measure_attributes(mask, anatomy, rules)
    if not attributes.severity:
        raise Ineligible("severity on a cut", _format_shares(attributes.lungs))
    reach = max(1, round(rules.stable * scale))
    for what, other in (
        (f"grown by {reach} px", _dilate_or_erode(mask, reach)),
        (f"shrunk by {reach} px", _dilate_or_erode(mask, -reach)),
        *(("redrawn", contour) for contour in redrawn),
    ):
        try:
            there = measure_attributes(other, anatomy, without_margins(rules))
        except Ineligible as cut:
            raise Ineligible("unstable attribute", f"{what}: {cut}") from cut
        severity = {side: there.severity.get(side) for side in attributes.severity}
        if (there.affected, severity, there.comparison) != (
            attributes.affected,
            attributes.severity,
            attributes.comparison,
        ):
            raise Ineligible("unstable attribute", what)
        attributes = replace(
            attributes,
            inside=tuple(name for name in attributes.inside if name in there.inside),
            outside=tuple(name for name in attributes.outside if name in there.outside),
        )
    return attributes


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


def _find_affected_zones(zones: dict[str, float], rules: Rules) -> tuple[str, ...]:
    grey = {name: share for name, share in zones.items() if rules.region.low < share < rules.region.high}
    if grey:
        raise Ineligible("zone on a cut", _format_shares(grey))
    affected = tuple(name for name, share in zones.items() if share >= rules.region.high)
    if not affected:
        raise Ineligible("no zone covered", f"at most {max(zones.values(), default=0.0):.2f} of a zone")
    return affected


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
