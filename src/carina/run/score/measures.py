"""A number in words against the number of a fact, within what a reader can measure."""

import re
from typing import Final

RATIO: Final = 0.03
"""Cardiothoracic ratios that far apart are the same."""
SHARE: Final = 0.1
"""Of other measures, the share of the right value that an answer may be off."""
_ROUNDING: Final = 1e-9
_UNITS: Final = {"mm": 1.0, "millimet": 1.0, "cm": 10.0, "centimet": 10.0}
"""In millimetres; spelled-out units by what both spellings share."""
_NUMBER: Final = r"(?<![\w.])\d{1,6}(?:[.,]\d{1,6})?(?![\d])"
_UNIT: Final = r"\s*(?P<unit>%|per ?cent\b|[mc]m\b|(?:milli|centi)met)?"
_RANGE: Final = re.compile(
    rf"(?P<low>{_NUMBER})\s*(?:%|[mc]m)?\s*(?:-|\u2013|\bto\b|\band\b)\s*(?P<high>{_NUMBER}){_UNIT}",
    re.IGNORECASE,
)
_VALUE: Final = re.compile(rf"(?P<low>{_NUMBER}){_UNIT}", re.IGNORECASE)
_LIMIT: Final = re.compile(
    r"(?:[<>\u2264\u2265]|\b(?:below|above|under|over|than|normal|threshold|limit|cut-?off|exceeds?|exceeding|up to)\b)"
    rf"(?:\s+(?:of|is|being|value|range))*\s*[:=(]?\s*{_NUMBER}\s*(?:%|[mc]m\b)?",
    re.IGNORECASE,
)
"""What an answer compares its value with: "above 0.5", "normal < 0.50"."""


def right_measure(name: str, value: float, key: str, said: str) -> bool:
    """Whether all values that an answer gives for a measure are the right one; the key tells the unit of the fact."""
    ratio = "ratio" in name
    unit = next((unit for _, unit in _values(key, ratio=ratio) if unit), "")
    scale = _UNITS.get(unit, 1.0)
    near = RATIO if ratio else SHARE * abs(value) * scale
    told = [number * _UNITS.get(own or unit, 1.0) for number, own in _values(said, ratio=ratio)]
    return bool(told) and all(abs(number - value * scale) <= near + _ROUNDING for number in told)


def _values(text: str, *, ratio: bool) -> list[tuple[float, str]]:
    """Numbers with their units, in the middle of a range, what a calculation comes to; shares of 1 for a ratio."""
    left = _LIMIT.sub(" ", text.rpartition("=")[2])
    found: list[tuple[float, str]] = []
    for match in (*_RANGE.finditer(left), *_VALUE.finditer(_RANGE.sub(" ", left))):
        ends = [float(end.replace(",", ".")) for end in _ends(match)]
        number, unit = sum(ends) / len(ends), (match["unit"] or "").lower()
        if ratio:
            # Nobody has a heart wider than the chest: 62 is 62 percent.
            found.append((number / 100 if unit.startswith(("%", "per")) or number > 1 else number, ""))
        else:
            found.append((number, unit))
    return found


def _ends(match: re.Match[str]) -> list[str]:
    return [match[name] for name in ("low", "high") if match.groupdict().get(name)]
