"""Gate: are prior and follow-up studies in order of time, of the same patient and in the same split?

Time is taken from the facts of a case (order within the patient, or dates), never from a name or a number in a path.
"""

import datetime
from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

from carina.audits.first_seen import CaseRegister, FirstSeen
from carina.audits.gate import AuditContext, NoLimits, gate
from carina.audits.trek.base import RuleGate, Violation
from carina.audits.trek.conversation import Conversation
from carina.audits.trek.facts import study_dates, study_orders
from carina.cases.model import Case


class _Owner(NamedTuple):
    patient: str | None
    split: str | None


@gate(
    "linked-studies",
    title="Linked studies",
    meaning="Reference, current and later studies are in order of time, of one patient and in one split.",
    protocols=("trek",),
    order=340,
)
class LinkedStudies(RuleGate):
    """Order of linked studies, their patients and splits."""

    cost = 1.5
    rules = (
        "order or date is stated",
        "reference before current",
        "later after current",
        "same patient",
        "same split",
    )
    threshold = (
        "reference < current < later by order and by date; linked studies of one patient and in one split"
    )
    good = "Reference, current and later studies are in order of time, of one patient and in one split."
    bad = "Some linked studies are in the wrong order, or of another patient or split; link the studies by date again."

    def __init__(self, context: AuditContext, limits: NoLimits) -> None:
        super().__init__(context, limits)
        self._register = context.shared(CaseRegister)
        self._owners = FirstSeen()
        self._waiting = FirstSeen()
        """Links to studies that have not come yet: by study, and the number of earlier links to it."""

    def find_violations(self, conversation: Conversation) -> Iterator[Violation]:
        case = conversation.case
        orders, dates = study_orders(case), study_dates(case)
        links = (("reference", case.reference_study), ("later", case.later_study))
        has_links = any(study is not None for _, study in links)
        for which, study in (("current", case.study if has_links else None), *links):
            if study is not None and orders.get(which) is None and not _parse_date(dates.get(which)):
                yield Violation(self.rules[0], "", f"facts: neither order nor date of the {which} study")
        for rule, (before, after) in zip(
            self.rules[1:3], (("reference", "current"), ("current", "later")), strict=True
        ):
            one, other = orders.get(before), orders.get(after)
            if one is not None and other is not None and not one < other:
                yield Violation(
                    rule, "", f"facts: order {one:g} of the {before} study, {other:g} of the {after} one"
                )
            day, next_day = _parse_date(dates.get(before)), _parse_date(dates.get(after))
            if day and next_day and day > next_day:
                yield Violation(
                    rule, "", f"facts: the {before} study is dated {day}, the {after} one {next_day}"
                )
        yield from self._check_owners(case, [(which, study) for which, study in links if study is not None])

    def _check_owners(self, case: Case, links: list[tuple[str, str]]) -> Iterator[Violation]:
        """Compare with the studies of the set; links to studies that come later are remembered."""
        number, own = self._register.number(case), _Owner(case.patient, case.split)
        if self._owners.first(case.study, number) == number:
            for waiting in self._waiting_for(case.study):
                linked, other = self._owner(waiting), self._register.id(waiting)
                yield from self._compare_owners(own, linked, f"{case.study!r}, linked by {other}")
        for which, study in links:
            if study == case.study:
                yield Violation(self.rules[1], "", f"{which}_study: is the current study itself")
            elif (owner := self._owners.get(study)) is not None:
                yield from self._compare_owners(self._owner(owner), own, f"the {which} study {study!r}")
            else:
                self._waiting.first((study, sum(1 for _ in self._waiting_for(study))), number)

    def _owner(self, number: int) -> _Owner:
        return _Owner(self._register.patient(number), self._register.split(number))

    def _waiting_for(self, study: str) -> Iterator[int]:
        """Numbers of the cases that link to a study which has not come yet."""
        for place in count():
            number = self._waiting.get((study, place))
            if number is None:
                return
            yield number

    def _compare_owners(self, one: _Owner, other: _Owner, what: str) -> Iterator[Violation]:
        if one.patient is not None and other.patient is not None and one.patient != other.patient:
            yield Violation(
                self.rules[3], "", f"{what} is of patient {one.patient!r}, not of {other.patient!r}"
            )
        if one.split != other.split:
            yield Violation(self.rules[4], "", f"{what} is in split {one.split!r}, not in {other.split!r}")


def _parse_date(text: str | None) -> datetime.date | None:
    try:
        return datetime.date.fromisoformat(text) if text else None
    except ValueError:
        return None
