"""Wording sets as typed records: the content of each YAML file, checked and parsed once.

A set is in `wording/<language>/<name>.yaml`; what all sets of a language share (the words that name a
finding, the order of words in a phrase) is in `common.yaml` in the same directory.
"""

import functools
from importlib import resources
from typing import Literal, TypeVar

import msgspec
import yaml

from carina.phantom.reports.grammar import Noun
from carina.phantom.reports.lint import lint_common, lint_wording
from carina.phantom.reports.template import Template
from carina.store.errors import CarinaError

WordingName = Literal["build", "held-out"]
Words = tuple[str, ...]
Templates = tuple[Template, ...]


class Group(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base class of the groups of a file: all fields are required unless they have a default, others are forbidden."""


class SeverityWords(Group, frozen=True):
    mild: Words
    moderate: Words
    severe: Words


class AppearanceWords(Group, frozen=True):
    """Words for `Finding.appearance`: adjectives, "with ..." clauses, and nouns.

    An appearance with a noun is always stated: a tension pneumothorax is called that wherever it is named.
    """

    adjectives: dict[str, Words] = {}
    clauses: dict[str, Words] = {}
    nouns: dict[str, tuple[Noun, ...]] = {}


class FindingWords(Group, frozen=True):
    nouns: tuple[Noun, ...]
    denied: Words
    """Nouns for "no ..."."""
    sentences: Templates
    fragments: Templates
    severity: SeverityWords | None = None
    """Adjectives; None if the finding is not graded in words."""
    appearance: AppearanceWords = AppearanceWords()
    normal: Templates = ()
    """Sentences that deny this finding alone."""


class DeviceWords(Group, frozen=True):
    nouns: tuple[Noun, ...]
    adequate: Templates
    malpositioned: Templates


class SharedDeviceWords(Group, frozen=True):
    adequate: Templates
    malpositioned: Templates
    plain: Templates
    fragments: Templates
    new: Templates
    unchanged: Templates
    removed: Templates
    uncertain: Templates
    tail_new: Templates
    tail_unchanged: Templates
    tail_worse: Templates
    tail_improved: Templates
    change_new: Templates
    """Sentences for the change alone, if the description has not stated it."""
    change_worse: Templates
    change_improved: Templates
    group_adequate: Templates
    group_unchanged: Templates


class MeasureWords(Group, frozen=True):
    size: Templates = ()
    clause: Templates = ()


class LevelTemplates(Group, frozen=True):
    """Phrases for the zones of one side, or of both sides at one level."""

    upper: Templates
    mid: Templates
    lower: Templates


class ZoneWords(Group, frozen=True):
    """Zones as a noun phrase (`area`), as an adverbial phrase (`place`), and as an adjective."""

    area: LevelTemplates
    area_both: LevelTemplates
    area_levels: Templates
    area_levels_both: Templates
    area_lung: Templates
    area_lungs: Templates
    place: Templates
    place_lung: Templates
    place_lungs: Templates
    adjective: LevelTemplates
    adjective_both: LevelTemplates
    flank: Templates
    flank_both: Templates


class TrendWords(Group, frozen=True):
    adjectives: Words
    tails: Templates
    sentences: Templates


class TrendGroup(Group, frozen=True):
    new: TrendWords
    worse: TrendWords
    improved: TrendWords
    unchanged: TrendWords


class ResolvedWords(Group, frozen=True):
    whole: Templates
    other: Templates
    """If another finding of the same name is still present."""


class HedgeWords(Group, frozen=True):
    adjectives: Words
    sentences: Templates
    fragments: Templates


class RelationWords(Group, frozen=True):
    causes: Templates
    accompanies: Templates
    suggests: Templates
    suggests_uncertain: Templates
    device_causes: Templates
    device_accompanies: Templates
    joint_causes: Templates
    """For the impression: two findings and their relation in one sentence."""
    joint_accompanies: Templates
    joint_suggests: Templates
    joint_suggests_uncertain: Templates


class JointDenial(Group, frozen=True):
    """Sentences about normal organs that deny several findings together."""

    denies: Words
    templates: Templates


class DenialWords(Group, frozen=True):
    lists: Templates
    pairs: Templates
    lungs: JointDenial
    pleura: JointDenial
    angles: JointDenial
    no_acute: JointDenial
    normal_chest: JointDenial


class QualityWords(Group, frozen=True):
    rotation: Templates
    inspiration: Templates
    over: Templates
    under: Templates
    cut_off: Templates
    adequate: Templates
    views: dict[str, Words]


class ImpressionWords(Group, frozen=True):
    present: Templates
    uncertain: Templates
    pair: Templates
    stable: Templates


class TechniqueWords(Group, frozen=True):
    views: dict[str, Templates]
    other: Templates


class ComparisonWords(Group, frozen=True):
    dated: Templates
    undated: Templates
    none: Words
    dates: Words
    since: Templates


class Headings(Group, frozen=True):
    quality: Words
    devices: Words
    lungs: Words
    pleura: Words
    heart: Words
    bones: Words


class Wording(Group, frozen=True):
    """One wording set."""

    sides: dict[str, Words]
    distribution: dict[str, Words]
    degree: SeverityWords
    angles: dict[str, Words]
    zones: ZoneWords
    measures: dict[str, MeasureWords]
    trends: TrendGroup
    resolved: ResolvedWords
    hedges: HedgeWords
    relations: RelationWords
    findings: dict[str, FindingWords]
    devices: dict[str, DeviceWords]
    device: SharedDeviceWords
    denials: DenialWords
    quality: QualityWords
    impression: ImpressionWords
    recommendations: dict[str, Templates]
    technique: TechniqueWords
    comparison: ComparisonWords
    indications: dict[str, Templates]
    headings: Headings


class Agreement(Group, frozen=True):
    """Forms that agree with the number of the noun: singular, plural."""

    be: tuple[str, str]
    has: tuple[str, str]
    s: tuple[str, str]


class CommonWords(Group, frozen=True):
    """Words that all wording sets of a language share."""

    terms: dict[str, Words]
    device_terms: dict[str, Words]
    phrases: dict[str, Templates]
    references: dict[str, Templates]
    device_phrase: Templates
    measures: dict[str, Literal["length", "ratio", "percent", "count"]]
    levels: dict[str, str]
    agreement: Agreement
    article: str
    definite: str
    conjunctions: dict[str, str]
    people: dict[str, str]
    site_starts: Words
    site_joint: str


class Language(msgspec.Struct, frozen=True):
    """A wording set with the common words of its language."""

    common: CommonWords
    words: Wording


@functools.cache
def load_wording(language: str, name: WordingName) -> Language:
    """Load and check a wording set; CarinaError names the file and key of the first problem."""
    folder = f"wording/{language}"
    common, words = _read(f"{folder}/common.yaml"), _read(f"{folder}/{name}.yaml")
    return build_wording(common, words, folder=folder, name=name)


def build_wording(common: object, words: object, *, folder: str, name: str) -> Language:
    """Check two parsed YAML documents and convert them to records."""
    common_file, words_file = f"{folder}/common.yaml", f"{folder}/{name}.yaml"
    # Checked before conversion, because errors of the conversion do not name keys inside mappings.
    lint_common(common, file=common_file)
    shared = _convert(common, CommonWords, file=common_file)
    lint_wording(words, file=words_file, terms=shared.terms | shared.device_terms)
    return Language(common=shared, words=_convert(words, Wording, file=words_file))


def _read(path: str) -> object:
    file = resources.files("carina.phantom").joinpath(path)
    try:
        return yaml.safe_load(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CarinaError(f"{path}: there is no such wording file") from None
    except yaml.YAMLError as error:
        raise CarinaError(f"{path}: not valid YAML: {error}") from None


T = TypeVar("T")


def _convert(document: object, kind: type[T], *, file: str) -> T:
    try:
        return msgspec.convert(document, kind, dec_hook=_decode)
    except msgspec.ValidationError as error:
        raise CarinaError(f"{file}: {error}") from None


def _decode(kind: type, text: object) -> Template | Noun:
    if not isinstance(text, str):
        raise TypeError(f"expected a text, got {text!r}")
    return Noun(text) if kind is Noun else Template(text)
