"""The fixed list of observations of MedKLIP and MAVL, each with its description. Needs no torch."""

from collections.abc import Mapping
from typing import Final

from carina.models.clip.model_folder import OBSERVATIONS, ModelFolder
from carina.store.errors import CarinaError

_MISSPELT: Final = {"eumonia": "pneumonia"}
"""Misspelt names in MedKLIP's file, which MedKLIP reads by order."""
_OBSERVATION_NAMES: Final = {
    "airspace opacity": "opacity",
    "bone fracture": "fracture",
    "enlarged cardiomediastinum": "enlarge",
    "enlarged heart": "cardiomegaly",
    # According to the authors it is rare in their reports, so it belongs to the rare observations.
    "fibrosis": "tail_abnorm_obs",
    "infiltration": "infiltrate",
    "lung lesion": "lesion",
    "lung mass": "mass",
    "lung nodule": "nodule",
    "lung opacity": "opacity",
    "no finding": "normal",
    "other lesion": "lesion",
    "pleural effusion": "effusion",
    "pleural thickening": "thicken",
    "pulmonary consolidation": "consolidation",
    "pulmonary edema": "edema",
    "pulmonary fibrosis": "tail_abnorm_obs",
    "rib fracture": "fracture",
    "support devices": "device",
}
"""Observation for each name that data sets use."""


def read_descriptions(folder: ModelFolder) -> Mapping[str, str]:
    """Descriptions by observation, in the order of the file."""
    found = folder.read(OBSERVATIONS)
    if not found:
        raise CarinaError(
            f"{folder.path / OBSERVATIONS}: missing; copy it from the code of MedKLIP or MAVL, "
            "with which it is published"
        )
    for name, text in found.items():
        if not isinstance(text, str) or not text:
            raise CarinaError(f"{folder.path / OBSERVATIONS}: {name!r} is {text!r}; expected its description")
    return {_MISSPELT.get(name, name): text for name, text in found.items()}


def find_observation(finding: str, known: Mapping[str, object]) -> str:
    """The model's name for a finding."""
    plain = " ".join(finding.lower().replace("_", " ").split())
    for name in (finding, plain, _OBSERVATION_NAMES.get(plain, "")):
        if name in known:
            return name
    raise CarinaError(
        f"finding {finding!r}: the model has no prompt for this finding; it knows {', '.join(known)}"
    )
