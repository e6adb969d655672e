"""Who gets into a benchmark: so many a cell, one case a patient and lesion, the paths alike in lesion size.

Knows examined lesions, not how they were examined. Everything is a seeded draw: the order in which studies lie on disk
decides nothing.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from carina.percept.examined import Examined, MaskSet
from carina.percept.options import OPTIONS, RULES_OF_THUMB
from carina.percept.steps import Due, Path
from carina.seeding import rng

OVERSAMPLE: Final = 1.5
"""Examined lesions for each that is needed, so that there is a choice of attribute classes."""
SETS_OF_REGIONS: Final = (1, 3, 3, 1)
"""Of the eight answers to the location question, how many have 0, 1, 2 and 3 right regions: if all are equally
frequent, no constant answer does better than chance."""


def wanted_examined(per_cell: int) -> int:
    """How many examined lesions a target needs for its two paths."""
    return int(np.ceil(2 * per_cell * OVERSAMPLE))


def choose(examined: Sequence[Examined], per_cell: int) -> list[Examined]:
    """As many as two cells take, their attribute classes as even as the choice allows."""
    left = list(examined)
    chosen: list[Examined] = []
    seen: Counter[tuple[str, object]] = Counter()
    while left and len(chosen) < 2 * per_cell:
        best = min(range(len(left)), key=lambda n: (sum(seen[c] for c in _classes(left[n])), n))
        taken = left.pop(best)
        seen.update(_classes(taken))
        chosen.append(taken)
    return chosen


def _classes(examined: Examined) -> list[tuple[str, object]]:
    described = examined.described
    if described is None:
        return []
    return [
        ("distribution", min(len(described.affected), 4)),
        ("severity", tuple(sorted(described.severity.values()))),
        ("comparison", described.comparison),
    ]


def on_paths(chosen: Sequence[Examined], *, seed: int) -> dict[Path, list[Examined]]:
    """Half with a good contour, half with one to revise: of every two neighbours in size, one each by a coin."""
    by_size = sorted(chosen, key=lambda one: (one.share, one.subject.study))
    paths: dict[Path, list[Examined]] = {"RF": [], "RR": []}
    for first in range(0, len(by_size), 2):
        pair = by_size[first : first + 2]
        heads = rng(seed, pair[0].subject.study, pair[0].target, "path").integers(2)
        sides: tuple[Path, Path] = ("RF", "RR") if heads else ("RR", "RF")
        for path, one in zip(sides, pair, strict=False):  # the last may be alone
            paths[path].append(one)
    return paths


def with_masks(cell: Sequence[Examined]) -> list[Examined]:
    """Each with one choice of masks: over the cell, no rule of thumb finds the right one more often than chance."""
    found: Counter[str] = Counter()
    chosen: list[Examined] = []
    for examined in cell:
        due = (len(chosen) + 1) / OPTIONS

        def surplus(masks: MaskSet, due: float = due) -> float:
            """How far off chance all rules of thumb would be, one that does better weighing more."""
            counts = found + Counter(masks.stands_out)
            return sum(
                (counts[rule] - due) ** 2 * (2 if counts[rule] > due else 1) for rule in RULES_OF_THUMB
            )

        best = min(examined.mask_sets, key=surplus)
        found.update(best.stands_out)
        chosen.append(msgspec.structs.replace(examined, mask_sets=(best,)))
    return chosen


def right_regions(cell: Sequence[Examined], *, seed: int) -> list[int]:
    """For each case of a cell, how many options of its location question are right."""
    shares = np.array(SETS_OF_REGIONS) / sum(SETS_OF_REGIONS)
    given = np.zeros(len(shares))
    answer = [0] * len(cell)
    # Those with the least choice first, so that the others can make up for them.
    order = sorted(
        range(len(cell)),
        key=lambda n: (len(_possible(cell[n])), rng(seed, cell[n].subject.study, "regions").random()),
    )
    for place, n in enumerate(order, start=1):
        possible = _possible(cell[n])
        if possible:
            tie = rng(seed, cell[n].subject.study, cell[n].target, "regions").permutation(len(shares))
            answer[n] = max(possible, key=lambda count: (shares[count] * place - given[count], tie[count]))
            given[answer[n]] += 1
    return answer


def _possible(examined: Examined) -> list[int]:
    return sorted(examined.described.locations) if examined.described else []


def places_due(
    target: str, path: Path, index: int, *, seed: int, turns: Mapping[str, int] | None = None
) -> Due:
    """Where the right option of each step of a cell's case number `index` belongs: every place equally often.

    `turns` are steps that not every case of the cell has in the same form, with the number of this case among those
    that do.
    """

    def due(step: str, count: int) -> int:
        block, place = divmod((turns or {}).get(step, index), count)
        return int(rng(seed, "due", target, path, step, block).permutation(count)[place])

    return due
