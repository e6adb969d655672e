"""Select positive and negative probes: one pass over the studies, without decoding a mask.

A finding counts as absent where the study records it so, or where it was looked for and is not recorded; if no other
finding of the study may be called by its name, and no other study of the patient has it. A negative probe must be
certain: a study in which nobody looked for a finding gives none.
"""

import hashlib
import sys
from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from carina.ground.options import GroundOptions
from carina.ground.truth import drawn_on
from carina.reports.combine import CombinedStudy, combine_with_report
from carina.reports.conflicts import IN_CONFLICT, Conflict
from carina.studies import Finding, Image, Study
from carina.studies.assessment import NOT_LOOKED_FOR, UNNAMED, absent_if_silent, drop_partial_denials
from carina.studies.faults import is_sound_image
from carina.studies.lookalikes import is_clearly_absent
from carina.studies.readers import presence_votes

FRONTAL: Final = ("PA", "AP", "unknown")
UNCERTAIN: Final = "uncertain"
NOT_DRAWN: Final = "not drawn"
REJECTED: Final = "not drawn, as defects.csv of the import lists a region of the study that was rejected"
NO_IMAGE: Final = "no image of a view that is asked about"
NO_PHRASE: Final = "no sentence of the report states it alone"
ALIKE: Final = "something there may be called by its name"
ELSEWHERE: Final = "another study of the patient has it"
MISSPELT: Final = "a name that is not known may be a misspelling of it"
_RANK: Final = 16
"""Bytes of a digest that decide the random order; no two probes share as many."""
_ROW: Final = np.dtype(
    [
        ("place", np.int64),
        ("target", np.int32),
        ("image", np.int32),
        ("phrase", np.int64),
        ("present", np.bool_),
        ("yes_first", np.bool_),
    ]
)
"""A selected probe."""


class Wanted(NamedTuple):
    """What a probe asks for, and what its truth is made of."""

    phrase: str
    """Name of the finding, or a sentence of the report."""
    reader: str = ""
    """The reader whose region is the truth, where each reader has a probe."""
    findings: tuple[str, ...] = ()
    """Ids of the findings that the sentence states; none for all findings of the name."""


@dataclass(frozen=True, slots=True)
class SelectedProbe:
    """A probe that will be built."""

    place: int
    """Place of the study in the set."""
    target: str
    image: int
    """Place of the image among the images of the study, sorted by key."""
    wanted: Wanted
    present: bool
    yes_first: bool = True

    @property
    def phrase(self) -> str:
        """Name of the finding, or a sentence of the report."""
        return self.wanted.phrase


@dataclass
class _Probes:
    """Candidates of one finding, some forty bytes each: a large set has millions."""

    places: "array[int]" = field(default_factory=lambda: array("q"))
    images: "array[int]" = field(default_factory=lambda: array("i"))
    phrases: "array[int]" = field(default_factory=lambda: array("q"))
    """Numbers of what is asked for."""
    patients: "array[int]" = field(default_factory=lambda: array("q"))
    ranks: bytearray = field(default_factory=bytearray)
    """Places in a random order: digests of `_RANK` bytes."""

    def add(self, place: int, image: int, phrase: int, patient: int, rank: bytes) -> None:
        self.places.append(place)
        self.images.append(image)
        self.phrases.append(phrase)
        self.patients.append(patient)
        self.ranks += rank

    def __len__(self) -> int:
        return len(self.places)

    def in_random_order(self, without: "array[int]") -> NDArray[np.int64]:
        """Numbers of the candidates in random order, without those of these patients."""
        order = np.argsort(np.frombuffer(bytes(self.ranks), f"S{_RANK}"), kind="stable")
        if not without:
            return order
        return order[~np.isin(np.array(self.patients)[order], np.array(without))]


