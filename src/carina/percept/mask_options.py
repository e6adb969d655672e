"""The four masks to choose from after a revision: the right one, and three that a wrong revision would give.

Every mask is the redrawn truth with a state at each site: revised correctly, left as shown, half revised, made worse,
revised too far, or changed where nothing was wrong. Several sets of three wrong masks are made, so that a benchmark can
use those sets in which the right mask is the largest, the smoothest or the most typical no more often than chance.
A change usually makes a contour rougher; where the right mask should not be the smoothest, one wrong mask is smoothed.
"""

from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from carina.percept.deform import Change, apply_changes, edge_length
from carina.percept.layout import Layout
from carina.percept.outline import Outline, iou, smooth_mask
from carina.percept.rules import Ineligible, Rules
from carina.studies.region import Mask

OPTIONS: Final = 4
MOST_STATES: Final = 160
"""Most wrong masks that are considered."""
TRIPLES: Final = 600
"""Number of samples of three wrong masks."""
CHECKED: Final = 12
"""Most samples that are drawn pixel by pixel before the search stops."""
KEY: Final = "key"
RULES_OF_THUMB: Final = (
    "largest",
    "smallest",
    "roughest",
    "smoothest",
    "most typical",
    "least typical",
    "closest to the shown",
    "farthest from the shown",
)
SMOOTHING_WIDTH: Final = 10.0
"""Width of the blur that makes a wrong mask smoother than it was, in pixels of the frame."""


@dataclass(frozen=True)
class MaskOption:
    """One of the four masks, in the outline's window."""

    mask: Mask
    kind: str
    """`KEY`, or what went wrong: partial, wrong_operation, overshoot, wrong_place; several joined by "+"."""


@dataclass(frozen=True)
class OptionSet:
    """Four masks to choose from, the right one first."""

    options: tuple[MaskOption, ...]
    stands_out: frozenset[str]
    """Rules of thumb that find the right mask without the image."""


class _MaskMeasures(NamedTuple):
    """Measures of masks, computed without drawing them."""

    overlap: NDArray[np.float64]
    """IoU of every pair of masks."""
    areas: NDArray[np.float64]
    roughness: NDArray[np.float64]


@dataclass(frozen=True)
class _State:
    """How the contour may look at a site; the first state of every site is the right one."""

    kind: str
    change: Change | None


def make_option_sets(
    outline: Outline, layout: Layout, rules: Rules, chance: np.random.Generator
) -> list[OptionSet]:
    """Several sets of four masks, which differ in the rules of thumb that find the right one.

    `Ineligible` where no three wrong masks differ enough from the right one and from each other.
    """
    sites = _list_states(layout)
    rows = _sample_rows(sites, chance)
    shown = np.array([[1] * len(layout.edits) + [0] * (len(sites) - len(layout.edits))])
    every = np.concatenate([np.zeros((1, len(sites)), int), shown, rows])
    measured = _measure_masks(every, sites, outline)
    apart = (measured.overlap[0] <= rules.option_iou_key) & (measured.overlap[1] <= rules.option_iou)
    usable = np.flatnonzero(apart[2:]) + 2
    if usable.size < OPTIONS - 1:
        raise Ineligible("no mask options", f"{usable.size} wrong masks are far enough from the right one")
    fours = _sample_fours(usable, measured, rules, chance)
    kinds = [_join_kinds(row, sites) for row in every]
    ironed = smooth_mask(outline.mask, outline.field, SMOOTHING_WIDTH * outline.scale)
    smoothing_ratio = _measure_roughness(ironed) / _measure_roughness(outline.mask)
    sets: list[OptionSet] = []
    for smoothest, typical in product((False, True), repeat=2):
        ranked = _rank_fours(
            fours,
            measured,
            kinds,
            chance,
            smoothest=smoothest,
            typical=typical,
            smoothing_ratio=1.0 if smoothest else smoothing_ratio,
        )
        for four in ranked[:CHECKED]:
            made = _draw_options(four, every, sites, outline, smooth=not smoothest)
            if _are_apart(made, layout.shown, rules):
                sets.append(
                    OptionSet(options=tuple(made), stands_out=_find_revealing_rules(made, layout.shown))
                )
                break
    if not sets:
        raise Ineligible("no mask options", "no three wrong masks differ enough from each other")
    return sets


def _draw_options(
    four: list[int], every: NDArray[np.int64], sites: list[list[_State]], outline: Outline, *, smooth: bool
) -> list[MaskOption]:
    """The four masks, drawn pixel by pixel; with `smooth` the smoothest of the wrong ones is smoothed further."""
    made = [MaskOption(mask=outline.mask, kind=KEY)]
    for index in four[1:]:
        picked = [sites[site][state] for site, state in enumerate(every[index]) if state]
        changes = [state.change for state in picked if state.change is not None]
        made.append(
            MaskOption(mask=apply_changes(outline.mask, changes), kind=_join_kinds(every[index], sites))
        )
    if smooth:
        flattest = min(range(1, OPTIONS), key=lambda n: _measure_roughness(made[n].mask))
        mask = smooth_mask(made[flattest].mask, outline.field, SMOOTHING_WIDTH * outline.scale)
        made[flattest] = replace(made[flattest], mask=mask)
    return made


