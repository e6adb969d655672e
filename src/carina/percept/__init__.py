"""percept: the sequential examination of a lesion, from presence over contour to attributes, after CheXpercept."""

from carina.percept.build import BuildOptions, BuildReport, Built, CellReport, build_percept
from carina.percept.examine import examine
from carina.percept.examined import Examined, Skipped
from carina.percept.lesions import LESIONS
from carina.percept.rules import Rules

__all__ = [
    "LESIONS",
    "BuildOptions",
    "BuildReport",
    "Built",
    "CellReport",
    "Examined",
    "Rules",
    "Skipped",
    "build_percept",
    "examine",
]
