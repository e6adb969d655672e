"""Time to score a map: milliseconds of one core for a 1024 x 1024 pair, beside other libraries on the same pairs.

Ours is one pass: IoU and Dice at 256 thresholds, binned AUROC and AUPRC, the pointing game with ties, mass and contrast
to noise; and the exact curves, which sort. Others compute a figure each. Processor time, best of several rounds, mean
over pairs. Prints how far their figures are from ours, so that the same thing is timed.

    python benchmarks/ground_score.py

torchmetrics and Quantus are no dependencies. To have them in the table, in an environment of their own:

    python -m venv peers
    peers/bin/pip install torch==2.13.0 torchmetrics scikit-learn pandas tqdm scikit-image matplotlib
    peers/bin/pip install --no-deps quantus      # with its dependencies it would bring torchvision
    peers/bin/pip install .
    peers/bin/python benchmarks/ground_score.py
"""

import argparse
import importlib.util
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # one core is what is promised
os.environ.setdefault("OMP_NUM_THREADS", "1")

import cv2
import numpy as np

from carina.maps.alignment import AlignedMap
from carina.maps.counts import auprc_of_levels, auroc_of_levels, binned_levels, exact_levels, overlap
from carina.maps.pair import Pair
from carina.maps.pixel_values import cnr, positive_mass, top_share
from carina.maps.pointing import score_hit
from carina.maps.rules import PeakPixel
from carina.maps.thresholds import apply_grid

SIDE = 1024
TARGET = 10.0
"""Largest time for the pass over the pixels, in milliseconds of one core."""
Arrays = tuple[np.ndarray, np.ndarray]


class Row(NamedTuple):
    figure: str
    library: str
    theirs: Callable[[np.ndarray, np.ndarray], float]
    ours: Callable[[np.ndarray, np.ndarray], float]


def main() -> int:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--pairs", type=int, default=3)
    arguments.add_argument("--rounds", type=int, default=5)
    given = arguments.parse_args()
    cv2.setNumThreads(1)
    pairs = [made(seed) for seed in range(given.pairs)]
    took = timed(tally_pixels, pairs, 4 * given.rounds)
    print(f"{given.pairs} pairs of {SIDE} x {SIDE}, milliseconds of one core, best of {given.rounds} rounds")
    print(f"ours, one pass: IoU, Dice at 256 thresholds, AUROC, AUPRC, pointing, mass, CNR   {took:7.2f} ms")
    exact = timed(lambda values, truth: auroc(values, truth) + auprc(values, truth), pairs, given.rounds)
    print(
        f"ours, exact AUROC and AUPRC (each sorts anew here)                              {exact:7.2f} ms\n"
    )
    print(
        f"{'figure':<34} {'library':<24} {'theirs':>9} {'/ one pass':>11} {'ours':>8} {'ratio':>7} {'differ by':>10}"
    )
    for row in rows():
        theirs, ours = timed(row.theirs, pairs, given.rounds), timed(row.ours, pairs, given.rounds)
        apart = max(abs(row.theirs(*pair) - row.ours(*pair)) for pair in pairs)
        print(
            f"{row.figure:<34} {row.library:<24} {theirs:8.1f}  {theirs / took:10.1f}x {ours:7.2f}  "
            f"{theirs / ours:6.1f}x {apart:10.1e}"
        )
    for missing in (name for name in ("sklearn", "torchmetrics", "quantus") if not there(name)):
        print(f"{missing} is not installed; how to have it beside is told by --help")
    print(f"one pass {took:.2f} ms: {'within' if took <= TARGET else 'ABOVE'} {TARGET:.0f} ms")
    return 0 if took <= TARGET else 1


def made(seed: int) -> Arrays:
    """A smooth map, like one on a 14 x 14 grid, and an ellipse near its peak."""
    draw = np.random.default_rng(seed)
    grid = draw.random((14, 14)).astype(np.float32) ** 4
    row, column = draw.integers(3, 11, 2)
    grid[row, column] = 2.0
    truth = np.zeros((SIDE, SIDE), np.uint8)
    at = (int((column + 0.9) * SIDE / 14), int((row + 0.7) * SIDE / 14))
    cv2.ellipse(truth, at, (90, 140), int(draw.integers(180)), 0, 360, 1, -1)
    return cv2.resize(grid, (SIDE, SIDE), interpolation=cv2.INTER_LINEAR), truth.astype(bool)


def timed(call: Callable[..., object], pairs: list[Arrays], rounds: int) -> float:
    """Processor time for a pair in the best round, in milliseconds."""
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        for pair in pairs:
            call(*pair)
        best = min(best, time.process_time() - start)
    return 1e3 * best / len(pairs)


# ---- ours ----


def pair_of(values: np.ndarray, truth: np.ndarray) -> Pair:
    return Pair(AlignedMap(values, truth, None), "full_image")


def tally_pixels(values: np.ndarray, truth: np.ndarray) -> tuple[object, ...]:
    pair = pair_of(values, truth)
    counts, levels = apply_grid(pair, "minmax256"), binned_levels(pair)
    return (
        overlap("iou", counts, "positives"),
        overlap("dice", counts, "positives"),
        auroc_of_levels(*levels),
        auprc_of_levels(*levels),
        score_hit(pair, PeakPixel("expected"), "positives"),
        positive_mass(pair),
        cnr(pair),
    )


