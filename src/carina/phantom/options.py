"""The options of a phantom study set; the defaults describe a mixed hospital clinic.

Options are checked when they are created, so that the code that uses them need not.
"""

import math
from typing import Final, Literal, get_args

import msgspec

from carina.store.errors import CarinaError
from carina.studies.vocabulary import DEVICES, FINDINGS

BITS: Final = (8, 12)
Wording = Literal["build", "held-out"]
WORDINGS: Final = get_args(Wording)
SMALLEST, LARGEST = 32, 4096
MOST_CONSPICUOUS = 2.0
ROUNDING = 1e-9
"""Tolerance for the rounding error of two shares that sum to 1."""


def _check_share(field: str, value: float) -> None:
    if not 0.0 <= value <= 1.0:
        raise CarinaError(f"{field} must be between 0 and 1, not {value!r}")


def _check_name(field: str, name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        raise CarinaError(f"{field} has {name!r}, which is not one of {_join_values(known)}")


def _join_values(values: tuple[object, ...]) -> str:
    return ", ".join(str(value) for value in values)


class Mix(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How often things occur. All are shares between 0 and 1, except the weights of the findings."""

    normal: float = 0.35
    """Studies without any finding; devices do not count as findings."""
    findings: dict[str, float] = msgspec.field(
        default_factory=lambda: {
            "lung opacity": 0.41,
            "pneumonia": 0.33,
            "consolidation": 0.35,
            "atelectasis": 0.30,
            "edema": 0.22,
            "cardiomegaly": 0.11,
            "pleural effusion": 0.04,
            "pneumothorax": 0.05,
            "nodule": 0.03,
            "fracture": 0.03,
            "mass": 0.02,
        }
    )
    """Relative weights of the first finding of an abnormal study, before clinical co-occurrence adds others.

    A finding that is left out or weighs 0 never occurs, not even by co-occurrence.
    """
    pa_with_lateral: float = 0.45
    pa_alone: float = 0.15
    """The rest are AP portable images."""
    with_prior: float = 0.65
    """Patients with more than one study; half of them have more than two."""
    quality_defect: float = 0.18
    """Images with at least one technical defect."""
    hedged: float = 0.13
    """Findings that the report hedges; their certainty is `uncertain`.

    Only small or faint findings are uncertain, obvious ones never. So the share
    cannot exceed about 0.59 with the default findings; above that, every finding that may be uncertain is.
    """
    devices: dict[str, float] = msgspec.field(
        default_factory=lambda: {
            "endotracheal tube": 0.22,
            "nasogastric tube": 0.26,
            "central venous line": 0.34,
            "pacemaker": 0.10,
            "chest tube": 0.45,
        }
    )
    """Tubes and line: share of AP studies. Pacemaker: share of patients of 60 and older. Chest tube: probability
    that one is put in for a pneumothorax in an AP study; for an effusion, a fifth of that.

    A device that is left out never occurs.
    """
    malpositioned: float = 0.15
    """Devices whose tip is not where it should be."""

    def __post_init__(self) -> None:
        for name in ("normal", "pa_with_lateral", "pa_alone", "with_prior", "quality_defect", "hedged"):
            _check_share(name, getattr(self, name))
        _check_share("malpositioned", self.malpositioned)
        if self.pa_with_lateral + self.pa_alone > 1.0 + ROUNDING:
            raise CarinaError(
                "pa_with_lateral and pa_alone are shares of all studies and must not sum to more "
                f"than 1, but sum to {self.pa_with_lateral + self.pa_alone:g}"
            )
        self._check_findings()
        for name, share in self.devices.items():
            _check_name("devices", name, DEVICES)
            _check_share(f"devices[{name!r}]", share)

    def _check_findings(self) -> None:
        for name, weight in self.findings.items():
            _check_name("findings", name, FINDINGS)
            if not (math.isfinite(weight) and weight >= 0.0):
                raise CarinaError(f"findings[{name!r}] must be a weight of 0 or more, not {weight!r}")
        if self.normal < 1.0 and not any(self.findings.values()):
            raise CarinaError("findings needs at least one weight above 0 unless normal is 1")


class PhantomOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All options that decide the bytes of a phantom set, apart from the seed and the number of studies."""

    size: int = 512
    """Side of the square images, in pixels."""
    bits: int = 8
    """8, or 12 stored in 16-bit PNG."""
    monochrome1: bool = False
    conspicuity: float = 1.0
    """Contrast of every lesion against the default: 0.5 halves it and moves nothing, so that the same cases can
    be made from obvious to subtle. An enlarged heart does not change."""
    mix: Mix = Mix()
    wording: Wording = "build"
    """Wording set of the reports: "build", or "held-out" for testing report parsers."""

    def __post_init__(self) -> None:
        if not SMALLEST <= self.size <= LARGEST:
            raise CarinaError(f"size must be {SMALLEST} to {LARGEST} pixels, not {self.size!r}")
        if not 0.0 < self.conspicuity <= MOST_CONSPICUOUS:
            raise CarinaError(
                f"conspicuity must be above 0 and at most {MOST_CONSPICUOUS:g}, not {self.conspicuity!r}"
            )
        if self.bits not in BITS:
            raise CarinaError(f"bits must be one of {_join_values(BITS)}, not {self.bits!r}")
        if self.wording not in WORDINGS:
            raise CarinaError(f"wording must be one of {_join_values(WORDINGS)}, not {self.wording!r}")
