"""Coded concepts and labels of DICOM objects by Carina's names.

Labels and the meanings of codes are free text, in which anything may stand. They pass only where they are the name of a
finding, a device or a structure that Carina knows, and what passes is Carina's own word.
"""

from typing import Final, Literal, NamedTuple

from carina.sources.dicom.attributes import Attributes, Tag
from carina.studies.terms import find_term

ANATOMY: Final = ("right lung", "left lung", "heart", "mediastinum", "trachea", "aorta", "spine")
"""Structures that the phantom writes as segments."""
CODES: Final = {
    "46621007": "atelectasis",
    "8186001": "cardiomegaly",
    "95436008": "consolidation",
    "19242006": "edema",
    "33737001": "fracture",
    "309529002": "mass",
    "427359005": "nodule",
    "60046008": "pleural effusion",
    "233604007": "pneumonia",
    "36118008": "pneumothorax",
    "3341006": "right lung",
    "44029006": "left lung",
    "80891009": "heart",
}
"""Concepts of SNOMED CT by Carina's name."""


_SNOMED_CT: Final = "SCT"
_SCHEMES: Final = {"SNM3": "SRT", "99SDM": "SRT"}
"""Designators by which objects name a coding scheme that has another one: SNOMED RT."""


class Code(NamedTuple):
    """A code and the scheme that it belongs to: the same value means different things in different schemes."""

    scheme: str
    value: str


class Concept(NamedTuple):
    """A finding, a device or a structure."""

    kind: Literal["finding", "device", "anatomy"]
    name: str


def find_label(label: str) -> Concept | None:
    """What a label names; None where it is not a name that Carina knows."""
    term = find_term(label)
    return None if term is None else Concept(term.kind, term.name)


def read_code(item: Attributes) -> Code:
    """The code of an item of a code sequence; empty where it states none."""
    scheme = item.text(Tag.CODING_SCHEME)
    return Code(_SCHEMES.get(scheme, scheme), item.text(Tag.CODE_VALUE))


def find_code(item: Attributes) -> Concept | None:
    """What an item of a code sequence names: by its code, else by its meaning."""
    code = read_code(item)
    name = CODES.get(code.value) if code.scheme == _SNOMED_CT else None
    return find_label(name or item.text(Tag.CODE_MEANING))
