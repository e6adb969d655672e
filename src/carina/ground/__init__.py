"""ground: positive and negative probes of findings and their regions, from studies with regions that readers drew."""

from carina.ground.build import build_ground
from carina.ground.build_report import GroundBuildReport, TargetReport
from carina.ground.facts import GroundCaseFacts, GroundStepFacts
from carina.ground.probe import ABSENT, PRESENT, presence_question

__all__ = [
    "ABSENT",
    "PRESENT",
    "GroundBuildReport",
    "GroundCaseFacts",
    "GroundStepFacts",
    "TargetReport",
    "build_ground",
    "presence_question",
]
