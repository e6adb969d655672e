"""What a source states about one study in the making: findings and devices, and what was looked for."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import msgspec

from carina.sources._defects import DefectCounts, RecordPlace
from carina.sources._labels import assess_labels, classify_label, name_listed, name_of
from carina.sources._record import RecordError
from carina.studies.model import Annotation, Assessed, SalientPoint
from carina.studies.terms import ancestors, is_kind_of, is_no_finding, list_nearest_terms
from carina.studies.vocabulary import ABNORMALITY, Certainty


@dataclass
class DraftThing:
    """A finding or a device in the making."""

    name: str
    label: str
    certainty: Certainty
    is_device: bool
    annotations: list[Annotation] = field(default_factory=list)
    comparisons: list[Annotation] = field(default_factory=list)
    points: list[SalientPoint] = field(default_factory=list)
    stated_by: list[str] = field(default_factory=list)
    """Readers who state it."""
    is_decided: bool = False
    """Whether its certainty is what several readers come to."""
    rank: int = 0
    """Rank of the statement that counts."""
    is_by_program: bool = False
    """Whether only programs state it."""


class DraftStatements:
    """What is stated about a study in the making; `StudyDraft` says how statements are combined.

    Args:
        defects: Counts of what is wrong.
        names: Our names for labels that the user has mapped.
    """

    def __init__(self, defects: DefectCounts, names: Mapping[str, str]) -> None:
        self.defects = defects
        """What is wrong in the record, or in one of its rows: say which with `read_row`."""
        self.names = names
        self.rank = 0
        """Rank of the statements that are read now: begin with those that are trusted most, and count upwards."""
        self.is_by_program = False
        """Whether a program states what is read now, such as labels that were mined from the report."""
        self._things: dict[str, DraftThing] = {}
        self._disputed: dict[str, None] = {}
        self._normal: dict[RecordPlace, None] = {}
        """Where the record says that nothing is there."""
        self._covered: list[str] = []
        """Labels that are absent because it says so."""
        self._mined: set[str] = set()
        """Names that are absent because a program does not state them."""
        self._first_places: dict[str, RecordPlace] = {}
        """By name, where it is first said to be present or uncertain."""

    def state(self, label: str, certainty: Certainty = "present", *, words: str = "") -> DraftThing:
        """State that something is present, absent or uncertain.

        Args:
            label: As the source writes it.
            certainty: Whether it is present.
            words: What to look up in the vocabulary, where that is not the label.

        Returns:
            The finding or device; one that is not part of the study where the label names none, such as "No finding".
        """
        label = label.strip()
        name, is_device, stated = self._interpret(label, certainty, words)
        thing = self._things.get(name)
        if thing is not None and thing.is_decided:
            return thing
        self._count_wording(label, certainty, words, stated)
        if not name or stated is None:
            if stated == "absent" and is_no_finding(self.names.get(label, words or label)):
                self._normal[self.defects.place] = None
            return DraftThing(name, label, "absent", is_device)
        if thing is None:
            thing = self._things[name] = DraftThing(
                name, label, stated, is_device, rank=self.rank, is_by_program=self.is_by_program
            )
        thing.is_by_program &= self.is_by_program or thing.certainty != stated
        if thing.certainty != stated:
            self.defects["conflict"] += 1
            if thing.rank == self.rank and "uncertain" not in (thing.certainty, stated):
                self.dispute(name)
        elif name == ABNORMALITY and stated == "absent":
            self._normal[self.defects.place] = None
        return thing

    def read_statement(
        self, label: str, certainty: Certainty, *, words: str = ""
    ) -> tuple[str, Certainty | None]:
        """The name and the certainty that a statement comes to, without stating it; counts defects as `state` does."""
        name, _, stated = self._interpret(label.strip(), certainty, words)
        self._count_wording(label.strip(), certainty, words, stated)
        return name, stated

    def decide(self, name: str, label: str, certainty: Certainty, *, stated_by: Iterable[str]) -> None:
        """Record what several readers come to about a finding; no later statement changes it or contradicts it.

        Args:
            name: A name of `read_statement`.
            label: As the source writes it.
            certainty: What it comes to.
            stated_by: Readers who state that it is present.
        """
        is_device = classify_label(name, certainty)[1]
        self._things[name] = DraftThing(
            name, label, certainty, is_device, stated_by=list(stated_by), is_decided=True
        )

    def dispute(self, name: str) -> None:
        """Record that nothing is known of a name of `read_statement`, since equally trusted statements contradict."""
        self._disputed[name] = None

    def _interpret(self, label: str, certainty: Certainty, words: str) -> tuple[str, bool, Certainty | None]:
        if not label:
            raise RecordError("label", "is empty", kind="label")
        name, is_device, stated = classify_label(self.names.get(label, words or label), certainty)
        if stated in ("present", "uncertain"):
            self._first_places.setdefault(name, self.defects.place)
        return name, is_device, stated

    def _count_wording(self, label: str, certainty: Certainty, words: str, stated: Certainty | None) -> None:
        """Count a label whose own words say something else than its source does, or that name nothing."""
        if stated == certainty:
            return
        words = self.names.get(label, words or label)
        if not is_no_finding(words):
            self.defects["wording" if stated is not None and name_of(words) else "nameless"] += 1

    def state_normal(self, label: str) -> None:
        """State that the source calls the images normal; "No finding" means that in some sources, and not in others."""
        self.state(label, "absent", words=ABNORMALITY)

    def state_no_finding(self, covered: Iterable[str] = ()) -> None:
        """State that the record says "No Finding" of a closed list of labels.

        What it covers was looked for, and is absent, unless the record says of any finding that it is or may be there:
        then "No Finding" contradicts it, is counted as a conflict, and says nothing. Devices do not contradict it.

        Args:
            covered: The labels that it covers; none where it is not trusted to say what was looked for.
        """
        self._normal[self.defects.place] = None
        labels = list(covered)
        self._covered += labels
        if self.is_by_program:
            self._mined |= name_listed(labels).keys()

    # ---- what was looked for -----------------------------------------------------------------------------------------

    def _add_disputed(self, assessed: Assessed) -> Assessed:
        if not self._disputed:
            return assessed
        names = tuple(sorted({*assessed.disputed, *self._disputed}))
        return msgspec.structs.replace(assessed, disputed=names)

    def _add_covered(self, assessed: Assessed) -> Assessed:
        """What was looked for, with what "No Finding" covers."""
        if not self._covered:
            return assessed
        covered = assess_labels(self._covered)
        return msgspec.structs.replace(
            assessed,
            findings="listed" if assessed.findings == "unknown" else assessed.findings,
            devices=covered.devices if assessed.devices == "unknown" else assessed.devices,
            listed=tuple(sorted({*assessed.listed, *covered.listed})),
        )

    def _dispute_near_names(self, assessed: Assessed) -> Assessed:
        recorded = {thing.name for thing in self._things.values() if thing.certainty != "absent"}
        confirmed = {name_of(ours) for ours in self.names.values()}
        meant: set[str] = set()
        for name in sorted(recorded - confirmed):
            nearest = list_nearest_terms(name)
            meant.update(*((near, *ancestors(near)) for near in nearest))
            if nearest:
                self.defects.place = self._first_places.get(name, self.defects.place)
                self.defects["near name"] += 1
        meant |= {
            name
            for name, near in _list_near_names(assessed.listed)
            if name not in confirmed
            and (near in recorded or any(is_kind_of(other, near) for other in recorded))
        }
        is_open = "every" in (assessed.findings, assessed.devices)
        disputed = {name for name in meant - set(self._things) if is_open or name in assessed.listed}
        if not disputed:
            return assessed
        disputed |= set(assessed.disputed)
        return msgspec.structs.replace(assessed, disputed=tuple(sorted(disputed)))

    def _drop_normal(self) -> None:
        """Leave out that nothing is there, where the record says of a finding that it is or may be there."""
        noticed = {thing.name for thing in self._things.values() if thing.certainty != "absent"}
        noticed |= self._disputed.keys() - {ABNORMALITY}
        if all(classify_label(name, "present")[1] for name in noticed):
            return
        for place in self._normal:
            self.defects.place = place
            self.defects["conflict"] += 1
        self._normal.clear()
        self._covered.clear()
        self._mined.clear()
        general = self._things.get(ABNORMALITY)
        if general is not None and general.certainty == "absent":
            del self._things[ABNORMALITY]

    def _name_by_program(self, listed: Iterable[str]) -> tuple[str, ...]:
        """Names of which only a program says whether they are present."""
        names = {*self._mined, *name_listed(listed)} - self._things.keys()
        names |= {thing.name for thing in self._things.values() if thing.is_by_program}
        return tuple(sorted(names))


@lru_cache(maxsize=64)
def _list_near_names(listed: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Names of a list that are not known, each with a name that it is close to; one list serves all studies."""
    return tuple((name, near) for name in listed for near in list_nearest_terms(name))
