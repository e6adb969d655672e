"""Combine what was drawn, what was labelled and what the report says about one study.

| what is known of a finding | what becomes of it |
|---|---|
| recorded, and the report says nothing else | the record; the report adds its place, severity, trend and sentences |
| only in the report | as the report states it |
| recorded as present or uncertain, and the report denies it, or what it is a kind of | a conflict |
| recorded on one side, and the report denies it on the other alone | the record, and the denial beside it |
| recorded as uncertain, and the report states it plainly | a conflict |
| recorded as absent, or looked for and not recorded, and the report states it, even as possible | a conflict |
| recorded on one side, drawn or not, and the report states it only on the other | a conflict |

A report of which only some phrases are linked to records (MS-CXR quotes those that were drawn) is read as a whole, and
the phrases stay linked.

By default nobody asks about a finding that is in conflict. Where it is asked about, the record that is trusted more
counts: what was drawn, then a label, then the text, unless another order is given.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from carina.reports.add_facts import add_facts, drop_names
from carina.reports.conflicts import Conflict, find_conflicts, find_stored_conflicts, place_explained
from carina.reports.quotes import append_quotes, drop_quotes, has_unlinked_sentences
from carina.reports.read import read_report, with_report_truth
from carina.reports.trust import TRUST, Evidence, OnConflict, is_trusted
from carina.studies.model import Study

LANGUAGE: Final = "en"
"""The language that rules read; a report in another one adds and contradicts nothing."""

replace = msgspec.structs.replace


@dataclass(frozen=True)
class CombinedStudy:
    """A study with what its report states, and the conflicts that were found."""

    study: Study
    conflicts: tuple[Conflict, ...] = ()
    is_report_overruled: bool = False
    """Whether the study keeps something that its report contradicts, so that the report as a whole is no truth."""

    @property
    def names_in_conflict(self) -> frozenset[str]:
        """Names of findings and devices about which the records contradict each other."""
        return frozenset(conflict.name for conflict in self.conflicts)


def combine_with_report(
    study: Study, *, on_conflict: OnConflict = "skip", trust: Sequence[Evidence] = TRUST
) -> CombinedStudy:
    """Combine the findings and devices that a study records with those that its report states.

    The report is read by rules, unless it was read before: then what its sentences state is compared with the records.

    Args:
        study: The study; one without a report in English is returned as it is.
        on_conflict: "skip" removes findings in conflict and names them in `assessed.disputed`, so that nothing is known
            of them; it also removes records of names that were disputed before. "ask" keeps what is trusted most.
        trust: "drawing", "label" and "text", the most trusted first.

    Returns:
        The study and its conflicts.

    Example:
        >>> from carina.studies import Finding, Report, ReportSection
        >>> mass = Finding(id="f1", name="mass", certainty="present")
        >>> report = Report(sections=(ReportSection(name="findings", text="No mass. Small right effusion."),))
        >>> study = Study(id="s1", patient="p1", source="mine", images=(), findings=(mass,), report=report)
        >>> combined = combine_with_report(study)
        >>> [finding.name for finding in combined.study.findings], combined.study.assessed.disputed
        (['pleural effusion'], ('mass',))
        >>> [(conflict.summary, conflict.sentence) for conflict in combined.conflicts]
        [('labelled present, but denied in the report', 'No mass.')]
    """
    combined = _combine(study, on_conflict, trust)
    disputed = set(study.assessed.disputed)
    if on_conflict == "ask" or not disputed:
        return combined
    return CombinedStudy(
        drop_names(combined.study, disputed),
        combined.conflicts,
        is_report_overruled=combined.is_report_overruled,
    )


def _combine(study: Study, on_conflict: OnConflict, trust: Sequence[Evidence]) -> CombinedStudy:
    if study.report is None or study.report.language != LANGUAGE:
        return CombinedStudy(study)
    if _has_only_report(study):
        return CombinedStudy(with_report_truth(study))
    if is_report_read(study):
        conflicts = tuple(find_stored_conflicts(study))
        if not conflicts or on_conflict == "ask":
            return CombinedStudy(study, conflicts, is_report_overruled=bool(conflicts))
        return CombinedStudy(drop_names(study, {one.name for one in conflicts}), conflicts)
    unread = drop_quotes(study)
    facts = read_report(unread.report or study.report, prior=study.prior)
    facts = replace(facts, findings=place_explained(facts.findings, facts.relations))
    conflicts = tuple(find_conflicts(unread, facts))
    disputed = {one.name for one in conflicts} if on_conflict == "skip" else set[str]()
    is_overruled = on_conflict == "ask" and any(is_trusted(one.origin, trust) for one in conflicts)
    combined = append_quotes(add_facts(unread, facts, disputed, trust), study)
    return CombinedStudy(combined, conflicts, is_report_overruled=is_overruled)


def _has_only_report(study: Study) -> bool:
    """Whether nothing is recorded that the report could add to or contradict."""
    assessed = study.assessed
    is_silent = assessed.text or (assessed.findings, assessed.devices) == ("unknown", "unknown")
    return is_silent and not (study.findings or study.devices)


def is_report_read(study: Study) -> bool:
    """Whether what the report of a study states is among its findings already, linked to the sentences."""
    if study.report is None:
        return False
    if any(sentence.states for sentence in study.report.sentences):
        return study.report.is_excerpt or not has_unlinked_sentences(study.report)
    # A report without sentences was labelled by another program, which did not say what each sentence states.
    return study.assessed.text and bool(study.report.sentences) and bool(study.findings or study.devices)
