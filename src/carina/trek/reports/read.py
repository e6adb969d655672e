"""From the text of a report to everything it says: the one function that the rest of this package serves."""

import re
from collections.abc import Iterator

import msgspec

from carina.studies.model import (
    Device,
    Finding,
    Recommendation,
    Relation,
    Report,
    Sentence,
    Statement,
)
from carina.studies.vocabulary import RelationKind
from carina.trek.reports.advise import actions_in
from carina.trek.reports.merge import as_device, as_finding, merge
from carina.trek.reports.observe import Observation, Read, read_sentence
from carina.trek.reports.reading import Comparison, Reading
from carina.trek.reports.relate import relations_in
from carina.trek.reports.sections import split_sections
from carina.trek.reports.sentences import with_sentences

HEADING = re.compile(r"([A-Za-z][A-Za-z/&, ]{1,40}):\s{0,8}$")
"""Of an organ, right before a sentence."""
DATE = re.compile(
    r"\b\d{1,4}([/.-])\d{1,2}\1\d{2,4}\b"
    r"|\b\d{1,2}\.? (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\b"
    r"|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.? \d{1,2}\b",
    re.IGNORECASE,
)
"""A date within a report is that of another study."""
PRIOR = "prior"
"""What a comparison is about where the prior study's id is not known."""


def read_report(report: str | Report, *, prior: str | None = None) -> Reading:
    """Everything that a report states, linked to its sentences; never fails, whatever the text.

    A `Report` keeps its sections, and its sentences where it has some; what they state is read anew. `prior` is the id
    of the study it is compared with.
    """
    divided = with_sentences(split_sections(report) if isinstance(report, str) else report)
    read = [
        read_sentence(text, heading=heading, index=index, section=sentence.section)
        for index, (sentence, (heading, text)) in enumerate(
            zip(divided.sentences, _texts(divided), strict=True)
        )
    ]
    observations = [seen for each in read for seen in each.observations]
    facts = _Facts(len(read))
    findings = facts.findings(observations)
    findings = _all_unchanged(read, findings, facts)
    devices = facts.devices(observations)
    relations = facts.relations(read)
    recommendations = facts.recommendations(read, findings, devices)
    comparison = _comparison(read)
    if comparison is not None and comparison.prior == "named":
        for index in comparison.evidence:
            facts.say(index, Statement(kind="comparison", about=prior or PRIOR))
    return Reading(
        report=_with_states(divided, facts),
        findings=findings,
        devices=devices,
        relations=relations,
        recommendations=recommendations,
        comparison=comparison,
    )


def _texts(report: Report) -> Iterator[tuple[str, str]]:
    """The heading right before each sentence, and its words: "Heart", "Normal in size."."""
    texts = {section.name: section.text for section in reversed(report.sections)}
    last: dict[str, int] = {}
    for sentence in report.sentences:
        text = texts.get(sentence.section, "")
        lead = text[last.get(sentence.section, 0) : sentence.start]
        last[sentence.section] = max(sentence.end, last.get(sentence.section, 0))
        heading = HEADING.search(lead)
        yield heading.group(1) if heading else "", text[sentence.start : sentence.end]