def _join_kinds(row: NDArray[np.int64], sites: list[list[_State]]) -> str:
    return "+".join(sorted({sites[site][state].kind for site, state in enumerate(row) if state}))


def _find_revealing_rules(made: list[MaskOption], shown: Mask) -> frozenset[str]:
    """The rules of thumb that choose the right mask without the X-ray."""
    masks = [option.mask for option in made]
    areas = np.array([np.count_nonzero(mask) for mask in masks], np.float64)
    rough = np.array([_measure_roughness(mask) for mask in masks])
    typical = np.array([sum(iou(one, other) for other in masks) for one in masks])
    near = np.array([iou(mask, shown) for mask in masks])
    scores = (score for measure in (areas, rough, typical, near) for score in (measure, -measure))
    return frozenset(rule for rule, score in zip(RULES_OF_THUMB, scores, strict=True) if score.argmax() == 0)


def _measure_roughness(mask: Mask) -> float:
    return edge_length(mask) ** 2 / max(int(np.count_nonzero(mask)), 1)


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
    """Rows of states, one column for each site, in which one or two sites have a wrong state."""
    atoms = [(site, state) for site, states in enumerate(sites) for state in range(1, len(states))]
    picks: list[tuple[tuple[int, int], ...]] = [(atom,) for atom in atoms]
    picks += [pair for pair in combinations(atoms, 2) if pair[0][0] != pair[1][0]]
    if len(picks) > MOST_STATES:
        picks = [picks[n] for n in sorted(chance.permutation(len(picks))[:MOST_STATES])]
    rows = np.zeros((len(picks), len(sites)), np.int64)
    for row, pick in enumerate(picks):
        for site, state in pick:
            rows[row, site] = state
    return rows


def _measure_masks(rows: NDArray[np.int64], sites: list[list[_State]], outline: Outline) -> _MaskMeasures:
    """Overlap of all masks with each other, their areas and the lengths of their contours, without drawing them.

    Sites do not touch, and changes of one kind at a site lie within each other, so areas add up.
    """
    base = float(outline.area)
    count = len(rows)
    both, either = np.full((count, count), base), np.full((count, count), base)
    edges = np.full(count, edge_length(outline.mask))
    for site, states in enumerate(sites):
        grown = np.array([s.change.area if s.change and s.change.sign > 0 else 0 for s in states])
        lost = np.array([s.change.area if s.change and s.change.sign < 0 else 0 for s in states])
        longer = np.array([s.change.edge if s.change else 0.0 for s in states])
        state = rows[:, site]
        g, w = grown[state], lost[state]
        both += np.minimum(g[:, None], g) - np.maximum(w[:, None], w)
        either += np.maximum(g[:, None], g) - np.minimum(w[:, None], w)
        edges += longer[state]
    areas = np.diagonal(both).copy()
    return _MaskMeasures(overlap=both / either, areas=areas, roughness=edges**2 / areas)


def _sample_fours(
    usable: NDArray[np.int64], measured: _MaskMeasures, rules: Rules, chance: np.random.Generator
) -> NDArray[np.int64]:
    """Random sets of the right mask and three wrong ones that all differ enough."""
    draws = np.array([chance.permutation(usable.size)[: OPTIONS - 1] for _ in range(TRIPLES)])
    four = np.concatenate([np.zeros((TRIPLES, 1), np.int64), usable[draws]], axis=1)
    between = measured.overlap[four[:, :, None], four[:, None, :]]
    others = ~np.eye(OPTIONS, dtype=bool)
    return np.asarray(four[(between[:, others] <= rules.option_iou).all(axis=1)])


def _rank_fours(
    fours: NDArray[np.int64],
    measured: _MaskMeasures,
    kinds: list[str],
    chance: np.random.Generator,
    *,
    smoothest: bool,
    typical: bool,
    smoothing_ratio: float,
) -> list[list[int]]:
    """The sets, ordered by how well they match the request: right mask smoothest or not, most typical or not.

    The rank of the right mask by size is sampled. `smoothing_ratio` is the factor by which smoothing changes the
    roughness of the smoothest wrong mask.
    """
    between = measured.overlap[fours[:, :, None], fours[:, None, :]]
    rough, areas = measured.roughness[fours], measured.areas[fours]
    rank = (areas[:, 1:] < areas[:, :1]).sum(axis=1)
    misses = (
        (rank != chance.integers(OPTIONS)).astype(float)
        + 2.0 * ((between.sum(axis=2).argmax(axis=1) == 0) != typical)
        + np.array([len({kinds[n] for n in four[1:]}) == 1 for four in fours])
        + 2.0 * ((rough[:, 0] <= smoothing_ratio * rough[:, 1:].min(axis=1)) != smoothest)
    )
    order = np.argsort(misses + 0.5 * chance.random(len(fours)), kind="stable")
    return [[int(index) for index in fours[n]] for n in order]


def _are_apart(made: list[MaskOption], shown: Mask, rules: Rules) -> bool:
    """Whether the masks differ as much as the rules demand, measured on their pixels."""
    return (
        all(iou(option.mask, made[0].mask) <= rules.option_iou_key for option in made[1:])
        and all(iou(one.mask, other.mask) <= rules.option_iou for one, other in combinations(made, 2))
        and all(iou(option.mask, shown) <= rules.option_iou for option in made)
    )
