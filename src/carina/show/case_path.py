"""The path of a case: its stages in order, the steps of each, and the answers that lead from one to the next."""

from dataclasses import dataclass

from carina.cases.model import Branch, Case


@dataclass(frozen=True, kw_only=True)
class Station:
    """A step on the path."""

    id: str
    anchor: str
    task: str


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Steps of one stage in a row, and what has to be answered to get to them."""

    stage: int
    stations: tuple[Station, ...]
    leads: tuple[str, ...]
    """ "1: Yes", for every earlier answer that the first of them depends on and the stretch before does not."""


def path_of(case: Case) -> tuple[Stretch, ...]:
    """The path from the first step to the last."""
    stretches: list[Stretch] = []
    known: set[Branch] = set()
    for place, step in enumerate(case.steps):
        station = Station(id=step.id, anchor=f"step-{place + 1}", task=step.task)
        new = tuple(branch for branch in step.reached_by if branch not in known)
        known |= set(new)
        if stretches and stretches[-1].stage == step.stage and not new:
            last = stretches.pop()
            stretches.append(Stretch(stage=last.stage, stations=(*last.stations, station), leads=last.leads))
        else:
            leads = tuple(_condition(case, branch) for branch in new)
            stretches.append(Stretch(stage=step.stage, stations=(station,), leads=leads))
    return tuple(stretches)


def _condition(case: Case, branch: Branch) -> str:
    options = {option.id: option.text for option in case.step(branch.step).options}
    return f"{branch.step}: {' or '.join(options.get(option, option) for option in branch.options)}"
