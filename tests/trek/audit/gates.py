"""Breaking one thing of a sound set, and reading what the gates say of it: a record, a gate and its rows."""

import msgspec

from carina.cases.audit import Thresholds, audit
from carina.trek.audit import Limits, trek_gates
from carina.trek.audit.history import History

change = msgspec.structs.replace
COMMON = Thresholds(slack=0.05)


def audited(cases, *, history=False, **limits):
    """By all gates; the one that learns takes a second, so only where it is looked at."""
    gates = trek_gates(COMMON, limits=Limits(**limits))
    return audit(cases, [gate for gate in gates if history or not isinstance(gate, History)])


def objected(result, *, to=("fail", "warn")):
    return {gate.name for gate in result.gates if gate.status in to}


def row(result, gate, name):
    return next(row for row in result.gate(gate).rows if row.name == name)


def first(cases, wanted):
    return next(at for at, case in enumerate(cases) if wanted(case))


def referred(case):
    return case.reference_study is not None


def replaced(cases, at, case):
    return [*cases[:at], case, *cases[at + 1 :]]


def one_step(cases, task, make):
    """All cases, but the first step of this task made anew; with the case and the step."""
    at = first(cases, lambda c: any(s.task == task for s in c.steps))
    case = cases[at]
    step = next(s for s in case.steps if s.task == task)
    steps = tuple(make(s) if s is step else s for s in case.steps)
    return replaced(cases, at, change(case, steps=steps)), case, step


def every_step(cases, make):
    return [change(case, steps=tuple(make(case, step) for step in case.steps)) for case in cases]


def with_key(step, **changes):
    return change(step, key=change(step.key, **changes))


def told(result, gate):
    return " | ".join(f"{found.id}: {found.what}" for found in result.gate(gate).worst)
