"""What the best fixed answer would give: who always says the same has looked at nothing, however high that comes out.

A fixed answer says the same words to every question of a kind: "no" to every detection, "2 zones" to every
distribution. For a stage or a case of several steps it is a fixed answer to each of them, and counts where all are
right. Who always says that there is no lesion has every lesion-free case right, a third of percept.
"""

import math
from collections import defaultdict
from collections.abc import Mapping

import polars as pl

from carina.report.analyse.figures import row_shares

Pattern = tuple[str, ...]
"""Steps and what is said to them, a tab between, in order."""


def best_constant(rows: pl.DataFrame) -> float | None:
    """The figure of the best fixed answers to these weighted outcomes; None where a key cannot be said of another case.

    Every kind of question has its own fixed answer, the one that adds most to the figure.
    """
    if rows.is_empty():
        return None
    weights: dict[str, dict[Pattern, list[float]]] = defaultdict(lambda: defaultdict(list))
    for question, pattern, share in zip(rows["question"], rows["pattern"], row_shares(rows), strict=True):
        if pattern is None or None in pattern:
            return None
        weights[question][tuple(pattern)].append(float(share))
    found = [
        _best({pattern: math.fsum(shares) for pattern, shares in by_pattern.items()})
        for by_pattern in weights.values()
    ]
    return math.fsum(found)


def _best(weights: Mapping[Pattern, float]) -> float:
    """What the best pattern covers: units with its steps and answers, and units with only some of its steps.

    Of steps that two units share, one unit's are among the other's wherever both can be right at once: targets without
    attributes end earlier, paths part by an answer. So the best pattern is that of some unit.
    """
    kinds = {tuple(item.partition("\t")[0] for item in pattern) for pattern in weights}
    best = 0.0
    for pattern in weights:
        said = {item.partition("\t")[0]: item for item in pattern}
        covered = [tuple(said[step] for step in kind) for kind in kinds if set(kind) <= said.keys()]
        best = max(best, math.fsum(weights.get(part, 0.0) for part in covered))
    return best
