"""The wording sets as typed records: what each YAML file must hold, loaded, linted and parsed once.

A set lies in `wording/<language>/<name>.yaml`; what all sets of a language share (the words that name a
finding, the order of words in a phrase) lies in `common.yaml` beside them.
"""

import functools
from importlib import resources
from typing import Literal, TypeVar

import msgspec
import yaml

from carina.phantom.reports.grammar import Noun
from carina.phantom.reports.lint import lint, lint_common
from carina.phantom.reports.template import Frame
from carina.store.errors import CarinaError

WordingName = Literal["build", "held-out"]
Words = tuple[str, ...]
Frames = tuple[Frame, ...]


class Group(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Common settings: every group of a file is there, and nothing else is."""


class Grades(Group, frozen=True):
    mild: Words
    moderate: Words
    severe: Words


class Looks(Group, frozen=True):
    """Words for `Finding.appearance`: adjectives, "with ..." clauses, and nouns of its own.

    An appearance with a noun is never left out: a tension pneumothorax is called that wherever it is named.
    """

    adjectives: dict[str, Words] = {}
    clauses: dict[str, Words] = {}
    nouns: dict[str, tuple[Noun, ...]] = {}


class FindingWords(Group, frozen=True):
    nouns: tuple[Noun, ...]
    denied: Words
    """Nouns for "no ..."."""
    sentences: Frames
    fragments: Frames
    severity: Grades | None = None
    """Adjectives; None where a grade has no natural word."""
    looks: Looks = Looks()
    normal: Frames = ()
    """Sentences that deny this finding alone in words of their own."""


class DeviceWords(Group, frozen=True):
    nouns: tuple[Noun, ...]
    adequate: Frames
    malpositioned: Frames


class SharedDeviceWords(Group, frozen=True):
    adequate: Frames
    malpositioned: Frames
    plain: Frames
    fragments: Frames
    new: Frames
    unchanged: Frames
    removed: Frames
    uncertain: Frames
    tail_new: Frames
    tail_unchanged: Frames
    tail_worse: Frames
    tail_improved: Frames
    change_new: Frames
    """Sentences for the change alone, where the description has not told it."""
    change_worse: Frames
    change_improved: Frames
    group_adequate: Frames
    group_unchanged: Frames


class MeasureWords(Group, frozen=True):
    size: Frames = ()
    clause: Frames = ()


class Levels(Group, frozen=True):
    """Phrases for the zones of one side, or of both sides at one height."""

    upper: Frames
    mid: Frames
    lower: Frames


class ZoneWords(Group, frozen=True):
    """Zones as a noun phrase (`area`), as where something is (`place`), and as an adjective."""

    area: Levels
    area_both: Levels
    area_levels: Frames
    area_levels_both: Frames
    area_lung: Frames
    area_lungs: Frames
    place: Frames
    place_lung: Frames
    place_lungs: Frames
    adjective: Levels
    adjective_both: Levels
    flank: Frames
    flank_both: Frames


class TrendWords(Group, frozen=True):
    adjectives: Words
    tails: Frames
    sentences: Frames


class Trends(Group, frozen=True):
    new: TrendWords
    worse: TrendWords
    improved: TrendWords
    unchanged: TrendWords


class Resolved(Group, frozen=True):
    whole: Frames
    other: Frames
    """Where another finding of the same name is still there."""


class Hedges(Group, frozen=True):
    adjectives: Words
    sentences: Frames
    fragments: Frames


class RelationWords(Group, frozen=True):
    causes: Frames
    accompanies: Frames
    suggests: Frames
    suggests_uncertain: Frames
    device_causes: Frames
    device_accompanies: Frames
    joint_causes: Frames
    """For the impression: both things and their relation in one sentence."""
    joint_accompanies: Frames
    joint_suggests: Frames
    joint_suggests_uncertain: Frames


class Panel(Group, frozen=True):
    """Normal sentences that deny several findings at once."""

    denies: Words
    frames: Frames


class Denials(Group, frozen=True):
    lists: Frames
    pairs: Frames
    lungs: Panel
    pleura: Panel
    angles: Panel
    no_acute: Panel
    normal_chest: Panel


class QualityWords(Group, frozen=True):
    rotation: Frames
    inspiration: Frames
    over: Frames
    under: Frames
    cut_off: Frames
    adequate: Frames
    views: dict[str, Words]


class ImpressionWords(Group, frozen=True):
    present: Frames
    uncertain: Frames
    pair: Frames
    stable: Frames


class TechniqueWords(Group, frozen=True):
    views: dict[str, Frames]
    other: Frames


class ComparisonWords(Group, frozen=True):
    dated: Frames
    undated: Frames
    none: Words
    dates: Words
    since: Frames


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
    degree: Grades
    angles: dict[str, Words]
    zones: ZoneWords
    measures: dict[str, MeasureWords]
    trends: Trends
    resolved: Resolved
    hedges: Hedges
    relations: RelationWords
    findings: dict[str, FindingWords]
    devices: dict[str, DeviceWords]
    device: SharedDeviceWords
    denials: Denials
    quality: QualityWords
    impression: ImpressionWords
    recommendations: dict[str, Frames]
    technique: TechniqueWords
    comparison: ComparisonWords
    indications: dict[str, Frames]
    headings: Headings


class Agreement(Group, frozen=True):
    """Forms that follow the number of the noun: singular, plural."""

    be: tuple[str, str]
    has: tuple[str, str]
    s: tuple[str, str]


class Common(Group, frozen=True):
    """What all wording sets of a language share."""

    terms: dict[str, Words]
    device_terms: dict[str, Words]
    phrases: dict[str, Frames]
    references: dict[str, Frames]
    device_phrase: Frames
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
    """A wording set with what its language shares."""

    common: Common
    words: Wording


@functools.cache
def load_wording(language: str, name: WordingName) -> Language:
    """The named set, checked; CarinaError names the file and key of the first fault."""
    folder = f"wording/{language}"
    common, words = _read(f"{folder}/common.yaml"), _read(f"{folder}/{name}.yaml")
    return build_wording(common, words, folder=folder, name=name)


def build_wording(common: object, words: object, *, folder: str, name: str) -> Language:
    """The records from two parsed YAML documents, after linting both."""
    common_file, words_file = f"{folder}/common.yaml", f"{folder}/{name}.yaml"
    # Linted first: its messages name the key, which those of the conversion do inside mappings only by index.
    lint_common(common, file=common_file)
    shared = _convert(common, Common, file=common_file)
    lint(words, file=words_file, terms=shared.terms | shared.device_terms)
    return Language(common=shared, words=_convert(words, Wording, file=words_file))


def _read(path: str) -> object:
    file = resources.files("carina.phantom").joinpath(path)
    try:
        return yaml.safe_load(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CarinaError(f"there is no wording file {path}") from None
    except yaml.YAMLError as error:
        raise CarinaError(f"{path} is not YAML: {error}") from None


T = TypeVar("T")


def _convert(document: object, kind: type[T], *, file: str) -> T:
    try:
        return msgspec.convert(document, kind, dec_hook=_decode)
    except msgspec.ValidationError as error:
        raise CarinaError(f"{file}: {error}") from None


def _decode(kind: type, text: object) -> Frame | Noun:
    if not isinstance(text, str):
        raise TypeError(f"expected a text, got {text!r}")
    return Noun(text) if kind is Noun else Frame(text)
