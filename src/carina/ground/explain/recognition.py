"""Does a model know that a finding is there? From the scores of the same passes that gave the maps."""

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from carina.ground.explain.maps import LocalisationMap
from carina.stats import Interval, auroc, mean_interval


class Recognition(msgspec.Struct, frozen=True, kw_only=True):
    """How well a finding is told from its absence, on the scored split."""

    finding: str
    present: int
    absent: int
    auroc: Interval
    threshold: float | None
    """Chosen on the tuning split, as the one with the best F1 there; None where there is none."""
    accuracy: Interval | None
    f1: float | None
    sensitivity: float | None
    specificity: float | None


def recognition(
    scored: Iterable[LocalisationMap], tuning: Iterable[LocalisationMap], *, seed: int = 0
) -> list[Recognition]:
    """For every finding that was asked for where it is and where it is not; in order of names."""
    rows, chosen_on = _by_finding(scored), _by_finding(tuning)
    return [_of(finding, rows[finding], chosen_on.get(finding, []), seed) for finding in sorted(rows)]


def _by_finding(maps: Iterable[LocalisationMap]) -> dict[str, list[LocalisationMap]]:
    rows: dict[str, list[LocalisationMap]] = {}
    for one in maps:
        if one.recognised is not None:
            rows.setdefault(one.target, []).append(one)
    return rows


def _of(
    finding: str, rows: Sequence[LocalisationMap], tuning: Sequence[LocalisationMap], seed: int
) -> Recognition:
    scores, present = _columns(rows)
    patients = [row.patient or row.id for row in rows]
    threshold = best_f1_threshold(*_columns(tuning)) if tuning else None
    made = Recognition(
        finding=finding,
        present=int(present.sum()),
        absent=int((~present).sum()),
        auroc=auroc(scores, present, patients, seed=seed),
        threshold=threshold,
        accuracy=None,
        f1=None,
        sensitivity=None,
        specificity=None,
    )
    if threshold is None:
        return made
    said = scores >= threshold
    hits, told = int((said & present).sum()), int(said.sum())
    return msgspec.structs.replace(
        made,
        accuracy=mean_interval((said == present).astype(float), patients, seed=seed),
        f1=2 * hits / (told + made.present) if told + made.present else None,
        sensitivity=hits / made.present if made.present else None,
        specificity=int((~said & ~present).sum()) / made.absent if made.absent else None,
    )


def _columns(rows: Sequence[LocalisationMap]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    known = [(row.recognised, row.present) for row in rows]
    return (
        np.array([score for score, _ in known], np.float64),
        np.array([there for _, there in known], np.bool_),
    )


def best_f1_threshold(scores: NDArray[np.float64], present: NDArray[np.bool_]) -> float | None:
    """The score from which on "present" gives the best F1, the highest of equals; None without positives."""
    if not present.any():
        return None
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(present[order])
    told = np.arange(1, len(scores) + 1)
    # Only where the next score is lower: equal scores are called alike.
    last = np.append(scores[order][1:] < scores[order][:-1], True)
    f1 = np.where(last, 2 * hits / (told + hits[-1]), -1.0)
    return float(scores[order][int(f1.argmax())])
