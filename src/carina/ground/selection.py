"""Select positive and negative probes: one pass over the studies, without decoding a mask.

A finding counts as absent where the study says so, no other finding of the study may be called by its name, and no
other study of the patient has it: a negative probe must be certain.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from carina.ground.options import GroundOptions
from carina.studies import Image, Study
from carina.studies.lookalikes import looks_like, may_be_called

FRONTAL: Final = ("PA", "AP", "unknown")
UNCERTAIN: Final = "uncertain"
NOT_DRAWN: Final = "not drawn"
NO_IMAGE: Final = "no image of a view that is asked about"
NO_PHRASE: Final = "no sentence of the report states it alone"
ALIKE: Final = "something there may be called by its name"
ELSEWHERE: Final = "another study of the patient has it"


@dataclass(frozen=True, order=True)
class SelectedProbe:
    """A probe that will be built."""

    place: int
    """Place of the study in the set."""
    study: str
    target: str
    image: str
    phrase: str
    present: bool
    yes_first: bool = True


@dataclass
class ProbeCandidates:
    """Probes that the studies allow, and the reasons where they allow none."""

    present: dict[str, list[SelectedProbe]] = field(default_factory=lambda: defaultdict(list))
    absent: dict[str, list[tuple[SelectedProbe, str]]] = field(default_factory=lambda: defaultdict(list))
    """Negative probes with their patients."""
    affected: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """By finding, the patients in whom it is present or uncertain."""
    skipped: list[tuple[str, str, str]] = field(default_factory=list)
    """Study, finding and reason, for findings that are present and cannot be asked about."""
    not_absent: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By finding and reason, how many studies state its absence and give no negative probe."""
    studies: int = 0


def find_candidates(studies: Iterable[tuple[int, Study]], options: GroundOptions) -> ProbeCandidates:
    """Positive and negative probes that the studies allow, and the reasons where they allow none."""
    candidates = ProbeCandidates()
    for place, study in studies:
        candidates.studies += 1
        by_name: dict[str, set[str]] = defaultdict(set)
        for finding in study.findings:
            by_name[finding.name].add(finding.certainty)
        for name, certainties in by_name.items():
            if options.targets and name not in options.targets:
                continue
            if certainties == {"absent"}:
                _add_absent(candidates, place, study, name, options)
                continue
            candidates.affected[name].add(study.patient)
            if "present" in certainties:
                _add_present(candidates, (place, study), name, certainties, options)
    return candidates


def select_probes(candidates: ProbeCandidates, options: GroundOptions) -> list[SelectedProbe]:
    """The probes of a benchmark, in the order of the studies: as many of each finding as requested."""
    selected: list[SelectedProbe] = []
    for name in sorted(candidates.present):
        present = _sample_probes(candidates.present[name], options, options.per_target)
        free = [
            probe for probe, patient in candidates.absent[name] if patient not in candidates.affected[name]
        ]
        dropped = len(candidates.absent[name]) - len(free)
        if dropped:
            candidates.not_absent[name, ELSEWHERE] += dropped
        absent = _sample_probes(free, options, round(options.absent * len(present)))
        if options.ask == "phrase" and present:
            # A sentence that is true of another patient.
            absent = [
                replace(probe, phrase=present[n % len(present)].phrase) for n, probe in enumerate(absent)
            ]
        for side in (present, absent):
            selected += [replace(probe, yes_first=n % 2 == 0) for n, probe in enumerate(side)]
    return sorted(selected)


def images_of(study: Study, options: GroundOptions) -> list[Image]:
    """Images of a study that may be asked about."""
    return [image for image in study.images if options.lateral or image.view in FRONTAL]


def _add_present(
    candidates: ProbeCandidates,
    study_at: tuple[int, Study],
    name: str,
    certainties: set[str],
    options: GroundOptions,
) -> None:
    place, study = study_at
    if "uncertain" in certainties:
        candidates.skipped.append((study.id, name, UNCERTAIN))
        return
    images = images_of(study, options)
    drawn = {
        drawn.image
        for finding in study.findings
        if finding.name == name and finding.certainty == "present"
        for drawn in finding.annotations
    }
    there = [image for image in images if image.key in drawn]
    if not there:
        candidates.skipped.append((study.id, name, NOT_DRAWN if images else NO_IMAGE))
        return
    phrases = [name] if options.ask == "finding" else list(dict.fromkeys(_find_phrases(study, name)))
    if not phrases:
        candidates.skipped.append((study.id, name, NO_PHRASE))
    candidates.present[name] += [
        SelectedProbe(place, study.id, name, image.key, phrase, present=True)
        for image in there
        for phrase in phrases
    ]


def _add_absent(
    candidates: ProbeCandidates, place: int, study: Study, name: str, options: GroundOptions
) -> None:
    images = images_of(study, options)
    confusing = looks_like(name) | may_be_called(name)
    if not images:
        candidates.not_absent[name, NO_IMAGE] += 1
    elif any(other.name in confusing and other.certainty != "absent" for other in study.findings):
        candidates.not_absent[name, ALIKE] += 1
    else:
        probe = SelectedProbe(place, study.id, name, images[0].key, name, present=False)
        candidates.absent[name].append((probe, study.patient))


def _find_phrases(study: Study, name: str) -> Iterator[str]:
    """Sentences of the report that state findings of this name, all of them present, and nothing else."""
    if study.report is None:
        return
    present = {f.id for f in study.findings if f.name == name and f.certainty == "present"}
    whole = {f.id for f in study.findings if f.name == name}
    for sentence in study.report.sentences:
        about = {state.about for state in sentence.states}
        # A sentence about one of several findings would describe only a part of the region.
        if about and about == present == whole and all(state.kind == "finding" for state in sentence.states):
            yield study.report.quote(sentence).strip()


def _sample_probes(
    probes: list[SelectedProbe], options: GroundOptions, most: int | None
) -> list[SelectedProbe]:
    """A random sample that depends on the seed alone; a smaller sample is the beginning of a larger one."""

    def rank(probe: SelectedProbe) -> str:
        text = f"{options.seed}/{probe.target}/{probe.place}/{probe.image}/{probe.phrase}"
        return hashlib.sha256(text.encode()).hexdigest()

    return sorted(probes, key=rank)[:most]
