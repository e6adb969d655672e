"""Select the lesions of a benchmark: as many as requested for each path, one case for each patient and lesion.

Lesions on both paths are alike in size. All sampling is seeded and does not depend on the order of studies on disk.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from carina.percept.mask_options import OPTIONS, RULES_OF_THUMB
from carina.percept.records import LesionAnalysis, MaskSet
from carina.percept.steps import KeyPosition, Path
from carina.store.seeding import rng

OVERSAMPLE: Final = 1.5
"""Lesions that are analysed for each one that is needed, so that attribute classes can be balanced."""
SETS_OF_REGIONS: Final = (1, 3, 3, 1)
"""Of the eight answers to the location question, how many have 0, 1, 2 and 3 right regions: if all are equally
frequent, no constant answer does better than chance."""


def analyses_needed(per_cell: int) -> int:
    """How many analysed lesions a target needs for its two paths."""
    return int(np.ceil(2 * per_cell * OVERSAMPLE))


def choose_lesions(analyses: Sequence[LesionAnalysis], per_cell: int) -> list[LesionAnalysis]:
    """Lesions for two cells, their attribute classes as even as the candidates allow."""
    left = list(analyses)
    chosen: list[LesionAnalysis] = []
    seen: Counter[tuple[str, object]] = Counter()
    while left and len(chosen) < 2 * per_cell:
        best = min(range(len(left)), key=lambda n: (sum(seen[c] for c in _attribute_classes(left[n])), n))
        taken = left.pop(best)
        seen.update(_attribute_classes(taken))
        chosen.append(taken)
    return chosen


def _attribute_classes(analysis: LesionAnalysis) -> list[tuple[str, object]]:
    attributes = analysis.attributes
    if attributes is None:
        return []
    return [
        ("distribution", min(len(attributes.affected), 4)),
        ("severity", tuple(sorted(attributes.severity.values()))),
        ("comparison", attributes.comparison),
    ]


def assign_paths(lesions: Sequence[LesionAnalysis], *, seed: int) -> dict[Path, list[LesionAnalysis]]:
    """Pair lesions of similar size and give one of each pair path RF, the other path RR."""
    by_size = sorted(lesions, key=lambda one: (one.share, one.subject.study))
    paths: dict[Path, list[LesionAnalysis]] = {"RF": [], "RR": []}
    for first in range(0, len(by_size), 2):
        pair = by_size[first : first + 2]
        heads = rng(seed, pair[0].subject.study, pair[0].target, "path").integers(2)
        sides: tuple[Path, Path] = ("RF", "RR") if heads else ("RR", "RF")
        for path, one in zip(sides, pair, strict=False):  # the last may be alone
            paths[path].append(one)
    return paths


def choose_masks(cell: Sequence[LesionAnalysis]) -> list[LesionAnalysis]:
    """Choose one set of masks for each lesion, so that no rule of thumb finds the right mask more often than chance."""
    found: Counter[str] = Counter()
    chosen: list[LesionAnalysis] = []
    for analysis in cell:
        due = (len(chosen) + 1) / OPTIONS

        def surplus(masks: MaskSet, due: float = due) -> float:
            """Squared distance of all rules of thumb from chance; a rule that does better than chance counts twice."""
            counts = found + Counter(masks.stands_out)
            return sum(
                (counts[rule] - due) ** 2 * (2 if counts[rule] > due else 1) for rule in RULES_OF_THUMB
            )

        best = min(analysis.mask_sets, key=surplus)
        found.update(best.stands_out)
        chosen.append(msgspec.structs.replace(analysis, mask_sets=(best,)))
    return chosen


def assign_region_counts(cell: Sequence[LesionAnalysis], *, seed: int) -> list[int]:
    """The number of right options in the location question of each case of a cell."""
    shares = np.array(SETS_OF_REGIONS) / sum(SETS_OF_REGIONS)
    given = np.zeros(len(shares))
    answer = [0] * len(cell)
    # Lesions with the fewest possible counts come first, so that the others can balance them.
    order = sorted(
        range(len(cell)),
        key=lambda n: (len(_possible_counts(cell[n])), rng(seed, cell[n].subject.study, "regions").random()),
    )
    for place, n in enumerate(order, start=1):
        possible = _possible_counts(cell[n])
        if possible:
            tie = rng(seed, cell[n].subject.study, cell[n].target, "regions").permutation(len(shares))
            answer[n] = max(possible, key=lambda count: (shares[count] * place - given[count], tie[count]))
            given[answer[n]] += 1
    return answer


def _possible_counts(analysis: LesionAnalysis) -> list[int]:
    return sorted(analysis.attributes.locations) if analysis.attributes else []


def assign_key_positions(
    target: str, path: Path, index: int, *, seed: int, turns: Mapping[str, int] | None = None
) -> KeyPosition:
    """The position of the right option in each step of case number `index` of a cell; all positions equally often.

    `turns` gives, for steps that not every case of the cell has in the same form, the number of this case among those
    that do.
    """

    def key_position(step: str, count: int) -> int:
        block, place = divmod((turns or {}).get(step, index), count)
        return int(rng(seed, "due", target, path, step, block).permutation(count)[place])

    return key_position
