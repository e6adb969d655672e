"""What a protocol declares once about itself: its name, its stages, its headline measures and its facts.

Reports, audits, pages and the command line read it from here. A protocol is declared in its own package
(`carina.percept.protocol`, `carina.trek.protocol`, `carina.ground.protocol`; those of imported questions in
`carina.sources._question_protocols`), or in another installed package through the entry-point group `carina.protocols`.
"""

from dataclasses import dataclass
from typing import Final, Literal

from carina.cases.build_report import BuildReport
from carina.cases.facts import FactRecord
from carina.store.registry import Registry


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One stage of an examination."""

    number: int
    title: str
    """Up to four words, as headings and tables show it: "Contour evaluation"."""
    description: str = ""
    """What is asked, in a sentence."""
    positive_paths: tuple[str, ...] = ()
    """Where the right answer decides the path: the paths of cases whose right answer is positive."""
    negative_paths: tuple[str, ...] = ()
    """The paths of cases whose right answer is negative."""
    reader_score: str = ""
    """The score of `ReaderFacts` that says of a reader what accuracy at this stage says of a model; empty for none."""

    @property
    def is_opposed(self) -> bool:
        """Whether accuracy is balanced over positive and negative paths."""
        return bool(self.positive_paths and self.negative_paths)


@dataclass(frozen=True, kw_only=True)
class HeadlineMeasure:
    """A measure that the report shows first."""

    level: Literal["case", "stage", "macro", "micro"]
    """What is averaged: whole cases, the steps of a stage (one measure for each stage), stages, or all steps."""
    metric: str
    """Name of the measure in tables: "mean over targets", "accuracy"."""
    title: str = ""
    """Heading of the column; empty for stages, which are headed by their own titles."""


STAGE_ACCURACY: Final = HeadlineMeasure(level="stage", metric="accuracy")
"""Accuracy of each stage; the report gives balanced accuracy for a stage that has positive and negative paths."""
MEAN_OVER_STAGES: Final = HeadlineMeasure(level="macro", metric="mean over stages", title="Mean over stages")
ALL_STEPS: Final = HeadlineMeasure(level="micro", metric="accuracy", title="All steps")
CASE_SUCCESS: Final = HeadlineMeasure(level="case", metric="mean over targets", title="Case success")
"""Share of cases whose every step is right, as a mean over lesions."""
BY_STAGE: Final = (STAGE_ACCURACY, MEAN_OVER_STAGES, ALL_STEPS)
"""Headline of a protocol that declares no other."""


@dataclass(frozen=True, kw_only=True)
class ProtocolInfo:
    """What is known of all cases of a protocol."""

    name: str
    title: str
    stages: tuple[Stage, ...]
    case_facts: type[FactRecord] = FactRecord
    """What `Case.facts` of its cases hold."""
    step_facts: type[FactRecord] = FactRecord
    """What `Step.facts` of its steps hold."""
    build_report: type[BuildReport] = BuildReport
    """What `build.json` beside its benchmarks holds."""
    headline: tuple[HeadlineMeasure, ...] = BY_STAGE
    """Measures that the report shows first, in this order."""
    leading: HeadlineMeasure = ALL_STEPS
    """The one of them that summarises a run."""
    headline_note: str = "Questions that have a right answer; free text has a table of its own."
    """What a reader of the headline table has to know about these measures."""
    has_stage_outcomes: bool = False
    """Whether a stage counts once and is right when all its steps are; else each of its steps counts."""
    is_conversation: bool = False
    """Whether each case is one thread of questions about plain images, however many questions it has."""

    def is_opposed(self, number: int) -> bool:
        """Whether accuracy of a stage is balanced over positive and negative paths."""
        return any(stage.is_opposed for stage in self.stages if stage.number == number)

    def stage_title(self, number: int) -> str:
        """The title of a stage; "Stage N" for a number that the protocol does not declare."""
        return next((stage.title for stage in self.stages if stage.number == number), f"Stage {number}")


PROTOCOLS: Final[Registry[ProtocolInfo]] = Registry(
    "protocol",
    group="carina.protocols",
    modules=(
        "carina.percept.protocol",
        "carina.trek.protocol",
        "carina.ground.protocol",
        "carina.sources._question_protocols",
    ),
    entry_type=ProtocolInfo,
)


def declare_protocol(info: ProtocolInfo) -> ProtocolInfo:
    """Register a protocol under its name, and return it."""
    PROTOCOLS.register(info.name, info)
    return info


def find_protocol(name: str) -> ProtocolInfo:
    """What a protocol declares; the defaults for one that is not declared.

    Example:
        >>> [measure.title or measure.level for measure in find_protocol("percept").headline]
        ['Case success', 'stage', 'Mean over stages', 'All steps']
        >>> find_protocol("imported").leading.title
        'All steps'
    """
    return PROTOCOLS[name] if name in PROTOCOLS else ProtocolInfo(name=name, title=name, stages=())


def stage_title(protocol: str, stage: int) -> str:
    """The title of a stage, also of a protocol that is not declared.

    Example:
        >>> stage_title("percept", 2)
        'Contour evaluation'
        >>> stage_title("imported", 2)
        'Stage 2'
    """
    return find_protocol(protocol).stage_title(stage)
