"""What is added to a study that is already made: findings with regions and the phrases that state them, anatomy, facts.

Order of trust: a region that somebody drew counts more than a label, a label by an expert more than the text of the
report as rules read it, and that more than a label that another program mined from the same text. Every contradiction
is counted as a conflict.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

import msgspec

from carina.reports import read_report
from carina.sources._defects import DefectCounts, RecordPlace, add_defects, list_places
from carina.sources._labels import combine_certainty, name_of
from carina.sources._source import Item, Repaired, Skipped
from carina.studies.assessment import drop_partial_denials
from carina.studies.model import (
    Anatomy,
    Annotation,
    Assessed,
    Device,
    Finding,
    Location,
    Report,
    ReportSection,
    Sentence,
    Statement,
    Study,
)
from carina.studies.terms import find_term, read_label
from carina.studies.vocabulary import Certainty, Section, Severity, Trend

Fact = TypeVar("Fact", Finding, Device)

ADDED_DEFECTS: Final[Mapping[str, str]] = {
    "conflict": "what was drawn contradicts a label: what was drawn counts",
    "split": "the two data sets put the patient into different splits: that of the set that is joined counts, for "
    "every study of the patient",
    "trend": "a trend against another study than the prior one, or of a finding that is absent, is left out",
    "phrase": "a phrase that its report does not contain word for word is left out; its regions are kept",
}
"""Defects that are counted here, for the decorator of a source."""
CERTAINTY_BY_TREND: Final[Mapping[Trend, Certainty | None]] = {
    "unchanged": "present",
    "worse": "present",
    "improved": None,
}
"""What a comparison alone says about the current image: what has improved may have resolved."""


@dataclass(frozen=True, kw_only=True)
class AddedFinding:
    """A finding, the regions that were drawn for it, and the phrase that states it."""

    label: str
    certainty: Certainty | None = "present"
    """None where only a trend is stated: it does not change what the study says, and is uncertain where that says
    nothing."""
    phrase: str = ""
    trend: Trend | None = None
    severity: Severity | None = None
    location: Location | None = None
    annotations: tuple[Annotation, ...] = ()
    automatic: bool = False
    """Whether a program states it: then what the study says counts more."""
    place: RecordPlace | None = None
    """Where it stands, for defects; None where that is the place of the addition."""


@dataclass(frozen=True, kw_only=True)
class Addition:
    """What one data set says about one image."""

    findings: tuple[AddedFinding, ...] = ()
    phrases: tuple[str, ...] = ()
    """All sentences of the report in their order, also those that state no finding; empty where the phrases of the
    findings are excerpts of a report that is not there."""
    anatomy: tuple[Anatomy, ...] = ()
    place: RecordPlace | None = None
    """Where it stands, for defects; None where that is the record of the study."""
    prior: str | None = None
    """Id of the study that trends compare with; None where that is the prior study of the other set."""
    defects: Mapping[str, int] = field(default_factory=dict)


def unwrap(item: Study | Repaired) -> tuple[Study, DefectCounts]:
    """The study, and its defects."""
    if not isinstance(item, Repaired):
        return item, DefectCounts()
    assert isinstance(item.record, Study)  # noqa: S101 - of a source of studies
    defects = DefectCounts()
    for defect, place, times in list_places(item.defects, item.places, item.place):
        defects.place = place
        defects[defect] += times
    defects.place = item.place
    return item.record, defects


def wrap(
    item: Study | Repaired, study: Study, defects: DefectCounts, place: RecordPlace | None = None
) -> Study | Repaired:
    """The changed study, with the defects and unmapped fields of the item that it was.

    Args:
        item: The study as it was.
        study: The study as it is.
        defects: Those of `unwrap`, and others.
        place: Where the record stands, where the item does not say.
    """
    unmapped = item.unmapped if isinstance(item, Repaired) else ()
    if not defects.total() and not unmapped:
        return study
    file, number = item.place if isinstance(item, Repaired) else place or RecordPlace()
    return Repaired(
        record=study,
        number=number,
        file=file,
        defects=dict(+defects),
        unmapped=unmapped,
        places=defects.places,
    )


def add_to_study(study: Study, addition: Addition, defects: DefectCounts) -> Study:
    """The study with what was added; counts defects.

    A finding that was added joins the finding of its name that the study has; several that were added stay apart, since
    each has regions and a phrase of its own.
    """
    record = defects.place
    defects.place = here = addition.place or record
    add_defects(defects, addition.defects)
    by_program = set(study.assessed.by_program)
    facts: dict[str, Finding | Device] = {finding.id: finding for finding in study.findings}
    facts |= {device.id: device for device in study.devices}
    spoken = {phrase: _Spoken(here) for phrase in addition.phrases}
    joined: set[str] = set()
    is_compared = addition.prior is None or _may_follow(study, addition.prior)
    for added in addition.findings:
        if not name_of(added.label):
            continue  # a label that says that nothing was found
        defects.place = added.place or here
        if added.trend is not None and not is_compared:
            defects["trend"] += 1
            added = replace(added, trend=None)  # noqa: PLW2901 - the rest of it is used
        fact = _join_fact(facts, added, joined, defects)
        if added.certainty is not None and not added.automatic:
            by_program.discard(fact.name)
        elif fact.id not in facts and added.automatic and not _is_recorded(facts, fact.name):
            by_program.add(fact.name)
        joined.add(fact.id)
        facts[fact.id] = fact
        if added.phrase:
            spoken.setdefault(added.phrase, _Spoken(defects.place)).about.append(fact.id)
    defects.place = here
    assessed = _drop_contradicted(study, facts.values(), addition, defects)
    report = _add_phrases(study.report, spoken, facts, defects, is_excerpt=not addition.phrases)
    defects.place = record
    # What nobody looked for any more was not stated by a program either.
    by_program &= {*assessed.listed, *(fact.name for fact in facts.values())}
    return msgspec.structs.replace(
        study,
        findings=tuple(fact for fact in facts.values() if isinstance(fact, Finding)),
        devices=tuple(fact for fact in facts.values() if isinstance(fact, Device)),
        anatomy=(*study.anatomy, *addition.anatomy),
        report=report,
        assessed=msgspec.structs.replace(assessed, by_program=tuple(sorted(by_program))),
        prior=study.prior or (addition.prior if is_compared else None),
    )


def _is_recorded(facts: Mapping[str, Finding | Device], name: str) -> bool:
    return any(fact.name == name for fact in facts.values())


def _drop_contradicted(
    study: Study, facts: Iterable[Finding | Device], addition: Addition, defects: Counter[str]
) -> Assessed:
    """What was looked for, without what is absent because a program found nothing at all, where people state a finding.

    As of "No Finding" beside a finding in one record: it is a conflict, and nothing is absent for it.
    """
    assessed, mined = study.assessed, set(study.assessed.by_program)
    listed = tuple(name for name in assessed.listed if name not in mined)
    if len(listed) == len(assessed.listed) or any(_is_noticed(finding) for finding in study.findings):
        return assessed
    people = {name_of(added.label) for added in addition.findings if not added.automatic}
    if not any(fact.name in people and isinstance(fact, Finding) and _is_noticed(fact) for fact in facts):
        return assessed
    defects["conflict"] += 1
    kinds = {
        "device" if (term := find_term(name)) and term.kind == "device" else "finding" for name in listed
    }
    return msgspec.structs.replace(
        assessed,
        listed=listed,
        findings="unknown" if assessed.findings == "listed" and "finding" not in kinds else assessed.findings,
        devices="unknown" if assessed.devices == "listed" and "device" not in kinds else assessed.devices,
    )


def _is_noticed(finding: Finding) -> bool:
    return finding.certainty != "absent"


@dataclass(frozen=True)
class _Spoken:
    """A phrase: where it stands, and ids of what it is about."""

    place: RecordPlace
    about: list[str] = field(default_factory=list)


def _may_follow(study: Study, prior: str) -> bool:
    """Whether a study may be the prior of another: it is, or nobody says which one is."""
    return study.prior == prior or (study.prior is None and study.order is None)


def _join_fact(
    facts: Mapping[str, Finding | Device], added: AddedFinding, joined: set[str], defects: Counter[str]
) -> Finding | Device:
    name, certainty = name_of(added.label), _certainty_of(added)
    # What is denied on one side says nothing of the other.
    known = drop_partial_denials(facts.values())
    same = (fact for fact in known if fact.name == name and fact.id not in joined)
    fact = next(same, None)
    if fact is None:
        fact = _new_fact(facts, name, added)
    elif certainty not in (None, fact.certainty):
        defects["conflict"] += 1
        if added.automatic:
            return fact
    certainty, trend = certainty or fact.certainty, added.trend
    if trend is not None and certainty == "absent" and trend != "resolved":
        defects["trend"] += 1
        trend = None
    changed: dict[str, Any] = {
        "certainty": certainty,
        "trend": fact.trend or trend if added.automatic else trend or fact.trend,
        "annotations": (*fact.annotations, *added.annotations),
    }
    if isinstance(fact, Finding):
        changed["severity"] = fact.severity or added.severity
        changed["location"] = fact.location or added.location
    return msgspec.structs.replace(fact, **changed)


def _new_fact(facts: Mapping[str, Finding | Device], name: str, added: AddedFinding) -> Finding | Device:
    term = find_term(read_label(added.label).words)
    kind, letter = (Device, "d") if term is not None and term.kind == "device" else (Finding, "f")
    label = added.label if added.label != name else None
    return kind(
        id=_new_id(facts, letter), name=name, label=label, certainty=_certainty_of(added) or "uncertain"
    )


def _certainty_of(added: AddedFinding) -> Certainty | None:
    """Whether it is present, by what was stated and by the words of its label."""
    return None if added.certainty is None else combine_certainty(added.label, added.certainty)


def _new_id(facts: Iterable[str], letter: str) -> str:
    known, number = set(facts), 1
    while f"{letter}{number}" in known:
        number += 1
    return f"{letter}{number}"


def _add_phrases(
    report: Report | None,
    spoken: Mapping[str, _Spoken],
    facts: dict[str, Finding | Device],
    defects: DefectCounts,
    *,
    is_excerpt: bool,
) -> Report | None:
    """The report with a sentence for each phrase; a study without a report gets one of the phrases alone."""
    if not spoken:
        return report
    if report is None:
        report = Report(sections=(), is_excerpt=is_excerpt)
    is_of_phrases = report.is_excerpt or not report.sections
    sentences = list(report.sentences)
    for phrase, spoken_of in spoken.items():
        if is_of_phrases:
            report, span = _append_phrase(report, phrase)
        else:
            span = _find_phrase(report, phrase)
        if span is None:
            defects.place = spoken_of.place
            defects["phrase"] += 1
            continue
        states = tuple(_make_statement(facts[fact]) for fact in spoken_of.about)
        index = len(sentences)
        sentences.append(Sentence(section=span[0], start=span[1], end=span[2], states=states))
        for fact in spoken_of.about:
            facts[fact] = msgspec.structs.replace(facts[fact], evidence=(*facts[fact].evidence, index))
    return msgspec.structs.replace(report, sentences=tuple(sentences))


def _append_phrase(report: Report, phrase: str) -> tuple[Report, tuple[Section, int, int] | None]:
    """A report of phrases, one a line, with one more, and where that stands."""
    before = report.text("findings")
    start = 0 if before is None else len(before) + 1
    text = phrase if before is None else f"{before}\n{phrase}"
    sections = (ReportSection(name="findings", text=text),)
    return msgspec.structs.replace(report, sections=sections), ("findings", start, start + len(phrase))


def _make_statement(fact: Finding | Device) -> Statement:
    kind: str = "finding" if isinstance(fact, Finding) else "device"
    return Statement(kind=kind, about=fact.id, certainty=fact.certainty, trend=fact.trend)  # type: ignore[arg-type]


def _find_phrase(report: Report, phrase: str) -> tuple[Section, int, int] | None:
    """Where a phrase stands, whatever its capitals and line breaks are."""
    words = r"\s+".join(re.escape(word) for word in phrase.split())
    pattern = re.compile(rf"(?<!\w){words}(?!\w)", re.IGNORECASE)
    for section in report.sections:
        if words and (match := pattern.search(section.text)):
            return section.name, match.start(), match.end()
    return None


# ---- facts of the report --------------------------------------------------------------------------------------------


def add_report_facts(item: Item, *, trusted: Iterable[str], number: int, file: str = "") -> Item:
    """The study with everything that its report states, read by rules.

    Args:
        item: A study with a report, whose findings are labels.
        trusted: Labels that count more than the text, because an expert gave them; the text counts more than others.
        number: Number of the record in its file.
        file: Path of the file.
    """
    if isinstance(item, Skipped) or not isinstance(item, Study | Repaired):
        return item
    study, defects = unwrap(item)
    if study.report is None:
        return item
    read = read_report(study.report, prior=study.prior)
    experts = {name_of(label) for label in trusted}
    used = {
        *(finding.id for finding in read.findings),
        *(device.id for device in read.devices),
        *(relation.id for relation in read.relations),
        *(recommendation.id for recommendation in read.recommendations),
    }
    study = msgspec.structs.replace(
        study,
        findings=_add_labels(read.findings, study.findings, experts, used, defects),
        devices=_add_labels(read.devices, study.devices, experts, used, defects),
        relations=read.relations,
        recommendations=read.recommendations,
        report=read.report,
        assessed=_with_text(study.assessed),
    )
    return wrap(item, study, defects, RecordPlace(file, number))


def _with_text(assessed: Assessed) -> Assessed:
    return msgspec.structs.replace(assessed, text=True)


def _add_labels(
    read: tuple[Fact, ...], labels: tuple[Fact, ...], experts: set[str], used: set[str], defects: Counter[str]
) -> tuple[Fact, ...]:
    merged = {fact.id: fact for fact in read}
    for label in labels:
        same = [fact for fact in drop_partial_denials(merged.values()) if fact.name == label.name]
        if not same:
            fresh = _new_id(used, label.id[0])
            used.add(fresh)
            merged[fresh] = msgspec.structs.replace(label, id=fresh)
            continue
        agrees = [fact for fact in same if fact.certainty == label.certainty]
        defects["conflict"] += not agrees
        for fact in agrees[:1] or (same if label.name in experts else []):
            merged[fact.id] = msgspec.structs.replace(
                fact, certainty=label.certainty, label=label.label, annotations=label.annotations
            )
    return tuple(merged.values())
