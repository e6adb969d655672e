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
    [0.25, 0.13, 0.05, 0.2, 0.2, 0.2, 0.2, 0.03, 0.04, 0.006, 0.05, 0.05, 0.05, 0.1]
)
"""The same between the masks of one question; the last is that of the overlap with the shown contour."""
TYPICAL_SPREAD: Final = 0.2
SQUARE_WEIGHT: Final = 0.5
"""Weight of a squared difference, against a difference of one spread."""
MOST_SETS: Final = 400
"""Sets of four masks of one lesion that are compared."""
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
        ("distribution", attributes.distribution),
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
    pairs = [_toss(by_size[first : first + 2], seed) for first in range(0, len(by_size) - 1, 2)]
    ways = [
        np.array([_compare_contours(good, revised), _compare_contours(revised, good)])
        for good, revised in pairs
    ]
    chosen = (balance or FeatureBalance()).choose(ways)
    paths: dict[Path, list[LesionAnalysis]] = {"RF": [], "RR": []}
    for (one, other), is_swapped in zip(pairs, chosen, strict=True):
        paths["RF"].append(other if is_swapped else one)
        paths["RR"].append(one if is_swapped else other)
    if len(by_size) % 2:
        paths["RF" if _draw_coin(by_size[-1], seed) else "RR"].append(by_size[-1])
    return paths


def _toss(pair: Sequence[LesionAnalysis], seed: int) -> tuple[LesionAnalysis, LesionAnalysis]:
    """The two lesions in random order."""
    return (pair[0], pair[1]) if _draw_coin(pair[0], seed) else (pair[1], pair[0])


def _draw_coin(lesion: LesionAnalysis, seed: int) -> bool:
    return bool(rng(seed, lesion.subject.study, lesion.target, "path").integers(2))


def _compare_contours(good: LesionAnalysis, revised: LesionAnalysis) -> NDArray[np.float64]:
    """How the contour shown on path RR differs from the one shown on path RF, in every feature."""
    of_good = np.array(good.masks[0].features[: len(FEATURES)])
    return np.asarray((np.array(revised.shown_features) - of_good) / FEATURE_SPREAD, np.float64)


def choose_masks(
    cell: Sequence[LesionAnalysis], *, rules: Rules, seed: int, balance: FeatureBalance | None = None
) -> list[LesionAnalysis]:
    """Choose three wrong masks for each lesion, so that no feature of contours tells the right mask from them."""
    sets = [_sample_option_sets(analysis, rules, seed) for analysis in cell]
    differences = [
        _compare_options(
            np.array([mask.features for mask in analysis.masks])[these],
            np.array(analysis.mask_overlaps)[these[:, :, None], these[:, None, :]],
        )
        for analysis, these in zip(cell, sets, strict=True)
    ]
    chosen = (balance or FeatureBalance()).choose(differences)
    return [_keep_masks(analysis, these[n]) for analysis, these, n in zip(cell, sets, chosen, strict=True)]


def _sample_option_sets(analysis: LesionAnalysis, rules: Rules, seed: int) -> NDArray[np.int64]:
    sets = list_option_sets(np.array(analysis.mask_overlaps), rules)
    chance = rng(seed, analysis.subject.study, analysis.target, "masks")
    return sets[chance.permutation(len(sets))[:MOST_SETS]]


def _keep_masks(analysis: LesionAnalysis, kept: NDArray[np.int64]) -> LesionAnalysis:
    overlaps = np.array(analysis.mask_overlaps)[np.ix_(kept, kept)]
    return msgspec.structs.replace(
        analysis,
        masks=tuple(analysis.masks[n] for n in kept),
        mask_overlaps=tuple(tuple(row) for row in overlaps.tolist()),
    )


def _compare_options(features: NDArray[np.float64], overlaps: NDArray[np.float64]) -> NDArray[np.float64]:
    """How the right mask (the first) of every set differs from the mean of the set.

    In every feature (how typical a mask is of the set is one more), in its distance from the mean and the square of
    it, and in whether the mask is the first or the last of the set by this feature.

    Args:
        features: Features of masks, (sets, options, features).
        overlaps: IoU of masks, (sets, options, options).
    """
    typical = overlaps.sum(axis=2)[..., None] / TYPICAL_SPREAD
    values = np.concatenate([features / OPTION_SPREAD, typical], axis=2)
    values = values - values.mean(axis=1, keepdims=True)
    distances, squares = np.abs(values), values**2
    parts = [
        values[:, 0],
        distances[:, 0] - distances.mean(axis=1),
        SQUARE_WEIGHT * (squares[:, 0] - squares.mean(axis=1)),
    ]
    for extreme in (values.max(axis=1, keepdims=True), values.min(axis=1, keepdims=True)):
        is_extreme = np.abs(values - extreme) < TIE
        parts.append(is_extreme[:, 0] / is_extreme.sum(axis=1) - 1 / values.shape[1])
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
