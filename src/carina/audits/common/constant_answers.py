"""Gate: what does a model score that always gives the same answer?

The same option number is judged by accuracy. The same words are judged by recall averaged over the right answers that
occur, because the answers of a task need not be equally frequent in truth: always "yes" then gets one of two classes,
and is above chance only if hardly any other answer is ever right.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import combinations
from typing import Annotated, Final

from msgspec import Meta

from carina.audits.answer_options import Choices, read_choices, task_of
from carina.audits.chance import at_least, hit_row, limit, shift
from carina.audits.gate import AuditContext, Gate, Limits, Share, gate
from carina.audits.result import GateResult, Row, Status
from carina.cases.model import Case

_ALL_SETS: Final = 3
"""Up to this many options besides "none of these", every set of options is tried; with more, one option at a time."""
_MOST_ANSWERS: Final = 5000
"""Right answers of a task that are counted by name; later ones are too rare to be a good constant answer."""
_YES_NO: Final = (("yes", "no"), ("no", "yes"))
_YES_NO_UNCERTAIN: Final = 3
"""Answers to a yes/no question."""
_OTHER_ANSWERS: Final = ("(any other)",)


class ConstantAnswersLimits(Limits, frozen=True):
    """Limits of `constant-answers`."""

    margin: Annotated[
        Share,
        Meta(
            description="Share by which the best constant number may be right more often than chance.",
            extra={"trek": 0.05},
        ),
    ] = 0.0


@gate(
    "constant-answers",
    title="Constant answers",
    meaning="Always giving the same answer scores at chance on every task.",
    limits=ConstantAnswersLimits,
    order=40,
)
class ConstantAnswers(Gate[ConstantAnswersLimits]):
    """Scores of constant answers, by task."""

    cost = 2.0

    def __init__(self, context: AuditContext, limits: ConstantAnswersLimits) -> None:
        super().__init__(context, limits)
        self._n = 0
        self._right_numbers: defaultdict[str, Counter[tuple[int, ...]]] = defaultdict(Counter)
        self._tried_numbers: defaultdict[str, set[tuple[int, ...]]] = defaultdict(set)
        self._trials: defaultdict[str, Counter[float]] = defaultdict(Counter)
        self._right_words: defaultdict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
        self._uncertain: Counter[str] = Counter()
        self._decided: set[str] = set()
        """Tasks with a yes/no question whose answer is yes or no."""
        self._list_lengths: defaultdict[str, Counter[int]] = defaultdict(Counter)
        self._by_target: defaultdict[tuple[str, str], Counter[tuple[str, ...]]] = defaultdict(Counter)

    def see(self, case: Case) -> None:
        self._n += 1
        for step in case.steps:
            if step.key.label == "uncertain":
                self._uncertain[task_of(step)] += 1
            choices = read_choices(step)
            if choices is None or len(choices.texts) < 2:
                continue
            task = task_of(step)
            if choices.texts in _YES_NO:
                self._decided.add(task)
            words = tuple(sorted(choices.texts[place] for place in choices.right))
            if len(self._right_words[task]) >= _MOST_ANSWERS and words not in self._right_words[task]:
                words = _OTHER_ANSWERS
            self._right_words[task][words] += 1
            self._list_lengths[task][len(choices.texts)] += 1
            if case.target and not step.multiple:
                self._by_target[task, case.target][words] += 1
            if step.options:
                answers = list(_constant_numbers(choices, multiple=step.multiple))
                self._tried_numbers[task].update(answers)
                self._trials[task][1 / len(answers)] += 1
                self._right_numbers[task][tuple(sorted(place + 1 for place in choices.right))] += 1

    def result(self) -> GateResult:
        tests = sum(map(len, self._tried_numbers.values()))
        rows = [self._number_row(task, tests) for task in sorted(self._tried_numbers)]
        rows += [self._words_row(task) for task in sorted(self._right_words)]
        rows += [self._uncertain_row(task) for task in sorted(self._uncertain.keys() - self._decided)]
        return self.report_rows(
            rows,
            n=self._n,
            threshold="best constant number (accuracy) and best constant words (mean recall over right answers) not "
            f"above chance (fail at {self.context.fail_level:g}, warn at {self.context.warn_level:g}, corrected for "
            "all constants)",
            good="Always giving the same answer scores at chance on every task.",
            bad="Always giving one answer scores above chance, so the task can be passed without the images; balance "
            "the right answers, or report the task only beside this baseline.",
            warned="Some of the offered answers are never right, or one is right slightly too often; balance them "
            "where the studies allow it, and report these tasks beside this baseline.",
            none="No step has a list of options.",
        )

    def _number_row(self, task: str, tests: int) -> Row:
        trials = self._trials[task]
        best = max(sorted(self._tried_numbers[task]), key=lambda answer: self._right_numbers[task][answer])
        hits, n = self._right_numbers[task][best], sum(trials.values())
        allowed = shift(trials, self.limits.margin)
        p = min(1.0, at_least(hits, allowed) * tests)
        number = ", ".join(map(str, best))
        return hit_row(
            f"{task}: always ({number})",
            hits,
            trials,
            limit=limit(allowed, self.context.warn_level / tests),
            p=p,
            status=self.context.judge(p),
            note=f'always answering "{number}" is right in {hits} of {n} ({hits / n:.0%})',
        )

    def _words_row(self, task: str) -> Row:
        classes, lengths = self._right_words[task], self._list_lengths[task]
        n = sum(classes.values())
        (best, often), k = classes.most_common(1)[0], max(lengths)
        chance = sum(times / options for options, times in lengths.items()) / n
        status, note = self._judge_missing(len(classes), k, n)
        words = " + ".join(best)
        frequency = f"the most frequent right answer, in {often} of {n} ({often / n:.0%})"
        one_answer = sorted(
            target
            for (of, target), answers in self._by_target.items()
            if of == task and self._judge_missing(len(answers), k, answers.total())[0] == "fail"
        )
        if status == "pass" and one_answer:
            status, note = "warn", f"only one answer is ever right for {', '.join(one_answer)}"
        return Row(
            name=f'{task}: always "{words}"',
            n=n,
            value=1 / len(classes),
            chance=chance,
            limit=max(chance, 1 / len(classes)) if status == "pass" else chance,
            status=status,
            note=f"{note}; {frequency}" if note else frequency,
        )

    def _uncertain_row(self, task: str) -> Row:
        """A yes/no task of which "uncertain" is the only right answer."""
        n = self._uncertain[task]
        status, note = self._judge_missing(1, _YES_NO_UNCERTAIN, n)
        return Row(
            name=f'{task}: always "uncertain"',
            n=n,
            value=1.0,
            chance=1 / _YES_NO_UNCERTAIN,
            limit=1 / _YES_NO_UNCERTAIN,
            status=status,
            note=note,
        )

    def _judge_missing(self, classes: int, options: int, n: int) -> tuple[Status, str]:
        """Whether fewer answers are ever right than are offered, and chance does not explain it."""
        if classes == 1 and options ** -(n - 1) <= self.context.fail_level:
            return "fail", f"no other answer is right in any of {n}"
        if classes < options and options * (1 - 1 / options) ** n <= self.context.warn_level:
            return "warn", f"only {classes} of {options} answers are ever right"
        return "pass", ""


def _constant_numbers(choices: Choices, *, multiple: bool) -> Iterator[tuple[int, ...]]:
    """Constant answers by number: one option, or any set of options where there are few."""
    content = [place + 1 for place in choices.content]
    if multiple and len(content) <= _ALL_SETS:
        for size in range(1, len(content) + 1):
            yield from combinations(content, size)
        yield from ((place + 1,) for place in range(len(choices.texts)) if place + 1 not in content)
    else:
        yield from ((place + 1,) for place in range(len(choices.texts)))
