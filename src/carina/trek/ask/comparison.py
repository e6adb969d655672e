"""Stage 5: what has changed since the reference study, whose images enter here at the latest."""

from carina.cases import Fact
from carina.trek.ask.findings import options_wanted, with_none
from carina.trek.changes import Change, changes_between, tells_all
from carina.trek.language import sentence
from carina.trek.records import fact, target
from carina.trek.subject import Subject
from carina.trek.turn import Choice, Examiner, Turn

_TRENDS = ("new", "worse", "improved", "unchanged", "resolved")


def compared(reference: Subject | None, subject: Subject) -> list[Change] | None:
    """What has changed between two studies; None where they say nothing that a comparison could be asked about."""
    if reference is None or not reference.images:
        return None
    changes = changes_between(reference, subject)
    normal = not subject.things and not reference.things
    return changes if changes or normal else None


def ask_changes(examiner: Examiner, changes: list[Change]) -> None:
    """Single findings first, where asked, then the comparison as a whole."""
    reference, draw = examiner.reference, examiner.draw
    assert reference is not None  # noqa: S101 - who asks has looked
    number = draw.rounded(examiner.quotas.comparison)
    if changes and number > 1:
        change = draw.pick(changes)
        if draw.chance(0.25) and _ask_choice(examiner, change):
            pass
        else:
            _ask_trend(examiner, change)
    # Something whose course nobody can tell keeps one from saying that nothing else has changed.
    stable = all(change.trend == "unchanged" for change in changes)
    partial = bool(changes) and stable and not tells_all(changes, reference, examiner.subject)
    single = bool(changes) and number == 1 and (partial or draw.chance(0.3))
    if partial and number > 1:
        return
    if single:
        _ask_trend(examiner, draw.pick(changes))
    else:
        _ask_in_general(examiner, changes)


def _reference(examiner: Examiner) -> str:
    assert examiner.reference is not None  # noqa: S101
    several = "several" if len(examiner.reference.images) > 1 else "one"
    return str(examiner.draw.pick(examiner.words.wording.common["reference"][several]))


def _the(change: Change) -> str:
    thing = change.now or change.before
    assert thing is not None  # noqa: S101
    return thing.the


def _facts(change: Change) -> list[Fact]:
    return [target(change.kind, change.name), fact("trend", change.id, change.trend)]


def _compare(examiner: Examiner, turn: Turn, changes: list[Change]) -> None:
    turn.compares = True
    turn.evidence = tuple(dict.fromkeys(mark for change in changes for mark in change.evidence))
    settled = [examiner.presence[c.id] for c in changes if c.now is not None and c.id in examiner.presence]
    turn.depends = list(dict.fromkeys(settled))


def _ask_in_general(examiner: Examiner, changes: list[Change]) -> None:
    facts = [target("study", "comparison")]
    facts += [fact("trend", change.id, change.trend) for change in changes]
    turn = examiner.ask(5, "comparison", "open", {"reference": _reference(examiner)}, facts=facts)
    _compare(examiner, turn, changes)
    turn.history = bool(turn.depends)
    stable = all(change.trend == "unchanged" for change in changes)
    kind = "none" if not changes else "stable" if stable else "changed"
    said = [sentence(_clause(examiner, change)) for change in changes]
    turn.answer = examiner.say(turn, kind, {"changes": " ".join(said)})


def _clause(examiner: Examiner, change: Change) -> str:
    name = "trend_device" if change.kind == "device" else "trend"
    return examiner.clause(5, name, change.trend, slots={"the_finding": _the(change)})


def _ask_trend(examiner: Examiner, change: Change) -> None:
    slots = {"the_finding": _the(change), "reference": _reference(examiner)}
    turn = examiner.ask(5, "trend", "open", slots, facts=_facts(change))
    _compare(examiner, turn, [change])
    turn.restates = True
    slots["described"] = "" if change.now is None else change.now.described
    slots["before"] = "" if change.before is None else change.before.described
    turn.answer = examiner.say(turn, change.kind_of_answer, slots)


def _ask_choice(examiner: Examiner, change: Change) -> bool:
    """What happened to it: from one state to another, or a trend. Options differ in what is not known yet."""
    draw = examiner.draw
    grade = None if change.before is None else change.before.values.get("severity")
    now = None if change.now is None else change.now.values.get("severity")
    slots = {"the_finding": _the(change), "reference": _reference(examiner)}
    if change.kind == "device":
        return False
    if grade is not None and now is not None and grade != now and draw.chance(0.5):
        # The grade now may be known from earlier turns, so all options agree on it.
        right = examiner.clause(5, "change", "from_to", slots={"before": grade, "now": now})
        wrong = [
            examiner.clause(5, "change", "from_to", slots={"before": other, "now": now})
            for other in ("mild", "moderate", "severe")
            if other not in (grade, now)
        ]
    else:
        # What is there has not resolved, and what is not there is not new: that much is known by now.
        possible = [t for t in _TRENDS if t != ("new" if change.now is None else "resolved")]
        right = examiner.clause(5, "change", "trend", change.trend, slots={})
        wrong = [examiner.clause(5, "change", "trend", t, slots={}) for t in possible if t != change.trend]
        if change.now is None:
            return False
    wrong = draw.sample(wrong, options_wanted(examiner) - 1)
    turn = examiner.ask(5, "change", "choice", slots, facts=_facts(change))
    _compare(examiner, turn, [change])
    turn.restates = True
    turn.choices = with_none(examiner, Choice(right, right=True), [Choice(text) for text in wrong])
    return True
