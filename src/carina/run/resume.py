"""Taking up what was interrupted: a case is walked again as far as its answers go."""

from collections.abc import Iterator, Sequence

from carina.cases import Benchmark
from carina.run.log import Answered
from carina.run.records import Policy
from carina.run.walk import Walk


def walks(bench: Benchmark, ids: Sequence[str], answered: Answered, policy: Policy) -> Iterator[Walk]:
    """The cases as far as they were walked before; what failed on the way is asked again."""
    for case in bench.pick(ids):
        walk = Walk(case, policy)
        resume(walk, answered)
        yield walk


def resume(walk: Walk, answered: Answered, *, failures: bool = False) -> None:
    """Walk a case as far as its answers go; also over a failure, where the table shall show it."""
    entries = answered.get(walk.case.id, {})
    for number in range(len(walk.case.steps)):
        if walk.over:
            return
        entry = entries.get(number)
        failed = entry is None or entry.row.state != "answered"
        if entry is not None and (failures or not failed):
            walk.replay(entry.row, None if failed else entry.reply)
        elif walk.policy.history != "none":
            return
