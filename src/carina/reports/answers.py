"""Read short answers: texts that answer a question about one thing and need not name it.

"How has the effusion changed?" - "Smaller."; "Where is it?" - "On the left, not on the right."; "Is the tube well
placed?" - "It should be pulled back.". What is denied does not count. Everything comes out as entities, so that answers
and keys can be compared. The phrases stand in `lexicon/answers.yaml`.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, cast

from carina.reports.facts import Attribute, Entity, Position, relation_name
from carina.reports.lexicon import NOTHING, answer_lexicon, lexicon
from carina.reports.negation import expand_contractions, find_denied_words
from carina.reports.phrases import Word, split_words, word_set
from carina.reports.places import Place, find_places
from carina.reports.read import read_report
from carina.studies.vocabulary import Trend

CACHED_TEXTS: Final = 2048
"""Texts whose reading is kept: keys come up again, and many answers are alike."""
SENTENCE_END: Final = re.compile(r"[.;!?]\s+|\n+")
_CLEAR: Final = word_set("clear normal spared unremarkable unaffected uninvolved intact healthy")
_SPARING: Final = _CLEAR | {"sparing", "spares", "spare"}
_BETWEEN: Final = word_set(
    "lung lungs side sides field fields hemithorax zone zones base apex is are was remains remain looks look appears "
    "appear seems seem completely entirely otherwise to be being both all the"
)
"""Words that may stand between a place and the word that calls it clear."""
_SMALL: Final = word_set("the a an in at of its on")
_ATTRIBUTE_KINDS: Final = {"severity": "severity", "distribution": "distribution", "look": "appearance"}
"""Kinds of phrases in the lexicon that state an attribute by themselves."""
_AFFECTED: Final = frozenset({"affected", "involved", "abnormal", "diseased"})
_OPPOSITE: Final[dict[str, Position]] = {"adequate": "malpositioned", "malpositioned": "adequate"}


# ---- findings and devices -------------------------------------------------------------------------------------------


@lru_cache(maxsize=CACHED_TEXTS)
def names_in(text: str) -> frozenset[str]:
    """Names of the findings and devices that a text mentions, whatever it says of them."""
    return frozenset(
        role.key
        for item in lexicon().phrases.find(split_words(text))
        for role in item.roles
        if role.kind in ("finding", "device")
    )


def denies_findings(text: str) -> bool:
    """Test whether a text denies something, or says that there is nothing to add.

    Args:
        text: An answer.

    Returns:
        True for texts such as "None." or "The list is complete.".

    Example:
        >>> [denies_findings(text) for text in ("No pneumothorax.", "The list is complete.", "Small effusion.")]
        [True, True, False]
    """
    return not denial_kinds(text).isdisjoint(("denies", "complete"))


def states_findings(text: str) -> bool:
    """Test whether a text names a finding or device, or denies that there is one.

    Args:
        text: An answer.

    Returns:
        True if it does either; "The list is complete." does neither.

    Example:
        >>> [states_findings(text) for text in ("No pneumothorax.", "The list is complete.", "Small effusion.")]
        [True, False, True]
    """
    facts = read_report(text)
    return bool(facts.things) or "denies" in denial_kinds(text)


@lru_cache(maxsize=CACHED_TEXTS)
def denial_kinds(text: str) -> frozenset[str]:
    """How a text denies: "denies" something, says that a list is "complete", or only seems to ("nothing")."""
    signs = split_words(expand_contractions(text))
    return frozenset(role.kind for item in answer_lexicon().denial.find(signs) for role in item.roles)


@lru_cache(maxsize=CACHED_TEXTS)
def read_attributes(text: str) -> frozenset[Attribute]:
    """Attributes in a text about one finding or device that it need not name: "moderate", "on the left".

    Args:
        text: An answer, such as "Moderate, on the left; the right lung is clear.".

    Returns:
        Kinds of attributes (side, location, severity, distribution, appearance, position) with their values.
    """
    text = expand_contractions(text)
    known, signs = lexicon(), split_words(text)
    denied = find_denied_words(signs)
    items = [item for item in known.phrases.find(signs) if not denied[item.start]]
    found = {
        (_ATTRIBUTE_KINDS[role.kind], role.key)
        for item in items
        for role in item.roles
        if role.kind in _ATTRIBUTE_KINDS
    }
    position = read_position(text)
    if position is not None:
        found.add(("position", position))
    sides: set[str] = set()
    for place in find_places(text, signs, items, known):
        if not _is_called_clear(place, signs):
            found.update(("location", zone) for zone in place.zones)
            sides.update(("right", "left") if place.side == "bilateral" else filter(None, (place.side,)))
    if sides:
        found.add(("side", "bilateral" if {"right", "left"} <= sides else min(sides)))
    return frozenset(found)


def _is_called_clear(place: Place, signs: list[Word]) -> bool:
    """Whether a place is named only to say that it is clear: "the right lung is clear", "sparing the left base"."""
    before = place.start - 1
    while before >= 0 and signs[before].text in ("the", "of"):
        before -= 1
    if before >= 0 and signs[before].text in _SPARING:
        return True
    after = place.end
    while after < len(signs) and signs[after].text in _BETWEEN:
        after += 1
    here, behind = (signs[n].text if n < len(signs) else "" for n in (after, after + 1))
    return (
        here in _CLEAR
        or (here == "free" and behind == "of")
        or (here in ("not", "never") and behind in _AFFECTED)
    )


def states_term(text: str, term: str) -> bool:
    """Whether a text has the words of a term in a row, articles aside, and does not deny them.

    A length at the start of the term ("3.5 cm above the carina") need only be near.
    """
    length = _LENGTH.match(term)
    if length is not None:
        near = is_near(float(length["value"]), length["unit"], text)
        return near and states_term(text, term[length.end() :])
    wanted = [sign.text for sign in split_words(term) if sign.text not in _SMALL]
    signs = split_words(expand_contractions(text))
    kept = [
        (sign.text, off)
        for sign, off in zip(signs, find_denied_words(signs), strict=True)
        if sign.text not in _SMALL
    ]
    return bool(wanted) and any(
        not kept[start][1] and [word for word, _ in kept[start : start + len(wanted)]] == wanted
        for start in range(len(kept) - len(wanted) + 1)
    )


# ---- trends ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=CACHED_TEXTS)
def read_trend(text: str) -> Trend | None:
    """The trend that a text about one thing states; None where it states none, or several that differ."""
    found = answer_lexicon().trends.find(split_words(expand_contractions(text)))
    trends = {role.kind for item in found for role in item.roles} - {NOTHING}
    return cast(Trend, trends.pop()) if len(trends) == 1 else None


@lru_cache(maxsize=CACHED_TEXTS)
def read_trends(text: str) -> frozenset[tuple[str, str]]:
    """Names of findings and devices with the trend that a text states of each; forecasts count like observations."""
    stated = {
        (name, trend)
        for sentence in SENTENCE_END.split(text)
        if (trend := read_trend(sentence)) is not None
        for name in names_in(sentence)
    }
    named = {name for name, _ in stated}
    # A trend may follow from several sentences together, which only the reader of reports sees.
    facts = read_report(text)
    stated.update(
        (thing.name, thing.trend)
        for thing in facts.things
        if thing.trend is not None and thing.name not in named
    )
    return frozenset(stated)


# ---- positions of devices -------------------------------------------------------------------------------------------


@lru_cache(maxsize=CACHED_TEXTS)
def read_position(text: str) -> Position | None:
    """Whether a text calls the position of a device adequate or not; None where it says neither or both."""
    signs = split_words(expand_contractions(text))
    found = answer_lexicon().positions.find(signs)
    if not found:
        return None
    denied = find_denied_words(signs)
    stated: set[str] = set()
    for item in found:
        for role in item.roles:
            turned = role.kind == "judged" and denied[item.start]
            stated.add(_OPPOSITE[role.key] if turned else role.key)
    return cast(Position, stated.pop()) if len(stated) == 1 else None


# ---- recommendations ------------------------------------------------------------------------------------------------

_FRAGMENT: Final = re.compile(r"[.;!?:]\s+|\n+")
_NOT_NEEDED: Final = re.compile(
    r"\b(?:not|no longer)(?: \w+)? (?:needed|necessary|indicated|required|recommended|warranted|advised|useful)\b"
    r"|\bunnecessary\b|\bno need\b",
    re.IGNORECASE,
)


@lru_cache(maxsize=CACHED_TEXTS)
def read_actions(text: str) -> frozenset[str]:
    """Actions that an answer recommends; the bare name of an action is enough: "Chest CT."."""
    parts = [
        part for part in _FRAGMENT.split(expand_contractions(text)) if part and not _NOT_NEEDED.search(part)
    ]
    found = {advice.action for advice in read_report(". ".join(parts)).recommendations}
    signs = [split_words(part) for part in parts]
    verbs = lexicon().verbs
    for part in signs:
        if not any(sign.text in verbs for sign in part):
            found.update(_find_actions(part))
    if not found:
        found.update(action for part in signs for action in _find_actions(part))
    return frozenset(found)


def _find_actions(signs: list[Word]) -> set[str]:
    denied = find_denied_words(signs)
    found = {
        role.key
        for item in lexicon().phrases.find(signs)
        if not denied[item.start]
        for role in item.roles
        if role.kind == "action"
    }
    if "reposition device" in found:
        found.discard("follow-up radiograph")  # The radiograph after repositioning belongs to it.
    if len(found) > 1 and not any(sign.text.startswith("correlat") for sign in signs):
        found.discard("clinical correlation")
    return found


# ---- relations ------------------------------------------------------------------------------------------------------

_RELATION_SENTENCE: Final = re.compile(r"[.!?]\s+|\n+")
_MUTUAL: Final = "accompanies"


class _NamedThing(NamedTuple):
    name: str
    start: int
    end: int


class _Link(NamedTuple):
    subject: str
    kind: str
    object: str


def read_relations(text: str, names: Collection[str], pair: tuple[str, str] | None = None) -> frozenset[str]:
    """Relations that a text states among findings and devices.

    A phrase relates the last thing named before it to the first one behind it, within a sentence; some relate the two
    before them ("they coexist"), some the two behind them ("the arrow runs from").

    Args:
        text: An answer.
        names: Names of the findings and devices that count.
        pair: The two that the question is about, if it is about two: the answer need not name them.

    Returns:
        Names of relations, such as "pneumonia causes pleural effusion". What causes or suggests something also
        accompanies it, which is not counted beside it.

    Example:
        >>> read_relations("The pneumonia causes the pleural effusion.", ["pneumonia", "pleural effusion"])
        frozenset({'pneumonia causes pleural effusion'})
    """
    found: set[_Link] = set()
    for sentence in _RELATION_SENTENCE.split(expand_contractions(text)):
        found.update(_find_links(split_words(sentence), names, pair))
    directed = {frozenset((link.subject, link.object)) for link in found if link.kind != _MUTUAL}
    return frozenset(
        relation_name(*link)
        for link in found
        if link.kind != _MUTUAL or frozenset((link.subject, link.object)) not in directed
    )


def _find_links(signs: list[Word], names: Collection[str], pair: tuple[str, str] | None) -> Iterator[_Link]:
    phrases = answer_lexicon().relations.find(signs)
    if not phrases:
        return
    named = [
        _NamedThing(role.key, item.start, item.end)
        for item in lexicon().phrases.find(signs)
        for role in item.roles
        if role.kind in ("finding", "device") and role.key in names
    ]
    denied = find_denied_words(signs)
    for item in phrases:
        if denied[item.start] and signs[item.start].text != "no":
            continue
        before = [thing.name for thing in named if thing.end <= item.start]
        behind = [thing.name for thing in named if thing.start >= item.end]
        kind, ends = item.roles[0]
        two = _find_ends(ends, before, behind, pair if kind == _MUTUAL else None)
        if two is not None and two[0] != two[1]:
            yield _Link(two[0], kind, two[1])


def _find_ends(
    ends: str, before: Sequence[str], behind: Sequence[str], pair: tuple[str, str] | None
) -> tuple[str, str] | None:
    """Subject and object of a phrase, from what is named around it."""
    if ends == "both behind":
        return _first_two_names(behind)
    if ends == "both before":
        last = _first_two_names(before[::-1])
        return (last[1], last[0]) if last else pair
    if before and behind:
        return (before[-1], behind[0]) if ends == "first second" else (behind[0], before[-1])
    # "Accompanied by a pleural effusion", of a pair.
    return pair if before or behind else None


def _first_two_names(names: Sequence[str]) -> tuple[str, str] | None:
    """The first of some names, and the next that differs from it."""
    return next(((names[0], name) for name in names if name != names[0]), None)


# ---- technique ------------------------------------------------------------------------------------------------------

FLAWLESS: Final[Mapping[str, str]] = {
    "rotation": "none",
    "inspiration": "adequate",
    "exposure": "adequate",
    "coverage": "complete",
}
"""By criterion of image quality, its state in a flawless image."""
UNSPECIFIED: Final = "unspecified"
"""State of a criterion that a text calls wrong without saying in which way."""


@lru_cache(maxsize=CACHED_TEXTS)
def read_quality(text: str) -> frozenset[Entity]:
    """What a text says of rotation, inspiration, exposure and coverage: entities of the kind "quality".

    "Good quality" means the best state of each criterion that the text does not mention.
    """
    stated: dict[str, set[str]] = {}
    for item in answer_lexicon().quality.find(split_words(expand_contractions(text))):
        for criterion, state in item.roles:
            stated.setdefault(criterion, set()).add(state)
    overall = stated.pop("overall", set())
    for states in stated.values():
        if len(states) > 1:
            states.discard(UNSPECIFIED)
    if "good" in overall and "limited" not in overall:
        for criterion, state in FLAWLESS.items():
            stated.setdefault(criterion, {state})
    return frozenset(
        Entity(kind="quality", name=criterion, value=state)
        for criterion, states in stated.items()
        for state in states
    )


@lru_cache(maxsize=CACHED_TEXTS)
def read_views(text: str) -> frozenset[str]:
    """Projections that a text names: PA, AP, lateral; "frontal" where it does not say which of the two."""
    signs = split_words(expand_contractions(text))
    denied = find_denied_words(signs)
    found = {
        role.kind
        for item in answer_lexicon().views.find(signs)
        if not denied[item.start]
        for role in item.roles
    } - {NOTHING}
    if found & {"PA", "AP"}:
        found.discard("frontal")
    return frozenset(found)


# ---- measurements ---------------------------------------------------------------------------------------------------

RELATIVE_TOLERANCE: Final = 0.1
"""Share of a length that a reading may be off."""
RATIO_TOLERANCE: Final = 0.03
"""Cardiothoracic ratios that differ by no more count as the same."""
_ROUNDING: Final = 1e-9
_MILLIMETRES: Final = {"mm": 1.0, "cm": 10.0}
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
_LENGTH: Final = re.compile(r"(?P<value>\d+(?:\.\d+)?) (?P<unit>[cm]m)\b")


def read_measurements(text: str) -> tuple[Entity, ...]:
    """Read the numbers of a text with their units.

    A range counts by its middle, a calculation by its result ("15.5 / 25 = 0.62"); limits that a value is compared
    with ("above 0.5") do not count.

    Args:
        text: An answer.

    Returns:
        Entities of the kind "measurement"; their unit is "mm", "cm", "%" or None.

    Example:
        >>> [(entity.value, entity.unit) for entity in read_measurements("The nodule measures 10-14 mm.")]
        [(12.0, 'mm')]
    """
    rest = _LIMIT.sub(" ", text.rpartition("=")[2])
    return tuple(
        _make_measurement(match)
        for match in (*_RANGE.finditer(rest), *_VALUE.finditer(_RANGE.sub(" ", rest)))
    )


def _make_measurement(match: re.Match[str]) -> Entity:
    ends = [float(match[end].replace(",", ".")) for end in ("low", "high") if match.groupdict().get(end)]
    unit = (match["unit"] or "").lower()
    unit = "%" if unit.startswith("per") else {"m": "mm", "c": "cm"}.get(unit[:1], unit)
    return Entity(kind="measurement", name="", value=sum(ends) / len(ends), unit=unit or None)


def is_near(value: float, unit: str | None, text: str) -> bool:
    """Whether all lengths in a text are a given one, within a tenth; a length without a unit has the given unit."""
    scale = _MILLIMETRES.get(unit or "", 1.0)
    near = RELATIVE_TOLERANCE * abs(value) * scale + _ROUNDING
    lengths = [
        float(found.value or 0.0) * _MILLIMETRES.get(found.unit or unit or "", 1.0)
        for found in read_measurements(text)
    ]
    return bool(lengths) and all(abs(length - value * scale) <= near for length in lengths)


def is_near_ratio(value: float, text: str) -> bool:
    """Whether all ratios in a text are a given one, within 0.03; percentages and numbers above 1 count as percent."""
    ratios = [
        number / 100 if found.unit == "%" or number > 1 else number
        for found in read_measurements(text)
        for number in (float(found.value or 0.0),)
    ]
    return bool(ratios) and all(abs(ratio - value) <= RATIO_TOLERANCE + _ROUNDING for ratio in ratios)
