"""Read reports by a served model, with the rules as fallback.

The model decides what a report states; the lexicon decides whether the cited sentences support it. Facts of a reply
that are malformed or unsupported are dropped and counted; a report whose reply cannot be used is read by the rules.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field

import msgspec

from carina.models.served import AnswerCache, Prompt, Reply, ask
from carina.reports.by_model.evidence import Evidence
from carina.reports.by_model.prompt import SAMPLING, make_prompt
from carina.reports.by_model.reply import parse_reply
from carina.reports.by_model.validate import ValidatedFacts, validate_reply
from carina.reports.facts import ReportFacts
from carina.reports.read import read_report
from carina.studies.model import Origin, Report, Sentence, Statement, Study


class ModelReportFacts(ReportFacts, frozen=True, kw_only=True):
    """Facts of a report, with their origin: a model, or the rules where the model's reply could not be used."""

    origin: Origin


@dataclass
class ExtractionCounts:
    """How the reports of a set were read."""

    by_model: int = 0
    by_rules: Counter[str] = field(default_factory=Counter)
    """Reports that the rules read, by reason."""
    dropped: Counter[str] = field(default_factory=Counter)
    """Facts and attributes of replies that were dropped, by reason."""


def read_reports_by_model(
    model: str,
    reports: Iterable[str | Report],
    *,
    counts: ExtractionCounts,
    cache: AnswerCache | None = None,
    connections: int = 8,
    base_url: str | None = None,
) -> Iterator[ModelReportFacts]:
    """Read reports by a served model.

    Args:
        model: Name of the model as inspect-ai names it, such as "openai/gpt-5".
        reports: Raw texts, or reports with sections.
        counts: Counts of how reports were read; added to.
        cache: Replies that were received before.
        connections: Requests that are sent at the same time.
        base_url: Address of the service, if it is not the provider's own.

    Returns:
        Facts of each report, in the order of the reports.
    """
    by_rules = (read_report(report) for report in reports)
    return _read_in_order(model, by_rules, counts, cache=cache, connections=connections, base_url=base_url)


def with_report_truth_by_model(
    model: str,
    studies: Iterable[Study],
    *,
    counts: ExtractionCounts,
    cache: AnswerCache | None = None,
    connections: int = 8,
    base_url: str | None = None,
    stay_local: bool = False,
) -> Iterator[Study]:
    """Give studies that have only a report the facts of the report, read by a served model.

    The other studies are passed through; the order stays. With `stay_local`, requests to any other machine are refused.
    For the other arguments see `read_reports_by_model`.
    """
    waiting: deque[Study] = deque()

    def by_rules() -> Iterator[ReportFacts]:
        for study in studies:
            waiting.append(study)
            if _has_only_report(study) and study.report is not None:
                yield read_report(study.report, prior=study.prior)

    readings = _read_in_order(
        model,
        by_rules(),
        counts,
        cache=cache,
        connections=connections,
        base_url=base_url,
        stay_local=stay_local,
    )
    for reading in readings:
        while not _has_only_report(waiting[0]):
            yield waiting.popleft()
        study = waiting.popleft()
        yield msgspec.structs.replace(
            study,
            assessed=msgspec.structs.replace(study.assessed, text=True),
            findings=reading.findings,
            devices=reading.devices,
            relations=reading.relations,
            recommendations=reading.recommendations,
            report=reading.report,
        )
    yield from waiting


def _has_only_report(study: Study) -> bool:
    return study.report is not None and not study.findings and not study.devices


def _read_in_order(
    model: str,
    by_rules: Iterable[ReportFacts],
    counts: ExtractionCounts,
    *,
    cache: AnswerCache | None,
    connections: int,
    base_url: str | None,
    stay_local: bool = False,
) -> Iterator[ModelReportFacts]:
    waiting: deque[tuple[ReportFacts, Prompt | None]] = deque()

    def prompts() -> Iterator[Prompt]:
        for reading in by_rules:
            prompt = make_prompt(reading.report)
            waiting.append((reading, prompt))
            if prompt is not None:
                yield prompt

    def without_prompt() -> Iterator[ModelReportFacts]:
        while waiting and waiting[0][1] is None:
            yield _keep_facts_of_rules(waiting.popleft()[0], "nothing to read", counts)

    replies = ask(
        model,
        prompts(),
        connections=connections,
        sampling=SAMPLING,
        cache=cache,
        base_url=base_url,
        stay_local=stay_local,
    )
    with closing(replies):
        for reply in replies:
            yield from without_prompt()
            yield _make_facts(model, waiting.popleft()[0], reply, counts)
    yield from without_prompt()


def _make_facts(model: str, rules: ReportFacts, reply: Reply, counts: ExtractionCounts) -> ModelReportFacts:
    if reply.text is None:
        return _keep_facts_of_rules(rules, "no reply", counts)
    if reply.stop != "stop":
        return _keep_facts_of_rules(rules, "cut off", counts)
    parsed = parse_reply(reply.text)
    if parsed is None:
        return _keep_facts_of_rules(rules, "not the JSON asked for", counts)
    result = validate_reply(parsed, Evidence(rules.report))
    counts.by_model += 1
    counts.dropped += +result.dropped
    dropped = +result.dropped
    note = (
        f"dropped: {', '.join(f'{reason} {n}' for reason, n in sorted(dropped.items()))}" if dropped else None
    )
    return ModelReportFacts(
        report=_add_states(rules.report, result),
        findings=result.findings,
        devices=result.devices,
        relations=result.relations,
        recommendations=result.recommendations,
        comparison=rules.comparison,
        origin=Origin(method="llm", model=model, review="none", note=note),
    )


def _keep_facts_of_rules(rules: ReportFacts, reason: str, counts: ExtractionCounts) -> ModelReportFacts:
    counts.by_rules[reason] += 1
    return ModelReportFacts(
        report=rules.report,
        findings=rules.findings,
        devices=rules.devices,
        relations=rules.relations,
        recommendations=rules.recommendations,
        comparison=rules.comparison,
        origin=Origin(method="rule", note=reason),
    )


def _add_states(report: Report, result: ValidatedFacts) -> Report:
    """Sentences with the model's statements; those about prior studies and image quality stay those of the rules."""

    def states(number: int, sentence: Sentence) -> tuple[Statement, ...]:
        kept = tuple(state for state in sentence.states if state.kind in ("comparison", "quality"))
        return (*result.states.get(number, ()), *kept)

    sentences = tuple(
        msgspec.structs.replace(sentence, states=states(number, sentence))
        for number, sentence in enumerate(report.sentences)
    )
    return msgspec.structs.replace(report, sentences=sentences)
