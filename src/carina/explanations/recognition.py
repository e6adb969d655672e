"""How well a model recognises that a finding is present, by the scores of the passes that gave the maps."""

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from carina.explanations.maps import LocalisationMap
from carina.stats import Interval, auroc, mean_interval


class Recognition(msgspec.Struct, frozen=True, kw_only=True):
    """How well the scores separate images with and without a finding, on the scored split."""

    finding: str
    present: int
    absent: int
    auroc: Interval
    threshold: float | None
    """Threshold with the highest F1 on the tuning split; None without a tuning split."""
    accuracy: Interval | None
    f1: float | None
    sensitivity: float | None
    specificity: float | None


def recognition(
    scored: Iterable[LocalisationMap], tuning: Iterable[LocalisationMap], *, seed: int = 0
) -> list[Recognition]:
    """Measure the recognition of every finding, in order of names.

    Args:
        scored: Maps of the scored split.
        tuning: Maps of the tuning split, from which thresholds are selected.
        seed: Seed of the bootstrap.
    """
    rows, tuning_rows = _by_finding(scored), _by_finding(tuning)
    return [
        _recognise(finding, rows[finding], tuning_rows.get(finding, []), seed) for finding in sorted(rows)
    ]


def _by_finding(maps: Iterable[LocalisationMap]) -> dict[str, list[LocalisationMap]]:
    rows: dict[str, list[LocalisationMap]] = {}
    for record in maps:
        if record.recognised is not None:
            rows.setdefault(record.target, []).append(record)
    return rows


def _recognise(
    finding: str, rows: Sequence[LocalisationMap], tuning: Sequence[LocalisationMap], seed: int
) -> Recognition:
    scores, present = _columns(rows)
    patients = [row.patient or row.id for row in rows]
    threshold = best_f1_threshold(*_columns(tuning)) if tuning else None
    without_threshold = Recognition(
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
        return without_threshold
    predicted = scores >= threshold
    hits, n_predicted = int((predicted & present).sum()), int(predicted.sum())
    n_present, n_absent = without_threshold.present, without_threshold.absent
    return msgspec.structs.replace(
        without_threshold,
        accuracy=mean_interval((predicted == present).astype(float), patients, seed=seed),
        f1=2 * hits / (n_predicted + n_present) if n_predicted + n_present else None,
        sensitivity=hits / n_present if n_present else None,
        specificity=int((~predicted & ~present).sum()) / n_absent if n_absent else None,
    )


def _columns(rows: Sequence[LocalisationMap]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    known = [(row.recognised, row.present) for row in rows]
    return (
        np.array([score for score, _ in known], np.float64),
        np.array([is_present for _, is_present in known], np.bool_),
    )


def best_f1_threshold(scores: NDArray[np.float64], present: NDArray[np.bool_]) -> float | None:
    """The threshold with the highest F1, the highest of equally good ones; None without positives."""
    if not present.any():
        return None
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(present[order])
    n_predicted = np.arange(1, len(scores) + 1)
    # A threshold cannot separate equal scores: only the last of them is a candidate.
    last = np.append(scores[order][1:] < scores[order][:-1], True)
    f1 = np.where(last, 2 * hits / (n_predicted + hits[-1]), -1.0)
    return float(scores[order][int(f1.argmax())])
