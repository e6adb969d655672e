"""The words of radiology reports: loads the YAML files of this folder into trees of phrases, and checks them once."""

from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final

import yaml

from carina.reports.phrases import Phrases, Role, WordClass
from carina.store.errors import CarinaError
from carina.studies.vocabulary import DEVICES, FINDINGS, Certainty

FILES: Final = ("findings", "devices", "organs", "cues", "places", "relations", "actions")
CUES: Final = {
    "denial": "denial",
    "denied": "denied",
    "gone": "gone",
    "doubt": "doubt",
    "doubts": "doubts",
    "doubted": "doubted",
    "no denial": "no denial",
    "past": "past",
    "clause": "clause",
    "all unchanged": "all unchanged",
    "listing": "listing",
    "same": "same",
    "prior": "prior",
    "no prior": "no prior",
    "alternatives": "alternative",
    "parts": "part",
    "limits lifted": "limit lifted",
}
"""Lists of cues.yaml and the kind of role that their phrases have."""
GRADED: Final = {
    "trends": "trend",
    "severities": "severity",
    "distributions": "distribution",
    "looks": "look",
    "limits": "limit",
    "positions": "position",
}
"""Tables of cues.yaml: the key of a phrase is the key it stands under."""


@dataclass(frozen=True, slots=True)
class OrganState:
    """What an organ in a state means: names of findings, and their certainty."""

    certainty: Certainty
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Lexicon:
    """All phrases for reading reports."""

    phrases: Phrases
    organs: dict[tuple[str, str], tuple[OrganState, ...]]
    """By organ and state."""
    panels: dict[str, tuple[str, ...]]
    """Findings that the denial of a panel denies."""
    verbs: frozenset[str]
    both: frozenset[str]
    """Words for parts of both lungs."""
    one_side: dict[str, str]
    """Words for parts that only one lung has, with its side."""
    fillers: frozenset[str]
    """Words that may stand within a place."""
    into_place: frozenset[str]
    """Prepositions and verbs between a finding and its place."""
    names: frozenset[str]
    """Findings and devices that a report can state."""
    chronic: frozenset[str]
    """Findings that a denial with a limit ("no acute fracture") denies in part only."""


@cache
def lexicon() -> Lexicon:
    """The lexicon that comes with the package."""
    data = {name: _read(name) for name in FILES}
    phrases = Phrases()
    for kind, file in (("finding", "findings"), ("device", "devices")):
        for name, entry in data[file].items():
            role = Role("none") if name == "none" else Role(kind, name)
            phrases.add_all(entry["words"], role)
            phrases.add_all(entry.get("weak", ()), Role("weak", name))
    organs = _add_organs(phrases, data["organs"])
    panels: dict[str, tuple[str, ...]] = {}
    for name, entry in data["organs"]["panels"].items():
        phrases.add_all(entry["words"], Role("panel", name))
        panels[name] = tuple(entry["absent"])
    _check(data, organs, panels)
    _add_cues(phrases, data["cues"])
    _add_places(phrases, data["places"])
    for relation, ends in data["relations"].items():
        for subject, listed in ends.items():
            phrases.add_all(listed, Role("relation", f"{relation} {subject}"))
    phrases.add_all(data["actions"]["cues"], Role("advice"))
    phrases.add_all(data["actions"]["no cues"], Role("no advice"))
    for action, listed in data["actions"]["actions"].items():
        phrases.add_all(listed, Role("action", action))
    places = data["places"]
    return Lexicon(
        phrases=phrases,
        organs=organs,
        panels=panels,
        verbs=frozenset(data["cues"]["verbs"]),
        both=frozenset(places["both"]),
        one_side=dict(places["one side"]) | dict(places["sided lobes"]),
        fillers=frozenset(places["fillers"]),
        into_place=frozenset(places["into place"]),
        names=frozenset({*data["findings"], *data["devices"]} - {"none"}),
        chronic=frozenset(name for name, entry in data["findings"].items() if entry.get("chronic")),
    )


NOTHING: Final = "nothing"
"""Key of phrases in answers.yaml that state nothing, and hide the words within them."""