class _Facts:
    """Collects facts, and what each sentence states."""

    def __init__(self, sentences: int) -> None:
        self.states: list[dict[Statement, None]] = [{} for _ in range(sentences)]
        self._ids: dict[tuple[int, int, str], str] = {}
        """By sentence, mention and kind: what a mention became."""

    def say(self, sentence: int, statement: Statement) -> None:
        self.states[sentence][statement] = None

    def findings(self, observations: list[Observation]) -> tuple[Finding, ...]:
        merged = merge([seen for seen in observations if seen.kind == "finding"])
        for number, record in enumerate(merged, start=1):
            self._bind(record.members, f"f{number}")
        return tuple(as_finding(record, f"f{number}") for number, record in enumerate(merged, start=1))

    def devices(self, observations: list[Observation]) -> tuple[Device, ...]:
        merged = merge([seen for seen in observations if seen.kind == "device"])
        for number, record in enumerate(merged, start=1):
            self._bind(record.members, f"d{number}")
        return tuple(as_device(record, f"d{number}") for number, record in enumerate(merged, start=1))

    def _bind(self, members: list[Observation], identity: str) -> None:
        for seen in members:
            seen.about = identity
            self._ids.setdefault((seen.sentence, seen.mention, ""), identity)
            self.say(
                seen.sentence,
                Statement(
                    kind=seen.kind,
                    about=identity,
                    certainty=seen.certainty,
                    side=seen.side,
                    zones=seen.zones,
                    severity=seen.severity,
                    trend=seen.trend,
                ),
            )

    def relations(self, read: list[Read]) -> tuple[Relation, ...]:
        found: dict[tuple[str, RelationKind, str], dict[int, None]] = {}
        for index, each in enumerate(read):
            for related in relations_in(each):
                subject = self._ids.get((index, related.subject, ""))
                target = self._ids.get((index, related.object, ""))
                if subject and target and subject != target:
                    found.setdefault((subject, related.kind, target), {})[index] = None
        relations = tuple(
            Relation(id=f"x{number}", subject=subject, kind=kind, object=target, evidence=tuple(evidence))
            for number, ((subject, kind, target), evidence) in enumerate(found.items(), start=1)
        )
        for relation in relations:
            for index in relation.evidence:
                self.say(index, Statement(kind="relation", about=relation.id))
        return relations

    def recommendations(
        self, read: list[Read], findings: tuple[Finding, ...], devices: tuple[Device, ...]
    ) -> tuple[Recommendation, ...]:
        things: tuple[Finding | Device, ...] = (*findings, *devices)
        there = {thing.id for thing in things if thing.certainty != "absent"}
        about: dict[str, dict[str, None]] = {}
        evidence: dict[str, list[int]] = {}
        for index, each in enumerate(read):
            for action in actions_in(each):
                named = about.setdefault(action, {})
                named.update(dict.fromkeys(self._concerned(read, index, there)))
                evidence.setdefault(action, []).append(index)
        recommendations = tuple(
            Recommendation(
                id=f"r{number}", action=action, about=tuple(about[action]), evidence=tuple(evidence[action])
            )
            for number, action in enumerate(evidence, start=1)
        )
        for recommendation in recommendations:
            for index in recommendation.evidence:
                self.say(index, Statement(kind="recommendation", about=recommendation.id))
        return recommendations

    def _concerned(self, read: list[Read], index: int, there: set[str]) -> list[str]:
        """What a recommendation is about: what its sentence names, else what the one before it does."""
        for place in (index, index - 1):
            if place < 0 or read[place].section != read[index].section:
                continue
            ids = [seen.about for seen in read[place].observations if seen.about in there]
            if ids:
                return list(dict.fromkeys(ids))
        return []


def _all_unchanged(read: list[Read], findings: tuple[Finding, ...], facts: _Facts) -> tuple[Finding, ...]:
    """ "Stable appearance of the chest.": all that is there is unchanged, where nothing else is said of it."""
    told = [
        index
        for index, each in enumerate(read)
        if each.section in ("findings", "impression")
        and not each.mentions
        and each.text.has("all unchanged")
        and any(role.key == "unchanged" for _, role in each.text.of_kind("trend"))
    ]
    if not told:
        return findings
    changed: list[Finding] = []
    for finding in findings:
        if finding.certainty == "absent" or finding.trend not in (None, "unchanged"):
            changed.append(finding)
            continue
        for index in told:
            facts.say(index, Statement(kind="finding", about=finding.id, trend="unchanged"))
        evidence = tuple(sorted({*finding.evidence, *told}))
        changed.append(msgspec.structs.replace(finding, trend="unchanged", evidence=evidence))
    return tuple(changed)


def _comparison(read: list[Read]) -> Comparison | None:
    named: list[int] = []
    none: list[int] = []
    for index, each in enumerate(read):
        if each.section == "comparison":
            none_there = each.text.has("no prior") and not DATE.search(each.text.text)
            (none if none_there else named).append(index)
        elif each.section in ("findings", "impression", "technique") and (
            each.text.has("prior") or DATE.search(each.text.text)
        ):
            named.append(index)
    if named:
        return Comparison(prior="named", evidence=tuple(named))
    return Comparison(prior="none", evidence=tuple(none)) if none else None


def _with_states(report: Report, facts: _Facts) -> Report:
    sentences = tuple(
        Sentence(
            section=sentence.section,
            start=sentence.start,
            end=sentence.end,
            states=tuple(facts.states[index]),
        )
        for index, sentence in enumerate(report.sentences)
    )
    return Report(sections=report.sections, sentences=sentences, language=report.language)
