"""Gate: does a conversation have exactly the stages that its study supports?

Findings and report always, unless the conversation states that questions of that stage are not asked because their key
is not known. Comparison if and only if there is a prior study; outlook only with a follow-up study, of which nothing is
shown; relations and recommendations only where some are stored.
"""

from collections.abc import Iterator

from carina.audits.gate import gate
from carina.audits.trek.base import RuleGate, Violation
from carina.audits.trek.conversation import Conversation
from carina.audits.trek.facts import has_fact, tasks_not_asked
from carina.cases.model import Case

_ALWAYS = {
    2: frozenset(
        {"presence", "any abnormality", "abnormalities", "device presence", "any device", "devices"}
    ),
    8: frozenset({"full report", "findings", "impression"}),
}
"""Stage that every conversation has -> tasks of which it may say that they are not asked."""
_REQUIRED_FACTS = {4: "relation", 7: "recommendation"}
"""Stage -> the fact that each of its steps needs."""


@gate(
    "stage-requirements",
    title="Stages and their requirements",
    meaning="Every conversation has the stages that its study supports, and no other.",
    protocols=("trek",),
    order=320,
)
class StageRequirements(RuleGate):
    """Stages of a conversation, beside what its study offers to ask about."""

    rules = (
        "stages 2 and 8, unless what they ask is not known",
        "stage 5 if and only if there is a reference study",
        "stage 6 only with a later study",
        "no image or evidence of the later study elsewhere",
        "stage 4 only with a relation",
        "stage 7 only with a recommendation",
    )
    threshold = "the stages that the study supports; the later study as evidence of stage 6 and nowhere else"
    good = "Every conversation has the stages that its study supports, and no other."
    bad = (
        "Some conversations ask what their study cannot answer, omit what it can answer, or show what is only known "
        "later; rebuild them."
    )

    def find_violations(self, conversation: Conversation) -> Iterator[Violation]:
        case = conversation.case
        first = {step.stage: step.id for step in reversed(case.steps)}
        not_asked = tasks_not_asked(case)
        for stage, tasks in _ALWAYS.items():
            if stage not in first and not tasks & not_asked:
                yield Violation(self.rules[0], "", f"steps: no step of stage {stage}")
        has_reference_image = any(image.role == "reference" for image in case.images)
        if case.reference_study is not None and not has_reference_image:
            yield Violation(self.rules[1], "", "images: no image of the reference study")
        if case.reference_study is None and has_reference_image:
            yield Violation(self.rules[1], "", "images: a reference image without a reference study")
        if 5 in first and case.reference_study is None:
            yield Violation(self.rules[1], first[5], "stage: 5 without a reference study")
        if 5 not in first and case.reference_study is not None:
            yield Violation(
                self.rules[1], "", "steps: no step of stage 5 although there is a reference study"
            )
        if 6 in first and case.later_study is None:
            yield Violation(self.rules[2], first[6], "stage: 6 without a later study")
        yield from self._check_later_study(case)
        for stage, name in _REQUIRED_FACTS.items():
            if stage in first:
                yield from self._check_facts(case, stage, name)

    def _check_later_study(self, case: Case) -> Iterator[Violation]:
        later = case.later_study
        if later is not None:
            for image in case.images:
                if later not in (case.study, case.reference_study) and contains_id(image.key, later):
                    yield Violation(self.rules[3], "", f"images: {image.key!r} is of the later study")
        for step in case.steps:
            if step.stage != 6 and any(cited.report == "later" for cited in step.evidence):
                yield Violation(
                    self.rules[3], step.id, f"evidence: a sentence of the later study in stage {step.stage}"
                )

    def _check_facts(self, case: Case, stage: int, name: str) -> Iterator[Violation]:
        rule = self.rules[4] if stage == 4 else self.rules[5]
        for step in case.steps:
            if step.stage == stage and not has_fact(step, name):
                yield Violation(rule, step.id, f"facts: stage {stage} without a {name}")


def contains_id(key: str, study: str) -> bool:
    """Whether a path contains this id as a word of its own."""
    at = key.find(study)
    while at >= 0:
        before, after = key[at - 1 : at] if at else "", key[at + len(study) : at + len(study) + 1]
        if not before.isalnum() and not after.isalnum():
            return True
        at = key.find(study, at + 1)
    return False
