"""The masks to choose from after a revision: the right one, and wrong ones that a wrong revision would give.

Every mask is the truth with a state at each site: revised correctly, left as shown, half revised, made worse, revised
too far, or changed where nothing was wrong. All are drawn by the same operation. More wrong masks are made than a case
needs, so that a benchmark can use those among which the right mask does not stand out (`carina.percept.select`).
"""

from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from carina.percept.contour_features import measure_features
from carina.percept.deform import Change, apply_changes
from carina.percept.layout import Layout
from carina.percept.outline import Outline
from carina.percept.rules import Ineligible, Rules
from carina.studies.region import Mask

OPTIONS: Final = 4
MOST_DRAWN: Final = 24
"""Most wrong masks that are drawn."""
KEY: Final = "key"


@dataclass(frozen=True)
class MaskOption:
    """One of the masks, in the outline's window."""

    mask: Mask
    kind: str
    """`KEY`, or what went wrong: partial, wrong_operation, overshoot, wrong_place; several joined by "+"."""
    features: tuple[float, ...]
    """`FEATURES` of the contour, and its overlap (IoU) with the shown contour."""


@dataclass(frozen=True)
class MaskPool:
    """Masks to choose options from, the right one first."""

    masks: tuple[MaskOption, ...]
    overlaps: NDArray[np.float64]
    """IoU of every two masks."""


@dataclass(frozen=True)
class _State:
    """How the contour may look at a site; the first state of every site is the right one."""

    kind: str
    change: Change | None


def make_mask_pool(outline: Outline, layout: Layout, rules: Rules, chance: np.random.Generator) -> MaskPool:
    """The right mask, and wrong masks that differ from it and from the shown one as much as the rules demand.

    `Ineligible` where no three of them also differ enough from each other.
    """
    sites = _list_states(layout)
    rows = _sample_rows(sites, chance)
    drawn = [_draw_row(row, sites, outline) for row in rows]
    overlaps = measure_overlaps([outline.revised, layout.shown, *drawn])
    is_apart = (overlaps[0] <= rules.option_iou_key) & (overlaps[1] <= rules.option_iou)
    usable = np.flatnonzero(is_apart[2:]) + 2
    if usable.size < OPTIONS - 1:
        raise Ineligible("no mask options", f"{usable.size} wrong masks are far enough from the right one")
    kept = [0, *(int(n) for n in usable)]
    between = overlaps[np.ix_(kept, kept)]
    if not len(list_option_sets(between, rules)):
        raise Ineligible("no mask options", "no three wrong masks differ enough from each other")
    made = [(outline.revised, KEY)]
    made += [(drawn[n - 2], _join_kinds(rows[n - 2], sites)) for n in kept[1:]]
    masks = tuple(
        MaskOption(
            mask=mask,
            kind=kind,
            features=(*measure_features(mask, outline.scale).tolist(), float(overlaps[1, n])),
        )
        for n, (mask, kind) in zip(kept, made, strict=True)
    )
    return MaskPool(masks=masks, overlaps=between)


def list_option_sets(overlaps: NDArray[np.float64], rules: Rules) -> NDArray[np.int64]:
    """All sets of the right mask (0) and three wrong ones that differ enough from each other, one in a row."""
    wrong = range(1, len(overlaps))
    sets = np.array([(0, *three) for three in combinations(wrong, OPTIONS - 1)], np.int64).reshape(
        -1, OPTIONS
    )
    between = overlaps[sets[:, :, None], sets[:, None, :]][:, 1:, 1:]
    others = ~np.eye(OPTIONS - 1, dtype=bool)
    return sets[(between[:, others] <= rules.option_iou).all(axis=1)]


def _draw_row(row: NDArray[np.int64], sites: list[list[_State]], outline: Outline) -> Mask:
    picked = [sites[site][state].change for site, state in enumerate(row) if state]
    changes = [change for change in picked if change is not None]
    mask = apply_changes(outline.mask, changes)
    return outline.draw_changed(mask, [change.window for change in changes])


def measure_overlaps(masks: list[Mask]) -> NDArray[np.float64]:
    """IoU of every two masks."""
    anywhere = np.logical_or.reduce(masks)
    values = np.array([mask[anywhere] for mask in masks], np.float32)
    # Counts of pixels are exact in single precision up to 16 million.
    both = np.rint(values @ values.T).astype(np.float64)
    areas = np.diagonal(both)
    return np.asarray(both / np.maximum(areas[:, None] + areas - both, 1), np.float64)


def _join_kinds(row: NDArray[np.int64], sites: list[list[_State]]) -> str:
    return "+".join(sorted({sites[site][state].kind for site, state in enumerate(row) if state}))


def _list_states(layout: Layout) -> list[list[_State]]:
    """The possible states of each site; edited sites come first."""
    right = _State("", None)
    sites = [
        [
            right,
            _State("partial", site.change),
            *(
                _State(kind, change)
                for kind, change in (
                    ("partial", site.half),
                    ("wrong_operation", site.worse),
                    ("overshoot", site.overshoot),
                )
                if change is not None
            ),
        ]
        for site in layout.edits
    ]
    wrong = [placed.site.change for placed in layout.distractors if placed.site is not None]
    return sites + [[right, _State("wrong_place", change)] for change in wrong]


def _sample_rows(sites: list[list[_State]], chance: np.random.Generator) -> NDArray[np.int64]:
    """Rows of states, one column for each site: one wrong state in half of them where possible, two in the others."""
    atoms = [(site, state) for site, states in enumerate(sites) for state in range(1, len(states))]
    pairs = [pair for pair in combinations(atoms, 2) if pair[0][0] != pair[1][0]]
    singles = [(atoms[n],) for n in chance.permutation(len(atoms))[: MOST_DRAWN // 2]]
    picks: list[tuple[tuple[int, int], ...]] = [*singles]
    picks += [pairs[n] for n in chance.permutation(len(pairs))[: MOST_DRAWN - len(singles)]]
    rows = np.zeros((len(picks), len(sites)), np.int64)
    for row, pick in enumerate(picks):
        for site, state in pick:
            rows[row, site] = state
    return rows
