"""Terms: one hierarchy of findings, devices and anatomy with synonyms, read from `terms.yaml`.

The file is read when a term is first looked up. It also holds the labels of published data sets, and the labels that
state the absence of findings.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, lru_cache
from importlib import resources
from typing import Any, Final, Literal, NamedTuple

from carina.store.arguments import check_arguments
from carina.store.counts import format_count
from carina.store.errors import CarinaError
from carina.studies.certainty_words import split_certainty
from carina.studies.model import Study
from carina.studies.vocabulary import ABNORMALITY, ANY_DEVICE, Certainty

Kind = Literal["finding", "device", "anatomy"]
NO_FINDING_LABELS: tuple[str, ...]
"""Labels which state that nothing was found: they name no finding. Read from the file when they are first used."""

CONFIRMED: Final = "confirmed_names"
"""Option of a manifest: names that are not known and that the user has mapped labels to, so that they are meant."""
_SECTIONS: Final[Mapping[str, Kind]] = {"findings": "finding", "devices": "device", "anatomy": "anatomy"}
_UNNAMED: Final[Mapping[Kind, set[str]]] = {"finding": {ABNORMALITY}, "device": {ANY_DEVICE}}
"""Names that studies may use beside those of the terms, for anything of a kind."""
_KINDS_OR_NONE: Final = (None, *_SECTIONS.values())
_LONGEST_NAME: Final = 200
"""Characters of a name that is looked up; a longer text is no name."""
_CLOSE: Final = 0.8
"""Least similarity, from 0 to 1, of a name that is suggested for an unknown one."""
_DOUBTS: Final = frozenset(
    ("no", "not", "non", "without", "resolved", "history", "previous", "former", "status", "post")
)
"""Words with which a name means something else than without them, beside those that `split_certainty` reads."""
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
    """Number of studies that record it; 0 for a name that was looked for and is nowhere recorded."""

    @property
    def nearest(self) -> str | None:
        """The closest name of a term of this kind, or the same name of another kind; None where nothing is close."""
        return nearest_term(self.name, kind=self.kind)

    @property
    def message(self) -> str:
        """The name, where it is, and what may have been meant."""
        where = (
            f" in {format_count(self.studies, 'study', 'studies')}"
            if self.studies
            else ", which was looked for"
        )
        what = f"{self.kind} {self.name!r}{where}"
        nearest = self.nearest
        if nearest is None:
            return f"{what}: not a known name"
        if nearest == self.name:
            other = _terms().by_name[nearest].kind
            return f"{what}: known as the name of {'anatomy' if other == 'anatomy' else f'a {other}'}"
        return f"{what}: not a known name, did you mean {nearest!r}?"


class LabelMeaning(NamedTuple):
    """What a label of a data set says."""

    words: str
    """What it names, for `find_term`; empty where it names nothing."""
    certainty: Certainty
    """Whether the label says of itself that this is present, absent or uncertain."""


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
    normal: tuple[str, ...]
    statements: dict[str, str]
    labels: dict[str, dict[str, str | None]]
    """By data set and label, the name of the term; None for a label that names nothing."""


def find_term(name: str, kind: Kind | None = None) -> Term | None:
    """Find a term by its name or a synonym.

    Args:
        name: A name; case, spaces, hyphens, underscores and other signs do not count, nor does the plural. A name with
            a question mark is none: `read_label` reads labels that people wrote.
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


def nearest_term(name: str, *, kind: Kind | None = None) -> str | None:
    """Find the name of the term that is spelled most like a name, for messages.

    Args:
        name: A name, known or not.
        kind: Look for similar names among terms of this kind only; None for all.

    Returns:
        The name of the term; None where nothing is close, and for a name with a word of doubt or denial, such as "no
        effusion", which means something else than the name without it.

    Example:
        >>> nearest_term("plural efusion"), nearest_term("dragon")
        ('pleural effusion', None)
    """
    return _find_nearest(name, kind) if len(name) <= _LONGEST_NAME else None


def list_nearest_terms(name: str) -> tuple[str, ...]:
    """Names of the findings and devices that a name which is not known is close to; none for a known name.

    Example:
        >>> list_nearest_terms("pneumona"), list_nearest_terms("pneumonia"), list_nearest_terms("dragon")
        (('pneumonia',), (), ())
    """
    kinds: tuple[Kind, ...] = ("finding", "device")
    if is_known_name(name, "finding") or is_known_name(name, "device"):
        return ()
    near = (nearest_term(name, kind=kind) for kind in kinds)
    # A name that is that of anatomy, or a synonym of what was recorded under its own name, is no spelling mistake.
    return tuple(dict.fromkeys(one for one in near if one is not None and one != name))


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


