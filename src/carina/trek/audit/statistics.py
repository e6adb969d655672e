"""What a set is like: lengths, mixes and shares, beside those of the original's sample. Never a failure."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

import msgspec

from carina.cases.audit import GateResult, Row
from carina.cases.audit.chance import Z95
from carina.cases.model import Case
from carina.trek.audit import sample
from carina.trek.audit.tallies import share
from carina.trek.audit.turns import Decoder

NAME = "statistics"
_MOST_OPTIONS = 6


class Histogram:
    """Whole numbers by how often they occur: few different ones, so memory does not grow."""

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()

    def mean(self) -> tuple[float, float, float]:
        """With its 95% interval."""
        n = self.counts.total()
        mean = sum(value * times for value, times in self.counts.items()) / n
        squares = sum((value - mean) ** 2 * times for value, times in self.counts.items())
        half = Z95 * (squares / max(n - 1, 1) / n) ** 0.5
        return mean, mean - half, mean + half

    def quantile(self, part: float) -> int:
        """The smallest number that is not exceeded by this part of them."""
        wanted, seen = part * self.counts.total(), 0
        for value, times in sorted(self.counts.items()):
            seen += times
            if seen >= wanted:
                return value
        return max(self.counts)


_QUANTILES = {"least": 0.0, "p25": 0.25, "median": 0.5, "p75": 0.75, "p95": 0.95, "most": 1.0}


class Statistics:
    """Counts of everything that the sample's figures are known for."""

    cost = 2.0

    def __init__(self, decoder: Decoder) -> None:
        self.decoder = decoder
        self._n = 0
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

    def see(self, case: Case) -> None:
        conversation = self.decoder.read(case)
        if conversation is None:
            return
        self._n += 1
        counted, stages, formats, answer_words = (
            self._counted,
            self._stages,
            self._formats,
            self._answer_words,
        )
        questions, answers = self._questions.counts, self._answers.counts
        words = 0
        for turn in conversation.turns:
            step, asked, answered = turn.step, len(turn.tokens), len(turn.answer)
            stages[step.stage] += 1
            formats[step.format] += 1
            questions[asked] += 1
            answers[answered] += 1
            answer_words[step.stage] += answered
            words += asked + answered
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
            name=NAME,
            status="pass" if self._n else "not applicable",
            n=self._n,
            unit="conversations",
            threshold="none: information beside the figures of the original's sample",
            meaning="What the conversations are like; nothing is judged."
            if self._n
            else "There are no conversations to which this applies.",
            rows=tuple(self._rows()) if self._n else (),
        )

    def _rows(self) -> Iterator[Row]:
        turns = sum(self._stages.values())
        yield from _spread("turns per conversation", self._turns, sample.TURNS)
        known = {
            **sample.FORMATS,
            "open": sample.FORMATS["open"] - sample.STAGES[8],
            "report": sample.STAGES[8],
        }
        for name in ("open", "report", "yes_no", "choice", "boxes"):
            yield _share(f"format {name}", self._formats[name], turns, known[name])
        for stage in range(1, 9):
            yield _share(f"stage {stage}: turns", self._stages[stage], turns, sample.STAGES[stage])
        for stage in range(1, 9):
            has = self._has[stage]
            yield _share(f"stage {stage}: conversations with it", has, self._n, sample.HAS_STAGE[stage])
        yield from _spread("question words", self._questions, sample.QUESTION_WORDS)
        yield from _spread("answer words", self._answers, sample.ANSWER_WORDS)
        for stage, n in sorted(self._stages.items()):
            yield Row(
                name=f"stage {stage}: answer words, mean",
                n=n,
                value=self._answer_words[stage] / n,
                note=_beside(sample.ANSWER_WORDS_BY_STAGE.get(stage)),
            )
        said = self._answer_words.total()
        for stage in sorted(self._stages):
            yield Row(
                name=f"stage {stage}: share of answer words",
                n=said,
                value=self._answer_words[stage] / said if said else 0.0,
                note=_beside(sample.ANSWER_SHARE.get(stage), share=True),
            )
        yield from _spread("words per conversation", self._words, sample.CONVERSATION_WORDS)
        yield from self._option_rows()
        yield from _spread("images per conversation", self._images, sample.IMAGES)
        yield from _spread(
            "current images per conversation", self._current, {"mean": sample.IMAGES["current"]}
        )
        by_stage = ", ".join(f"{stage}: {times}" for stage, times in sorted(self._linked.items()))
        linked = _share("turns that depend on earlier ones", self._linked.total(), turns, sample.LINKED)
        yield msgspec.structs.replace(linked, note=f"{linked.note}; by stage {by_stage or 'none'}")
        for family, answers in sorted(self._labels.items()):
            yield from self._label_rows(family, answers)
        yield _share("turns with an indication", self._counted["indication"], turns, sample.INDICATION)
        yield _share("shuffled conversations", self._counted["shuffled"], self._n, sample.SHUFFLED)

    def _option_rows(self) -> Iterator[Row]:
        chosen = self._options.total()
        if not chosen:
            return
        for number in range(2, _MOST_OPTIONS + 1):
            name = f"{number} options" if number < _MOST_OPTIONS else f"{number} options or more"
            yield _share(f"choices with {name}", self._options[number], chosen, sample.OPTIONS[number])
        yield _share("choices with several right", self._counted["several"], chosen, sample.SEVERAL)

    def _label_rows(self, family: str, answers: Counter[str]) -> Iterator[Row]:
        decided = answers["yes"] + answers["no"]
        if decided:
            yield _share(
                f"{family}: yes among yes and no", answers["yes"], decided, sample.LABELS.get(family)
            )
        if answers["uncertain"]:
            yield _share(f"{family}: uncertain", answers["uncertain"], answers.total(), None)


def _spread(name: str, histogram: Histogram, known: Mapping[str, float]) -> Iterator[Row]:
    """The mean and those quantiles that are known of the sample."""
    n = histogram.counts.total()
    if not n:
        return
    mean, low, high = histogram.mean()
    yield Row(name=f"{name}, mean", n=n, value=mean, low=low, high=high, note=_beside(known.get("mean")))
    for word in known:
        if word in _QUANTILES:
            value = float(histogram.quantile(_QUANTILES[word]))
            yield Row(name=f"{name}, {word}", n=n, value=value, note=_beside(known[word]))


def _share(name: str, count: int, n: int, known: float | None) -> Row:
    return share(name, count, n, note=_beside(known, share=True))


def _beside(known: float | None, *, share: bool = False) -> str:
    if known is None:
        return ""
    return f"{sample.SOURCE}: {known:.1%}" if share else f"{sample.SOURCE}: {known:g}"
