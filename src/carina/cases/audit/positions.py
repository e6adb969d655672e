"""Gate: is the right answer at every place of the list equally often?

Each right option should fall on any of the places open to it with the same chance; "none of them" has its own place
and is left out. Every place is tested against that, in both directions.
"""

from collections import Counter, defaultdict

from carina.cases.audit.chance import at_least, at_most, expected, shifted, wilson
from carina.cases.audit.frame import judged, measured
from carina.cases.audit.record import GateResult, Row
from carina.cases.audit.steps import choices, task_of
from carina.cases.audit.thresholds import Thresholds
from carina.cases.model import Case


class Positions:
    """Places of right answers, by task."""

    cost = 2.0

    def __init__(self, thresholds: Thresholds) -> None:
        self._thresholds = thresholds
        self._n = 0
        self._hits: defaultdict[str, Counter[int]] = defaultdict(Counter)
        self._trials: defaultdict[str, defaultdict[int, Counter[float]]] = defaultdict(
            lambda: defaultdict(Counter)
        )

    def see(self, case: Case) -> None:
        self._n += 1
        for step in case.steps:
            found = choices(step)
            if found is None or len(found.content) < 2 or not step.options:
                continue
            right = found.right & set(found.content)
            task = task_of(step)
            for rank, place in enumerate(found.content, start=1):
                self._trials[task][rank][len(right) / len(found.content)] += 1
                self._hits[task][rank] += place in right

    def result(self) -> GateResult:
        tests = sum(len(ranks) for ranks in self._trials.values())
        rows = [self._row(task, tests) for task in sorted(self._trials)]
        return measured(
            "positions",
            rows,
            n=self._n,
            threshold=f"no place right more or less often than chance (fail at {self._thresholds.fail_level:g}, "
            f"warn at {self._thresholds.warn_level:g}, all places together)",
            good="Right answers stand at every place of their lists equally often.",
            bad="Right answers prefer some places, so a model that always says one number is rewarded; "
            "balance the order of the options anew.",
            none="No step has a list of options.",
        )

    def _row(self, task: str, tests: int) -> Row:
        rows = []
        for rank, trials in self._trials[task].items():
            hits, n, mean = self._hits[task][rank], sum(trials.values()), expected(trials)
            above = hits > mean
            slack = self._thresholds.slack
            tail = at_least(hits, shifted(trials, slack)) if above else at_most(hits, shifted(trials, -slack))
            p = min(1.0, 2 * tail * tests)
            low, high = wilson(hits, n)
            word = "more" if above else "less"
            rows.append(
                Row(
                    name=f"{task}: place {rank}",
                    n=n,
                    value=hits / n,
                    low=low,
                    high=high,
                    chance=mean / n,
                    p=p,
                    status=judged(p, warn=self._thresholds.warn_level, fail=self._thresholds.fail_level),
                    note=f"place {rank} is right {hits} times in {n}, {word} often than the expected {mean:.1f}",
                )
            )
        return min(rows, key=lambda row: (row.p, -abs(row.value - (row.chance or 0))))
