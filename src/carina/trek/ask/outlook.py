"""Stage 6: the course to be expected. The key is what a later study showed; its images are never in the record."""

from carina.trek.changes import Change, changes_between
from carina.trek.language import sentence
from carina.trek.records import cited, fact, target
from carina.trek.turn import Examiner, Turn

_BETTER = ("improved", "resolved")


def ask_outlook(examiner: Examiner) -> None:
    """One question, of one of three kinds."""
    later, draw = examiner.later, examiner.draw
    if later is None or not draw.chance(examiner.quotas.outlook):
        return
    # What is not there yet can't be foreseen from the images.
    changes = [change for change in changes_between(examiner.subject, later) if change.trend != "new"]
    if not changes:
        return
    whole = all(thing.name in {change.name for change in changes} for thing in examiner.subject.things)
    task = draw.pick(("outlook", "finding outlook", "prognosis") if whole else ("outlook", "finding outlook"))
    if task == "finding outlook":
        _ask_finding(examiner, draw.pick(changes))
    else:
        _ask_all(examiner, task, changes)


def _evidence(turn: Turn, changes: list[Change]) -> None:
    marks = [mark for change in changes for mark in cited("later", change.later_sentences)]
    turn.evidence = tuple(dict.fromkeys(marks))


def _ask_finding(examiner: Examiner, change: Change) -> None:
    assert change.before is not None  # noqa: S101 - only what is there now is followed
    facts = [target(change.kind, change.name), fact("trend", change.before.id, change.trend)]
    slots = {"the_finding": change.before.the}
    turn = examiner.ask(6, "finding outlook", "open", slots, facts=facts)
    turn.restates = True
    _depend(examiner, turn, [change])
    _evidence(turn, [change])
    turn.answer = examiner.say(turn, change.kind_of_answer, {**slots, "described": change.before.described})


def _depend(examiner: Examiner, turn: Turn, changes: list[Change]) -> None:
    settled = [
        examiner.presence[change.before.id]
        for change in changes
        if change.before is not None and change.before.id in examiner.presence
    ]
    turn.depends = list(dict.fromkeys(settled))


def _ask_all(examiner: Examiner, task: str, changes: list[Change]) -> None:
    facts = [target("study", "course")]
    facts += [
        fact("trend", change.before.id, change.trend) for change in changes if change.before is not None
    ]
    turn = examiner.ask(6, task, "open", facts=facts)
    _depend(examiner, turn, changes)
    turn.history = bool(turn.depends)
    _evidence(turn, changes)
    said = [
        sentence(
            examiner.clause(
                6,
                "future_device" if change.kind == "device" else "future",
                change.trend,
                slots=_names(examiner, change),
            )
        )
        for change in changes
    ]
    better = any(change.trend in _BETTER for change in changes)
    worse = any(change.trend == "worse" for change in changes)
    course = "mixed" if better and worse else "better" if better else "worse" if worse else "stable"
    turn.answer = examiner.say(turn, "any" if task == "outlook" else course, {"changes": " ".join(said)})


def _names(examiner: Examiner, change: Change) -> dict[str, str]:
    name = examiner.words.name(change.name)
    thing = change.before
    return {"a_finding": name.a, "the_finding": name.the if thing is None else thing.the}
