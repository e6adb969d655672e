"""Statistics of the conversations: lengths and shares, beside those of a sample of the original. Never a failure."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from carina.audits.chance import Z95
from carina.audits.gate import AuditContext, NoLimits, gate
from carina.audits.result import GateResult, Row
from carina.audits.trek import original_sample as sample
from carina.audits.trek.base import ConversationGate
from carina.audits.trek.conversation import Conversation
from carina.audits.trek.proportions import share_row

NAME: Final = "conversation-statistics"
_MOST_OPTIONS: Final = 6


class Histogram:
    """Integers and how often they occur; there are few different ones, so memory does not grow."""

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()

    def mean(self) -> tuple[float, float, float]:
        """The mean with its 95% interval."""
        n = self.counts.total()
        mean = sum(value * times for value, times in self.counts.items()) / n
        squares = sum((value - mean) ** 2 * times for value, times in self.counts.items())
        half = Z95 * (squares / max(n - 1, 1) / n) ** 0.5
        return mean, mean - half, mean + half

    def quantile(self, part: float) -> int:
        """The smallest number that is not exceeded by this share of the numbers."""
        wanted, reached = part * self.counts.total(), 0
        for value, times in sorted(self.counts.items()):
            reached += times
            if reached >= wanted:
                return value
        return max(self.counts)


_QUANTILES: Final = {"least": 0.0, "p25": 0.25, "median": 0.5, "p75": 0.75, "p95": 0.95, "most": 1.0}


@gate(
    NAME,
    title="Statistics of the conversations",
    meaning="Information about turns, words, options, images and labels; the gate never fails.",
    protocols=("trek",),
    order=480,
)
class ConversationStatistics(ConversationGate[NoLimits]):
    """Counts of everything that is known of the original's sample."""

    cost = 2.0

    def __init__(self, context: AuditContext, limits: NoLimits) -> None:
        super().__init__(context, limits)
        self._turns, self._questions, self._answers, self._words = (Histogram() for _ in range(4))
        self._images, self._current = Histogram(), Histogram()
        self._formats: Counter[str] = Counter()
        self._stages: Counter[int] = Counter()
        self._has: Counter[int] = Counter()
        self._answer_words: Counter[int] = Counter()
        self._options: Counter[int] = Counter()
        self._labels: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._linked: Counter[int] = Counter()
        self._counted: Counter[str] = Counter()

    def examine(self, conversation: Conversation) -> None:
        case = conversation.case
        counted, stages, formats, answer_words = (
            self._counted,
            self._stages,
            self._formats,
            self._answer_words,
        )
        questions, answers = self._questions.counts, self._answers.counts
        words = 0
        for turn in conversation.turns:
            step, question_words, own_words = turn.step, len(turn.tokens), len(turn.answer)
            stages[step.stage] += 1
            formats[step.format] += 1
            questions[question_words] += 1
            answers[own_words] += 1
            answer_words[step.stage] += own_words
            words += question_words + own_words
            if step.depends_on:
                self._linked[step.stage] += 1
            if step.context:
                counted["indication"] += 1
            if step.options:
                self._options[min(len(step.options), _MOST_OPTIONS)] += 1
                counted["several"] += len(step.key.options) > 1
            if step.key.label is not None:
                self._labels[step.task][step.key.label] += 1
        counted["shuffled"] += case.order == "shuffled"
        self._turns.counts[len(case.steps)] += 1
        self._words.counts[words] += 1
        self._images.counts[len(case.images)] += 1
        self._current.counts[sum(image.role == "current" for image in case.images)] += 1
        self._has.update({step.stage for step in case.steps})

    def result(self) -> GateResult:
        return GateResult(
            name=self.name,
            title=self.title,
            status="pass" if self._n else "not applicable",
            n=self._n,
            unit="conversations",
            threshold="none: for information, beside the figures of the original's sample",
            meaning="Statistics of the conversations; nothing is judged."
            if self._n
            else "The benchmark has no conversations.",
            rows=tuple(self._rows()) if self._n else (),
        )

    def _rows(self) -> Iterator[Row]:
        turns = sum(self._stages.values())
        yield from _distribution_rows("turns per conversation", self._turns, sample.TURNS)
        known = {
            **sample.FORMATS,
            "open": sample.FORMATS["open"] - sample.STAGES[8],
            "report": sample.STAGES[8],
        }
        for name in ("open", "report", "yes_no", "choice", "boxes"):
            yield _share_with_sample(f"format {name}", self._formats[name], turns, known[name])
        for stage in sample.STAGES:
            yield _share_with_sample(
                f"stage {stage}: turns", self._stages[stage], turns, sample.STAGES[stage]
            )
        for stage in sample.STAGES:
            has = self._has[stage]
            yield _share_with_sample(
                f"stage {stage}: conversations with it", has, self._n, sample.HAS_STAGE[stage]
            )
        yield from _distribution_rows("question words", self._questions, sample.QUESTION_WORDS)
        yield from _distribution_rows("answer words", self._answers, sample.ANSWER_WORDS)
        for stage, n in sorted(self._stages.items()):
            yield Row(
                name=f"stage {stage}: answer words, mean",
                n=n,
                value=self._answer_words[stage] / n,
                note=_sample_note(sample.ANSWER_WORDS_BY_STAGE.get(stage)),
            )
        total_words = self._answer_words.total()
        for stage in sorted(self._stages):
            yield Row(
                name=f"stage {stage}: share of answer words",
                n=total_words,
                value=self._answer_words[stage] / total_words if total_words else 0.0,
                note=_sample_note(sample.ANSWER_SHARE.get(stage), is_share=True),
            )
        yield from _distribution_rows("words per conversation", self._words, sample.CONVERSATION_WORDS)
        yield from self._option_rows()
        yield from _distribution_rows("images per conversation", self._images, sample.IMAGES)
        yield from _distribution_rows(
            "current images per conversation", self._current, {"mean": sample.IMAGES["current"]}
        )
        by_stage = ", ".join(f"{stage}: {times}" for stage, times in sorted(self._linked.items()))
        linked = _share_with_sample(
            "turns that depend on earlier ones", self._linked.total(), turns, sample.LINKED
        )
        yield msgspec.structs.replace(linked, note=f"{linked.note}; by stage {by_stage or 'none'}")
        for family, answers in sorted(self._labels.items()):
            yield from self._label_rows(family, answers)
        yield _share_with_sample(
            "turns with an indication", self._counted["indication"], turns, sample.INDICATION
        )
        yield _share_with_sample(
            "shuffled conversations", self._counted["shuffled"], self._n, sample.SHUFFLED
        )

    def _option_rows(self) -> Iterator[Row]:
        choices = self._options.total()
        if not choices:
            return
        for number in range(2, _MOST_OPTIONS + 1):
            name = f"{number} options" if number < _MOST_OPTIONS else f"{number} options or more"
            yield _share_with_sample(
                f"choices with {name}", self._options[number], choices, sample.OPTIONS[number]
            )
        yield _share_with_sample(
            "choices with several right", self._counted["several"], choices, sample.SEVERAL
        )

    def _label_rows(self, family: str, answers: Counter[str]) -> Iterator[Row]:
        decided = answers["yes"] + answers["no"]
        if decided:
            yield _share_with_sample(
                f"{family}: yes among yes and no", answers["yes"], decided, sample.LABELS.get(family)
            )
        if answers["uncertain"]:
            yield _share_with_sample(f"{family}: uncertain", answers["uncertain"], answers.total(), None)


def _distribution_rows(name: str, histogram: Histogram, known: Mapping[str, float]) -> Iterator[Row]:
    """The mean, and the quantiles that are known of the sample."""
    n = histogram.counts.total()
    if not n:
        return
    mean, low, high = histogram.mean()
    yield Row(name=f"{name}, mean", n=n, value=mean, low=low, high=high, note=_sample_note(known.get("mean")))
    for word in known:
        if word in _QUANTILES:
            value = float(histogram.quantile(_QUANTILES[word]))
            yield Row(name=f"{name}, {word}", n=n, value=value, note=_sample_note(known[word]))


def _share_with_sample(name: str, count: int, n: int, known: float | None) -> Row:
    return share_row(name, count, n, note=_sample_note(known, is_share=True))


def _sample_note(known: float | None, *, is_share: bool = False) -> str:
    if known is None:
        return ""
    return f"{sample.SOURCE}: {known:.1%}" if is_share else f"{sample.SOURCE}: {known:g}"
