"""What a user may choose about a phantom study set; the defaults describe a mixed hospital clinic."""

import msgspec


class Mix(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How often things occur. All are shares between 0 and 1."""

    normal: float = 0.35
    """Studies without acute finding."""
    findings: dict[str, float] = msgspec.field(
        default_factory=lambda: {
            "pleural effusion": 0.22,
            "atelectasis": 0.20,
            "cardiomegaly": 0.20,
            "lung opacity": 0.16,
            "consolidation": 0.12,
            "pneumonia": 0.14,
            "edema": 0.14,
            "nodule": 0.08,
            "mass": 0.05,
            "pneumothorax": 0.10,
            "fracture": 0.07,
        }
    )
    """Relative weights of the first finding of an abnormal study, before clinical co-occurrence adds others."""
    pa_with_lateral: float = 0.45
    pa_alone: float = 0.15
    """The rest are AP portable images."""
    with_prior: float = 0.65
    """Patients with more than one study; half of them have more than two."""
    quality_defect: float = 0.18
    """Images with at least one technical defect."""
    hedged: float = 0.13
    """Findings that the report hedges; their certainty is `uncertain`."""


class PhantomOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that decides the bytes of a phantom set, beside the seed and the number of studies."""

    size: int = 512
    """Side of the square images, in pixels."""
    bits: int = 8
    """8, or 12 stored in 16-bit PNG."""
    monochrome1: bool = False
    mix: Mix = Mix()
    wording: str = "build"
    """Wording set of the reports: "build", or "held-out" for testing report parsers."""
