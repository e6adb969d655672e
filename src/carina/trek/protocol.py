"""Stages, headline measures and facts of trek."""

from typing import Final

from carina.cases.protocol import ProtocolInfo, Stage, declare_protocol
from carina.trek.build_report import TrekBuildReport
from carina.trek.facts import TrekCaseFacts, TrekStepFacts

TREK: Final = declare_protocol(
    ProtocolInfo(
        name="trek",
        title="Reading conversation in eight stages",
        stages=(
            Stage(
                number=1, title="Image quality", description="Views, technique and adequacy of the images."
            ),
            Stage(number=2, title="Findings", description="Which findings and devices are present."),
            Stage(
                number=3,
                title="Attributes and location",
                description="Appearance, severity, side and location of each finding.",
            ),
            Stage(number=4, title="Relations", description="How findings and devices relate to each other."),
            Stage(number=5, title="Comparison", description="What has changed since the prior study."),
            Stage(number=6, title="Expected course", description="What a follow-up study is likely to show."),
            Stage(number=7, title="Recommendations", description="What should be done next."),
            Stage(number=8, title="Report", description="Findings and impression as a report."),
        ),
        case_facts=TrekCaseFacts,
        step_facts=TrekStepFacts,
        build_report=TrekBuildReport,
        is_conversation=True,
    )
)