@lru_cache(4096)
def read_label(label: str) -> LabelMeaning:
    """Read a label as people write it: what it names, and whether that is present, absent or uncertain.

    Args:
        label: The label.

    Returns:
        What it names and its certainty. A label that calls the image normal says that an "abnormality" is absent. "No
        finding" names nothing: it says that nothing was found of what was looked for, whatever that is.

    Example:
        >>> read_label("Nodule"), read_label("TB?").certainty, read_label("no effusion").certainty
        (LabelMeaning(words='Nodule', certainty='present'), 'uncertain', 'absent')
        >>> read_label("Normal"), read_label("No finding")
        (LabelMeaning(words='abnormality', certainty='absent'), LabelMeaning(words='', certainty='absent'))
    """
    if len(label) > _LONGEST_NAME or _find(label) is not None:
        return LabelMeaning(label, "present")
    if is_no_finding(label):
        return LabelMeaning(_what_is_denied(label), "absent")
    words, certainty = split_certainty(label)
    return (
        LabelMeaning(_what_is_denied(words), "uncertain")
        if is_no_finding(words)
        else LabelMeaning(words, certainty)
    )


def _what_is_denied(label: str) -> str:
    """The finding that a label of no finding says is not there: any; none where it may be about a list of findings."""
    return ABNORMALITY if _fold(label) in map(_fold, _terms().normal) else ""


def is_known_name(name: str, kind: Kind) -> bool:
    """Whether studies may use this name as it is: whether it is the name of a term of this kind, not a synonym.

    Example:
        >>> is_known_name("pleural effusion", "finding"), is_known_name("Pleural Effusion", "finding")
        (True, False)
    """
    return name in _terms().names[kind]


def find_unknown_names(study: Study) -> dict[tuple[Kind, str], bool]:
    """Find the names of a study that are not names of terms; see `list_unknown_names`."""
    return list_unknown_names(
        [finding.name for finding in study.findings],
        [device.name for device in study.devices],
        [structure.name for structure in study.anatomy],
        study.assessed.listed,
    )


def list_unknown_names(
    findings: Iterable[str], devices: Iterable[str], anatomy: Iterable[str], listed: Iterable[str]
) -> dict[tuple[Kind, str], bool]:
    """List the names that are not names of terms.

    Args:
        findings: Names of findings.
        devices: Names of devices.
        anatomy: Names of structures.
        listed: Names of findings and devices that were looked for.

    Returns:
        By kind and name, whether it is recorded, and not only looked for. A name that was looked for and is neither a
        finding nor a device counts as a finding.
    """
    known = _terms().names
    unknown: dict[tuple[Kind, str], bool] = {}
    recorded: tuple[tuple[Kind, Iterable[str]], ...] = (
        ("finding", findings), ("device", devices), ("anatomy", anatomy),
    )  # fmt: skip
    for kind, names in recorded:
        unknown |= {(kind, name): True for name in names if name not in known[kind]}
    for name in listed:
        if name not in known["finding"] and name not in known["device"] and ("device", name) not in unknown:
            unknown.setdefault(("finding", name), False)
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
            | _UNNAMED.get(kind, set())
            for kind in _SECTIONS.values()
        },
        no_finding=(*content["no finding"], *content["normal"]),
        normal=tuple(content["normal"]),
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
def _find_nearest(name: str, kind: Kind | None) -> str | None:
    by_key = _terms().by_key
    key = _fold(name)
    if key not in by_key and _has_doubt(name):
        return None
    if key in by_key:
        return by_key[key].name
    similar = [known for known, term in by_key.items() if kind in (None, term.kind)]
    close = get_close_matches(key, similar, n=1, cutoff=_CLOSE)
    return by_key[close[0]].name if close else None


def _has_doubt(name: str) -> bool:
    """Whether a name denies or doubts something, also in a way that `split_certainty` does not read."""
    words = name.replace("_", " ").replace("-", " ").casefold().split()
    return (
        split_certainty(name)[1] != "present" or not _DOUBTS.isdisjoint(words) or name[:3].casefold() == "non"
    )


def _fold(name: str) -> str:
    """The letters, digits and question marks of a name in small letters, the last word in the singular.

    A question mark is no mere sign: "pneumothorax?" does not say that there is one.
    """
    key = "".join(letter for letter in name.casefold() if letter.isalnum() or letter == "?")
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
