from dataclasses import dataclass
from typing import Literal

from carina.studies.vocabulary import DEVICES, FINDINGS, SHORT_NAMES

Kind = Literal["finding", "device", "anatomy"]


@dataclass(frozen=True, slots=True)
class Term:
    name: str
    kind: Kind
    parents: tuple[str, ...] = ()
    synonyms: tuple[str, ...] = ()


def find_term(name: str, _kind: Kind | None = None) -> Term | None:
    n = " ".join(name.replace("_", " ").lower().split())
    n = SHORT_NAMES.get(n, n)
    n = {"infiltrate": "infiltration"}.get(n, n)
    if n in FINDINGS or n == "infiltration":
        return Term(n, "finding")
    if n in DEVICES:
        return Term(n, "device")
    return None
