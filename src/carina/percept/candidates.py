"""Find candidates: studies that may be asked about a lesion, going by the findings that they state.

A study in which the lesion was looked for and is not recorded states that it is absent; one in which nobody looked for
it states nothing.
This takes one pass over a study set and decodes no mask.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from carina.percept.analysis import frontal_image
from carina.percept.lesions import LESIONS, Lesion
from carina.percept.records import Skipped
from carina.percept.rules import Ineligible
from carina.reports.combine import combine_with_report
from carina.reports.conflicts import IN_CONFLICT, Conflict
from carina.reports.trust import TRUST, Evidence, OnConflict
from carina.studies.assessment import NOT_LOOKED_FOR, drop_partial_denials, is_looked_for
from carina.studies.lookalikes import is_clearly_absent, look_alike
from carina.studies.model import Study
from carina.studies.vocabulary import Certainty


@dataclass(frozen=True, order=True)
class Candidate:
    """A study that may be asked about a lesion; sorted by a hash, so that the first ones are a random sample."""

    rank: str
    study: str
    patient: str


@dataclass
class Candidates:
    """What one pass over the studies has found, by lesion."""

    present: dict[str, list[Candidate]] = field(default_factory=lambda: defaultdict(list))
    absent: dict[str, list[Candidate]] = field(default_factory=lambda: defaultdict(list))
    skipped: list[Skipped] = field(default_factory=list)
    """Studies with the lesion that cannot be used for it."""
    not_absent: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By target and reason, how many studies without the lesion cannot be used as negatives."""
    conflicts: list[Conflict] = field(default_factory=list)
    """Lesions about which the report and the records of a study contradict each other."""
    studies: int = 0


def find_candidates(
    studies: Iterable[Study],
    targets: Iterable[str],
    *,
    seed: int,
    on_conflict: OnConflict = "skip",
    trust: Sequence[Evidence] = TRUST,
) -> Candidates:
    """Candidates for every target, in random order, and studies that cannot be used, with the reason.

    A study whose report contradicts what is recorded of a lesion is no candidate for it, unless conflicts are asked
    about; then what is trusted most counts.
    """
    found = Candidates()
    wanted = [LESIONS[target] for target in targets]
    affected: dict[str, set[str]] = defaultdict(set)
    for stored in studies:
        found.studies += 1
        combined = combine_with_report(stored, on_conflict=on_conflict, trust=trust)
        study = combined.study
        recorded = drop_partial_denials(study.findings)
        conflicts = {one.name: one for one in combined.conflicts if one.kind == "finding"}
        for lesion in wanted:
            conflict = conflicts.get(lesion.finding)
            if conflict is not None:
                found.conflicts.append(conflict)
            if conflict is not None and on_conflict == "skip":
                affected[lesion.name].add(study.patient)
                _leave_out(found, study, lesion, conflict)
                continue
            stated: set[Certainty] = {
                finding.certainty for finding in recorded if finding.name == lesion.finding
            }
            if not stated and is_looked_for(study, lesion.finding, kind="finding"):
                stated = {"absent"}
            if stated & {"present", "uncertain"}:
                affected[lesion.name].add(study.patient)
            _add_study(found, study, lesion, stated, seed)
    for lesion in wanted:
        found.present[lesion.name].sort()
        # A study is no negative if another study of the patient has the lesion.
        stating = found.absent[lesion.name]
        found.absent[lesion.name] = sorted(
            candidate for candidate in stating if candidate.patient not in affected[lesion.name]
        )
        dropped = len(stating) - len(found.absent[lesion.name])
        if dropped:
            found.not_absent[lesion.name, "lesion in another study of the patient"] = dropped
    return found


def _leave_out(found: Candidates, study: Study, lesion: Lesion, conflict: Conflict) -> None:
    if conflict.is_recorded_present:
        detail = f"{conflict.summary}: {conflict.sentence}"
        found.skipped.append(Skipped(study=study.id, target=lesion.name, reason=IN_CONFLICT, detail=detail))
    else:
        found.not_absent[lesion.name, IN_CONFLICT] += 1


def _add_study(found: Candidates, study: Study, lesion: Lesion, stated: set[Certainty], seed: int) -> None:
    if not stated:
        noticed = frozenset(finding.name for finding in study.findings if finding.certainty != "absent")
        is_clear = is_clearly_absent(lesion.finding, noticed)
        reason = NOT_LOOKED_FOR if is_clear else _report_lookalikes(noticed).reason
        found.not_absent[lesion.name, reason] += 1
        return
    absent = stated == {"absent"}
    try:
        frontal_image(study)
        _check_stated(study, lesion, stated)
    except Ineligible as reason:
        if absent:
            found.not_absent[lesion.name, reason.reason] += 1
        else:
            found.skipped.append(
                Skipped(study=study.id, target=lesion.name, reason=reason.reason, detail=reason.detail)
            )
        return
    rank = hashlib.sha256(f"{seed}/{lesion.name}/{study.id}".encode()).hexdigest()
    candidate = Candidate(rank=rank, study=study.id, patient=study.patient)
    (found.absent if absent else found.present)[lesion.name].append(candidate)


def _check_stated(study: Study, lesion: Lesion, stated: set[Certainty]) -> None:
    if "uncertain" in stated:
        raise Ineligible("uncertain", f"{lesion.finding} is uncertain")
    noticed = {finding.name for finding in study.findings if finding.certainty != "absent"}
    alike = [
        name
        for name in sorted(noticed)
        if look_alike(name, lesion.finding)
        or (stated == {"absent"} and not is_clearly_absent(lesion.finding, frozenset({name})))
    ]
    if alike:
        raise _report_lookalikes(alike)


def _report_lookalikes(names: Iterable[str]) -> Ineligible:
    """Why a study is not asked about a lesion: findings are present that a reader may call by its name."""
    return Ineligible("looks like another finding", ", ".join(sorted(names)))
