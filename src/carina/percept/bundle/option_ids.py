"""Ids of options by what they say, so that a question scores the same whatever the order of its options.

Wording that is not known gets ids by place: it can still be asked and scored.
"""

import re
from collections.abc import Callable, Sequence

from carina.percept.bundle import layout


def yes_no(texts: Sequence[str]) -> tuple[str, ...] | None:
    """Ids of "Yes" and "No" in the order of the texts; None for anything else."""
    ids = tuple(text.strip().lower() for text in texts)
    return ids if sorted(ids) == ["no", "yes"] else None


def attribute(block: str, texts: Sequence[str]) -> tuple[str, ...]:
    """Ids of the options of one of the attribute questions."""
    ids = tuple(_READERS[block](" ".join(text.lower().split())) for text in texts)
    if all(ids) and len(set(ids)) == len(ids):
        return ids
    return tuple(f"o{number}" for number in range(1, len(texts) + 1))


def _zones(text: str) -> str:
    found = re.fullmatch(r"(\d) zones?( or more)?", text)
    return f"{found[1]}{'+' if found[2] else ''}" if found else ""


def _region(text: str) -> str:
    return "none" if text.startswith("none") else text


def _share(text: str) -> str:
    third, two_thirds = "1/3" in text, "2/3" in text
    return {(True, False): "low", (True, True): "mid", (False, True): "high"}.get((third, two_thirds), "")


def _sides(text: str) -> str:
    if "similar" in text:
        return "similar"
    if re.search(r"\b(only|one)\b", text):
        return "one"
    # The larger side is named first: "larger in the left lung", "the left is larger than the right".
    side = re.search(r"\b(left|right)\b", text)
    return side[1] if side and "larger" in text else ""


_READERS: dict[str, Callable[[str], str]] = {
    layout.DISTRIBUTION: _zones,
    layout.LOCATION: _region,
    layout.SEVERITY: _share,
    layout.COMPARISON: _sides,
}
