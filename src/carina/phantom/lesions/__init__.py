"""Lesions: how each changes the thorax, and the shadow it adds to an image."""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from carina.phantom.lesions.airspace import project_consolidation, project_opacity
from carina.phantom.lesions.atelectasis import compute_volume_loss, project_atelectasis
from carina.phantom.lesions.edema import project_edema
from carina.phantom.lesions.fracture import project_fracture
from carina.phantom.lesions.nodule import project_nodule
from carina.phantom.lesions.pleura import project_effusion, project_pneumothorax
from carina.phantom.lesions.shadow import LesionContext, Shadow
from carina.phantom.plan import LesionPlan
from carina.phantom.thorax import State

__all__ = ["PROJECTORS", "LesionContext", "Shadow", "compute_cardiothoracic_ratio", "derive_state"]

Projector = Callable[[LesionPlan, LesionContext, np.random.Generator], Shadow]

# Cardiomegaly has no entry: it enlarges the heart itself, see `compute_cardiothoracic_ratio`.
PROJECTORS: Final[dict[str, Projector]] = {
    "atelectasis": project_atelectasis,
    "consolidation": project_consolidation,
    "edema": project_edema,
    "fracture": project_fracture,
    "lung opacity": project_opacity,
    "mass": project_nodule,
    "nodule": project_nodule,
    "pleural effusion": project_effusion,
    "pneumonia": project_consolidation,
    "pneumothorax": project_pneumothorax,
}


def compute_cardiothoracic_ratio(lesion: LesionPlan) -> float:
    """Cardiothoracic ratio of an enlarged heart: 0.51 to 0.66."""
    return round(0.51 + 0.15 * lesion.extent, 3)


def derive_state(lesions: Sequence[LesionPlan], *, inspiration: float, supine: bool) -> State:
    """Derive the effects of lesions on the thorax: heart size, mediastinal shift, raised domes, wide vessels."""
    ratio: float | None = None
    left_ventricular, shift, congestion = False, 0.0, 0.0
    raised = [0.0, 0.0]
    for lesion in lesions:
        towards = {"right": -1.0, "left": 1.0}.get(lesion.side, 0.0)
        if lesion.name == "cardiomegaly":
            ratio, left_ventricular = compute_cardiothoracic_ratio(lesion), lesion.form == "left ventricular"
        elif lesion.name == "edema":
            congestion = 0.4 + 0.6 * lesion.extent
        elif lesion.name == "atelectasis":
            lost = compute_volume_loss(lesion)
            shift += towards * 4.0 * max(lost - 0.07, 0.0)
            for side, on in enumerate(("right", "left")):
                if lesion.side in (on, "bilateral"):
                    raised[side] += 8.0 * lost
        elif lesion.name == "pneumothorax" and lesion.form == "tension":
            shift -= towards * (1.0 + 1.2 * lesion.extent)
            raised[0 if lesion.side == "right" else 1] -= 1.2
        elif lesion.name == "pleural effusion" and lesion.extent > 0.7:
            shift -= towards * 1.5 * (lesion.extent - 0.7)
    return State(
        inspiration=inspiration,
        supine=supine,
        cardiothoracic_ratio=ratio,
        left_ventricular=left_ventricular,
        shift=shift,
        raised=(raised[0], raised[1]),
        congestion=congestion,
    )
