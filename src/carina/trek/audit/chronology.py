"""Gate: is the reference earlier and the later study later, of the same patient and in the same split?

Time is what the facts of a case say (order within the patient, or dates), never a name or a number in a path.
"""

import datetime
from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

from carina.cases.audit.register import Firsts, Register
from carina.cases.model import Case
from carina.trek.audit.limits import Limits
from carina.trek.audit.ruled import Broken, Ruled
from carina.trek.audit.turns import Conversation, Decoder


class _Owner(NamedTuple):
    patient: str | None
    split: str | None


class Chronology(Ruled):
    """Linked studies in time, and with whom they belong."""

    cost = 1.5
    name = "chronology"
    rules = ("order is told", "reference before current", "later after current", "same patient", "same split")
    threshold = (
        "reference < current < later by order and by date; linked studies of one patient and in one split"
    )
    good = "Earlier studies are earlier, later ones are later, and all are of the same patient and split."
    bad = "Some linked studies are in the wrong order or of another patient or split; link studies by date anew."

    def __init__(self, limits: Limits, decoder: Decoder) -> None:
        super().__init__(limits, decoder)
        self._register = Register()
        self._owners = Firsts()
        self._waiting = Firsts()
        """By study and how many wait for it already."""

    def broken(self, conversation: Conversation) -> Iterator[Broken]:
        case = conversation.case
        orders = {fact.about: fact.value for fact in case.facts if fact.name == "order"}
        dates = {fact.about: fact.text for fact in case.facts if fact.name == "date"}
        links = (("reference", case.reference_study), ("later", case.later_study))
        for which, study in (("current", case.study), *links):
            if study is not None and orders.get(which) is None and not _date(dates.get(which)):
                yield Broken(self.rules[0], "", f"facts: neither order nor date of the {which} study")
        for rule, (before, after) in zip(
            self.rules[1:3], (("reference", "current"), ("current", "later")), strict=True
        ):
            one, other = orders.get(before), orders.get(after)
            if one is not None and other is not None and not one < other:
                yield Broken(
                    rule, "", f"facts: order {one:g} of the {before} study, {other:g} of the {after} one"
                )
            day, next_day = _date(dates.get(before)), _date(dates.get(after))
            if day and next_day and day > next_day:
                yield Broken(
                    rule, "", f"facts: the {before} study is of {day}, the {after} one of {next_day}"
                )
        yield from self._owned(case, [(which, study) for which, study in links if study is not None])

    def _owned(self, case: Case, links: list[tuple[str, str]]) -> Iterator[Broken]:
        """Against the studies of the set; those that come later wait."""
        number, own = self._register.number(case), _Owner(case.patient, case.split)
        if self._owners.first(case.study, number) == number:
            for waiting in self._waiting_for(case.study):
                linked, other = self._owner(waiting), self._register.id(waiting)
                yield from self._apart(own, linked, f"{case.study!r}, linked by {other}")
        for which, study in links:
            if study == case.study:
                yield Broken(self.rules[1], "", f"{which}_study: is the current study itself")
            elif (owner := self._owners.get(study)) is not None:
                yield from self._apart(self._owner(owner), own, f"the {which} study {study!r}")
            else:
                self._waiting.first((study, sum(1 for _ in self._waiting_for(study))), number)

    def _owner(self, number: int) -> _Owner:
        return _Owner(self._register.patient(number), self._register.split(number))

    def _waiting_for(self, study: str) -> Iterator[int]:
        """Numbers of the cases that link a study which has not come yet."""
        for place in count():
            number = self._waiting.get((study, place))
            if number is None:
                return
            yield number

    def _apart(self, one: _Owner, other: _Owner, what: str) -> Iterator[Broken]:
        if one.patient is not None and other.patient is not None and one.patient != other.patient:
            yield Broken(self.rules[3], "", f"{what} is of patient {one.patient!r}, not of {other.patient!r}")
        if one.split != other.split:
            yield Broken(self.rules[4], "", f"{what} is in split {one.split!r}, not in {other.split!r}")


def _date(text: str | None) -> datetime.date | None:
    try:
        return datetime.date.fromisoformat(text) if text else None
    except ValueError:
        return None