def auroc(values: np.ndarray, truth: np.ndarray) -> float:
    return auroc_of_levels(*exact_levels(pair_of(values, truth)))


def auprc(values: np.ndarray, truth: np.ndarray) -> float:
    return auprc_of_levels(*exact_levels(pair_of(values, truth)))


def iou(values: np.ndarray, truth: np.ndarray) -> float:
    """IoU at one of 256 thresholds; the other 255 are computed too."""
    return float(overlap("iou", apply_grid(pair_of(values, truth), "minmax256"), "positives")[128])


def dice(values: np.ndarray, truth: np.ndarray) -> float:
    return float(overlap("dice", apply_grid(pair_of(values, truth), "minmax256"), "positives")[128])


# ---- theirs ----


def there(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def rows() -> Iterator[Row]:
    if there("sklearn"):
        yield from of_sklearn()
    if there("torchmetrics"):
        yield from of_torchmetrics()
    if there("quantus"):
        yield from of_quantus()


def lit(values: np.ndarray) -> np.ndarray:
    return (values - values.min()) / (values.max() - values.min()) > 0.5


def of_sklearn() -> Iterator[Row]:
    from sklearn import metrics  # noqa: PLC0415 - timed where it is installed

    yield Row("AUROC", "scikit-learn", lambda v, t: metrics.roc_auc_score(t.ravel(), v.ravel()), auroc)
    yield Row(
        "AUPRC", "scikit-learn", lambda v, t: metrics.average_precision_score(t.ravel(), v.ravel()), auprc
    )
    yield Row(
        "IoU, one threshold",
        "scikit-learn",
        lambda v, t: metrics.jaccard_score(t.ravel(), lit(v).ravel()),
        iou,
    )


def of_torchmetrics() -> Iterator[Row]:
    import torch  # noqa: PLC0415 - timed where it is installed
    from torchmetrics.functional import classification as of  # noqa: PLC0415 - timed where it is installed

    torch.set_num_threads(1)

    def given(values: np.ndarray, truth: np.ndarray) -> tuple[Any, Any]:
        scaled = (values - values.min()) / (values.max() - values.min())
        return torch.from_numpy(scaled), torch.from_numpy(truth.view(np.uint8).astype(np.int64))

    def binned(values: np.ndarray, truth: np.ndarray) -> float:
        return auroc_of_levels(*binned_levels(pair_of(values, truth)))

    yield Row("AUROC", "torchmetrics", lambda v, t: float(of.binary_auroc(*given(v, t))), auroc)
    yield Row(
        "AUROC, 256 thresholds",
        "torchmetrics",
        lambda v, t: float(of.binary_auroc(*given(v, t), thresholds=256)),
        binned,
    )
    yield Row("AUPRC", "torchmetrics", lambda v, t: float(of.binary_average_precision(*given(v, t))), auprc)
    yield Row(
        "IoU, one threshold", "torchmetrics", lambda v, t: float(of.binary_jaccard_index(*given(v, t))), iou
    )
    yield Row(
        "IoU, one threshold",
        "torchmetrics, unchecked",
        lambda v, t: float(of.binary_jaccard_index(*given(v, t), validate_args=False)),
        iou,
    )
    yield Row(
        "Dice, one threshold", "torchmetrics", lambda v, t: float(of.binary_f1_score(*given(v, t))), dice
    )


def of_quantus() -> Iterator[Row]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import quantus  # noqa: PLC0415 - timed where it is installed

    quiet = {"disable_warnings": True, "display_progressbar": False, "normalise": False, "abs": False}

    def score(metric: Any, values: np.ndarray, truth: np.ndarray) -> float:
        batch = {"x_batch": values[None, None], "y_batch": np.zeros(1, int), "a_batch": values[None, None]}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = metric(model=None, s_batch=truth[None, None], channel_first=True, **batch)
        return float(np.asarray(found).ravel()[0])

    def rank(values: np.ndarray, truth: np.ndarray) -> float:
        pair = pair_of(values, truth)
        return top_share(pair, pair.n_true)

    for figure, metric, ours in (
        (
            "pointing game, any maximum",
            quantus.PointingGame(**quiet),
            lambda v, t: score_hit(pair_of(v, t), PeakPixel("any_max"), None),
        ),
        ("relevance mass", quantus.RelevanceMassAccuracy(**quiet), lambda v, t: positive_mass(pair_of(v, t))),
        ("relevance rank", quantus.RelevanceRankAccuracy(**quiet), rank),
        ("top 1,000", quantus.TopKIntersection(k=1000, **quiet), lambda v, t: top_share(pair_of(v, t), 1000)),
        ("AUROC", quantus.AUC(**quiet), auroc),
    ):
        yield Row(figure, "Quantus", lambda v, t, metric=metric: score(metric, v, t), ours)


if __name__ == "__main__":
    sys.exit(main())
