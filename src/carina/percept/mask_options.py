"""The four masks to choose from after a revision: the right one, and three that a wrong revision would give.

Every mask is the reader's contour with a state at each site: revised rightly, left as it was shown, half revised, made
worse, revised too far, or changed where nothing was wrong. Several choices of three wrong ones are made, so that over a
benchmark those can be taken by which the right mask is the largest, the smoothest or the most typical no more often
than chance. Since a change mostly roughens a contour, one of the wrong masks is ironed where the right one is not to be
the smoothest.
"""

from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from carina.percept.deform import Change, applied, edge_length
from carina.percept.layout import Layout
from carina.percept.outline import Outline, iou, smoothed
from carina.percept.rules import Ineligible, Rules
from carina.studies.region import Mask

OPTIONS: Final = 4
MOST_STATES: Final = 160
"""Wrong masks considered."""
TRIPLES: Final = 600
"""Samples of three of them."""
CHECKED: Final = 12
"""Of those, how many are made pixel by pixel before the case is given up."""
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
IRONED: Final = 10.0
"""Width of the blur that makes a wrong mask smoother than it was, in pixels of the frame."""


@dataclass(frozen=True)
class MaskOption:
    """One of the four, in the outline's window."""

    mask: Mask
    kind: str
    """`KEY`, or what went wrong: partial, wrong_operation, overshoot, wrong_place; several joined by "+"."""


@dataclass(frozen=True)
class OptionSet:
    """Four masks to choose from, the right one first."""

    options: tuple[MaskOption, ...]
    stands_out: frozenset[str]
    """Rules of thumb that find the right one without a look at the image."""


class _Measured(NamedTuple):
    """Masks that are not drawn yet."""

    overlap: NDArray[np.float64]
    """IoU of every two."""
    areas: NDArray[np.float64]
    roughness: NDArray[np.float64]


@dataclass(frozen=True)
class _State:
    """What can be seen at a site; the first of every site is the right one."""

    kind: str
    change: Change | None


def option_sets(
    outline: Outline, layout: Layout, rules: Rules, chance: np.random.Generator
) -> list[OptionSet]:
    """Several choices of four masks, in which the right one stands out in different ways or not at all.

    `Ineligible` where no three wrong masks can be told from the right one and from each other.
    """
    sites = _states(layout)
    rows = _combinations(sites, chance)
    shown = np.array([[1] * len(layout.edits) + [0] * (len(sites) - len(layout.edits))])
    every = np.concatenate([np.zeros((1, len(sites)), int), shown, rows])
    measured = _measure(every, sites, outline)
    apart = (measured.overlap[0] <= rules.option_iou_key) & (measured.overlap[1] <= rules.option_iou)
    usable = np.flatnonzero(apart[2:]) + 2
    if usable.size < OPTIONS - 1:
        raise Ineligible("no mask options", f"{usable.size} wrong masks are far enough from the right one")
    fours = _fours(usable, measured, rules, chance)
    kinds = [_kind(row, sites) for row in every]
    ironed = smoothed(outline.mask, outline.field, IRONED * outline.scale)
    relief = _roughness(ironed) / _roughness(outline.mask)
    sets: list[OptionSet] = []
    for smoothest, typical in product((False, True), repeat=2):
        ranked = _ranked(
            fours,
            measured,
            kinds,
            chance,
            smoothest=smoothest,
            typical=typical,
            relief=1.0 if smoothest else relief,
        )
        for four in ranked[:CHECKED]:
            made = _drawn(four, every, sites, outline, iron=not smoothest)
            if _are_apart(made, layout.shown, rules):
                sets.append(OptionSet(options=tuple(made), stands_out=_stands_out(made, layout.shown)))
                break
    if not sets:
        raise Ineligible("no mask options", "no three wrong masks differ enough from each other")
    return sets


