"""Stages, headline measures and facts of ground."""

from typing import Final

from carina.cases.protocol import ProtocolInfo, Stage, declare_protocol
from carina.ground.build_report import GroundBuildReport
from carina.ground.facts import GroundCaseFacts, GroundStepFacts

GROUND: Final = declare_protocol(
    ProtocolInfo(
        name="ground",
        title="Presence and location of a finding",
        stages=(
            Stage(number=1, title="Presence", description="Is the finding present?", reader_score="presence"),
            Stage(number=2, title="Localisation", description="Where is it?", reader_score="localised"),
        ),
        case_facts=GroundCaseFacts,
        step_facts=GroundStepFacts,
        build_report=GroundBuildReport,
    )
)
