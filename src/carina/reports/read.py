"""Read the text of a report: everything it states, linked to its sentences.

Here the sentences are put together: findings and devices that several sentences state, relations between them,
recommendations, and the comparison with a prior study. Single sentences are read by `carina.reports.observations`.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple, cast

import msgspec

from carina.reports.facts import Comparison, ReportFacts
from carina.reports.merge import make_device, make_finding, merge_observations
from carina.reports.observations import Observation, SentenceFacts, read_sentence
from carina.reports.phrases import Item, word_set
from carina.reports.sections import split_sections, split_sentences
from carina.reports.sentence import Mention
from carina.studies.model import (
    Device,
    Finding,
    Recommendation,
    Relation,
    Report,
    Sentence,
    Statement,
    Study,
)
from carina.studies.vocabulary import RelationKind

HEADING: Final = re.compile(r"([A-Za-z][A-Za-z/&, ]{1,40}):\s{0,8}$")
"""Heading of an organ, right before a sentence."""
DATE: Final = re.compile(
    r"\b\d{1,4}([/.-])\d{1,2}\1\d{2,4}\b"
    r"|\b\d{1,2}\.? (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\b"
    r"|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.? \d{1,2}\b",
    re.IGNORECASE,
)
"""A date within a report is the date of another study."""
PRIOR: Final = "prior"
"""Id of the prior study in a statement, where its own id is not known."""


def read_report(report: str | Report, *, prior: str | None = None) -> ReportFacts:
    """Read everything that a report states; no text makes it fail.

    Args:
        report: Raw text, or a `Report`. A `Report` keeps its sections, and its sentences if it has any; what the
            sentences state is read anew.
        prior: Id of the prior study that the report is compared with, if known.

    Returns:
        Findings, devices, relations, recommendations and the comparison, each linked to its sentences.

    Example:
        >>> facts = read_report("Small left pleural effusion. No pneumothorax.")
        >>> [(finding.name, finding.certainty) for finding in facts.findings]
        [('pleural effusion', 'present'), ('pneumothorax', 'absent')]
    """
    divided = split_sentences(split_sections(report) if isinstance(report, str) else report)
    read = [
        read_sentence(text, heading=heading, index=index, section=sentence.section)
        for index, (sentence, (heading, text)) in enumerate(
            zip(divided.sentences, _pair_headings(divided), strict=True)
        )
    ]
    observations = [seen for each in read for seen in each.observations]
    facts = _Collector(len(read))
    findings = facts.findings(observations)
    findings = _apply_overall_trend(read, findings, facts)
    devices = facts.devices(observations)
    relations = facts.relations(read)
    recommendations = facts.recommendations(read, findings, devices)
    comparison = _find_comparison(read)
    if comparison is not None and comparison.prior == "named":
        for index in comparison.evidence:
            facts.say(index, Statement(kind="comparison", about=prior or PRIOR))
    return ReportFacts(
        report=_add_states(divided, facts),
        findings=findings,
        devices=devices,
        relations=relations,
        recommendations=recommendations,
        comparison=comparison,
    )


def with_report_truth(study: Study) -> Study:
    """Give a study that has only a report the findings, devices, relations and recommendations of the report.

    Args:
        study: A study. One that has findings or devices, or no report, is returned as it is.

    Returns:
        The study with what its report states; `assessed.text` is true then. What was looked for stays as the source
        says: a report that does not mention a finding does not say that it is absent.

    Example:
        >>> from carina.studies import Report, ReportSection, Study
        >>> report = Report(sections=(ReportSection(name="findings", text="Small left pleural effusion."),))
        >>> study = Study(id="s1", patient="p1", source="mine", images=(), report=report)
        >>> [(finding.name, finding.severity) for finding in with_report_truth(study).findings]
        [('pleural effusion', 'mild')]
    """
    if study.report is None or study.findings or study.devices:
        return study
    facts = read_report(study.report, prior=study.prior)
    return msgspec.structs.replace(
        study,
        assessed=msgspec.structs.replace(study.assessed, text=True),
        findings=facts.findings,
        devices=facts.devices,
        relations=facts.relations,
        recommendations=facts.recommendations,
        report=facts.report,
    )


def _pair_headings(report: Report) -> Iterator[tuple[str, str]]:
    """The heading right before each sentence, and the sentence: "Heart" and "Normal in size."."""
    texts = {section.name: section.text for section in reversed(report.sections)}
    last: dict[str, int] = {}
    for sentence in report.sentences:
        text = texts.get(sentence.section, "")
        lead = text[last.get(sentence.section, 0) : sentence.start]
        last[sentence.section] = max(sentence.end, last.get(sentence.section, 0))
        heading = HEADING.search(lead)
        yield heading.group(1) if heading else "", text[sentence.start : sentence.end]


class _Collector:
    """Collects facts, and what each sentence states."""

    def __init__(self, sentences: int) -> None:
        self.states: list[dict[Statement, None]] = [{} for _ in range(sentences)]
        self._ids: dict[tuple[int, int], str] = {}
        """Id of the finding or device that a mention became part of, by sentence and mention."""

    def say(self, sentence: int, statement: Statement) -> None:
        self.states[sentence][statement] = None

    def findings(self, observations: list[Observation]) -> tuple[Finding, ...]:
        merged = merge_observations([seen for seen in observations if seen.kind == "finding"])
        for number, record in enumerate(merged, start=1):
            self._bind(record.members, f"f{number}")
        return tuple(make_finding(record, f"f{number}") for number, record in enumerate(merged, start=1))

    def devices(self, observations: list[Observation]) -> tuple[Device, ...]:
        merged = merge_observations([seen for seen in observations if seen.kind == "device"])
        for number, record in enumerate(merged, start=1):
            self._bind(record.members, f"d{number}")
        return tuple(make_device(record, f"d{number}") for number, record in enumerate(merged, start=1))

    def _bind(self, members: list[Observation], identity: str) -> None:
        for seen in members:
            seen.about = identity
            self._ids.setdefault((seen.sentence, seen.mention), identity)
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

    def relations(self, read: list[SentenceFacts]) -> tuple[Relation, ...]:
        found: dict[tuple[str, RelationKind, str], dict[int, None]] = {}
        for index, each in enumerate(read):
            for related in _find_relations(each):
                subject = self._ids.get((index, related.subject))
                target = self._ids.get((index, related.object))
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
        self, read: list[SentenceFacts], findings: tuple[Finding, ...], devices: tuple[Device, ...]
    ) -> tuple[Recommendation, ...]:
        things: tuple[Finding | Device, ...] = (*findings, *devices)
        there = {thing.id for thing in things if thing.certainty != "absent"}
        instruments = {device.id for device in devices}
        about: dict[str, dict[str, None]] = {}
        evidence: dict[str, list[int]] = {}
        for index, each in enumerate(read):
            for action in _find_actions(each):
                named = about.setdefault(action, {})
                concerned = self._find_concerned(read, index, there)
                if action not in OF_DEVICES:
                    concerned = [thing for thing in concerned if thing not in instruments]
                named.update(dict.fromkeys(concerned))
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

    def _find_concerned(self, read: list[SentenceFacts], index: int, there: set[str]) -> list[str]:
        """Ids that a recommendation is about: those that its sentence names, else those of the sentence before."""
        for place in (index, index - 1):
            if place < 0 or read[place].section != read[index].section:
                continue
            ids = [seen.about for seen in read[place].observations if seen.about in there]
            if ids:
                return list(dict.fromkeys(ids))
        return []


def _apply_overall_trend(
    read: list[SentenceFacts], findings: tuple[Finding, ...], facts: _Collector
) -> tuple[Finding, ...]:
    """Apply "Stable appearance of the chest." and "No change since the prior study." to findings without a trend."""
    stable = [
        index
        for index, each in enumerate(read)
        if each.section in ("findings", "impression")
        and not each.mentions
        and (each.text.has("all unchanged") or (each.text.has("prior") and not each.text.has("organ")))
        and any(role.key == "unchanged" for _, role in each.text.of_kind("trend"))
    ]
    if not stable:
        return findings
    changed: list[Finding] = []
    for finding in findings:
        if finding.certainty == "absent" or finding.trend not in (None, "unchanged"):
            changed.append(finding)
            continue
        for index in stable:
            facts.say(index, Statement(kind="finding", about=finding.id, trend="unchanged"))
        evidence = tuple(sorted({*finding.evidence, *stable}))
        changed.append(msgspec.structs.replace(finding, trend="unchanged", evidence=evidence))
    return tuple(changed)


def _find_comparison(read: list[SentenceFacts]) -> Comparison | None:
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


def _add_states(report: Report, facts: _Collector) -> Report:
    sentences = tuple(
        Sentence(
            section=sentence.section,
            start=sentence.start,
            end=sentence.end,
            states=tuple(facts.states[index]),
        )
        for index, sentence in enumerate(report.sentences)
    )
    return msgspec.structs.replace(report, sentences=sentences)


# ---- recommendations ----


IMAGING: Final = frozenset(
    {"chest CT", "follow-up radiograph", "lateral view", "decubitus view", "echocardiography", "ultrasound"}
)
"""Actions that are examinations: behind "on" they are where something shows."""
OF_DEVICES: Final = frozenset({"reposition device", "urgent clinical attention"})
"""Actions that a device may need."""
BEFORE_NOUNS: Final = word_set("the a an this that prior previous recent same frontal pa ap chest xxxx")
"""Words that may stand between "on" and the examination."""


def _find_actions(read: SentenceFacts) -> list[str]:
    """Actions that a sentence recommends, in the order of their words."""
    if not read.advice or read.section not in ("findings", "impression", "recommendation"):
        return []
    if read.text.words and read.text.words[0].text == "no":
        return []
    found = list(
        dict.fromkeys(
            role.key
            for item, role in read.text.of_kind("action")
            if _is_advised(read, item) and not (role.key in IMAGING and _is_where_seen(read, item))
        )
    )
    if "follow-up radiograph" in found:
        # A radiograph after repositioning belongs to it; "followup PA and lateral" is one examination at a later time.
        for action, part in (
            ("reposition device", "follow-up radiograph"),
            ("follow-up radiograph", "lateral view"),
        ):
            if action in found and part in found:
                found.remove(part)
    if len(found) > 1 and "clinical correlation" in found and not _correlates(read):
        found.remove("clinical correlation")
    return found


def _is_advised(read: SentenceFacts, action: Item) -> bool:
    """Whether a word of recommendation stands in the clause of an action; "suggest" must speak of the action itself."""
    if read.section == "recommendation":
        return True
    clauses, words = read.text.clauses, read.text.words
    for cue, _ in read.text.of_kind("advice"):
        if clauses[cue.start] != clauses[action.start]:
            continue
        word = words[cue.end - 1].text
        if word == "suggest" and (action.start < cue.end or _names_between(read, cue.end, action.start)):
            continue  # "findings on CT suggest pneumonia"
        if word == "suggested" and (action.start > cue.start or _names_between(read, action.end, cue.start)):
            continue
        return True
    return False


def _names_between(read: SentenceFacts, start: int, end: int) -> bool:
    return any(start <= mention.start < end for mention in read.text.mentions)


def _is_where_seen(read: SentenceFacts, action: Item) -> bool:
    """Whether an examination is where something shows: "not well seen on the lateral view"."""
    words, index = read.text.words, action.start - 1
    while index >= 0 and words[index].text in BEFORE_NOUNS:
        index -= 1
    return index >= 0 and words[index].text == "on"


def _correlates(read: SentenceFacts) -> bool:
    """Whether correlation is asked for by name: "if clinically indicated" only qualifies something else."""
    return any(word.text.startswith("correlat") for word in read.text.words)


# ---- relations ----

FAR: Final = 14
"""Largest number of words between a mention and the phrase that relates it."""


class _Link(NamedTuple):
    """Indices of two mentions of a sentence, and how the first relates to the second."""

    subject: int
    kind: RelationKind
    object: int


def _find_relations(read: SentenceFacts) -> Iterator[_Link]:
    """Relations that a sentence states between findings or devices that are not absent; none in advice."""
    if read.advice or len(read.mentions) < 2:
        return
    for item, role in read.text.of_kind("relation"):
        kind, _, first = role.key.rpartition(" ")
        before = _find_mention_before(read, item)
        if before is None:
            continue
        for after in _find_mentions_after(read, item):
            pair = (before, after) if first == "first" else (after, before)
            if read.mentions[before].name != read.mentions[after].name:
                yield _Link(pair[0], cast(RelationKind, kind), pair[1])


def _is_stated(mention: Mention) -> bool:
    return mention.certainty != "absent" and not mention.past and mention.how != "panel"


def _find_mention_before(read: SentenceFacts, item: Item) -> int | None:
    found = [n for n, mention in enumerate(read.mentions) if mention.end <= item.start]
    if not found:
        return None
    last = found[-1]
    mention = read.mentions[last]
    near = item.start - mention.end <= FAR and mention.clause == read.text.clauses[item.start]
    return last if near and _is_stated(mention) else None


def _find_mentions_after(read: SentenceFacts, item: Item) -> list[int]:
    """The first mention behind the words, and the alternatives listed with it."""
    behind = [n for n, mention in enumerate(read.mentions) if mention.start >= item.end]
    if not behind or read.mentions[behind[0]].start - item.end > FAR:
        return []
    others = [other for other, _ in read.text.of_kind("relation") if other.start >= item.end]
    if others and others[0].start < read.mentions[behind[0]].start and not _extends(item, others[0]):
        return []
    found: list[int] = []
    for number in behind:
        mention = read.mentions[number]
        if found:
            last = read.mentions[found[-1]]
            between = {word.text for word in read.text.words[last.end : mention.start]}
            if not read.text.is_list(last.end, mention.start) or not between & {
                "or",
                "versus",
                "vs",
                "and",
                ",",
            }:
                break
        if not _is_stated(mention) or mention.clause != read.text.clauses[item.start]:
            break
        found.append(number)
    return found[:1] if "and" in _words_between(read, found) else found


def _extends(item: Item, other: Item) -> bool:
    """ "Which is possibly due to": words that follow at once are one phrase."""
    return other.start - item.end <= 1


def _words_between(read: SentenceFacts, found: list[int]) -> set[str]:
    if len(found) < 2:
        return set()
    start, end = read.mentions[found[0]].end, read.mentions[found[-1]].start
    return {word.text for word in read.text.words[start:end]}
