"""Gate: does each case have the steps of its path, and do its first keys agree with the path?"""

from typing import Final

from carina.audits.gate import AuditContext, Gate, NoLimits, gate
from carina.audits.percept.facts import tasks_not_asked
from carina.audits.result import GateResult, Objections
from carina.cases.model import Case

_FIRST: Final = ("detection",)
_VERDICT: Final = ("contour evaluation",)
_REVISION: Final = ("expansion", "contraction", "revision")
_ATTRIBUTES: Final = ("distribution", "location", "severity", "comparison")
_WITHOUT_ATTRIBUTES: Final = "cardiomegaly"
_PATHS: Final = {
    "LF": _FIRST,
    "RF": (*_FIRST, *_VERDICT, *_ATTRIBUTES),
    "RR": (*_FIRST, *_VERDICT, *_REVISION, *_ATTRIBUTES),
}
_KEYS: Final = {
    ("LF", "detection"): "no",
    ("RF", "detection"): "yes",
    ("RR", "detection"): "yes",
    ("RF", "contour evaluation"): "no",
    ("RR", "contour evaluation"): "yes",
}


@gate(
    "path-steps",
    title="Steps of the path",
    meaning="Every case has the steps of its path, and its first keys agree with the path.",
    protocols=("percept",),
    order=200,
)
class PathSteps(Gate[NoLimits]):
    """Steps and first keys by path."""

    def __init__(self, context: AuditContext, limits: NoLimits) -> None:
        super().__init__(context, limits)
        self._objections = Objections()
        self._n = 0

    def see(self, case: Case) -> None:
        if case.protocol != "percept":
            return
        self._n += 1
        if case.path not in _PATHS:
            self._objections.add(case.id, f"path is {case.path!r}, expected LF, RF or RR")
            return
        left_out = set(_ATTRIBUTES) if case.target == _WITHOUT_ATTRIBUTES else tasks_not_asked(case)
        wanted = [task for task in _PATHS[case.path] if task not in left_out or task not in _ATTRIBUTES]
        tasks = [step.task for step in case.steps]
        if tasks != wanted:
            self._objections.add(
                case.id, f"path {case.path} has the steps {', '.join(tasks)}; expected {', '.join(wanted)}"
            )
        for step in case.steps:
            right = _KEYS.get((case.path, step.task))
            words = [
                step.option(key).text.lower()
                for key in step.key.options
                if key in {o.id for o in step.options}
            ]
            if right is not None and words != [right]:
                self._objections.add(
                    case.id,
                    f"step {step.id!r} has the key {', '.join(words)!r} on path {case.path}, expected {right!r}",
                )

    def result(self) -> GateResult:
        return self.report_defects(
            self._n,
            self._objections,
            threshold="the steps of the path in order, except attributes that the case states as not asked; presence "
            "and contour verdict keyed as the path requires",
            good="Every case has the steps of its path, and its first keys agree with the path.",
            bad="Some cases do not follow their path, so stages and depth would be counted wrongly; rebuild them.",
            unit="percept cases",
        )
