"""Terms: one hierarchy of findings, devices and anatomy with synonyms, read from `terms.yaml`.

The file is read when a term is first looked up. It also holds the labels of published data sets, and the labels that
state the absence of findings.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, lru_cache
from importlib import resources
from typing import Any, Final, Literal

from carina.store.arguments import check_arguments
from carina.store.counts import format_count
from carina.store.errors import CarinaError
from carina.studies.model import Study

Kind = Literal["finding", "device", "anatomy"]
NO_FINDING_LABELS: tuple[str, ...]
"""Labels which state that nothing was found: they name no finding. Read from the file when they are first used."""

_SECTIONS: Final[Mapping[str, Kind]] = {"findings": "finding", "devices": "device", "anatomy": "anatomy"}
_KINDS_OR_NONE: Final = (None, *_SECTIONS.values())
_LONGEST_NAME: Final = 200
"""Characters of a name that is looked up; a longer text is no name."""
_CLOSE: Final = 0.8
"""Least similarity, from 0 to 1, of a name that is suggested for an unknown one."""
_PLURALS: Final = (
    ("thoraces", "thorax"),
    ("axes", "ax"),
    ("tases", "tasis"),
    ("sses", "ss"),
    ("ies", "y"),
    ("ss", "ss"),
    ("is", "is"),
    ("us", "us"),
    ("s", ""),
)
"""Endings of the plural and of the singular; the first that fits is replaced."""


@dataclass(frozen=True, slots=True)
class Term:
    """A known finding, device or structure.

    Example:
        >>> Term("edema", "finding", ("lung opacity",), ("pulmonary edema",)).kind
        'finding'
    """

    name: str
    kind: Kind
    parents: tuple[str, ...]
    """What a finding or device is a kind of; what a structure is a part of."""
    synonyms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UnknownName:
    """A name in studies that is not the name of a term, so that protocols do not know what it means."""

    kind: Kind
    name: str
    studies: int
    """Number of studies that have it."""

    @property
    def nearest(self) -> str | None:
        """The closest name of a term; None where nothing is close."""
        return nearest_term(self.name)

    @property
    def message(self) -> str:
        """The name, where it is, and what may have been meant."""
        what = f"{self.kind} {self.name!r} in {format_count(self.studies, 'study', 'studies')}"
        nearest = self.nearest
        if nearest is None:
            return f"{what}: not a known name"
        if nearest == self.name:
            other = _terms().by_name[nearest].kind
            return f"{what}: known as the name of {'anatomy' if other == 'anatomy' else f'a {other}'}"
        return f"{what}: not a known name, did you mean {nearest!r}?"


@dataclass(frozen=True, slots=True)
class _Terms:
    """The content of the file."""

    by_name: dict[str, Term]
    by_key: dict[str, Term]
    """By every name and synonym, as `_fold` spells it."""
    parents: dict[str, tuple[str, ...]]
    children: dict[str, tuple[str, ...]]
    names: dict[Kind, frozenset[str]]
    no_finding: tuple[str, ...]
    statements: dict[str, str]
    labels: dict[str, dict[str, str | None]]
    """By data set and label, the name of the term; None for a label that names nothing."""


def find_term(name: str, kind: Kind | None = None) -> Term | None:
    """Find a term by its name or a synonym.

    Args:
        name: A name; case, spaces, hyphens, underscores and other signs do not count, nor does the plural.
        kind: Only a finding, a device or anatomy; None for any.

    Returns:
        The term, or None.

    Raises:
        CarinaError: The name is no text, or there is no such kind.

    Example:
        >>> find_term("Pleural_Effusions").name
        'pleural effusion'
        >>> find_term("Airspace Opacity").name, find_term("dragon")
        ('lung opacity', None)
    """
    if not isinstance(
        name, str
    ):  # readers look up every label: `check_arguments` would take longer than the rest
        raise CarinaError(f"name: expected text, found {name!r}")
    if kind not in _KINDS_OR_NONE:
        raise CarinaError(f"kind: expected 'finding', 'device', 'anatomy' or None, found {kind!r}")
    term = _find(name) if len(name) <= _LONGEST_NAME else None
    return term if term is not None and kind in (None, term.kind) else None


def name_label(label: str, kind: Kind) -> tuple[str, str | None]:
    """The name that a study gives to what a data set labels, and the label where it differs from the name.

    Args:
        label: The label, as the data set spells it.
        kind: What it labels.

    Returns:
        The name of the term, or the label itself where there is no such term; and the label, or None where it is the
        name: what `Finding`, `Device` and others hold as `name` and `label`.

    Example:
        >>> name_label("Effusion", "finding"), name_label("edema", "finding"), name_label("dragon", "finding")
        (('pleural effusion', 'Effusion'), ('edema', None), ('dragon', None))
    """
    term = find_term(label, kind)
    name = label if term is None else term.name
    return name, None if name == label else label


def nearest_term(name: str) -> str | None:
    """Find the name of the term that is spelled most like a name, for messages.

    Args:
        name: A name, known or not.

    Returns:
        The name of the term; None where nothing is close.

    Example:
        >>> nearest_term("plural efusion"), nearest_term("dragon")
        ('pleural effusion', None)
    """
    return _find_nearest(name) if len(name) <= _LONGEST_NAME else None


def ancestors(name: str) -> tuple[str, ...]:
    """List what a term is a kind of or a part of, all the way up.

    Args:
        name: A name or synonym.

    Returns:
        Names of terms, the nearest first; none for a name that is not known.

    Example:
        >>> ancestors("consolidation")
        ('lung opacity', 'pulmonary abnormality')
    """
    term = find_term(name)
    return () if term is None else _walk(term.name, _terms().parents)


def descendants(name: str) -> tuple[str, ...]:
    """List the kinds or the parts of a term, all the way down.

    Args:
        name: A name or synonym.

    Returns:
        Names of terms, the nearest first; none for a name that is not known.

    Example:
        >>> descendants("pneumothorax")
        ('tension pneumothorax', 'hydropneumothorax')
    """
    term = find_term(name)
    return () if term is None else _walk(term.name, _terms().children)


@lru_cache(maxsize=65536)
def is_kind_of(name: str, other: str) -> bool:
    """Whether a term is a kind or a part of another one, as every nodule is a lung lesion; no term is one of itself.

    Args:
        name: A name or synonym.
        other: The name of a term.

    Example:
        >>> is_kind_of("infiltration", "lung opacity"), is_kind_of("lung opacity", "infiltration")
        (True, False)
    """
    return other in ancestors(name)


@check_arguments
def list_terms(kind: Kind | None = None) -> tuple[Term, ...]:
    """List the known findings, devices and anatomy, in the order of the file.

    Args:
        kind: "finding", "device" or "anatomy"; None for all.

    Returns:
        The terms, each with its name, kind, parents and synonyms.

    Example:
        >>> [term.name for term in list_terms("device")][:3]
        ['medical device', 'tube', 'endotracheal tube']
    """
    return tuple(term for term in _terms().by_name.values() if kind in (None, term.kind))


def list_data_sets() -> tuple[str, ...]:
    """List the data sets whose labels the file holds.

    Returns:
        Their names, as `map_labels` takes them.
    """
    return tuple(_terms().labels)


def map_labels(data_set: str) -> dict[str, Term | None]:
    """Map the labels of a published data set to terms.

    Args:
        data_set: Name of the data set; `list_data_sets` lists them.

    Returns:
        Terms by label, as the data set spells it; None for a label that names nothing, such as "No Finding".

    Raises:
        CarinaError: The file does not hold this data set.

    Example:
        >>> map_labels("nih")["Pleural_Thickening"].name
        'pleural thickening'
    """
    terms = _terms()
    if data_set not in terms.labels:
        raise CarinaError(f"no labels of a data set {data_set!r}, only of: {', '.join(terms.labels)}")
    return {
        label: None if name is None else terms.by_name[name] for label, name in terms.labels[data_set].items()
    }


def list_statements() -> dict[str, str]:
    """List the labels of data sets that name neither a finding nor its absence, such as "suboptimal study".

    Returns:
        What each states, by label.
    """
    return dict(_terms().statements)


def is_no_finding(label: str) -> bool:
    """Whether a label states that nothing was found; case, spaces, hyphens and underscores do not count.

    Example:
        >>> is_no_finding("No_finding"), is_no_finding("nodule")
        (True, False)
    """
    return len(label) <= _LONGEST_NAME and _fold(label) in _no_finding_keys()


def is_known_name(name: str, kind: Kind) -> bool:
    """Whether studies may use this name as it is: whether it is the name of a term of this kind, not a synonym.

    Example:
        >>> is_known_name("pleural effusion", "finding"), is_known_name("Pleural Effusion", "finding")
        (True, False)
    """
    return name in _terms().names[kind]


def find_unknown_names(study: Study) -> set[tuple[Kind, str]]:
    """Find the names of a study that are not names of terms, with the kind of what they name."""
    return list_unknown_names(
        [finding.name for finding in study.findings],
        [device.name for device in study.devices],
        [structure.name for structure in study.anatomy],
        study.assessed.listed,
    )


def list_unknown_names(
    findings: Iterable[str], devices: Iterable[str], anatomy: Iterable[str], listed: Iterable[str]
) -> set[tuple[Kind, str]]:
    """List the names that are not names of terms.

    Args:
        findings: Names of findings.
        devices: Names of devices.
        anatomy: Names of structures.
        listed: Names of findings and devices that were looked for.

    Returns:
        Kinds and names. A name that was looked for and is neither a finding nor a device counts as a finding.
    """
    known = _terms().names
    unknown: set[tuple[Kind, str]] = {("finding", name) for name in findings if name not in known["finding"]}
    unknown |= {("device", name) for name in devices if name not in known["device"]}
    unknown |= {("anatomy", name) for name in anatomy if name not in known["anatomy"]}
    for name in listed:
        if name not in known["finding"] and name not in known["device"] and ("device", name) not in unknown:
            unknown.add(("finding", name))
    return unknown


def __getattr__(name: str) -> Any:  # noqa: ANN401 - the one name that is read from the file
    if name == "NO_FINDING_LABELS":
        return _terms().no_finding
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# ---- the file -------------------------------------------------------------------------------------------------------


@cache
def _terms() -> _Terms:
    import yaml  # noqa: PLC0415 - needed only here, and slow to import

    text = resources.files("carina.studies").joinpath("terms.yaml").read_text(encoding="utf-8")
    # The parser in C takes a tenth of the time, where PyYAML has it; every command that names a finding waits for it.
    content = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - a safe loader
    by_name = {
        name: Term(name, kind, tuple(entry.get("parents", ())), tuple(entry.get("synonyms", ())))
        for section, kind in _SECTIONS.items()
        for name, entry in content[section].items()
    }
    by_key: dict[str, Term] = {}
    children: dict[str, list[str]] = {}
    for term in by_name.values():
        for spelled in (term.name, *term.synonyms):
            by_key[_fold(spelled)] = term
        for parent in term.parents:
            children.setdefault(parent, []).append(term.name)
    return _Terms(
        by_name=by_name,
        by_key=by_key,
        parents={term.name: term.parents for term in by_name.values()},
        children={name: tuple(names) for name, names in children.items()},
        names={
            kind: frozenset(term.name for term in by_name.values() if term.kind == kind)
            for kind in _SECTIONS.values()
        },
        no_finding=tuple(content["no finding"]),
        statements=content["statements"],
        labels={data_set: _map_labels(labels, by_key) for data_set, labels in content["labels"].items()},
    )


def _map_labels(labels: list[str | dict[str, str]], by_key: Mapping[str, Term]) -> dict[str, str | None]:
    """Names of terms by label; an entry is a label, or a label with the name that it means."""
    mapped: dict[str, str | None] = {}
    for label in labels:
        if isinstance(label, dict):
            mapped |= label
        else:
            term = by_key.get(_fold(label))
            mapped[label] = None if term is None else term.name
    return mapped


@cache
def _no_finding_keys() -> frozenset[str]:
    return frozenset(_fold(label) for label in _terms().no_finding)


@lru_cache(4096)
def _find(name: str) -> Term | None:
    return _terms().by_key.get(_fold(name))


@lru_cache(1024)
def _find_nearest(name: str) -> str | None:
    by_key = _terms().by_key
    key = _fold(name)
    close = [key] if key in by_key else get_close_matches(key, by_key, n=1, cutoff=_CLOSE)
    return by_key[close[0]].name if close else None


def _fold(name: str) -> str:
    """The letters and digits of a name in small letters, the last word in the singular."""
    key = "".join(letter for letter in name.casefold() if letter.isalnum())
    for plural, singular in _PLURALS:
        if key.endswith(plural) and len(key) >= len(plural) + 2:
            return key.removesuffix(plural) + singular
    return key


def _walk(start: str, edges: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Everything that can be reached along the edges, the nearest first."""
    reached: dict[str, None] = {}
    nearest = list(edges.get(start, ()))
    while nearest:
        reached |= dict.fromkeys(nearest)
        nearest = [name for near in nearest for name in edges.get(near, ()) if name not in reached]
    return tuple(reached)
