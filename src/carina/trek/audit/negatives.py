"""Gate: where do the "no" answers come from, and does the text that is shown tell them?

A negative that is only ever taken from the negations of a report is recognised by whoever knows what reports deny.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from carina.cases.audit import GateResult, Row, measured
from carina.cases.audit.chance import at_least
from carina.cases.model import Case
from carina.trek.audit.limits import Limits
from carina.trek.audit.tallies import limited, share
from carina.trek.audit.turns import Conversation, Decoder, Turn, flat, forms

_ORIGINS: Final = ("stated", "sibling", "sampled")
_UNTAGGED: Final = "untagged"


class Negatives:
    """Origins of negatives, and what the overlap of terms predicts."""

    def __init__(self, limits: Limits, decoder: Decoder) -> None:
        self._limits = limits
        self.decoder = decoder
        self._n = 0
        self._origins: Counter[str] = Counter()
        self._example: dict[str, str] = {}
        self._shown: Counter[tuple[bool, str]] = Counter()
        self._report: Counter[tuple[bool, str]] = Counter()

    def see(self, case: Case) -> None:
        conversation = self.decoder.read(case)
        if conversation is None:
            return
        self._n += 1
        if not conversation.presence:
            return
        report = _report(case)
        for turn in conversation.presence:
            if turn.label == "no":
                origin = next((f.text for f in turn.step.facts if f.name == "negative"), None)
                known = origin if origin in _ORIGINS else _UNTAGGED
                self._origins[known] += 1
                self._example.setdefault(known, f"{case.id} {turn.step.id}")
            told = _shown(conversation, turn)
            if told:
                self._shown[_named(told, turn), turn.label or ""] += 1
            if report:
                self._report[_named(report, turn), turn.label or ""] += 1

    def result(self) -> GateResult:
        rows = [*self._tagged(), *self._overlap()]
        limits = self._limits
        return measured(
            "negatives",
            rows,
            n=self._n,
            threshold=f'the origin of every "no" is told; no origin makes more than {limits.one_origin:.0%} of them; '
            f'"yes if the text that is shown names it" adds at most {limits.overlap_gain:g} to the commonest answer',
            good='The origin of every "no" is told, origins are mixed, and the text that is shown does not tell them.',
            bad='Some "no" answers have no origin, are all of one kind, or can be told from the text that is shown; '
            "draw negatives of other kinds.",
            none='No question about a named finding or device is answered with "no".',
        )

    def _tagged(self) -> Iterator[Row]:
        n, limits = self._origins.total(), self._limits
        if not n:
            return
        missing = self._origins[_UNTAGGED]
        yield limited(
            _UNTAGGED,
            missing,
            n,
            limit=limits.untagged,
            thresholds=limits.common,
            note=f"{missing} of {n}, as in {self._example[_UNTAGGED]}" if missing else "",
        )
        for origin in _ORIGINS:
            yield limited(
                f"origin: {origin}",
                self._origins[origin],
                n,
                limit=limits.one_origin,
                thresholds=limits.common,
                tests=len(_ORIGINS),
                note=f"{self._origins[origin]} of {n} negatives",
            )

    def _overlap(self) -> Iterator[Row]:
        counts = self._shown
        if counts.total():
            hits, majority, n = _heuristic(counts)
            limit = min(1.0, majority / n + self._limits.overlap_gain)
            yield limited(
                "heuristic: the text that is shown names it",
                hits,
                n,
                limit=limit,
                thresholds=self._limits.common,
                note=f"the most frequent answer is right in {majority} of {n}",
            )
        counts = self._report
        if counts.total():
            hits, majority, n = _heuristic(counts)
            denied = counts[True, "no"]
            of = denied + counts[False, "no"]
            p = at_least(hits, {majority / n: n})
            yield share(
                "heuristic: the report, which is not shown, names it",
                hits,
                n,
                chance=majority / n,
                p=p,
                note=f'for information; {denied} of {of} "no" targets are words of the report',
            )


def _heuristic(counts: Counter[tuple[bool, str]]) -> tuple[int, int, int]:
    """Hits of the better of "yes if named" and "no if named", of the most frequent answer, and of how many."""
    right = counts[True, "yes"] + counts[False, "no"]
    n = counts.total()
    yes = counts[True, "yes"] + counts[False, "yes"]
    return max(right, n - right), max(yes, n - yes), n


def _named(text: str, turn: Turn) -> bool:
    return any(form in text for form in forms(turn.name))


def _shown(conversation: Conversation, turn: Turn) -> str:
    """What has been said about the patient by then, outside the questions."""
    steps = conversation.case.steps[: turn.at + 1]
    return " ".join(f" {flat(step.context)} " for step in steps if step.context)


def _report(case: Case) -> str:
    """The words of the right report, as far as its turns hold it."""
    texts = [section.text for step in case.steps for section in step.key.sections]
    return " ".join(f" {flat(text)} " for text in texts)
