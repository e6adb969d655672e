"""Gate: what does somebody score who always gives the same answer?

The same number is judged by accuracy. The same words are judged by recall averaged over the right answers that occur,
because the answers of a task need not be equally frequent in truth: always "yes" then has one of two classes, and
is above chance only if hardly anything else is ever right.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import combinations

from carina.cases.audit.chance import at_least, limit, shifted, wilson
from carina.cases.audit.frame import judged, measured
from carina.cases.audit.record import GateResult, Row, Status
from carina.cases.audit.steps import Choices, choices, task_of
from carina.cases.audit.thresholds import Thresholds
from carina.cases.model import Case

_ALL_SETS = 3
"""With so many options besides "none", every set of them is an answer; with more, only one at a time."""
_MOST_WORDS = 5000
"""Right answers that are told apart; where there are more, none of the later ones is a constant worth giving."""
_OTHERS = ("(any other)",)


class Constants:
    """Scores of constant answers, by task."""

    cost = 2.0

    def __init__(self, thresholds: Thresholds) -> None:
        self._thresholds = thresholds
        self._n = 0
        self._numbered: defaultdict[str, Counter[tuple[int, ...]]] = defaultdict(Counter)
        self._tried: defaultdict[str, set[tuple[int, ...]]] = defaultdict(set)
        self._trials: defaultdict[str, Counter[float]] = defaultdict(Counter)
        self._worded: defaultdict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
        self._offered: defaultdict[str, Counter[int]] = defaultdict(Counter)
        self._by_target: defaultdict[tuple[str, str], Counter[tuple[str, ...]]] = defaultdict(Counter)

    def see(self, case: Case) -> None:
        self._n += 1
        for step in case.steps:
            found = choices(step)
            if found is None or len(found.texts) < 2:
                continue
            task = task_of(step)
            words = tuple(sorted(found.texts[place] for place in found.right))
            if len(self._worded[task]) >= _MOST_WORDS and words not in self._worded[task]:
                words = _OTHERS
            self._worded[task][words] += 1
            self._offered[task][len(found.texts)] += 1
            if case.target and not step.multiple:
                self._by_target[task, case.target][words] += 1
            if step.options:
                answers = list(_answers(found, multiple=step.multiple))
                self._tried[task].update(answers)
                self._trials[task][1 / len(answers)] += 1
                self._numbered[task][tuple(sorted(place + 1 for place in found.right))] += 1

    def result(self) -> GateResult:
        tests = sum(map(len, self._tried.values()))
        rows = [self._number(task, tests) for task in sorted(self._tried)]
        rows += [self._words(task) for task in sorted(self._worded)]
        return measured(
            "constants",
            rows,
            n=self._n,
            threshold="best constant number (accuracy) and best constant words (mean recall over right answers) not "
            f"above chance (fail at {self._thresholds.fail_level:g}, warn at {self._thresholds.warn_level:g}, all "
            "constants together)",
            good="Always giving the same answer scores at chance on every task.",
            bad="Always giving one answer scores above chance, so that score needs no eyes; balance the right answers "
            "or report the task only beside this baseline.",
            warned="Some of the answers on offer are never right, or one is right a little too often; balance them "
            "where the studies allow, and report these tasks beside this baseline.",
            none="No step has a list of options.",
        )

    def _number(self, task: str, tests: int) -> Row:
        trials, level = self._trials[task], self._thresholds
        best = max(sorted(self._tried[task]), key=lambda answer: self._numbered[task][answer])
        hits, n = self._numbered[task][best], sum(trials.values())
        allowed = shifted(trials, level.slack)
        p = min(1.0, at_least(hits, allowed) * tests)
        low, high = wilson(hits, n)
        number = ", ".join(map(str, best))
        return Row(
            name=f"{task}: always ({number})",
            n=n,
            value=hits / n,
            low=low,
            high=high,
            chance=sum(p * times for p, times in trials.items()) / n,
            limit=limit(allowed, level.warn_level / tests),
            p=p,
            status=judged(p, warn=level.warn_level, fail=level.fail_level),
            note=f'always answering "{number}" is right in {hits} of {n} ({hits / n:.0%})',
        )

    def _words(self, task: str) -> Row:
        classes, offered = self._worded[task], self._offered[task]
        n = sum(classes.values())
        (best, often), k = classes.most_common(1)[0], max(offered)
        chance = sum(times / options for options, times in offered.items()) / n
        status, note = self._missing(len(classes), k, n)
        words = " + ".join(best)
        plain = f"the most frequent right answer, in {often} of {n} ({often / n:.0%})"
        alone = sorted(
            target
            for (of, target), answers in self._by_target.items()
            if of == task and self._missing(len(answers), k, answers.total())[0] == "fail"
        )
        if status == "pass" and alone:
            status, note = "warn", f"only one answer is ever right for {', '.join(alone)}"
        return Row(
            name=f'{task}: always "{words}"',
            n=n,
            value=1 / len(classes),
            chance=chance,
            limit=max(chance, 1 / len(classes)) if status == "pass" else chance,
            status=status,
            note=f"{note}; {plain}" if note else plain,
        )

    def _missing(self, classes: int, options: int, n: int) -> tuple[Status, str]:
        """Whether fewer answers are ever right than are offered, and chance does not explain it."""
        if classes == 1 and options ** -(n - 1) <= self._thresholds.fail_level:
            return "fail", f"no other answer is right in any of {n}"
        if classes < options and options * (1 - 1 / options) ** n <= self._thresholds.warn_level:
            return "warn", f"only {classes} of {options} answers are ever right"
        return "pass", ""


def _answers(found: Choices, *, multiple: bool) -> Iterator[tuple[int, ...]]:
    """Constant answers by number: one option; or any set of options where these are few."""
    content = [place + 1 for place in found.content]
    if multiple and len(content) <= _ALL_SETS:
        for size in range(1, len(content) + 1):
            yield from combinations(content, size)
        yield from ((place + 1,) for place in range(len(found.texts)) if place + 1 not in content)
    else:
        yield from ((place + 1,) for place in range(len(found.texts)))
