"""trek: conversations that follow a radiologist's reading through eight stages, after CXRTrek."""

from carina.trek.build import build_trek
from carina.trek.build_report import TrekBuildReport
from carina.trek.facts import TrekCaseFacts, TrekStepFacts
from carina.trek.options import Quotas

__all__ = ["Quotas", "TrekBuildReport", "TrekCaseFacts", "TrekStepFacts", "build_trek"]
