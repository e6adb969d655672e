"""Stages, headline measures and facts of percept."""

from typing import Final

from carina.cases.protocol import BY_STAGE, CASE_SUCCESS, ProtocolInfo, Stage, declare_protocol
from carina.percept.build_report import PerceptBuildReport
from carina.percept.facts import PerceptCaseFacts, PerceptStepFacts

PERCEPT: Final = declare_protocol(
    ProtocolInfo(
        name="percept",
        title="Sequential examination of a lesion",
        stages=(
            Stage(
                number=1,
                title="Detection",
                description="Is the lesion present?",
                positive_paths=("RF", "RR"),
                negative_paths=("LF",),
            ),
            Stage(
                number=2,
                title="Contour evaluation",
                description="Does the proposed contour need a major revision?",
                positive_paths=("RR",),
                negative_paths=("RF",),
            ),
            Stage(
                number=3,
                title="Contour revision",
                description="Where must it be expanded or contracted, and which mask is right?",
            ),
            Stage(
                number=4,
                title="Attribute extraction",
                description="Distribution, location, severity and comparison of the sides.",
            ),
        ),
        case_facts=PerceptCaseFacts,
        step_facts=PerceptStepFacts,
        build_report=PerceptBuildReport,
        headline=(CASE_SUCCESS, *BY_STAGE),
        leading=CASE_SUCCESS,
        headline_note="Detection and contour evaluation are balanced over opposing paths; a stage is right when all "
        "its steps are; case success is the mean over targets of cases without an error.",
        has_stage_outcomes=True,
    )
)
