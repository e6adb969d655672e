"""The fixed list of observations that MedKLIP and MAVL know, each with its description. Needs no torch."""

from collections.abc import Mapping
from typing import Final

from carina.models.clip.model_folder import OBSERVATIONS, ModelFolder
from carina.store.errors import CarinaError

_MISSPELT: Final = {"eumonia": "pneumonia"}
"""In MedKLIP's own file, which it reads by order."""
_CALLED: Final = {
    "airspace opacity": "opacity",
    "bone fracture": "fracture",
    "enlarged cardiomediastinum": "enlarge",
    "enlarged heart": "cardiomegaly",
    # Its authors: seldom in their reports, so it went to the rare ones.
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
"""What data sets call findings."""


def described(folder: ModelFolder) -> Mapping[str, str]:
    """Descriptions by observation, in the order of the file."""
    found = folder.read(OBSERVATIONS)
    if not found:
        raise CarinaError(
            f"{folder.path / OBSERVATIONS}: missing; it is published with the code of MedKLIP and of MAVL, and says "
            "what is asked of an image"
        )
    for name, text in found.items():
        if not isinstance(text, str) or not text:
            raise CarinaError(f"{folder.path / OBSERVATIONS}: {name!r} is {text!r}; expected its description")
    return {_MISSPELT.get(name, name): text for name, text in found.items()}


def named(finding: str, known: Mapping[str, object]) -> str:
    """What the model calls a finding."""
    plain = " ".join(finding.lower().replace("_", " ").split())
    for name in (finding, plain, _CALLED.get(plain, "")):
        if name in known:
            return name
    raise CarinaError(
        f"finding {finding!r}: the model has no prompt for this finding; it knows {', '.join(known)}"
    )
