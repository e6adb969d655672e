"""Select the lesions of a benchmark: as many as requested for each path, one case for each patient and lesion.

Lesions on both paths are alike in size. All sampling is seeded and does not depend on the order of studies on disk.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from carina.percept.balance import FeatureBalance
from carina.percept.contour_features import FEATURES
from carina.percept.mask_options import list_option_sets
from carina.percept.records import LesionAnalysis
from carina.percept.rules import Rules
from carina.percept.steps import KeyPosition, Path
from carina.store.seeding import rng

OVERSAMPLE: Final = 1.5
"""Lesions that are analysed for each one that is needed, so that attribute classes can be balanced."""
SETS_OF_REGIONS: Final = (1, 3, 3, 1)
"""Of the eight answers to the location question, how many have 0, 1, 2 and 3 right regions: if all are equally
frequent, no constant answer does better than chance."""

FEATURE_SPREAD: Final = np.array([1.0, 0.4, 0.1, 0.4, 0.4, 0.4, 0.4, 0.05, 0.1, 0.03, 0.1, 0.2, 0.1])
"""Typical spread of each of `FEATURES` between lesions: what one unit of imbalance is."""
OPTION_SPREAD: Final = np.array(
    [0.25, 0.13, 0.05, 0.2, 0.2, 0.2, 0.2, 0.03, 0.04, 0.01, 0.05, 0.08, 0.05, 0.1]
)
"""The same between the masks of one question; the last is that of the overlap with the shown contour."""
TYPICAL_SPREAD: Final = 0.2
RANK_WEIGHT: Final = 2.0
"""Weight of being the first or the last of four, against a difference of one spread."""
TIE: Final = 1e-9


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


def assign_paths(
    lesions: Sequence[LesionAnalysis], *, seed: int, balance: FeatureBalance | None = None
) -> dict[Path, list[LesionAnalysis]]:
    """Pair lesions of similar size and give one of each pair path RF, the other path RR.

    Which of the two is RR is random, except where one way makes the contours of both paths more alike.
    """
    by_size = sorted(lesions, key=lambda one: (one.share, one.subject.study))
    kept = balance or FeatureBalance()
    paths: dict[Path, list[LesionAnalysis]] = {"RF": [], "RR": []}
    for first in range(0, len(by_size), 2):
        pair = by_size[first : first + 2]
        heads = int(rng(seed, pair[0].subject.study, pair[0].target, "path").integers(2))
        if len(pair) == 1:
            paths["RF" if heads else "RR"].append(pair[0])
            continue
        ways = [(pair[0], pair[1]), (pair[1], pair[0])] if heads else [(pair[1], pair[0]), (pair[0], pair[1])]
        differences = [_compare_contours(good, revised) for good, revised in ways]
        good, revised = ways[kept.choose(pair[0].target, np.array(differences))]
        paths["RF"].append(good)
        paths["RR"].append(revised)
    return paths


def _compare_contours(good: LesionAnalysis, revised: LesionAnalysis) -> NDArray[np.float64]:
    """How the contour shown on path RR differs from the one shown on path RF, in every feature."""
    of_good = np.array(good.masks[0].features[: len(FEATURES)])
    return (np.array(revised.shown_features) - of_good) / FEATURE_SPREAD


def choose_masks(
    cell: Sequence[LesionAnalysis], *, rules: Rules, seed: int, balance: FeatureBalance | None = None
) -> list[LesionAnalysis]:
    """Choose three wrong masks for each lesion, so that no feature tells the right mask from them.

    The differences between the right mask and the others add up to nearly nothing over the cases, in every feature.
    Then a linear classifier over these features learns nothing: the gradient of its likelihood is zero at zero.
    """
    kept = balance or FeatureBalance()
    chosen: list[LesionAnalysis] = []
    for analysis in cell:
        overlaps = np.array(analysis.mask_overlaps)
        sets = list_option_sets(overlaps, rules)
        sets = sets[rng(seed, analysis.subject.study, analysis.target, "masks").permutation(len(sets))]
        features = np.array([mask.features for mask in analysis.masks])
        differences = _compare_options(features[sets], overlaps[sets[:, :, None], sets[:, None, :]])
        best = sets[kept.choose(analysis.target, differences)]
        chosen.append(
            msgspec.structs.replace(
                analysis,
                masks=tuple(analysis.masks[n] for n in best),
                mask_overlaps=tuple(tuple(row) for row in overlaps[np.ix_(best, best)].tolist()),
            )
        )
    return chosen


def _compare_options(features: NDArray[np.float64], overlaps: NDArray[np.float64]) -> NDArray[np.float64]:
    """How the right mask (the first) of every set differs from the mean of the set.

    In every feature (how typical a mask is of the set is one more), in its square, and in whether the mask is the
    first or the last of the set by this feature.

    Args:
        features: Features of masks, (sets, options, features).
        overlaps: IoU of masks, (sets, options, options).
    """
    values = np.concatenate(
        [features / OPTION_SPREAD, overlaps.sum(axis=2)[..., None] / TYPICAL_SPREAD], axis=2
    )
    values = values - values.mean(axis=1, keepdims=True)
    squares = values**2
    parts = [values[:, 0], squares[:, 0] - squares.mean(axis=1)]
    for extreme in (values.max(axis=1, keepdims=True), values.min(axis=1, keepdims=True)):
        is_extreme = np.abs(values - extreme) < TIE
        parts.append(RANK_WEIGHT * (is_extreme[:, 0] / is_extreme.sum(axis=1) - 1 / values.shape[1]))
    return np.concatenate(parts, axis=1)


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
