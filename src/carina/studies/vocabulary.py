"""Names that every part of Carina shares: findings, devices, anatomy, and the words that describe them.

A source may carry findings beyond these; the names here are the ones that the phantom makes and that the
protocols know by name.
"""

from typing import Final, Literal, get_args

Side = Literal["right", "left", "bilateral", "midline"]
"""Patient's side. In a frontal image the patient's right is on the image's left."""

BodySide = Literal["right", "left"]
"""One side of the patient."""

View = Literal["PA", "AP", "lateral", "unknown"]
Certainty = Literal["present", "absent", "uncertain"]
Severity = Literal["mild", "moderate", "severe"]
Distribution = Literal["focal", "multifocal", "diffuse"]
Trend = Literal["new", "worse", "improved", "unchanged", "resolved"]
Split = Literal["train", "val", "test"]
Sex = Literal["F", "M", "O"]
Drawn = Literal["mask", "polygon", "box"]
"""How an annotator marked a region; a box is looser than a mask, and a score must know which it had."""

Scope = Literal["every", "listed", "unknown"]
"""What was looked for: whatever shows, the names of a closed list, or nobody says."""

Section = Literal["indication", "comparison", "technique", "findings", "impression", "recommendation"]
SECTIONS: Final[tuple[Section, ...]] = get_args(Section)

FINDINGS: Final = (
    "atelectasis",
    "cardiomegaly",
    "consolidation",
    "edema",
    "fracture",
    "lung opacity",
    "mass",
    "nodule",
    "pleural effusion",
    "pneumonia",
    "pneumothorax",
)
ABNORMALITY: Final = "abnormality"
"""Name of the finding that stands for any: absent in an image that its source calls normal."""
ANY_DEVICE: Final = "device"
"""Name of the device that stands for any."""
SHORT_NAMES: Final = {"effusion": "pleural effusion", "opacity": "lung opacity"}
"""Findings that also have a shorter name, as CheXpercept calls them."""

DEVICES: Final = (
    "endotracheal tube",
    "nasogastric tube",
    "central venous line",
    "pacemaker",
    "chest tube",
)

SIDES: Final = ("right", "left")
ZONES: Final = tuple(f"{side} {level} zone" for side in SIDES for level in ("upper", "mid", "lower"))
LUNG_PARTS: Final = tuple(
    f"{side} {part} lung" for side in SIDES for part in ("medial", "lateral", "peripheral")
)
COSTOPHRENIC_ANGLES: Final = tuple(f"{side} costophrenic angle" for side in SIDES)

RelationKind = Literal["causes", "accompanies", "suggests"]
RELATIONS: Final[tuple[RelationKind, ...]] = get_args(RelationKind)
