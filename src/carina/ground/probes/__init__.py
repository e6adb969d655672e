"""Probes: is a finding there, and where? From studies with regions that experts drew."""

from carina.ground.probes.build import BuildReport, Built, TargetReport, build_ground
from carina.ground.probes.options import GroundOptions
from carina.ground.probes.probe import ABSENT, PHRASE, PRESENT, presence_question

__all__ = [
    "ABSENT",
    "PHRASE",
    "PRESENT",
    "BuildReport",
    "Built",
    "GroundOptions",
    "TargetReport",
    "build_ground",
    "presence_question",
]