def _drawn(
    four: list[int], every: NDArray[np.int64], sites: list[list[_State]], outline: Outline, *, iron: bool
) -> list[MaskOption]:
    """The masks of a choice, pixel by pixel; with `iron` the smoothest of the wrong ones is made smoother still."""
    made = [MaskOption(mask=outline.mask, kind=KEY)]
    for index in four[1:]:
        picked = [sites[site][state] for site, state in enumerate(every[index]) if state]
        changes = [state.change for state in picked if state.change is not None]
        made.append(MaskOption(mask=applied(outline.mask, changes), kind=_kind(every[index], sites)))
    if iron:
        flattest = min(range(1, OPTIONS), key=lambda n: _roughness(made[n].mask))
        mask = smoothed(made[flattest].mask, outline.field, IRONED * outline.scale)
        made[flattest] = replace(made[flattest], mask=mask)
    return made


def _kind(row: NDArray[np.int64], sites: list[list[_State]]) -> str:
    return "+".join(sorted({sites[site][state].kind for site, state in enumerate(row) if state}))


def _stands_out(made: list[MaskOption], shown: Mask) -> frozenset[str]:
    """The rules of thumb by which the right mask would be chosen without a look at the X-ray."""
    masks = [option.mask for option in made]
    areas = np.array([np.count_nonzero(mask) for mask in masks], np.float64)
    rough = np.array([_roughness(mask) for mask in masks])
    typical = np.array([sum(iou(one, other) for other in masks) for one in masks])
    near = np.array([iou(mask, shown) for mask in masks])
    scores = (score for measure in (areas, rough, typical, near) for score in (measure, -measure))
    return frozenset(rule for rule, score in zip(RULES_OF_THUMB, scores, strict=True) if score.argmax() == 0)


def _roughness(mask: Mask) -> float:
    return edge_length(mask) ** 2 / max(int(np.count_nonzero(mask)), 1)


def _states(layout: Layout) -> list[list[_State]]:
    """What can be seen at each site: edited ones first."""
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


def _combinations(sites: list[list[_State]], chance: np.random.Generator) -> NDArray[np.int64]:
    """Rows of states with one or two sites not as they should be."""
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


def _measure(rows: NDArray[np.int64], sites: list[list[_State]], outline: Outline) -> _Measured:
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
    return _Measured(overlap=both / either, areas=areas, roughness=edges**2 / areas)


def _fours(
    usable: NDArray[np.int64], measured: _Measured, rules: Rules, chance: np.random.Generator
) -> NDArray[np.int64]:
    """Random choices of the right mask and three wrong ones, of which all differ enough."""
    draws = np.array([chance.permutation(usable.size)[: OPTIONS - 1] for _ in range(TRIPLES)])
    four = np.concatenate([np.zeros((TRIPLES, 1), np.int64), usable[draws]], axis=1)
    between = measured.overlap[four[:, :, None], four[:, None, :]]
    others = ~np.eye(OPTIONS, dtype=bool)
    return np.asarray(four[(between[:, others] <= rules.option_iou).all(axis=1)])


def _ranked(
    fours: NDArray[np.int64],
    measured: _Measured,
    kinds: list[str],
    chance: np.random.Generator,
    *,
    smoothest: bool,
    typical: bool,
    relief: float,
) -> list[list[int]]:
    """The choices, those first in which the right mask is the smoothest, the most typical, and of a drawn size, or not.

    `relief` is what ironing makes of the roughness of the smoothest wrong mask.
    """
    between = measured.overlap[fours[:, :, None], fours[:, None, :]]
    rough, areas = measured.roughness[fours], measured.areas[fours]
    rank = (areas[:, 1:] < areas[:, :1]).sum(axis=1)
    misses = (
        (rank != chance.integers(OPTIONS)).astype(float)
        + 2.0 * ((between.sum(axis=2).argmax(axis=1) == 0) != typical)
        + np.array([len({kinds[n] for n in four[1:]}) == 1 for four in fours])
        + 2.0 * ((rough[:, 0] <= relief * rough[:, 1:].min(axis=1)) != smoothest)
    )
    order = np.argsort(misses + 0.5 * chance.random(len(fours)), kind="stable")
    return [[int(index) for index in fours[n]] for n in order]


def _are_apart(made: list[MaskOption], shown: Mask, rules: Rules) -> bool:
    """The rules on the pixels themselves."""
    return (
        all(iou(option.mask, made[0].mask) <= rules.option_iou_key for option in made[1:])
        and all(iou(one.mask, other.mask) <= rules.option_iou for one, other in combinations(made, 2))
        and all(iou(option.mask, shown) <= rules.option_iou for option in made)
    )
