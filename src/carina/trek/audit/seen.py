"""Gate: is a finding that was mentioned before more often there than a fresh one?

For every closed question about a named finding or device: was the name seen in an earlier question, option or right
answer of the conversation? If "yes" is more frequent among those, a model that only reads scores without looking.
"""

from collections import defaultdict

from carina.cases.audit import GateResult, Row, measured
from carina.cases.model import Case
from carina.trek.audit.limits import Limits
from carina.trek.audit.tallies import Gap, share
from carina.trek.audit.turns import Decoder, mentioned, slot_name

_Group = tuple[str, int, str]


class Seen:
    """P(yes given seen) less P(yes given fresh), by order, stage and kind of target."""

    def __init__(self, limits: Limits, decoder: Decoder) -> None:
        self._limits = limits
        self.decoder = decoder
        self._n = 0
        self._gaps: defaultdict[_Group, Gap] = defaultdict(Gap)

    def see(self, case: Case) -> None:
        conversation = self.decoder.read(case)
        if conversation is None:
            return
        self._n += 1
        counts: defaultdict[_Group, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
        for turn in conversation.closed:
            seen = mentioned(conversation.text, turn.name, 0, turn.start)
            if not seen and turn.step.slots:
                seen = mentioned(conversation.text, slot_name(turn), 0, turn.start)
            here = counts[case.order, turn.step.stage, turn.kind]
            place = 0 if seen else 2
            here[place] += turn.label == "yes"
            here[place + 1] += 1
        for group, (yes, n, fresh_yes, fresh) in counts.items():
            self._gaps[group].add(yes, n, fresh_yes, fresh)

    def result(self) -> GateResult:
        limits = self._limits
        gaps = {group: gap for group, gap in sorted(self._gaps.items()) if min(gap.counts)}
        tests = sum(self._enough(gap) for gap in gaps.values())
        rows = [row for group, gap in gaps.items() for row in self._rows(group, gap, tests)]
        return measured(
            "seen",
            rows,
            n=self._n,
            threshold=f"P(yes | mentioned before) - P(yes | fresh) within {limits.seen_fail:g} either way (warn beyond "
            f"{limits.seen_warn:g}); judged from {limits.common.least_cases} questions of each kind",
            good="Whether a finding was mentioned before does not tell whether it is there.",
            bad="What was mentioned before is there more or less often than what was not, so reading replaces looking; "
            "ask also about absent findings that were mentioned, and about present ones that were not.",
            none="No stage has closed questions both about names mentioned before and about fresh ones.",
        )

    def _enough(self, gap: Gap) -> bool:
        return min(gap.counts) >= self._limits.common.least_cases

    def _rows(self, group: _Group, gap: Gap, tests: int) -> tuple[Row, Row]:
        order, stage, kind = group
        limits = self._limits
        status, p = gap.judged(
            limits.common, warn=limits.seen_warn, fail=limits.seen_fail, tests=max(tests, 1)
        )
        if not self._enough(gap):
            status, p = "pass", 1.0
        low, high = gap.interval()
        (yes, fresh_yes), (n, fresh) = gap.yes, gap.counts
        name = f"{stage} {kind}" if order == "staged" else f"{stage} {kind}, {order}"
        right = max(yes + fresh - fresh_yes, n - yes + fresh_yes)
        majority = max(yes + fresh_yes, n + fresh - yes - fresh_yes)
        return (
            Row(
                name=f"{name}: seen less fresh",
                n=n + fresh,
                value=gap.value(),
                low=low,
                high=high,
                chance=0.0,
                limit=limits.seen_fail,
                p=p,
                status=status,
                note=f"yes in {yes} of {n} mentioned before ({yes / n:.0%}), in {fresh_yes} of {fresh} fresh ones "
                f"({fresh_yes / fresh:.0%})" + ("" if self._enough(gap) else "; too few to judge"),
            ),
            share(
                f"{name}: term seen earlier as a rule",
                right,
                n + fresh,
                chance=majority / (n + fresh),
                note="for information; beside it the most frequent answer",
            ),
        )
