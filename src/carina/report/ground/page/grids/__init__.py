"""The tables of explain runs, from their analysis: one module a subject."""

from carina.report.ground.page.grids.answers import answers
from carina.report.ground.page.grids.boxes import maps_less_boxes, with_boxes
from carina.report.ground.page.grids.breakdown import breakdowns, labels
from carina.report.ground.page.grids.common import CONTROLS, controls_of, fullest
from carina.report.ground.page.grids.compare import comparison, pretrained
from carina.report.ground.page.grids.headline import against, every_control, headline, macro
from carina.report.ground.page.grids.recognition import (
    calibrated,
    each_model,
    recognised,
    relations,
    thresholds,
)

__all__ = [
    "CONTROLS",
    "against",
    "answers",
    "breakdowns",
    "calibrated",
    "comparison",
    "controls_of",
    "each_model",
    "every_control",
    "fullest",
    "headline",
    "labels",
    "macro",
    "maps_less_boxes",
    "pretrained",
    "recognised",
    "relations",
    "thresholds",
    "with_boxes",
]
