"""Checks of a wording file when it is loaded; errors name file and key.

Checked are unknown slots, unbalanced braces, doubled words, missing groups, and
words that name a finding in a sentence that is not linked to it.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from carina.phantom.reports.template import OptionalPart, Slot, Template
from carina.store.errors import CarinaError
from carina.studies.vocabulary import DEVICES, FINDINGS

AGREEMENT: Final = {"a", "be", "has", "s"}
FINDING: Final = AGREEMENT | {
    *("noun", "np", "a_np", "the"),
    *("side", "zone", "place", "flank", "area", "angles", "site"),
    *("severity", "degree", "distribution", "size", "measure", "appearance", "with"),
    *("trend", "tail", "since"),
}
DEVICE: Final = AGREEMENT | {"noun", "np", "a_np", "the", "side", "tip", "tail", "since"}
PAIR: Final = {"subject", "object", "bare_subject", "bare_object", "a_object", "plain_object"}
PAIR_AGREEMENT: Final = {f"{who}_{form}" for who in ("s", "o") for form in ("be", "has", "s")}
DEVICE_PAIR: Final = {"device", "finding", "bare_device", "bare_finding"} | {
    f"{who}_{form}" for who in ("d", "f") for form in ("be", "has", "s")
}

SLOTS: Final[Mapping[str, set[str]]] = {
    "findings": FINDING,
    "hedges": FINDING,
    "resolved": FINDING,
    "impression": FINDING,
    "impression.pair": {"first", "second"},
    "impression.stable": {"since"},
    "trends": FINDING,
    "devices": DEVICE,
    "device": DEVICE,
    "device.group_adequate": {"list", "be", "has", "s", "since"},
    "device.group_unchanged": {"list", "be", "has", "s", "since"},
    "measures": {"value"},
    "zones": {"side", "levels", "area"},
    "relations": PAIR | PAIR_AGREEMENT,
    "relations.joint_causes": {"first", "second"},
    "relations.joint_accompanies": {"first", "second"},
    "relations.joint_suggests": {"first", "second"},
    "relations.joint_suggests_uncertain": {"first", "second"},
    "relations.device_causes": DEVICE_PAIR,
    "relations.device_accompanies": DEVICE_PAIR,
    "denials": {"list"},
    "denials.pairs": {"first", "second"},
    "quality": {"side", "view", "ribs", "parts", "be", "s", "has"},
    "recommendations": {"target"},
    "comparison": {"date"},
    "indications": {"patient"},
}
"""Slots that each group of a file may use, by the longest matching key; none without a matching key."""

REQUIRED: Final[Mapping[str, tuple[str, ...]]] = {
    "findings": FINDINGS,
    "devices": DEVICES,
    "sides": ("right", "left", "bilateral"),
    "angles": ("right", "left", "bilateral"),
    "distribution": ("focal", "multifocal", "diffuse"),
    "measures": ("cardiothoracic ratio", "diameter", "rim width"),
    "quality.views": ("frontal", "lateral"),
    "technique.views": ("PA", "AP", "PA lateral", "AP lateral"),
    "recommendations": (
        *("chest CT", "reposition device", "follow-up radiograph"),
        *("lateral view", "clinical correlation", "urgent clinical attention"),
    ),
    "indications": (
        *("infection", "dyspnea", "chest pain", "trauma", "heart failure", "malignancy"),
        *("support", "intubated", "follow-up", "routine"),
    ),
}
REQUIRED_COMMON: Final[Mapping[str, tuple[str, ...]]] = {
    "terms": FINDINGS,
    "device_terms": DEVICES,
    "phrases": FINDINGS,
    "references": FINDINGS,
    "levels": ("upper", "mid", "lower"),
    "conjunctions": ("and", "or"),
    "people": ("F", "M", "O"),
}

_DOUBLED: Final = re.compile(r"\b([a-z]+)\s+\1\b", re.IGNORECASE)
# Keys of sentences, which must end with a period; other texts are words and phrases.
_SENTENCES: Final = re.compile(
    r"^(findings\..*\.(sentences|fragments|normal)|hedges\.(sentences|fragments)|resolved|relations|devices\..*"
    r"\.(adequate|malpositioned)|device\.(?!tail)\w+|trends\.\w+\.sentences|denials\..*(lists|pairs|templates)"
    r"|quality\.(?!views)\w+|impression|recommendations|technique|comparison\.(dated|undated|none)|indications)(\.|$)"
)


def lint_wording(document: object, *, file: str, terms: Mapping[str, tuple[str, ...]]) -> None:
    """Raise CarinaError for the first problem of a wording set."""
    _require_groups(document, REQUIRED, file=file)
    patterns = {name: compile_terms(words) for name, words in terms.items()}
    for key, text in _list_texts(document):
        _check_text(key, text, allowed=_get_allowed_slots(key), file=file)
        if _SENTENCES.match(key) and not text.endswith("."):
            raise CarinaError(f"{file}: {key}: {text!r} does not end with a period")
        _check_terms(key, text, patterns=patterns, document=document, file=file)


def lint_common(document: object, *, file: str) -> None:
    """Raise CarinaError for the first problem of the common file of a language."""
    _require_groups(document, REQUIRED_COMMON, file=file)
    for key, text in _list_texts(document):
        group = key.split(".", 1)[0]
        allowed = (
            FINDING if group in {"phrases", "references"} else DEVICE if group == "device_phrase" else set()
        )
        _check_text(key, text, allowed=allowed, file=file)


def compile_terms(words: tuple[str, ...]) -> re.Pattern[str]:
    """A pattern that matches any of the terms at the start of a word: "nodul" finds "nodular" and "Nodules"."""
    return re.compile(r"\b(?:" + "|".join(re.escape(word) for word in words) + ")", re.IGNORECASE)


def _require_groups(document: object, required: Mapping[str, tuple[str, ...]], *, file: str) -> None:
    for path, names in required.items():
        group = document
        for part in path.split("."):
            group = group.get(part) if isinstance(group, dict) else None
        for name in names:
            if not isinstance(group, dict) or not group.get(name):
                raise CarinaError(f"{file}: {path}: {name!r} is missing or empty")


def _list_texts(document: object, key: str = "") -> Iterator[tuple[str, str]]:
    """Every text of the document with its key: ("findings.mass.nouns.0", "mass / masses")."""
    if isinstance(document, dict):
        for name, value in document.items():
            yield from _list_texts(value, f"{key}.{name}" if key else str(name))
    elif isinstance(document, list):
        for index, value in enumerate(document):
            yield from _list_texts(value, f"{key}.{index}")
    elif isinstance(document, str):
        yield key, document


def _get_allowed_slots(key: str) -> set[str]:
    parts = key.split(".")
    for length in range(len(parts), 0, -1):
        slots = SLOTS.get(".".join(parts[:length]))
        if slots is not None:
            return slots
    return set()


def _check_text(key: str, text: str, *, allowed: set[str], file: str) -> None:
    try:
        template = Template(text)
    except ValueError as error:
        raise CarinaError(f"{file}: {key}: {error} in {text!r}") from None
    used = {part.name for part in template.parts if isinstance(part, Slot)}
    used.update(*(part.slots for part in template.parts if isinstance(part, OptionalPart)))
    if unknown := used - allowed:
        raise CarinaError(f"{file}: {key}: unknown slot {min(unknown)!r} in {text!r}")
    if doubled := _DOUBLED.search(text):
        raise CarinaError(f"{file}: {key}: doubled word {doubled[0]!r} in {text!r}")
    if "  " in text or text != text.strip():
        raise CarinaError(f"{file}: {key}: stray space in {text!r}")


def _check_terms(
    key: str, text: str, *, patterns: Mapping[str, re.Pattern[str]], document: object, file: str
) -> None:
    """A text may name only what its group is linked to."""
    parts = key.split(".")
    linked: set[str] = set()
    if parts[0] in {"findings", "devices"}:
        linked = {parts[1]}
        if parts[1] not in patterns:
            raise CarinaError(f"{file}: {key}: {parts[1]!r} has no terms in common.yaml")
        if {"nouns", "denied"} & set(parts[2:4]) and not patterns[parts[1]].search(text):
            raise CarinaError(
                f"{file}: {key}: {text!r} is not among the terms of {parts[1]!r} in common.yaml"
            )
    elif parts[0] == "denials" and parts[-2] in {"templates", "denies"} and isinstance(document, dict):
        linked = set(document["denials"][parts[1]].get("denies", ()))
    elif parts[0] == "headings":
        return
    for name, pattern in patterns.items():
        if name not in linked and (found := pattern.search(re.sub(r"\{\w+\}", "", text))):
            raise CarinaError(f"{file}: {key}: {found[0]!r} names {name!r}, which {text!r} is not linked to")
