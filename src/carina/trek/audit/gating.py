"""Gate: does a conversation have just the stages that its study supports?

Comparison if and only if there is an earlier study; outlook only with a later one, of which nothing is shown; relations
and advice only where some are stored.
"""

from collections.abc import Iterator

from carina.cases.model import Case
from carina.trek.audit.ruled import Broken, Ruled
from carina.trek.audit.turns import Conversation

_STORED = {4: "relation", 7: "recommendation"}
"""Stages that need a fact of this name."""


class Gating(Ruled):
    """Which stages there are, against what there is to ask about."""

    name = "gating"
    rules = (
        "stages 2 and 8 always",
        "stage 5 if and only if there is a reference",
        "stage 6 only with a later study",
        "nothing of the later study is shown",
        "stage 4 only with a relation",
        "stage 7 only with a recommendation",
    )
    threshold = "stages as the study supports them; the later study as evidence of stage 6 and nowhere else"
    good = "Every conversation has the stages that its study supports, and no other."
    bad = (
        "Some conversations ask what their study cannot answer, leave out what it can, or show what is only known "
        "later; build them anew."
    )

    def broken(self, conversation: Conversation) -> Iterator[Broken]:
        case = conversation.case
        first = {step.stage: step.id for step in reversed(case.steps)}
        for stage in (2, 8):
            if stage not in first:
                yield Broken(self.rules[0], "", f"steps: none of stage {stage}")
        referred = any(image.role == "reference" for image in case.images)
        if case.reference_study is not None and not referred:
            yield Broken(self.rules[1], "", "images: none of the reference study")
        if case.reference_study is None and referred:
            yield Broken(self.rules[1], "", "images: a reference image without a reference study")
        if 5 in first and case.reference_study is None:
            yield Broken(self.rules[1], first[5], "stage: 5 without a reference study")
        if 5 not in first and case.reference_study is not None:
            yield Broken(self.rules[1], "", "steps: none of stage 5 though there is a reference study")
        if 6 in first and case.later_study is None:
            yield Broken(self.rules[2], first[6], "stage: 6 without a later study")
        yield from self._later(case)
        for stage, name in _STORED.items():
            if stage in first:
                yield from self._stored(case, stage, name)

    def _later(self, case: Case) -> Iterator[Broken]:
        later = case.later_study
        if later is not None:
            for image in case.images:
                if later not in (case.study, case.reference_study) and names(image.key, later):
                    yield Broken(self.rules[3], "", f"images: {image.key!r} is of the later study")
        for step in case.steps:
            if step.stage != 6 and any(cited.report == "later" for cited in step.evidence):
                yield Broken(self.rules[3], step.id, f"evidence: of the later study in stage {step.stage}")

    def _stored(self, case: Case, stage: int, name: str) -> Iterator[Broken]:
        rule = self.rules[4] if stage == 4 else self.rules[5]
        for step in case.steps:
            if step.stage == stage and not any(name in (fact.name, fact.about) for fact in step.facts):
                yield Broken(rule, step.id, f"facts: stage {stage} without a {name}")


def names(key: str, study: str) -> bool:
    """Whether a path holds this id as a word of its own."""
    at = key.find(study)
    while at >= 0:
        before, after = key[at - 1 : at] if at else "", key[at + len(study) : at + len(study) + 1]
        if not before.isalnum() and not after.isalnum():
            return True
        at = key.find(study, at + 1)
    return False
