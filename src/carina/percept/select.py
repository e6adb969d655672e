"""Select the lesions of a benchmark: as many as requested for each path, one case for each patient and lesion.

Lesions on both paths are alike in size. All sampling is seeded and does not depend on the order of studies on disk.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import cv2
import msgspec
import numpy as np
from numpy.typing import NDArray

from carina.percept.balance import FeatureBalance, RandomTrees, choose_sets, whiten
from carina.percept.contour_features import FEATURES, measure_features
from carina.percept.mask_options import Sizes, combine_kinds, measure_squares
from carina.percept.records import LesionAnalysis, MaskChoice
from carina.percept.steps import KeyPosition, Path
from carina.store.seeding import rng
from carina.studies.region import Region

OVERSAMPLE: Final = 1.5
"""Lesions that are analysed for each one that is needed, so that attribute classes can be balanced."""
SETS_OF_REGIONS: Final = (1, 3, 3, 1)
"""Of the eight answers to the location question, how many have 0, 1, 2 and 3 right regions: if all are equally
frequent, no constant answer does better than chance."""

FEATURE_SPREAD: Final = np.array([1.0, 0.4, 0.1, 0.4, 0.4, 0.4, 0.4, 0.05, 0.1, 0.03, 0.1, 0.2, 0.1])
"""Typical spread of each of `FEATURES` between lesions: what one unit of imbalance is."""
OPTION_SPREAD: Final = np.array(
    [0.25, 0.13, 0.05, 0.2, 0.2, 0.2, 0.2, 0.03, 0.04, 0.006, 0.05, 0.05, 0.05, 0.1, 0.2, 0.1, 0.1]
)
"""The same between the masks of one question; the last four are the overlap with the shown contour, how typical a mask
is of the four, and what it adds to the shown contour and removes from it."""
SQUARE_WEIGHT: Final = 0.5
"""Weight of a squared difference, against a difference of one spread."""
TIE: Final = 1e-9
AREA: Final = FEATURES.index("area")
TO_SHOWN: Final = len(FEATURES)
"""Places of two features among those of an option, of which both together must not find the right mask."""
SIZE_WEIGHT: Final = 1.0
"""Weight of differences in size between the masks of path RR, against differences of contours between the paths."""
CELL_EDGES: Final = (-0.5, 0.0, 0.5)
"""Edges of the grid over these two, in spreads."""
CELL_WEIGHT: Final = 2.0
"""Weight of a mask in a cell of the grid, against a difference of one spread."""
MOST_SQUARES: Final = 40
"""Sets of four masks of each lesion among which one is chosen."""
RELATED_WEIGHT: Final = 3.0
"""How much more often random trees ask about area, overlap with the shown contour and how typical a mask is."""


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
        np.array(
            [
                np.concatenate([_compare_contours(good, revised), _compare_sizes(revised)])
                for good, revised in ((one, other), (other, one))
            ]
        )
        for one, other in pairs
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


def _compare_sizes(revised: LesionAnalysis) -> NDArray[np.float64]:
    """How the right mask differs in sizes and overlaps from all four, on average over the squares of a lesion.

    Where a lesion has no room for some edits, this decides what is right: without balance, the masks would tell.
    """
    values = _centre(_measure_overlaps(revised, np.array(revised.squares, np.int64)))
    values = values / OPTION_SPREAD[TO_SHOWN:]
    parts = [values[:, 0], _centre(np.abs(values))[:, 0], *_find_extremes(values)]
    return SIZE_WEIGHT * np.concatenate([part.mean(axis=0) for part in parts])


def choose_masks(cell: Sequence[LesionAnalysis], *, seed: int) -> list[LesionAnalysis]:
    """Choose four masks for each lesion, so that features of contours do not tell the right mask from the wrong ones.

    Balanced are single features (`_compare_options`), and what several of them reveal together (`RandomTrees`).
    """
    if not cell:
        return []
    squares = [_sample_squares(analysis, seed) for analysis in cell]
    options = [_measure_options(analysis, these) for analysis, these in zip(cell, squares, strict=True)]
    weights = [RELATED_WEIGHT if at == AREA or at >= TO_SHOWN else 1.0 for at in range(len(OPTION_SPREAD))]
    chosen = choose_sets(_compare_options(options), RandomTrees.draw(weights).find_leaves(options))
    return [
        _keep_square(analysis, these[n], features[n])
        for analysis, these, features, n in zip(cell, squares, options, chosen, strict=True)
    ]


def _sample_squares(analysis: LesionAnalysis, seed: int) -> NDArray[np.int64]:
    squares = np.array(analysis.squares, np.int64)
    chance = rng(seed, analysis.subject.study, analysis.target, "masks")
    return squares[chance.permutation(len(squares))[:MOST_SQUARES]]


def _measure_options(analysis: LesionAnalysis, squares: NDArray[np.int64]) -> NDArray[np.float64]:
    """Features of the masks of every square, and how they relate to each other and to the shown contour."""
    features = np.array([mask.features for mask in analysis.masks])
    one, other = features[squares[:, 0]], features[squares[:, 1]]
    right = np.broadcast_to(features[0], one.shape)
    four = np.stack([right, one, other, _measure_both(analysis, squares)], axis=1)
    return np.concatenate([four, _measure_overlaps(analysis, squares)], axis=2)


def _measure_overlaps(analysis: LesionAnalysis, squares: NDArray[np.int64]) -> NDArray[np.float64]:
    """Overlap of the masks of every square with the shown contour and with each other, and what they change in it."""
    masks = analysis.masks
    sizes = Sizes(
        areas=np.array([mask.area for mask in masks]),
        changes=np.array([mask.change for mask in masks]),
        as_shown=np.array([mask.as_shown for mask in masks]),
    )
    overlaps = measure_squares(squares, sizes, shown=analysis.shown_area, shown_change=analysis.shown_change)
    typical = overlaps.between.sum(axis=2)
    moved = np.stack([overlaps.added, overlaps.removed], axis=2) / analysis.shown_area
    return np.concatenate([overlaps.shown[..., None], typical[..., None], moved], axis=2)


def _measure_both(analysis: LesionAnalysis, squares: NDArray[np.int64]) -> NDArray[np.float64]:
    """Features of the masks with both wrong states, (squares, features)."""
    used = [0, *np.unique(squares).tolist()]
    drawn = {n: analysis.masks[n].region.to_mask() for n in used}
    x, y, width, height = cv2.boundingRect(np.logical_or.reduce(list(drawn.values())).view(np.uint8))
    cut = {n: mask[y : y + height, x : x + width] for n, mask in drawn.items()}
    return np.array(
        [
            measure_features(np.ascontiguousarray(cut[0] ^ cut[one] ^ cut[other]), analysis.scale)
            for one, other in squares.tolist()
        ]
    )


def _keep_square(
    analysis: LesionAnalysis, square: NDArray[np.int64], features: NDArray[np.float64]
) -> LesionAnalysis:
    right, one, other = (analysis.masks[n] for n in (0, *square.tolist()))
    mask = right.region.to_mask() ^ one.region.to_mask() ^ other.region.to_mask()
    both = MaskChoice(
        region=Region.from_mask(mask),
        kind=combine_kinds(one.kind, other.kind),
        features=tuple(features[-1, : len(FEATURES)].tolist()),
        area=int(np.count_nonzero(mask)),
        change=one.change + other.change,
        as_shown=one.as_shown + other.as_shown,
    )
    return msgspec.structs.replace(analysis, masks=(right, one, other, both), squares=((1, 2),))


def _compare_options(features: Sequence[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
    """How the right mask (the first) of every set differs from the mean of the set.

    In every feature, in its distance from the mean and the square of it, in whether the mask is the first or the last
    of the set by this feature, and in where it lies by its area and its overlap with the shown contour together.

    Args:
        features: For each case, features of masks, (sets, options, features).
    """
    centred = [_centre(values) / OPTION_SPREAD for values in features]
    both = whiten([np.concatenate([values, _centre(np.abs(values))], axis=2) for values in centred])
    return [
        np.concatenate(
            [
                mixed[:, 0],
                SQUARE_WEIGHT * _centre(values**2)[:, 0],
                *_find_extremes(values),
                _find_cells(values),
            ],
            axis=1,
        )
        for values, mixed in zip(centred, both, strict=True)
    ]


def _centre(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(values - values.mean(axis=1, keepdims=True), np.float64)


def _find_extremes(values: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
    """Whether the first mask is the largest, and the smallest, by each feature, less what is expected by chance."""
    for extreme in (values.max(axis=1, keepdims=True), values.min(axis=1, keepdims=True)):
        is_extreme = np.abs(values - extreme) < TIE
        yield is_extreme[:, 0] / is_extreme.sum(axis=1) - 1 / values.shape[1]


def _find_cells(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """In which cell of a grid over two features the first mask lies, less the share of masks of the set that do."""
    rows, columns = (np.digitize(values[:, :, at], CELL_EDGES) for at in (AREA, TO_SHOWN))
    side = len(CELL_EDGES) + 1
    return CELL_WEIGHT * _centre(np.eye(side**2)[rows * side + columns])[:, 0]


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
