"""Projections by the many names and spellings that they have."""

import re
from typing import Final

from carina.run.score.denial import spelled_out

_NAMES: Final = {
    "PA": r"\bp[.-]?a\b|\bpostero[- ]?anterior|\bposterior[- ](?:to[- ])?anterior|\bback[- ]to[- ]front",
    "AP": r"\ba[.-]?p\b|\bantero[- ]?posterior|\banterior[- ](?:to[- ])?posterior|\bfront[- ]to[- ]back",
    "lateral": (
        r"\blaterals?\b|\blat\b|\bll\b|\blatero[- ]?lateral|\bin profile\b"
        r"|\b(?:side|profile)[- ](?:view|projection|image|radiograph|film|x-?ray)"
    ),
    "frontal": r"\bfrontals?\b",
}
_VIEWS: Final = {name: re.compile(pattern) for name, pattern in _NAMES.items()}
_DENIED: Final = re.compile(
    r"\b(?:not(?! only\b)|no|nor|without|rather than|instead of)\s+(?:an?\s+|the\s+|any\s+)?(?:frontal\s+)?"
    rf"(?:{'|'.join(_NAMES.values())})"
)
_LATERAL_OF_WHAT: Final = re.compile(
    r"\blateral (?!(?:chest |thora\w+ )?(?:views?|projections?|films?|radio\w+|images?|x-?rays?|exposures?|ones?)\b"
    r"|(?:chest|and|or|plus|with|but|as|is|are|was|were)\b)(?=[a-z])"
)
"""Said beside a frontal view, "lateral" may tell where: "the lateral border"."""
_ASKS_DIRECTION: Final = re.compile(rf"{_NAMES['PA']}|{_NAMES['AP']}|\bprojection|\bbeam")


def views_of(text: str) -> frozenset[str]:
    """The projections that a text names: PA, AP, lateral; "frontal" where it does not say which way."""
    said = _DENIED.sub(" ", " ".join(spelled_out(text).lower().split()))
    found = {name for name, pattern in _VIEWS.items() if pattern.search(said)}
    if len(found) > 1 and not _VIEWS["lateral"].search(_LATERAL_OF_WHAT.sub(" ", said)):
        found.discard("lateral")
    if found & {"PA", "AP"}:
        found.discard("frontal")
    return frozenset(found)


def same_views(right: frozenset[str], said: frozenset[str], question: str) -> bool:
    """Whether an answer names just the right projections.

    "Frontal" is enough where the key says no more, or where the question asks for frontal or lateral alone.
    """
    asked = question.lower()
    coarse = "frontal" in right or (
        _VIEWS["frontal"].search(asked) is not None and _ASKS_DIRECTION.search(asked) is None
    )
    return (_coarse(right) == _coarse(said) and not _contradict(right, said)) if coarse else right == said


def _coarse(views: frozenset[str]) -> frozenset[str]:
    return frozenset("lateral" if view == "lateral" else "frontal" for view in views)


def _contradict(right: frozenset[str], said: frozenset[str]) -> bool:
    """Whether an answer says which way and is wrong in it."""
    told = said & {"PA", "AP"}
    return bool(told) and "frontal" not in right and told != right & {"PA", "AP"}
