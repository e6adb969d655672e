"""Facts of trek: what the keys of its conversations rest on, and the functions that make their rows.

A conversation has many rows, of which few are different. The functions below make each row once and keep it: one object
instead of many is also stored faster.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Final, Self

from carina.cases.facts import FactGroup, FactRecord, FactRow, Stored, stored_name
from carina.cases.model import Fact

ATTRIBUTES: Final = ("side", "location", "severity", "appearance", "distribution", "position")
"""What can be known of a finding or device; each is a field of `TrekStepFacts`."""
THINGS: Final = frozenset({"finding", "device"})
"""Kinds of targets that have a name and an id of their own."""

FOR_BALANCE: Final = "left out to keep yes and no balanced"
"""Why a finding or device that the study records is not asked about by name."""


@dataclass(frozen=True, kw_only=True)
class StudyTime(FactGroup):
    """When a study was made."""

    order: Annotated[float | None, Stored("order")] = None
    """Place among the studies of the patient."""
    date: Annotated[str | None, Stored("date")] = None
    """ISO date, as the source gives it."""


@dataclass(frozen=True, slots=True)
class NotAskedFact(FactRow):
    """Questions that are not asked: their key is not known, or they would unbalance the answers."""

    task: str
    reason: str
    number: float
    """How many: one for a question about the study, one for each finding or device of a question by name."""

    @classmethod
    def of_row(cls, row: Fact) -> Self | None:
        return None if row.text is None or row.value is None else cls(row.about, row.text, row.value)

    def to_row(self, name: str) -> Fact:
        return Fact(name=name, about=self.task, text=self.reason, value=self.number)


@dataclass(frozen=True, kw_only=True)
class TrekCaseFacts(FactRecord):
    """What is known of a conversation as a whole."""

    times: Mapping[str, StudyTime] = field(default_factory=dict)
    """By "current", "reference" and "later", when the study was made."""
    drawn_by: Annotated[Mapping[str, str], Stored("drawn by")] = field(default_factory=dict)
    """By name of a finding or device that is asked about: `BY_PROGRAM` where no person drew it."""
    stated_by: Annotated[Mapping[str, str], Stored("stated by")] = field(default_factory=dict)
    """By name of a finding or device that is asked about: `BY_PROGRAM` where only a program says whether it is
    present."""
    not_asked: Annotated[tuple[NotAskedFact, ...], Stored("not asked")] = ()
    """Questions that are not asked, by task and reason."""
    looked_for: Annotated[Mapping[str, str], Stored("looked for")] = field(default_factory=dict)
    """By "finding" and "device", which names are absent where the study does not record them: "every" one, the "listed"
    ones, or "none"."""


@dataclass(frozen=True, slots=True)
class TargetFact(FactRow):
    """What a question is about."""

    kind: str
    """ "finding", "device", "region", "study", "view", "quality" or "relation"."""
    name: str | None
    """None where an imported conversation does not say it."""

    @classmethod
    def of_row(cls, row: Fact) -> Self | None:
        return cls(row.about, row.text) if row.value is None else None

    def to_row(self, name: str) -> Fact:
        return Fact(name=name, about=self.kind, text=self.name)


@dataclass(frozen=True, slots=True)
class MeasureFact(FactRow):
    """A quantity that was measured."""

    thing: str
    """Id of the finding."""
    name: str
    value: float

    @classmethod
    def of_row(cls, row: Fact) -> Self | None:
        return None if row.text is None or row.value is None else cls(row.about, row.text, row.value)

    def to_row(self, name: str) -> Fact:
        return Fact(name=name, about=self.thing, text=self.name, value=self.value)


@dataclass(frozen=True, slots=True)
class RelationFact(FactRow):
    """How two things are related."""

    id: str
    subject: str
    """Id of a finding or device."""
    kind: str
    object: str
    """Id of a finding or device."""

    @classmethod
    def of_row(cls, row: Fact) -> Self | None:
        words = (row.text or "").split(" ")
        return None if len(words) < 3 else cls(row.about, words[0], " ".join(words[1:-1]), words[-1])

    def to_row(self, name: str) -> Fact:
        return Fact(name=name, about=self.id, text=f"{self.subject} {self.kind} {self.object}")


@dataclass(frozen=True, slots=True)
class RecommendationFact(FactRow):
    """What the study recommends."""

    things: tuple[str, ...]
    """Ids of the findings and devices that it is recommended for."""
    action: str

    @classmethod
    def of_row(cls, row: Fact) -> Self | None:
        return None if row.text is None else cls(tuple(row.about.split()), row.text)

    def to_row(self, name: str) -> Fact:
        return Fact(name=name, about=" ".join(self.things), text=self.action)


@dataclass(frozen=True, kw_only=True)
class TrekStepFacts(FactRecord):
    """What the key of a question rests on. Keys of mappings are ids of findings and devices, if not said otherwise."""

    targets: Annotated[tuple[TargetFact, ...], Stored("target")] = ()
    """What the question is about; a question with several names about each of them."""
    view: Annotated[str | None, Stored("view")] = None
    """Projections of the images that are shown, joined by ", "."""
    quality: Annotated[Mapping[str, str], Stored("quality")] = field(default_factory=dict)
    """By criterion (rotation, inspiration, exposure, coverage), its state."""
    truth: Annotated[Mapping[str, str], Stored("truth")] = field(default_factory=dict)
    """Certainty of each: "present", "absent" or "uncertain"; the key is empty for what the study does not mention."""
    negative: Annotated[str | None, Stored("negative")] = None
    """Why an absent finding is asked about: "stated" absent by the report, a "sibling" of a present one, or "sampled"
    from what was looked for or labelled as absent."""
    listed: Annotated[Mapping[str, str], Stored("listed")] = field(default_factory=dict)
    """As the right one of several lists names them."""
    side: Annotated[Mapping[str, str], Stored("side")] = field(default_factory=dict)
    """"on the right", "on the left", "on both sides"."""
    location: Annotated[Mapping[str, str], Stored("location")] = field(default_factory=dict)
    """Where it lies, or the tip of a device, as a phrase."""
    severity: Annotated[Mapping[str, str], Stored("severity")] = field(default_factory=dict)
    """"mild", "moderate" or "severe"."""
    appearance: Annotated[Mapping[str, str], Stored("appearance")] = field(default_factory=dict)
    """Terms for its appearance, joined by ", "."""
    distribution: Annotated[Mapping[str, str], Stored("distribution")] = field(default_factory=dict)
    """"focal", "multifocal" or "diffuse"."""
    position: Annotated[Mapping[str, str], Stored("position")] = field(default_factory=dict)
    """Whether a device lies where it should."""
    measures: Annotated[tuple[MeasureFact, ...], Stored("measure")] = ()
    """Quantities that were measured."""
    relations: Annotated[tuple[RelationFact, ...], Stored("relation")] = ()
    """How findings and devices are related."""
    trend: Annotated[Mapping[str, str], Stored("trend")] = field(default_factory=dict)
    """Change since the reference study, or up to the later one."""
    recommendations: Annotated[tuple[RecommendationFact, ...], Stored("recommendation")] = ()
    """What the study recommends."""
    quotes: Annotated[Mapping[str, str], Stored("quote")] = field(default_factory=dict)
    """By report ("current"), what the key quotes from it word for word, beside sentences of the wording."""
    history: Annotated[str | None, Stored("history")] = None
    """Imported conversations: "required" where the question cannot be understood without earlier turns."""
    judge: Annotated[str | None, Stored("judge")] = None
    """Imported conversations: what a judge said of the turn."""

    @property
    def target(self) -> TargetFact | None:
        """The one target that has a name; None where there are none or several."""
        named = [target for target in self.targets if target.name]
        return named[0] if len(named) == 1 else None

    @property
    def named(self) -> frozenset[str]:
        """Names of the findings and devices that the question is about."""
        return frozenset([target.name for target in self.targets if target.kind in THINGS and target.name])


# ---- rows, each made once ------------------------------------------------------------------------------------------

_KEPT: Final = 16384
"""How many rows are kept at most: those of the last few thousand questions."""
_TARGET: Final = stored_name(TrekStepFacts, "targets")
_NAMES: Final = {
    attribute: stored_name(TrekStepFacts, attribute)
    for attribute in (*ATTRIBUTES, "truth", "trend", "view", "quality", "negative", "listed")
}
_MEASURE: Final = stored_name(TrekStepFacts, "measures")
_RELATION: Final = stored_name(TrekStepFacts, "relations")
_RECOMMENDATION: Final = stored_name(TrekStepFacts, "recommendations")
_QUOTE: Final = stored_name(TrekStepFacts, "quotes")


@lru_cache(_KEPT)
def _row(name: str, about: str, text: str | None) -> Fact:
    return Fact(name=name, about=about, text=text)


def target_row(kind: str, name: str) -> Fact:
    """What a question is about."""
    return _row(_TARGET, kind, name)


def is_about_thing(row: Fact) -> bool:
    """Whether a row names a finding or device that its question is about."""
    return row.name == _TARGET and row.about in THINGS


def attribute_row(attribute: str, thing: str, value: str) -> Fact:
    """The value of one of `ATTRIBUTES` of a thing, by id."""
    return _row(_NAMES[attribute], thing, value)


def truth_row(thing: str, certainty: str) -> Fact:
    """Whether a thing, by id, is present."""
    return _row(_NAMES["truth"], thing, certainty)


def negative_row(origin: str) -> Fact:
    """Why an absent finding is asked about."""
    return _row(_NAMES["negative"], "", origin)


def listed_row(thing: str, name: str) -> Fact:
    """What the right one of several lists calls a thing."""
    return _row(_NAMES["listed"], thing, name)


def view_row(views: str) -> Fact:
    """Projections of the images that are shown."""
    return _row(_NAMES["view"], "", views)


def quality_row(criterion: str, state: str) -> Fact:
    """The state of a criterion of image quality."""
    return _row(_NAMES["quality"], criterion, state)


def trend_row(thing: str, trend: str) -> Fact:
    """How a thing has changed."""
    return _row(_NAMES["trend"], thing, trend)


def measure_row(thing: str, name: str, value: float) -> Fact:
    """A quantity that was measured."""
    return MeasureFact(thing, name, value).to_row(_MEASURE)


def relation_row(relation: str, subject: str, kind: str, other: str) -> Fact:
    """How two things are related, by ids."""
    return _row(_RELATION, relation, f"{subject} {kind} {other}")


def recommendation_row(things: tuple[str, ...], action: str) -> Fact:
    """What is recommended for things, by ids."""
    return _row(_RECOMMENDATION, " ".join(things), action)


def quote_row(report: str, text: str) -> Fact:
    """What the key quotes from a report word for word."""
    return Fact(name=_QUOTE, about=report, text=text)
