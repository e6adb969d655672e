"""Gate: is the right answer at every position of the option list equally often?

Each right option should be at any of the positions open to it with the same probability; "none of these" has a fixed
position and is left out. Every position is tested against that, in both directions.
"""

from collections import Counter, defaultdict
from typing import Annotated

from msgspec import Meta

from carina.audits.answer_options import read_choices, task_of
from carina.audits.chance import at_least, at_most, expected, hit_row, shift
from carina.audits.gate import AuditContext, Gate, Limits, Share, gate
from carina.audits.result import GateResult, Row
from carina.cases.model import Case


class AnswerPositionLimits(Limits, frozen=True):
    """Limits of `answer-position`."""

    margin: Annotated[
        Share,
        Meta(
            description="Share by which a position may be right more or less often than chance. In a large benchmark "
            "every difference is significant, however small.",
            extra={"trek": 0.05},
        ),
    ] = 0.0


@gate(
    "answer-position",
    title="Position of the right answer",
    meaning="Right answers are at every position of their option lists equally often.",
    limits=AnswerPositionLimits,
    order=30,
)
class AnswerPosition(Gate[AnswerPositionLimits]):
    """Positions of right answers, by task."""

    cost = 2.0

    def __init__(self, context: AuditContext, limits: AnswerPositionLimits) -> None:
        super().__init__(context, limits)
        self._n = 0
        self._hits: defaultdict[str, Counter[int]] = defaultdict(Counter)
        self._trials: defaultdict[str, defaultdict[int, Counter[float]]] = defaultdict(
            lambda: defaultdict(Counter)
        )

    def see(self, case: Case) -> None:
        self._n += 1
        for step in case.steps:
            choices = read_choices(step)
            if choices is None or len(choices.content) < 2 or not step.options:
                continue
            right = choices.right & set(choices.content)
            task = task_of(step)
            for position, place in enumerate(choices.content, start=1):
                self._trials[task][position][len(right) / len(choices.content)] += 1
                self._hits[task][position] += place in right

    def result(self) -> GateResult:
        tests = sum(len(positions) for positions in self._trials.values())
        rows = [self._row(task, tests) for task in sorted(self._trials)]
        return self.report_rows(
            rows,
            n=self._n,
            threshold=f"no position right more or less often than chance (fail at {self.context.fail_level:g}, "
            f"warn at {self.context.warn_level:g}, corrected for all positions)",
            good="Right answers are at every position of their option lists equally often.",
            bad="Right answers prefer some positions, so a model that always gives one number is rewarded; "
            "balance the order of the options.",
            none="No step has a list of options.",
        )

    def _row(self, task: str, tests: int) -> Row:
        rows = []
        margin = self.limits.margin
        for position, trials in self._trials[task].items():
            hits, n, mean = self._hits[task][position], sum(trials.values()), expected(trials)
            above = hits > mean
            tail = at_least(hits, shift(trials, margin)) if above else at_most(hits, shift(trials, -margin))
            p = min(1.0, 2 * tail * tests)
            word = "more" if above else "less"
            rows.append(
                hit_row(
                    f"{task}: position {position}",
                    hits,
                    trials,
                    p=p,
                    status=self.context.judge(p),
                    note=f"position {position} is right {hits} times in {n}, {word} often than the expected {mean:.1f}",
                )
            )
        return min(rows, key=lambda row: (row.p, -abs(row.value - (row.chance or 0))))
