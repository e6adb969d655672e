"""What labels of a source mean: names of the vocabulary, their certainty, and closed lists of them."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

import msgspec

from carina.studies.model import Assessed
from carina.studies.terms import Term, find_term, is_no_finding, read_label
from carina.studies.vocabulary import Certainty

_COMBINED: Final[Mapping[tuple[Certainty, Certainty], Certainty | None]] = {
    ("present", "present"): "present",
    ("present", "uncertain"): "uncertain",
    ("present", "absent"): "absent",
    ("uncertain", "present"): "uncertain",
    ("uncertain", "uncertain"): "uncertain",
    ("uncertain", "absent"): "absent",
    ("absent", "present"): "absent",
    ("absent", "uncertain"): "uncertain",
    ("absent", "absent"): None,
}
"""By the certainty that a label states of itself, and that which its source states of the label, what this comes to.
Nothing where the source denies a denial: nobody knows what "no mass: no" means."""


def name_of(label: str) -> str:
    """The name under which a label is recorded: that of the vocabulary, else the label itself in lower case.

    Words that say whether it is present are left out; a label that names nothing, such as "No finding", has none.
    """
    words = read_label(label).words
    term = find_term(words)
    return term.name if term is not None else " ".join(words.replace("_", " ").lower().split())


def combine_certainty(label: str, certainty: Certainty) -> Certainty | None:
    """What the words of a label and the certainty that its source states come to; None for nothing."""
    return _COMBINED[read_label(label).certainty, certainty]


@lru_cache(maxsize=4096)
def classify_label(words: str, certainty: Certainty) -> tuple[str, bool, Certainty | None]:
    """The name under which a label is recorded, whether it is a device, and its certainty."""
    term = find_term(read_label(words).words)
    return name_of(words), term is not None and term.kind == "device", combine_certainty(words, certainty)


def name_listed(labels: Iterable[str]) -> dict[str, Term | None]:
    """Names of a closed list of labels, each with its term; without labels that say that nothing was found."""
    named = {
        name_of(label): find_term(read_label(label).words) for label in labels if not is_no_finding(label)
    }
    named.pop("", None)
    return named


def assess_labels(labels: Iterable[str], *, text: bool = False, readers: Iterable[str] = ()) -> Assessed:
    """What was looked for, where that is a closed list of labels.

    Args:
        labels: The list, in the words of the source.
        text: Whether the labels come from the report.
        readers: Who looked, each alone, where the source says so.
    """
    assessed = _assess_labels(tuple(labels), text)
    named = tuple(readers)
    return msgspec.structs.replace(assessed, readers=named) if named else assessed


@lru_cache(maxsize=64)
def _assess_labels(labels: tuple[str, ...], text: bool) -> Assessed:  # noqa: FBT001 - of `assess_labels`
    terms = name_listed(labels)
    devices = [name for name, term in terms.items() if term is not None and term.kind == "device"]
    return Assessed(
        findings="listed" if len(devices) < len(terms) else "unknown",
        devices="listed" if devices else "unknown",
        listed=tuple(sorted(terms)),
        text=text,
    )