@dataclass
class ProbeCandidates:
    """Probes that the studies allow, and the reasons where they allow none."""

    present: dict[str, _Probes] = field(default_factory=lambda: defaultdict(_Probes))
    absent: dict[str, _Probes] = field(default_factory=lambda: defaultdict(_Probes))
    affected: dict[str, "array[int]"] = field(default_factory=lambda: defaultdict(lambda: array("q")))
    """By finding, the patients in whom it is present or uncertain."""
    patients: dict[str, int] = field(default_factory=dict)
    """Numbers of the patients."""
    phrases: dict[Wanted, int] = field(default_factory=dict)
    """Numbers of what probes ask for."""
    skipped: list[tuple[str, str, str]] = field(default_factory=list)
    """Study, finding and reason, for findings that are present and cannot be asked about."""
    not_absent: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By finding and reason, how many studies without it give no negative probe."""
    votes: dict[str, "array[int]"] = field(default_factory=lambda: defaultdict(lambda: array("q")))
    """By finding, for each study that several readers looked at: number of the patient, readers who state the finding,
    and readers."""
    conflicts: list[Conflict] = field(default_factory=list)
    """Findings that the report and the records of a study contradict each other about."""
    studies: int = 0
    rejected: Collection[str] = ()
    """Ids of the studies of which the import has left a region out."""

    def number_patient(self, patient: str) -> int:
        """The number of a patient."""
        return self.patients.setdefault(patient, len(self.patients))

    def number_phrase(self, wanted: Wanted) -> int:
        """The number of what a probe asks for."""
        return self.phrases.setdefault(wanted, len(self.phrases))


class SelectedProbes(Sequence[SelectedProbe]):
    """The probes of a benchmark, in the order of the studies; each is made when it is asked for."""

    def __init__(self, targets: Sequence[str], phrases: Sequence[Wanted], rows: NDArray[np.void]) -> None:
        self._targets = targets
        self._phrases = phrases
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, at: int) -> SelectedProbe: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[SelectedProbe, ...]: ...

    def __getitem__(self, at: int | slice) -> SelectedProbe | tuple[SelectedProbe, ...]:
        """One probe, or a tuple of neighbours."""
        if isinstance(at, slice):
            return tuple(map(self._make, self._rows[at].tolist()))
        return self._make(self._rows[at].tolist())

    def _make(self, row: tuple[int, int, int, int, bool, bool]) -> SelectedProbe:
        place, target, image, phrase, present, yes_first = row
        return SelectedProbe(place, self._targets[target], image, self._phrases[phrase], present, yes_first)


def find_candidates(
    studies: Iterable[tuple[int, Study]],
    options: GroundOptions,
    *,
    names: Collection[str] = (),
    rejected: Collection[str] = (),
) -> ProbeCandidates:
    """Positive and negative probes that the studies allow, and the reasons where they allow none.

    Args:
        studies: Studies with their places in the set.
        options: Options of the build.
        names: Findings that any study of the set has; negative probes ask for them where they are not recorded.
        rejected: Ids of the studies of which the import has left a region out.
    """
    candidates = ProbeCandidates(rejected=rejected)
    wanted = frozenset(name for name in names if not options.targets or name in options.targets)
    for place, stored in studies:
        candidates.studies += 1
        combined = combine_with_report(stored, on_conflict=options.on_conflict, trust=options.trust)
        study = combined.study
        if combined.conflicts:
            _add_conflicts(candidates, combined, options)
        recorded = {finding.name for finding in stored.findings}
        if len(stored.assessed.readers) > 1:
            _add_votes(candidates, stored, wanted)
        by_name: dict[str, set[str]] = defaultdict(set)
        for finding in drop_partial_denials(study.findings):
            by_name[sys.intern(finding.name)].add(finding.certainty)
        for name, certainties in by_name.items():
            if options.targets and name not in options.targets:
                continue
            if certainties == {"absent"}:
                _add_absent(candidates, place, study, name, options)
                continue
            candidates.affected[name].append(candidates.number_patient(study.patient))
            # What only the report states is drawn nowhere.
            if "present" in certainties and name in recorded:
                _add_present(candidates, (place, study), name, certainties, options)
        silent = wanted.difference(by_name, study.assessed.disputed)
        for name in sorted(wanted.intersection(stored.assessed.disputed).difference(by_name)):
            candidates.not_absent[name, MISSPELT] += 1
        absent = absent_if_silent(study, silent, "finding")
        for name in sorted(absent):
            _add_absent(candidates, place, study, name, options)
        noticed = frozenset(name for name, certainties in by_name.items() if certainties != {"absent"})
        for name in silent - absent:
            reason = NOT_LOOKED_FOR if is_clearly_absent(name, noticed) else ALIKE
            candidates.not_absent[name, reason] += 1
    return candidates


def _add_votes(candidates: ProbeCandidates, study: Study, names: Iterable[str]) -> None:
    patient = candidates.number_patient(study.patient)
    for name in names:
        votes = presence_votes(study, name)
        if len(votes) > 1:
            candidates.votes[name].extend((patient, sum(votes.values()), len(votes)))


def _add_conflicts(candidates: ProbeCandidates, combined: CombinedStudy, options: GroundOptions) -> None:
    """Note the findings in conflict, and that neither positive nor negative probes ask for them."""
    study = combined.study
    conflicts = [
        one
        for one in combined.conflicts
        if one.kind == "finding" and (not options.targets or one.name in options.targets)
    ]
    candidates.conflicts += conflicts
    if options.on_conflict == "ask":
        return
    for one in conflicts:
        candidates.affected[one.name].append(candidates.number_patient(study.patient))
        if one.is_recorded_present:
            candidates.skipped.append((study.id, one.name, IN_CONFLICT))
        else:
            candidates.not_absent[one.name, IN_CONFLICT] += 1


def select_probes(candidates: ProbeCandidates, options: GroundOptions) -> SelectedProbes:
    """The probes of a benchmark, in the order of the studies: as many of each finding as requested."""
    targets = sorted(candidates.present)
    rows = [np.empty(0, _ROW)]
    for number, name in enumerate(targets):
        chosen = candidates.present[name].in_random_order(array("q"))[: options.per_target]
        present = _make_rows(candidates.present[name], chosen, number, is_present=True)
        free = candidates.absent[name].in_random_order(candidates.affected[name])
        dropped = len(candidates.absent[name]) - len(free)
        if dropped:
            candidates.not_absent[name, ELSEWHERE] += dropped
        free = free[: round(options.absent * len(present))]
        absent = _make_rows(candidates.absent[name], free, number, is_present=False)
        if options.ask == "phrase" and len(present):
            # A sentence that is true of another patient.
            absent["phrase"] = np.resize(present["phrase"], len(absent))
        rows += [present, absent]
    joined = np.concatenate(rows)
    order = np.lexsort((joined["image"], joined["target"], joined["place"]))
    return SelectedProbes(targets, list(candidates.phrases), joined[order])


def _make_rows(
    probes: _Probes, chosen: NDArray[np.int64], target: int, *, is_present: bool
) -> NDArray[np.void]:
    rows = np.empty(len(chosen), _ROW)
    rows["place"] = np.array(probes.places, np.int64)[chosen]
    rows["target"] = target
    rows["image"] = np.array(probes.images, np.int64)[chosen]
    rows["phrase"] = np.array(probes.phrases, np.int64)[chosen]
    rows["present"] = is_present
    rows["yes_first"] = np.arange(len(chosen)) % 2 == 0
    return rows


def image_at(study: Study, place: int) -> Image:
    """The image of a study at this place among its images, sorted by key."""
    return sorted(study.images, key=lambda image: image.key)[place]


def images_of(study: Study, options: GroundOptions) -> list[Image]:
    """Images of a study that may be asked about."""
    return [
        image
        for image in study.images
        if (options.lateral or image.view in FRONTAL) and is_sound_image(image)
    ]


def _add_present(
    candidates: ProbeCandidates,
    study_at: tuple[int, Study],
    name: str,
    certainties: set[str],
    options: GroundOptions,
) -> None:
    _, study = study_at
    if "uncertain" in certainties:
        candidates.skipped.append((study.id, name, UNCERTAIN))
        return
    images = images_of(study, options)
    present = [f for f in study.findings if f.name == name and f.certainty == "present"]
    readers = {image.key: _list_readers(present, image, options) for image in images}
    there = [image for image in images if readers[image.key]]
    if not there:
        reason = REJECTED if study.id in candidates.rejected else NOT_DRAWN
        candidates.skipped.append((study.id, name, reason if images else NO_IMAGE))
        return
    asked = [Wanted(name)] if options.ask == "finding" else _find_phrases(study, present)
    probes = candidates.present[name]
    is_asked = False
    for image in there:
        for wanted in asked:
            own = [f for f in present if f.id in wanted.findings] if wanted.findings else present
            for reader in _list_readers(own, image, options):
                is_asked = True
                one = wanted._replace(reader=reader)
                _add_probe(
                    candidates, probes, study_at, target=name, image=image, wanted=one, seed=options.seed
                )
    if not is_asked:
        candidates.skipped.append((study.id, name, NO_PHRASE))


def _list_readers(findings: Sequence[Finding], image: Image, options: GroundOptions) -> list[str]:
    """Readers who each get a probe of findings on an image; one without a name stands for all together."""
    drawn = drawn_on(findings, image)
    if options.readers == "each":
        return sorted({one.annotator for one in drawn})
    return [""] if drawn else []


def _add_absent(
    candidates: ProbeCandidates, place: int, study: Study, name: str, options: GroundOptions
) -> None:
    images = images_of(study, options)
    noticed = frozenset(other.name for other in study.findings if other.certainty != "absent")
    if not images:
        candidates.not_absent[name, NO_IMAGE] += 1
    elif noticed if name == UNNAMED["finding"] else not is_clearly_absent(name, noticed):
        candidates.not_absent[name, ALIKE] += 1
    else:
        probes = candidates.absent[name]
        _add_probe(
            candidates,
            probes,
            (place, study),
            target=name,
            image=images[0],
            wanted=Wanted(name),
            seed=options.seed,
        )


def _find_phrases(study: Study, present: Sequence[Finding]) -> list[Wanted]:
    """Sentences of the report that state present findings of one name and nothing else, with these findings."""
    if study.report is None:
        return []
    ids = {finding.id for finding in present}
    stated: dict[str, set[str]] = {}
    for sentence in study.report.sentences:
        about = {state.about for state in sentence.states}
        if about and about <= ids and all(state.kind == "finding" for state in sentence.states):
            stated.setdefault(study.report.quote(sentence).strip(), set()).update(about)
    return [Wanted(phrase, findings=tuple(sorted(about))) for phrase, about in stated.items()]


def _add_probe(
    candidates: ProbeCandidates,
    to: _Probes,
    study_at: tuple[int, Study],
    *,
    target: str,
    image: Image,
    wanted: Wanted,
    seed: int,
) -> None:
    place, study = study_at
    # A random order that depends on the seed alone, so that a smaller sample is the beginning of a larger one.
    text = (
        f"{seed}/{target}/{place}/{image.key}/{wanted.phrase}{f'/{wanted.reader}' if wanted.reader else ''}"
    )
    to.add(
        place,
        sorted(other.key for other in study.images).index(image.key),
        candidates.number_phrase(wanted),
        candidates.number_patient(study.patient),
        hashlib.sha256(text.encode()).digest()[:_RANK],
    )
