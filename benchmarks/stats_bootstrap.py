"""Speed of intervals: seconds of one core for 10,000 replicates of 10,000 steps, beside scipy's bootstrap.

Steps are independent or cluster in 2,000 patients; scores are right or wrong, or fractions. scipy has no clusters: its
vectorised percentile bootstrap of the same values as independent rows is timed in the same run, with as many
replicates, in batches that stay in the processor's cache and in batches of 100. Processor time, best of three.

    python benchmarks/stats_bootstrap.py
"""

import argparse
import os
import sys
import time
from collections.abc import Callable

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the target is for one core; read when numpy is imported
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from scipy.stats import bootstrap

from carina.stats import Interval, Intervals, mean_interval, paired_difference, ratio_intervals

TARGET = 1.0
"""Seconds of one core, for the hardest case."""


def main() -> int:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--steps", type=int, default=10_000)
    arguments.add_argument("--patients", type=int, default=2_000)
    arguments.add_argument("--replicates", type=int, default=10_000)
    arguments.add_argument("--columns", type=int, default=40, help="columns of the table")
    given = arguments.parse_args()
    draw = np.random.default_rng(0)
    patients = draw.integers(0, given.patients, given.steps)
    fractions = draw.random(given.steps)
    right = (fractions < 0.6).astype(float)
    other = (draw.random(given.steps) < 0.6).astype(float)
    table = (draw.random((given.steps, given.columns)) < 0.6).astype(float)
    table[draw.random(table.shape) < 0.5] = np.nan
    replicates = given.replicates

    def theirs(values: np.ndarray, batch: int) -> Interval:
        found = bootstrap(
            (values,), np.mean, n_resamples=replicates, batch=batch, method="percentile", vectorized=True, rng=draw
        ).confidence_interval  # fmt: skip
        return Interval(float(values.mean()), float(found.low), float(found.high), len(values), len(values))

    rows: list[tuple[str, Callable[[], object]]] = [
        ("ours, right or wrong, independent rows", lambda: mean_interval(right, replicates=replicates)),
        ("ours, right or wrong, patients", lambda: mean_interval(right, patients, replicates=replicates)),
        ("ours, fractions, independent rows (hardest)", lambda: mean_interval(fractions, replicates=replicates)),
        ("ours, fractions, patients", lambda: mean_interval(fractions, patients, replicates=replicates)),
        ("ours, paired difference, patients", lambda: paired_difference(right, other, patients, replicates=replicates)),
        (f"ours, table of {given.columns}, patients", lambda: ratio_intervals(table, patients, replicates=replicates)),
        ("scipy, fractions, batches of 16", lambda: theirs(fractions, 16)),
        ("scipy, fractions, batches of 100", lambda: theirs(fractions, 100)),
    ]  # fmt: skip
    seconds = {what: best(call) for what, call in rows}
    fastest = min(took for what, took in seconds.items() if what.startswith("scipy"))
    print(
        f"{replicates:,} replicates of {given.steps:,} steps, {given.patients:,} patients; seconds of one core"
    )
    for what, call in rows:
        print(
            f"  {what:<40} {seconds[what]:7.3f} s   scipy / this {fastest / seconds[what]:7.1f}   {describe(call())}"
        )
    hardest = seconds["ours, fractions, independent rows (hardest)"]
    print(f"hardest case {hardest:.2f} s: {'below' if hardest < TARGET else 'ABOVE'} {TARGET:.0f} s")
    return 0 if hardest < TARGET else 1


def best(call: Callable[[], object], times: int = 3) -> float:
    took = []
    for _ in range(times):
        start = time.process_time()
        call()
        took.append(time.process_time() - start)
    return min(took)


def describe(found: object) -> str:
    first = found[0] if isinstance(found, Intervals) else found
    return f"{first.value:.4f} [{first.low:.4f}, {first.high:.4f}]"


if __name__ == "__main__":
    sys.exit(main())
