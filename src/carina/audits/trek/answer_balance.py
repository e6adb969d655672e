"""Gate: what does a model score that always gives the most frequent answer?

Closed questions by stage, task and kind of target, and by the name that they ask about. Yes and no are counted among
each other, and uncertain among all answers. For other choices, the option that is right most often.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Annotated, Final

from msgspec import Meta

from carina.audits.gate import AuditContext, Count, Limits, Share, gate
from carina.audits.result import GateResult, Row
from carina.audits.trek.base import ConversationGate
from carina.audits.trek.conversation import Conversation
from carina.audits.trek.proportions import limited_row, share_row

_MOST_TEXTS: Final = 2000
"""Right options of a task that are counted; later ones cannot be the most frequent."""
_MOST_NAMES: Final = 10_000
"""Names that are counted, in all tasks together; later ones are too rare to be judged."""
_Group = tuple[int, str, str]
_Answers = Counter[str]


class AnswerBalanceLimits(Limits, frozen=True):
    """Limits of `answer-balance`."""

    majority: Annotated[
        Share,
        Meta(
            description="Share of the most frequent answer among closed questions of one stage, task and kind of "
            "target."
        ),
    ] = 0.60
    name_majority: Annotated[
        Share,
        Meta(
            description="The same for one named target, and for a model that knows the most frequent answer to each "
            "name."
        ),
    ] = 0.60
    min_questions_per_name: Annotated[
        Count, Meta(description="Questions about one name from which its balance is judged.")
    ] = 30
    prevalence_tasks: Annotated[
        tuple[str, ...],
        Meta(
            description="Tasks that ask what the study set is like, so that their balance is that of the data: "
            "reported, not judged."
        ),
    ] = ("any abnormality", "any device", "view", "quality")


@gate(
    "answer-balance",
    title="Balance of answers",
    meaning="Always giving the most frequent answer scores little better than a coin.",
    limits=AnswerBalanceLimits,
    protocols=("trek",),
    order=390,
)
class AnswerBalance(ConversationGate[AnswerBalanceLimits]):
    """Majority shares among yes and no."""

    def __init__(self, context: AuditContext, limits: AnswerBalanceLimits) -> None:
        super().__init__(context, limits)
        self._groups: defaultdict[_Group, _Answers] = defaultdict(Counter)
        self._choice_counts: Counter[tuple[int, str]] = Counter()
        self._right_options: defaultdict[tuple[int, str], Counter[str]] = defaultdict(Counter)
        self._by_name: defaultdict[tuple[_Group, str], _Answers] = defaultdict(Counter)

    def examine(self, conversation: Conversation) -> None:
        for turn in conversation.turns:
            if turn.label is not None:
                group = (turn.step.stage, turn.step.task, turn.kind)
                self._groups[group][turn.label] += 1
                if turn.is_closed and (
                    (group, turn.name) in self._by_name or len(self._by_name) < _MOST_NAMES
                ):
                    self._by_name[group, turn.name][turn.label] += 1
            elif turn.choices is not None:
                family = (turn.step.stage, turn.step.task)
                self._choice_counts[family] += 1
                right = self._right_options[family]
                for place in turn.choices.right:
                    text = turn.choices.texts[place]
                    if text in right or len(right) < _MOST_TEXTS:
                        right[text] += 1

    def result(self) -> GateResult:
        named = {
            key: answers
            for key, answers in self._by_name.items()
            if _count_decided(answers) >= self.limits.min_questions_per_name
        }
        groups = [group for group in sorted(self._groups) if _count_decided(self._groups[group])]
        doubtful = [group for group in sorted(self._groups) if self._groups[group]["uncertain"]]
        lookups = {group: [a for (of, _), a in named.items() if of == group] for group in groups}
        tests = (
            len(groups)
            + len(doubtful)
            + len(named)
            + len(self._choice_counts)
            + sum(map(bool, lookups.values()))
        )
        rows = [self._group_row(group, tests) for group in groups]
        rows += [self._lookup_row(group, lookups[group], tests) for group in groups if lookups[group]]
        rows += [self._name_row(*key, named[key], tests) for key in sorted(named)]
        rows += [self._option_row(family, tests) for family in sorted(self._choice_counts)]
        rows += [self._uncertain_row(group, tests) for group in doubtful]
        rows += list(self._uncertain_rows())
        limits = self.limits
        return self.report_rows(
            rows,
            n=self._n,
            threshold=f"the most frequent answer at most {limits.majority:.0%} of a stage, task and kind of target, "
            f"and {limits.name_majority:.0%} of a named target with at least {limits.min_questions_per_name} questions "
            f"(fail at {self.context.fail_level:g}, warn at {self.context.warn_level:g}, corrected for all groups)",
            good="Always giving the most frequent answer scores little better than a coin.",
            bad='Some closed questions have the same answer too often, so that "always yes" or "always no" scores '
            "well; ask more about absent findings, or remove some questions.",
            none="There are no closed questions.",
        )

    def _group_row(self, group: _Group, tests: int) -> Row:
        stage, family, kind = group
        most, often, n = _majority(self._groups[group])
        name = f"{stage} {family} ({kind or 'no target'})"
        note = f'always "{most}" is right in {often} of {n} ({often / n:.0%})'
        if family in self.limits.prevalence_tasks:
            return share_row(name, often, n, note=f"{note}; the prevalence of the data, for information")
        return limited_row(
            name,
            often,
            n,
            limit=self.limits.majority,
            context=self.context,
            tests=tests,
            note=note,
        )

    def _uncertain_row(self, group: _Group, tests: int) -> Row:
        """Always "uncertain", among all questions of a group."""
        stage, family, kind = group
        often, n = self._groups[group]["uncertain"], self._groups[group].total()
        name = f"{stage} {family} ({kind or 'no target'}): always uncertain"
        note = f"right in {often} of {n} ({often / n:.0%})"
        if family in self.limits.prevalence_tasks:
            return share_row(name, often, n, note=f"{note}; the prevalence of the data, for information")
        return limited_row(
            name, often, n, limit=self.limits.majority, context=self.context, tests=tests, note=note
        )

    def _lookup_row(self, group: _Group, answers: list[_Answers], tests: int) -> Row:
        """A model that knows the most frequent answer to every name."""
        stage, family, kind = group
        often, n = sum(_majority(a)[1] for a in answers), sum(map(_count_decided, answers))
        note = f"the most frequent answer to each of {len(answers)} names is right in {often} of {n} ({often / n:.0%})"
        return limited_row(
            f"{stage} {family} ({kind}): by name",
            often,
            n,
            limit=self.limits.name_majority,
            context=self.context,
            tests=tests,
            note=note,
        )

    def _name_row(self, group: _Group, name: str, answers: _Answers, tests: int) -> Row:
        most, often, n = _majority(answers)
        return limited_row(
            f"{group[0]} {group[1]}: {name}",
            often,
            n,
            limit=self.limits.name_majority,
            context=self.context,
            tests=tests,
            note=f'always "{most}" is right in {often} of {n} ({often / n:.0%})',
        )

    def _option_row(self, family: tuple[int, str], tests: int) -> Row:
        # In alphabetical order, so that the result does not depend on the order of cases.
        text, often = max(sorted(self._right_options[family].items()), key=lambda entry: entry[1])
        n = self._choice_counts[family]
        stage, task = family
        name, note = (
            f"{stage} {task}, choice: always {text!r}",
            f"right in {often} of {n}, whether it is offered or not",
        )
        if task in self.limits.prevalence_tasks:
            return share_row(name, often, n, note=f"{note}; the prevalence of the data, for information")
        limits = self.limits
        return limited_row(
            name, often, n, limit=limits.majority, context=self.context, tests=tests, note=note
        )

    def _uncertain_rows(self) -> Iterator[Row]:
        for stage in sorted({stage for stage, *_ in self._groups}):
            answers: _Answers = sum((a for (s, *_), a in self._groups.items() if s == stage), Counter())
            yield share_row(
                f"{stage}: uncertain",
                answers["uncertain"],
                answers.total(),
                note="for information; never counted as no",
            )


def _count_decided(answers: _Answers) -> int:
    return answers["yes"] + answers["no"]


def _majority(answers: _Answers) -> tuple[str, int, int]:
    """The more frequent of yes and no, how often it is right, and of how many."""
    most = "yes" if answers["yes"] >= answers["no"] else "no"
    return most, answers[most], _count_decided(answers)