@dataclass(frozen=True, slots=True)
class AnswerLexicon:
    """Phrases of short answers and of statements about technique, one tree for each topic."""

    trends: Phrases
    """Roles (trend, "")."""
    positions: Phrases
    """Roles (settled or judged, position)."""
    quality: Phrases
    """Roles (criterion, state)."""
    views: Phrases
    """Roles (view, "")."""
    denial: Phrases
    """Roles (denies or complete, "")."""
    relations: Phrases
    """Roles (kind of relation, where its ends stand)."""


@cache
def answer_lexicon() -> AnswerLexicon:
    """The lexicon of short answers that comes with the package."""
    data = _read("answers")
    classes: dict[str, WordClass] = {}
    for name, entries in data["classes"].items():
        listed = [entry for entry in entries if not entry.startswith("<")]
        others = [classes[entry] for entry in entries if entry.startswith("<")]
        classes[name] = WordClass(
            frozenset(entry for entry in listed if not entry.endswith("*")).union(*(o.words for o in others)),
            (*(entry[:-1] for entry in listed if entry.endswith("*")), *(s for o in others for s in o.stems)),
        )
    return AnswerLexicon(
        trends=_flat_tree(data["trends"], classes),
        positions=_nested_tree(data["positions"], classes),
        quality=_nested_tree(data["quality"], classes),
        views=_flat_tree(data["views"], classes),
        denial=_flat_tree(data["denial"], classes),
        relations=_nested_tree(data["relations"], classes),
    )


def _flat_tree(data: dict[str, list[str]], classes: dict[str, WordClass]) -> Phrases:
    tree = Phrases(classes)
    for kind, listed in data.items():
        tree.add_all(listed, Role(kind))
    return tree


def _nested_tree(data: dict[str, dict[str, list[str]]], classes: dict[str, WordClass]) -> Phrases:
    tree = Phrases(classes)
    for kind, keys in data.items():
        for key, listed in keys.items():
            tree.add_all(listed, Role(kind, key))
    return tree


def _read(name: str) -> dict[str, Any]:
    text = resources.files(__package__).joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    loaded = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
    if not isinstance(loaded, dict):
        raise CarinaError(f"lexicon/{name}.yaml: a mapping is expected")
    return loaded


def _add_organs(phrases: Phrases, data: dict[str, Any]) -> dict[tuple[str, str], tuple[OrganState, ...]]:
    organs: dict[tuple[str, str], tuple[OrganState, ...]] = {}
    for organ, entry in data["organs"].items():
        phrases.add_all(entry["words"], Role("organ", organ))
        for state, means in entry.items():
            if state == "words":
                continue
            if state not in data["states"]:
                raise CarinaError(f"lexicon/organs.yaml: {organ}: the state {state!r} has no words")
            organs[organ, state] = tuple(OrganState(key, tuple(names)) for key, names in means.items())
    for state, listed in data["states"].items():
        phrases.add_all(listed, Role("state", state))
    return organs


def _check(
    data: dict[str, dict[str, Any]],
    organs: dict[tuple[str, str], tuple[OrganState, ...]],
    panels: dict[str, tuple[str, ...]],
) -> None:
    """Check that organs and panels name known findings, and that every name of the vocabulary has words."""
    known = set(data["findings"])
    used = {name for means in organs.values() for state in means for name in state.names}
    used |= {name for names in panels.values() for name in names} | set(FINDINGS)
    if missing := sorted(used - known) + sorted(set(DEVICES) - set(data["devices"])):
        raise CarinaError(f"lexicon: no words for {', '.join(missing)}")


def _add_cues(phrases: Phrases, cues: dict[str, Any]) -> None:
    for name, kind in CUES.items():
        phrases.add_all(cues[name], Role(kind))
    for name, kind in GRADED.items():
        for key, listed in cues[name].items():
            phrases.add_all(listed, Role(kind, key))


def _add_places(phrases: Phrases, places: dict[str, Any]) -> None:
    for side, listed in places["sides"].items():
        phrases.add_all(listed, Role("side", side))
    for level, listed in places["levels"].items():
        phrases.add_all(listed, Role("level", level))
    for level, listed in places["lobes"].items():
        phrases.add_all(listed, Role("lobe", level))
    phrases.add_all(places["sites"], Role("site"))
