"""The steps of a percept examination as a published record asks them: ids, stages, tasks, and what leads where."""

from dataclasses import dataclass
from typing import Final, Literal

from carina.cases.model import Branch
from carina.percept.bundle import layout

Path = Literal["LF", "RF", "RR"]


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What is the same for a step in every case."""

    id: str
    stage: int
    task: str
    block: str
    """Its name in the record."""
    multiple: bool = False


DETECTION: Final = Kind(id="1", stage=1, task="detection", block=layout.DETECTION)
CONTOUR_EVAL: Final = Kind(id="2", stage=2, task="contour evaluation", block=layout.CONTOUR_EVAL)
EXPANSION: Final = Kind(id="3a", stage=3, task="expansion", block=layout.EXPANSION, multiple=True)
CONTRACTION: Final = Kind(id="3b", stage=3, task="contraction", block=layout.CONTRACTION, multiple=True)
REVISION: Final = Kind(id="3c", stage=3, task="revision", block=layout.REVISION_RESULT)
ATTRIBUTES: Final = (
    Kind(id="4a", stage=4, task="distribution", block=layout.DISTRIBUTION),
    Kind(id="4b", stage=4, task="location", block=layout.LOCATION, multiple=True),
    Kind(id="4c", stage=4, task="severity", block=layout.SEVERITY),
    Kind(id="4d", stage=4, task="comparison", block=layout.COMPARISON),
)


def reached_by(step: str, path: Path) -> tuple[Branch, ...]:
    """The answers that lead to a step on the path of its case."""
    if step == "1":
        return ()
    if step == "2":
        return (Branch(step="1", options=("yes",)),)
    return (Branch(step="2", options=("no" if path == "RF" else "yes",)),)


def depends_on(step: str, path: Path) -> tuple[str, ...]:
    """Earlier steps whose answers a step takes for granted: the four places where the published runner corrects."""
    return {
        "2": ("1",),
        "3a": ("2",),
        "3c": ("3a", "3b"),
        "4a": ("3c",) if path == "RR" else ("2",),
    }.get(step, ())
