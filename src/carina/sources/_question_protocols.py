"""Protocols of imported questions: single questions, and the chains of CXReasonBench."""

from typing import Final

from carina.cases.protocol import BY_STAGE, CASE_SUCCESS, ProtocolInfo, Stage, declare_protocol

QUESTIONS: Final = declare_protocol(
    ProtocolInfo(
        name="questions",
        title="Published questions",
        stages=(
            Stage(
                number=1, title="Closed questions", description="Yes or no, or one or more of given options."
            ),
            Stage(number=2, title="Open questions", description="An answer in words."),
        ),
    )
)
CLOSED, OPEN = 1, 2
"""Stages of single questions."""

CXREASONBENCH: Final = declare_protocol(
    ProtocolInfo(
        name="cxreasonbench",
        title="Chains of diagnostic reasoning",
        stages=(
            Stage(number=1, title="First decision", description="Is the finding present?"),
            Stage(number=2, title="Criterion", description="By which criterion was that decided?"),
            Stage(
                number=3,
                title="Refined criterion",
                description="Is the stated form of the criterion adopted?",
            ),
            Stage(number=4, title="Anatomy", description="Which drawn structures does the criterion need?"),
            Stage(number=5, title="Measurement", description="What does the measurement give?"),
            Stage(
                number=6, title="Final decision", description="Is the finding present, by that measurement?"
            ),
        ),
        headline=(CASE_SUCCESS, *BY_STAGE),
    )
)
