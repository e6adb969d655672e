"""The four masks to choose from after a revision: the right one, and three that a wrong revision would give.

Every mask is the reader's contour with a state at each site: revised rightly, left as it was shown, half revised, made
worse, revised too far, or changed where nothing was wrong. Which three wrong ones are taken is drawn so that the right
mask is the largest, the smallest, the smoothest or the most typical of the four no more often than chance. Since a
change mostly roughens a contour, one of the wrong masks is ironed where the right one is not to be the smoothest.
"""

from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

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
"""Draws of three of them."""
CHECKED: Final = 12
"""Of those, how many are made pixel by pixel before the case is given up."""
KEY: Final = "key"
SMOOTHEST: Final = 0.12
"""How often the right mask is let be the smoothest: below a quarter, because ironing another is not always enough."""
IRONED: Final = 10.0
"""Width of the blur that makes a wrong mask smoother than it was, in pixels of the frame."""


@dataclass(frozen=True)
class MaskOption:
    """One of the four, in the outline's window."""

    mask: Mask
    kind: str
    """`KEY`, or what went wrong: partial, wrong_operation, overshoot, wrong_place; several joined by "+"."""


@dataclass(frozen=True)
class _State:
    """What can be seen at a site; the first of every site is the right one."""

    kind: str
    change: Change | None


def choose_options(
    outline: Outline, layout: Layout, rules: Rules, chance: np.random.Generator
) -> tuple[MaskOption, ...]:
    """The right mask first, then three wrong ones; `Ineligible` where they cannot be told apart."""
    sites = _states(layout)
    rows = _combinations(sites, chance)
    shown = np.array([[1] * len(layout.edits) + [0] * (len(sites) - len(layout.edits))])
    every = np.concatenate([np.zeros((1, len(sites)), int), shown, rows])
    overlap, areas, edges = _measure(every, sites, outline)
    apart = (overlap[0] <= rules.option_iou_key) & (overlap[1] <= rules.option_iou)
    usable = np.flatnonzero(apart[2:]) + 2
    if usable.size < OPTIONS - 1:
        raise Ineligible("no mask options", f"{usable.size} wrong masks are far enough from the right one")
    smoothest = bool(chance.random() < SMOOTHEST)
    ironed = smoothed(outline.mask, outline.field, IRONED * outline.scale)
    relief = 1.0 if smoothest else _roughness(ironed) / _roughness(outline.mask)
    for chosen in _ranked(
        usable, overlap, areas, edges, rules=rules, chance=chance, smoothest=smoothest, relief=relief
    )[:CHECKED]:
        made = [MaskOption(mask=outline.mask, kind=KEY)]
        for index in chosen:
            picked = [sites[site][state] for site, state in enumerate(every[index]) if state]
            changes = [state.change for state in picked if state.change is not None]
            kinds = dict.fromkeys(state.kind for state in picked)
            made.append(MaskOption(mask=applied(outline.mask, changes), kind="+".join(sorted(kinds))))
        if not smoothest:
            flattest = min(range(1, OPTIONS), key=lambda n: _roughness(made[n].mask))
            mask = smoothed(made[flattest].mask, outline.field, IRONED * outline.scale)
            made[flattest] = replace(made[flattest], mask=mask)
        if _are_apart(made, layout.shown, rules):
            return tuple(made)
    raise Ineligible("no mask options", "no three wrong masks differ enough from each other")


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


def _measure(
    rows: NDArray[np.int64], sites: list[list[_State]], outline: Outline
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
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
    return both / either, np.diagonal(both).copy(), edges


def _ranked(
    usable: NDArray[np.int64],
    overlap: NDArray[np.float64],
    areas: NDArray[np.float64],
    edges: NDArray[np.float64],
    *,
    rules: Rules,
    chance: np.random.Generator,
    smoothest: bool,
    relief: float,
) -> list[list[int]]:
    """Threes of usable masks, those first that give the right mask the rank that was drawn for it.

    `relief` is what ironing makes of the roughness of the smoothest of the three.
    """
    draws = np.array([chance.permutation(usable.size)[: OPTIONS - 1] for _ in range(TRIPLES)])
    four = np.concatenate([np.zeros((TRIPLES, 1), np.int64), usable[draws]], axis=1)
    between = overlap[four[:, :, None], four[:, None, :]]
    others = ~np.eye(OPTIONS, dtype=bool)
    four = four[(between[:, others] <= rules.option_iou).all(axis=1)]
    if not len(four):
        return []
    between = overlap[four[:, :, None], four[:, None, :]]
    typical = between.sum(axis=2)
    roughness = edges[four] ** 2 / areas[four]
    rank = (areas[four][:, 1:] < areas[four][:, :1]).sum(axis=1)
    is_smoothest = roughness[:, 0] <= relief * roughness[:, 1:].min(axis=1)
    misses = (
        (rank != chance.integers(OPTIONS)).astype(float)
        + ((typical.argmax(axis=1) == 0) != (chance.integers(OPTIONS) == 0))
        + (is_smoothest != smoothest)
    )
    order = np.argsort(misses + 0.5 * chance.random(len(four)), kind="stable")
    return [[int(index) for index in four[n, 1:]] for n in order]


def _are_apart(made: list[MaskOption], shown: Mask, rules: Rules) -> bool:
    """The rules on the pixels themselves."""
    return (
        all(iou(option.mask, made[0].mask) <= rules.option_iou_key for option in made[1:])
        and all(iou(one.mask, other.mask) <= rules.option_iou for one, other in combinations(made, 2))
        and all(iou(option.mask, shown) <= rules.option_iou for option in made)
    )
