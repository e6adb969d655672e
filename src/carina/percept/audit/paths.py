"""Gate: does each case ask what its path asks, and are its first keys those of its path?"""

from typing import Final

from carina.cases.audit import GateResult, Objections, defects
from carina.cases.model import Case
from carina.percept.audit.limits import Limits

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


class Paths:
    """Steps and first keys by path."""

    def __init__(self, limits: Limits) -> None:
        self._objections = Objections(limits.common.worst)
        self._n = 0

    def see(self, case: Case) -> None:
        if case.protocol != "percept":
            return
        self._n += 1
        if case.path not in _PATHS:
            self._objections.add(case.id, f"path is {case.path!r}, expected LF, RF or RR")
            return
        wanted = [t for t in _PATHS[case.path] if case.target != _WITHOUT_ATTRIBUTES or t not in _ATTRIBUTES]
        asked = [step.task for step in case.steps]
        if asked != wanted:
            self._objections.add(
                case.id, f"path {case.path} asks {', '.join(asked)}; expected {', '.join(wanted)}"
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
                    f"step {step.id!r} is keyed {', '.join(words)!r} on path {case.path}, expected {right!r}",
                )

    def result(self) -> GateResult:
        return defects(
            "paths",
            self._n,
            self._objections,
            threshold="the steps of the path in order; presence and verdict keyed as the path says",
            good="Every case asks the questions of its path, and its path is what its first keys say.",
            bad="Some cases do not follow their path, so stages and depth would be counted wrongly; build them anew.",
            unit="percept cases",
        )
