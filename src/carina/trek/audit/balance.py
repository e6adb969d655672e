"""Gate: what does somebody score who always gives the most frequent answer?

Closed questions by stage, family and kind of target, and by the name that they ask about. Uncertain is a label of its
own and counted apart. Of other choices, the option that is right most often.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final

from carina.cases.audit import GateResult, Row, measured
from carina.cases.model import Case
from carina.trek.audit.limits import Limits
from carina.trek.audit.tallies import limited, share
from carina.trek.audit.turns import Decoder

_MOST_TEXTS: Final = 2000
"""Right options that are told apart in a family; with more, later ones cannot be the most frequent."""
_MOST_NAMES: Final = 10_000
"""Names that are told apart, in all families together; later ones are hardly asked about often enough to be judged."""
_Group = tuple[int, str, str]
_Answers = Counter[str]


class Balance:
    """Majority shares among yes and no."""

    def __init__(self, limits: Limits, decoder: Decoder) -> None:
        self._limits = limits
        self.decoder = decoder
        self._n = 0
        self._groups: defaultdict[_Group, _Answers] = defaultdict(Counter)
        self._chosen: Counter[tuple[int, str]] = Counter()
        self._right: defaultdict[tuple[int, str], Counter[str]] = defaultdict(Counter)
        self._named: defaultdict[tuple[_Group, str], _Answers] = defaultdict(Counter)

    def see(self, case: Case) -> None:
        conversation = self.decoder.read(case)
        if conversation is None:
            return
        self._n += 1
        for turn in conversation.turns:
            if turn.label is not None:
                group = (turn.step.stage, turn.step.task, turn.kind)
                self._groups[group][turn.label] += 1
                if turn.closed and ((group, turn.name) in self._named or len(self._named) < _MOST_NAMES):
                    self._named[group, turn.name][turn.label] += 1
            elif turn.choices is not None:
                family = (turn.step.stage, turn.step.task)
                self._chosen[family] += 1
                right = self._right[family]
                for place in turn.choices.right:
                    text = turn.choices.texts[place]
                    if text in right or len(right) < _MOST_TEXTS:
                        right[text] += 1

    def result(self) -> GateResult:
        named = {
            key: answers
            for key, answers in self._named.items()
            if _decided(answers) >= self._limits.least_named
        }
        groups = [group for group in sorted(self._groups) if _decided(self._groups[group])]
        lookups = {group: [a for (of, _), a in named.items() if of == group] for group in groups}
        tests = len(groups) + len(named) + len(self._chosen) + sum(map(bool, lookups.values()))
        rows = [self._group(group, tests) for group in groups]
        rows += [self._lookup(group, lookups[group], tests) for group in groups if lookups[group]]
        rows += [self._name(*key, named[key], tests) for key in sorted(named)]
        rows += [self._option(family, tests) for family in sorted(self._chosen)]
        rows += list(self._uncertain())
        limits = self._limits
        return measured(
            "balance",
            rows,
            n=self._n,
            threshold=f"the most frequent answer at most {limits.majority:.0%} of a stage, family and kind of target, "
            f"and {limits.named_majority:.0%} of a named target with at least {limits.least_named} questions (fail at "
            f"{limits.common.fail_level:g}, warn at {limits.common.warn_level:g}, all together)",
            good="Always giving the most frequent answer scores little more than a coin.",
            bad='Some closed questions are answered alike too often, so that "always yes" or "always no" scores well; '
            "ask more about what is not there, or leave some out.",
            none="No question is closed.",
        )

    def _group(self, group: _Group, tests: int) -> Row:
        stage, family, kind = group
        most, often, n = _majority(self._groups[group])
        name = f"{stage} {family} ({kind or 'no target'})"
        note = f'always "{most}" is right in {often} of {n} ({often / n:.0%})'
        if family in self._limits.prevalence:
            return share(name, often, n, note=f"{note}; the prevalence of the data, for information")
        return limited(
            name,
            often,
            n,
            limit=self._limits.majority,
            thresholds=self._limits.common,
            tests=tests,
            note=note,
        )

    def _lookup(self, group: _Group, answers: list[_Answers], tests: int) -> Row:
        """Whoever knows the most frequent answer of every name."""
        stage, family, kind = group
        often, n = sum(_majority(a)[1] for a in answers), sum(map(_decided, answers))
        note = f"the most frequent answer of each of {len(answers)} names is right in {often} of {n} ({often / n:.0%})"
        return limited(
            f"{stage} {family} ({kind}): by name",
            often,
            n,
            limit=self._limits.named_majority,
            thresholds=self._limits.common,
            tests=tests,
            note=note,
        )

    def _name(self, group: _Group, name: str, answers: _Answers, tests: int) -> Row:
        most, often, n = _majority(answers)
        return limited(
            f"{group[0]} {group[1]}: {name}",
            often,
            n,
            limit=self._limits.named_majority,
            thresholds=self._limits.common,
            tests=tests,
            note=f'always "{most}" is right in {often} of {n} ({often / n:.0%})',
        )

    def _option(self, family: tuple[int, str], tests: int) -> Row:
        # In alphabetical order, so that the same one is named whatever the order of cases.
        text, often = max(sorted(self._right[family].items()), key=lambda entry: entry[1])
        n = self._chosen[family]
        stage, task = family
        name, note = (
            f"{stage} {task}, choice: always {text!r}",
            f"right in {often} of {n}, where it is offered or not",
        )
        if task in self._limits.prevalence:
            return share(name, often, n, note=f"{note}; the prevalence of the data, for information")
        limits = self._limits
        return limited(
            name, often, n, limit=limits.majority, thresholds=limits.common, tests=tests, note=note
        )

    def _uncertain(self) -> Iterator[Row]:
        for stage in sorted({stage for stage, *_ in self._groups}):
            answers: _Answers = sum((a for (s, *_), a in self._groups.items() if s == stage), Counter())
            yield share(
                f"{stage}: uncertain",
                answers["uncertain"],
                answers.total(),
                note="for information; not counted as no anywhere",
            )


def _decided(answers: _Answers) -> int:
    return answers["yes"] + answers["no"]


def _majority(answers: _Answers) -> tuple[str, int, int]:
    """The more frequent of yes and no, how often it is right, and of how many."""
    most = "yes" if answers["yes"] >= answers["no"] else "no"
    return most, answers[most], _decided(answers)
