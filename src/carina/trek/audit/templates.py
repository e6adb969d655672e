"""Gate: is the wording varied enough that no template makes too many of a stage's questions?"""

from collections import Counter, defaultdict

from carina.cases.audit import GateResult, Row, measured
from carina.cases.model import Case
from carina.trek.audit.limits import Limits
from carina.trek.audit.tallies import limited, share
from carina.trek.audit.turns import Decoder


class Templates:
    """Questions by template, within each stage."""

    def __init__(self, limits: Limits, decoder: Decoder) -> None:
        self._limits = limits
        self.decoder = decoder
        self._n = 0
        self._counts: defaultdict[int, Counter[str]] = defaultdict(Counter)
        self._without: Counter[int] = Counter()

    def see(self, case: Case) -> None:
        if self.decoder.read(case) is None:
            return
        self._n += 1
        for step in case.steps:
            if step.template is not None:
                self._counts[step.stage][step.template] += 1
            elif step.origin.method == "rule":
                self._without[step.stage] += 1

    def result(self) -> GateResult:
        tests = sum(map(len, self._counts.values()))
        rows = [self._row(stage, tests) for stage in sorted(self._counts)]
        for stage, times in sorted(self._without.items()):
            n = times + self._counts[stage].total()
            rows.append(share(f"{stage}: no template id", times, n, status="warn", limit=0.0))
        limit = self._limits.template
        return measured(
            "templates",
            rows,
            n=self._n,
            threshold=f"no template makes more than {limit:.1%} of a stage's questions; every question made by rule "
            "names its template",
            good="No template makes too many of a stage's questions.",
            bad="Some templates are so frequent that they can be learned by heart; add wordings to their pool.",
            warned="Some templates may be too frequent, or questions do not say which template they have.",
            none="No question names a template.",
        )

    def _row(self, stage: int, tests: int) -> Row:
        counts = self._counts[stage]
        # In alphabetical order, so that the same one is named whatever the order of cases.
        name, often = max(sorted(counts.items()), key=lambda entry: entry[1])
        n = counts.total()
        over = sum(times > self._limits.template * n for times in counts.values())
        return limited(
            f"stage {stage}: most frequent template",
            often,
            n,
            limit=self._limits.template,
            thresholds=self._limits.common,
            tests=tests,
            note=f"{len(counts)} templates; {name} makes {often} of {n}, {over} are above the limit",
        )
