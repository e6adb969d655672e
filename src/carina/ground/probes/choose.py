"""Which findings of which images are asked about: one pass over the studies, without looking at a mask.

A finding counts as absent where the study says so, nothing there may be called by its name, and no other study of the
patient has it: a control must be one beyond doubt.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from carina.ground.probes.options import GroundOptions
from carina.studies import Image, Study
from carina.studies.lookalikes import looks_like, may_be_called

FRONTAL: Final = ("PA", "AP", "unknown")
HEDGED: Final = "hedged"
NOT_DRAWN: Final = "not drawn"
NO_IMAGE: Final = "no image of a view that is asked about"
NO_PHRASE: Final = "no sentence of the report states it alone"
ALIKE: Final = "something there may be called by its name"
ELSEWHERE: Final = "another study of the patient has it"


@dataclass(frozen=True, order=True)
class Chosen:
    """A probe to be made."""

    place: int
    """Of the study in the set."""
    study: str
    target: str
    image: str
    phrase: str
    present: bool
    yes_first: bool = True


@dataclass
class Screened:
    """What a pass over the studies found."""

    present: dict[str, list[Chosen]] = field(default_factory=lambda: defaultdict(list))
    absent: dict[str, list[tuple[Chosen, str]]] = field(default_factory=lambda: defaultdict(list))
    """With their patients."""
    affected: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """By finding, patients who have it or may have it."""
    skipped: list[tuple[str, str, str]] = field(default_factory=list)
    """Study, finding and reason, of findings that are there and cannot be asked about."""
    not_absent: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By finding and reason, studies that state its absence and are no controls."""
    studies: int = 0


def screen(studies: Iterable[tuple[int, Study]], options: GroundOptions) -> Screened:
    """Every finding of every study, with the reason where it cannot be asked about."""
    found = Screened()
    for place, study in studies:
        found.studies += 1
        by_name: dict[str, set[str]] = defaultdict(set)
        for finding in study.findings:
            by_name[finding.name].add(finding.certainty)
        for name, stated in by_name.items():
            if options.targets and name not in options.targets:
                continue
            if stated == {"absent"}:
                _add_absent(found, place, study, name, options)
                continue
            found.affected[name].add(study.patient)
            if "present" in stated:
                _add_present(found, (place, study), name, stated, options)
    return found


def choose(found: Screened, options: GroundOptions) -> list[Chosen]:
    """The probes of a benchmark, in the order of the studies: of each finding as many as are wanted, there and not."""
    chosen: list[Chosen] = []
    for name in sorted(found.present):
        present = _first(found.present[name], options, options.per_target)
        free = [probe for probe, patient in found.absent[name] if patient not in found.affected[name]]
        dropped = len(found.absent[name]) - len(free)
        if dropped:
            found.not_absent[name, ELSEWHERE] += dropped
        absent = _first(free, options, round(options.absent * len(present)))
        if options.ask == "phrase" and present:
            # The words of a sentence that is true of somebody else.
            absent = [
                replace(probe, phrase=present[n % len(present)].phrase) for n, probe in enumerate(absent)
            ]
        for side in (present, absent):
            chosen += [replace(probe, yes_first=n % 2 == 0) for n, probe in enumerate(side)]
    return sorted(chosen)


def images_of(study: Study, options: GroundOptions) -> list[Image]:
    """Images that are asked about."""
    return [image for image in study.images if options.lateral or image.view in FRONTAL]


def _add_present(
    found: Screened, placed: tuple[int, Study], name: str, stated: set[str], options: GroundOptions
) -> None:
    place, study = placed
    if "uncertain" in stated:
        found.skipped.append((study.id, name, HEDGED))
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
        found.skipped.append((study.id, name, NOT_DRAWN if images else NO_IMAGE))
        return
    phrases = [name] if options.ask == "finding" else list(dict.fromkeys(_phrases(study, name)))
    if not phrases:
        found.skipped.append((study.id, name, NO_PHRASE))
    found.present[name] += [
        Chosen(place, study.id, name, image.key, phrase, present=True)
        for image in there
        for phrase in phrases
    ]


def _add_absent(found: Screened, place: int, study: Study, name: str, options: GroundOptions) -> None:
    images = images_of(study, options)
    confusing = looks_like(name) | may_be_called(name)
    if not images:
        found.not_absent[name, NO_IMAGE] += 1
    elif any(other.name in confusing and other.certainty != "absent" for other in study.findings):
        found.not_absent[name, ALIKE] += 1
    else:
        probe = Chosen(place, study.id, name, images[0].key, name, present=False)
        found.absent[name].append((probe, study.patient))


def _phrases(study: Study, name: str) -> Iterator[str]:
    """Sentences of the report that state findings of this name, all of them present, and nothing else."""
    if study.report is None:
        return
    present = {f.id for f in study.findings if f.name == name and f.certainty == "present"}
    whole = {f.id for f in study.findings if f.name == name}
    for sentence in study.report.sentences:
        about = {state.about for state in sentence.states}
        # A sentence about one of several would be true of a part of the region.
        if about and about == present == whole and all(state.kind == "finding" for state in sentence.states):
            yield study.report.quote(sentence).strip()


def _first(probes: list[Chosen], options: GroundOptions, most: int | None) -> list[Chosen]:
    """A random sample, the same for the same seed, of which a smaller one is the beginning."""

    def rank(probe: Chosen) -> str:
        text = f"{options.seed}/{probe.target}/{probe.place}/{probe.image}/{probe.phrase}"
        return hashlib.sha256(text.encode()).hexdigest()

    return sorted(probes, key=rank)[:most]
