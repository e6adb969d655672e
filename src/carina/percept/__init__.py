"""percept: the sequential examination of a lesion, from presence over contour to attributes, after CheXpercept."""

from carina.percept.analysis import analyse_lesion
from carina.percept.build import build_percept
from carina.percept.build_report import CellReport, PerceptBuildReport
from carina.percept.facts import PerceptCaseFacts, PerceptStepFacts
from carina.percept.lesions import LESIONS
from carina.percept.records import LesionAnalysis, Skipped
from carina.percept.rules import Rules

__all__ = [
    "LESIONS",
    "CellReport",
    "LesionAnalysis",
    "PerceptBuildReport",
    "PerceptCaseFacts",
    "PerceptStepFacts",
    "Rules",
    "Skipped",
    "analyse_lesion",
    "build_percept",
]
