"""Lesions: what each does to the state of the thorax, and the shadow it casts on an image."""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from carina.phantom.lesions.airspace import consolidation, opacity
from carina.phantom.lesions.atelectasis import atelectasis, volume_lost
from carina.phantom.lesions.edema import edema
from carina.phantom.lesions.fracture import fracture
from carina.phantom.lesions.nodule import nodule
from carina.phantom.lesions.pleura import effusion, pneumothorax
from carina.phantom.lesions.shadow import Scene, Shadow
from carina.phantom.plan import LesionPlan
from carina.phantom.thorax import State

__all__ = ["CASTERS", "Scene", "Shadow", "cardiothoracic_ratio", "state_with"]

Caster = Callable[[LesionPlan, Scene, np.random.Generator], Shadow]

# Cardiomegaly is not here: it is the heart itself, see `cardiothoracic_ratio`.
CASTERS: Final[dict[str, Caster]] = {
    "atelectasis": atelectasis,
    "consolidation": consolidation,
    "edema": edema,
    "fracture": fracture,
    "lung opacity": opacity,
    "mass": nodule,
    "nodule": nodule,
    "pleural effusion": effusion,
    "pneumonia": consolidation,
    "pneumothorax": pneumothorax,
}


def cardiothoracic_ratio(lesion: LesionPlan) -> float:
    """Of an enlarged heart: just above 0.50 to 0.66."""
    return round(0.51 + 0.15 * lesion.extent, 3)


def state_with(lesions: Sequence[LesionPlan], *, inspiration: float, supine: bool) -> State:
    """How lesions move what is around them: heart size, shifted mediastinum, raised domes, wide vessels."""
    ratio: float | None = None
    left_ventricular, shift, congestion = False, 0.0, 0.0
    raised = [0.0, 0.0]
    for lesion in lesions:
        towards = {"right": -1.0, "left": 1.0}.get(lesion.side, 0.0)
        if lesion.name == "cardiomegaly":
            ratio, left_ventricular = cardiothoracic_ratio(lesion), lesion.form == "left ventricular"
        elif lesion.name == "edema":
            congestion = 0.4 + 0.6 * lesion.extent
        elif lesion.name == "atelectasis":
            lost = volume_lost(lesion)
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
