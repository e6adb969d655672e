"""Break one thing in a sound set of conversations, and read the results of the gates."""

import msgspec
from tests.audits import gates

change = msgspec.structs.replace


def audited(cases, *, history=False, limits=None):
    """By all gates of trek; the one that learns takes a second, so it runs only where it is examined."""
    without = () if history else ("history-baseline",)
    return gates.audited(cases, gates.TREK, protocols=("trek",), without=without, limits=limits)


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
    """All objections of a gate as one text."""
    return " | ".join(f"{objection.id}: {objection.what}" for objection in result.gate(gate).worst)
