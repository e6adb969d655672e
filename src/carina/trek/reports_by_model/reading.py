"""Reports read by a served model instead of by rules, one after the other, with the rules to fall back on.

The model decides what a report states; the lexicon decides whether a sentence bears it out. What an answer lacks in
form or support is dropped and counted; a report whose answer is of no use is read by the rules.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field

import msgspec

from carina.cases import Origin
from carina.models.served import AnswerCache, Prompt, Reply, ask
from carina.studies.model import Report, Sentence, Statement, Study
from carina.trek.reports import Reading, read_report
from carina.trek.reports_by_model.asked import SAMPLING, prompt_for
from carina.trek.reports_by_model.checked import Checked, checked
from carina.trek.reports_by_model.support import Support
from carina.trek.reports_by_model.told import taken_apart


class ReadingByModel(Reading, frozen=True, kw_only=True):
    """A reading that says who read: a model, or the rules where it could not."""

    origin: Origin


@dataclass
class ExtractionCounts:
    """What became of the reports of a set."""

    by_model: int = 0
    by_rules: Counter[str] = field(default_factory=Counter)
    """Reports that the rules read, by why."""
    dropped: Counter[str] = field(default_factory=Counter)
    """Facts and attributes of a model that were not taken over, by why."""


def read_reports_by_model(
    model: str,
    reports: Iterable[str | Report],
    *,
    counts: ExtractionCounts,
    cache: AnswerCache | None = None,
    connections: int = 8,
    base_url: str | None = None,
) -> Iterator[ReadingByModel]:
    """One reading a report, in order; counts what was done."""
    by_rules = (read_report(report) for report in reports)
    return _read(model, by_rules, counts, cache=cache, connections=connections, base_url=base_url)


def with_report_truth_by_model(
    model: str,
    studies: Iterable[Study],
    *,
    counts: ExtractionCounts,
    cache: AnswerCache | None = None,
    connections: int = 8,
    base_url: str | None = None,
) -> Iterator[Study]:
    """The studies in their order; those that carry only a report get their truth from it, read by a model."""
    waiting: deque[Study] = deque()

    def by_rules() -> Iterator[Reading]:
        for study in studies:
            waiting.append(study)
            if _is_to_read(study) and study.report is not None:
                yield read_report(study.report, prior=study.prior)

    readings = _read(model, by_rules(), counts, cache=cache, connections=connections, base_url=base_url)
    for reading in readings:
        while not _is_to_read(waiting[0]):
            yield waiting.popleft()
        yield msgspec.structs.replace(
            waiting.popleft(),
            findings=reading.findings,
            devices=reading.devices,
            relations=reading.relations,
            recommendations=reading.recommendations,
            report=reading.report,
        )
    yield from waiting


def _is_to_read(study: Study) -> bool:
    return study.report is not None and not study.findings and not study.devices


def _read(
    model: str,
    by_rules: Iterable[Reading],
    counts: ExtractionCounts,
    *,
    cache: AnswerCache | None,
    connections: int,
    base_url: str | None,
) -> Iterator[ReadingByModel]:
    waiting: deque[tuple[Reading, Prompt | None]] = deque()

    def prompts() -> Iterator[Prompt]:
        for reading in by_rules:
            prompt = prompt_for(reading.report)
            waiting.append((reading, prompt))
            if prompt is not None:
                yield prompt

    def unasked() -> Iterator[ReadingByModel]:
        while waiting and waiting[0][1] is None:
            yield _fallen_back(waiting.popleft()[0], "nothing to read", counts)

    replies = ask(
        model, prompts(), connections=connections, sampling=SAMPLING, cache=cache, base_url=base_url
    )
    with closing(replies):
        for reply in replies:
            yield from unasked()
            yield _reading(model, waiting.popleft()[0], reply, counts)
    yield from unasked()


def _reading(model: str, rules: Reading, reply: Reply, counts: ExtractionCounts) -> ReadingByModel:
    if reply.text is None:
        return _fallen_back(rules, "no reply", counts)
    if reply.stop != "stop":
        return _fallen_back(rules, "cut off", counts)
    told = taken_apart(reply.text)
    if told is None:
        return _fallen_back(rules, "not the JSON asked for", counts)
    result = checked(told, Support(rules.report))
    counts.by_model += 1
    counts.dropped += +result.dropped
    dropped = +result.dropped
    note = (
        f"dropped: {', '.join(f'{reason} {n}' for reason, n in sorted(dropped.items()))}" if dropped else None
    )
    return ReadingByModel(
        report=_with_states(rules.report, result),
        findings=result.findings,
        devices=result.devices,
        relations=result.relations,
        recommendations=result.recommendations,
        comparison=rules.comparison,
        origin=Origin(method="llm", model=model, review="none", note=note),
    )


def _fallen_back(rules: Reading, reason: str, counts: ExtractionCounts) -> ReadingByModel:
    counts.by_rules[reason] += 1
    return ReadingByModel(
        report=rules.report,
        findings=rules.findings,
        devices=rules.devices,
        relations=rules.relations,
        recommendations=rules.recommendations,
        comparison=rules.comparison,
        origin=Origin(method="rule", note=reason),
    )


def _with_states(report: Report, result: Checked) -> Report:
    """The sentences with what the model found in them; what they say of earlier studies is the rules'."""

    def states(number: int, sentence: Sentence) -> tuple[Statement, ...]:
        kept = tuple(state for state in sentence.states if state.kind in ("comparison", "quality"))
        return (*result.states.get(number, ()), *kept)

    sentences = tuple(
        msgspec.structs.replace(sentence, states=states(number, sentence))
        for number, sentence in enumerate(report.sentences)
    )
    return msgspec.structs.replace(report, sentences=sentences)
