"""The tables of explain runs, from their analysis: one module a subject."""

from carina.report.ground.page.grids.answers import answers
from carina.report.ground.page.grids.boxes import maps_less_boxes, with_boxes
from carina.report.ground.page.grids.breakdown import breakdowns, labels
from carina.report.ground.page.grids.checks import faithful, otherwise, peaks, stages
from carina.report.ground.page.grids.common import CONTROLS, OVER_FINDINGS, controls_of, fullest
from carina.report.ground.page.grids.compare import comparison, pretrained
from carina.report.ground.page.grids.headline import against, every_control, headline, macro
from carina.report.ground.page.grids.recognition import (
    calibrated,
    each_model,
    left_out,
    recognised,
    relations,
    thresholds,
)

__all__ = [
    "CONTROLS",
    "OVER_FINDINGS",
    "against",
    "answers",
    "breakdowns",
    "calibrated",
    "comparison",
    "controls_of",
    "each_model",
    "every_control",
    "faithful",
    "fullest",
    "headline",
    "labels",
    "left_out",
    "macro",
    "maps_less_boxes",
    "otherwise",
    "peaks",
    "pretrained",
    "recognised",
    "relations",
    "stages",
    "thresholds",
    "with_boxes",
]
