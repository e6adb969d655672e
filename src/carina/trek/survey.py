"""Survey of a study set: what it holds, and how often to ask each question so that no answer can be guessed.

A conversation is made from one study, but whether its questions are balanced is a matter of the set: a "no" must be as
common as a "yes" for every finding that is named, a wrong place as typical of the finding as the right one. One pass
over the set (over an even sample of a large one) gives the weights; every conversation then draws on its own.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from carina.studies.assessment import Kind
from carina.studies.model import Study
from carina.studies.vocabulary import ZONES
from carina.trek.balance import Balance, KindContent, WrongValues, balance_wrong_values, fit_balance
from carina.trek.facts import ATTRIBUTES
from carina.trek.language import Language
from carina.trek.subject import AbsentThing, Subject, Thing, is_asked_by_name, subject_of

_MOST_VALUES: Final = 40
"""Most values of one attribute of one finding that are used as wrong values."""
_MOST_DESCRIPTIONS: Final = 200


@dataclass(frozen=True)
class Survey:
    """What every conversation needs to know about the set."""

    studies: int
    known: tuple[tuple[Kind, str], ...]
    """Findings and devices that occur at all, present or absent."""
    balance: Mapping[Kind, Balance]
    wrong: Mapping[tuple[str, str], WrongValues]
    """By name in questions and attribute, the wrong values."""
    descriptions: Mapping[str, tuple[str, ...]]
    """By name, how it is described elsewhere in the set, most common first."""
    stated_locations: Mapping[str, tuple[frozenset[str], str | None]]
    """By description, the location and the severity that it states."""
    by_source: Mapping[str, tuple[tuple[Kind, str], ...]]
    """By source, the part of `known` that it records: sources may record different findings."""
    zones: Mapping[str, float]
    """By zone, its share among the affected zones."""


@dataclass
class SurveyCounts:
    """Counts of a survey, of all studies or of some of them; no study is kept."""

    studies: int = 0
    known: dict[str, set[tuple[Kind, str]]] = field(default_factory=lambda: defaultdict(set))
    """By source, the findings and devices that it records."""
    contents: dict[Kind, Counter[KindContent]] = field(
        default_factory=lambda: {"finding": Counter(), "device": Counter()}
    )
    values: dict[tuple[str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    meaning: dict[tuple[str, str, str], frozenset[str]] = field(default_factory=dict)
    descriptions: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    stated_locations: dict[str, tuple[frozenset[str], str | None]] = field(default_factory=dict)
    zones: Counter[str] = field(default_factory=Counter)
    """By zone, the number of studies in which it holds something."""
    uncertain: Counter[Kind] = field(default_factory=Counter)
    """Number of uncertain findings and devices that can be asked about by name."""

    def add(self, other: "SurveyCounts") -> None:
        """Add the counts of studies that come after these."""
        self.studies += other.studies
        for source, names in other.known.items():
            self.known[source] |= names
        for kind, times in other.contents.items():
            self.contents[kind].update(times)
        for attribute, texts in other.values.items():
            self.values[attribute].update(texts)
        self.meaning.update(other.meaning)
        for name, texts in other.descriptions.items():
            self.descriptions[name].update(texts)
        self.stated_locations.update(other.stated_locations)
        self.zones.update(other.zones)
        self.uncertain.update(other.uncertain)


def survey_studies(
    studies: Iterable[Study],
    words: Language,
    *,
    choices: float = 0.0,
    uncertain: float = 1.0,
    most_images: int = 2,
) -> Survey:
    """Survey the studies in one pass; as `survey_from_counts`."""
    counts = count_studies(studies, words, most_images=most_images)
    return survey_from_counts([counts], choices=choices, uncertain=uncertain)


def count_studies(studies: Iterable[Study], words: Language, *, most_images: int) -> SurveyCounts:
    """Count what a survey needs to know about some studies."""
    counts = SurveyCounts()
    for study in studies:
        counts.studies += 1
        here = counts.known[study.source]
        findings = [words.canonical(one.name) for one in study.findings]
        devices = [words.canonical(one.name) for one in study.devices]
        here.update([("finding", name) for name in findings if is_asked_by_name(name)])
        here.update([("device", name) for name in devices if is_asked_by_name(name)])
        _count_subject(counts, subject_of(study, words, known=(), most_images=most_images))
    return counts


def survey_from_counts(
    counted_apart: Iterable[SurveyCounts], *, choices: float, uncertain: float = 1.0
) -> Survey:
    """The survey of studies that were counted in several groups, given in their order.

    Args:
        counted_apart: Counts of each group.
        choices: Share of present findings that are not asked about by name.
        uncertain: Largest share of the questions by name with the answer "uncertain".
    """
    counts = SurveyCounts()
    for some in counted_apart:
        counts.add(some)
    by_source = {source: tuple(sorted(names)) for source, names in sorted(counts.known.items())}
    names = tuple(sorted(set().union(*counts.known.values())))
    return Survey(
        studies=counts.studies,
        known=names,
        balance={
            kind: fit_balance(
                [name for other, name in names if other == kind],
                seen,
                choices=choices,
                uncertain=counts.uncertain[kind],
                most_uncertain=uncertain,
            )
            for kind, seen in counts.contents.items()
        },
        wrong={
            (name, attribute): balance_wrong_values(
                _most_common(values, _MOST_VALUES),
                {value: counts.meaning[name, attribute, value] for value in values},
            )
            for (name, attribute), values in counts.values.items()
            if len(values) > 1
        },
        descriptions={
            name: tuple(text for text, _ in _most_common(texts, _MOST_DESCRIPTIONS))
            for name, texts in counts.descriptions.items()
        },
        stated_locations=counts.stated_locations,
        by_source=by_source,
        zones={zone: counts.zones[zone] / max(1, counts.zones.total()) for zone in ZONES},
    )


def _count_subject(counts: SurveyCounts, subject: Subject) -> None:
    noticed = frozenset(thing.name for thing in subject.things)
    settled = frozenset(subject.resolved)
    held = subject.held_zones()
    counts.zones.update(held or ())
    by_kind: dict[Kind, tuple[list[Thing], list[AbsentThing]]] = {
        "finding": (subject.findings, subject.absent_findings),
        "device": (subject.devices, subject.absent_devices),
    }
    for kind, (things, absent) in by_kind.items():
        there = tuple(sorted(thing.name for thing in things if thing.is_present and thing.alone))
        # An image with a device is not called normal.
        some = bool(things) or subject.has_device
        listed = subject.looked_for[kind]
        looked_for = None if listed is None else listed.union([missing.name for missing in absent])
        none_known = subject.anything[kind] == "absent"
        content = KindContent(
            there, noticed, some, settled, subject.stratum, looked_for=looked_for, is_none_known=none_known
        )
        counts.contents[kind][content] += 1
        counts.uncertain[kind] += sum(thing.certainty == "uncertain" and thing.alone for thing in things)
        for thing in things:
            if thing.is_present:
                counts.descriptions[thing.name][thing.plain] += 1
                counts.stated_locations[thing.plain] = (thing.means("location"), thing.values.get("severity"))
            for attribute in ATTRIBUTES:
                if attribute in thing.values:
                    value = thing.values[attribute]
                    counts.values[thing.calling, attribute][value] += 1
                    counts.meaning[thing.calling, attribute, value] = thing.means(attribute)


def _most_common(values: Counter[str], most: int) -> list[tuple[str, int]]:
    return sorted(values.items(), key=lambda item: (-item[1], item[0]))[:most]
