"""The habitus of a patient: body proportions that are constant over the patient's studies."""

from dataclasses import dataclass

import numpy as np

from carina.phantom.plan import PatientPlan
from carina.store.seeding import rng


@dataclass(frozen=True)
class Habitus:
    """Body proportions of one patient."""

    scale: float
    """Body length against the mean adult."""
    width: float
    """Half of the inner thorax width, cm."""
    depth: float
    """Half of the inner thorax depth, cm."""
    fat: float
    """Subcutaneous fat, cm."""
    muscle: float
    breast: float
    """Semi-axis of the breasts, cm; 0 for none."""
    cardiothoracic_ratio: float
    asymmetry: float
    """How much lower the left dome is than the right, cm."""
    kyphosis: float
    bone: float
    """Mineral density against the mean."""
    aorta: float
    """Unfolding and width of the aorta against the mean."""


def sample_habitus(patient: PatientPlan, seed: int) -> Habitus:
    """Sample a patient's proportions, given sex, age, height and body mass index."""
    generator = rng(seed, patient.id, "build")
    scale = patient.height_cm / 172.0
    stout = (patient.bmi - 25.0) / 10.0
    age = patient.studies[0].age
    return Habitus(
        scale=scale,
        width=14.2 * scale**0.8 * (1 + 0.035 * stout) * generator.normal(1, 0.02),
        depth=9.3 * scale**0.6 * (1 + 0.08 * stout) * generator.normal(1, 0.03) * (1.05 if age > 70 else 1.0),
        fat=max(0.5, 1.4 + 1.3 * stout + generator.normal(0, 0.15)),
        muscle=(2.3 if patient.sex == "M" else 1.8) * generator.normal(1, 0.06),
        breast=(max(0.0, 5.0 + 1.4 * stout + generator.normal(0, 0.6)) if patient.sex == "F" else 0.0),
        cardiothoracic_ratio=patient.cardiothoracic_ratio,
        asymmetry=float(generator.uniform(0.8, 2.0)),
        kyphosis=float(generator.normal(0.5 if age < 65 else 1.4, 0.3)),
        bone=float(np.clip(generator.normal(1.0 - 0.004 * max(age - 50, 0), 0.07), 0.65, 1.2)),
        aorta=float(np.clip(generator.normal(1.0 + 0.006 * max(age - 50, 0), 0.06), 0.85, 1.4)),
    )
