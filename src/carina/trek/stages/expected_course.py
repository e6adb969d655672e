"""Stage 6: the expected course. The key is what the follow-up study shows; its images are never shown."""

from carina.trek.changes import Change, find_changes
from carina.trek.facts import target_row, trend_row
from carina.trek.interned import cite
from carina.trek.language import make_sentence
from carina.trek.subject import KINDS
from carina.trek.turn import ConversationDraft, Turn

_BETTER = ("improved", "resolved")


def ask_expected_course(draft: ConversationDraft) -> None:
    """Ask one question of one of three kinds."""
    later, sampler = draft.later, draft.sampler
    if later is None or not sampler.chance(draft.quotas.outlook):
        return
    # New findings cannot be foreseen from the images.
    changes = [change for change in find_changes(draft.subject, later) if change.trend != "new"]
    if not changes:
        return
    whole = all(thing.name in {change.name for change in changes} for thing in draft.subject.things)
    # The course of a finding that nobody looked for is not known.
    whole = whole and draft.is_complete("prognosis", *KINDS)
    task = sampler.pick(
        ("outlook", "finding outlook", "prognosis") if whole else ("outlook", "finding outlook")
    )
    if task == "finding outlook":
        _ask_finding(draft, sampler.pick(changes))
    else:
        _ask_all(draft, task, changes)


def _set_evidence(turn: Turn, changes: list[Change]) -> None:
    marks = [mark for change in changes for mark in cite("later", change.later_sentences)]
    turn.evidence = tuple(dict.fromkeys(marks))


def _ask_finding(draft: ConversationDraft, change: Change) -> None:
    assert change.before is not None  # noqa: S101 - only what is there now is followed
    facts = [target_row(change.kind, change.name), trend_row(change.before.id, change.trend)]
    slots = {"the_finding": change.before.the}
    turn = draft.add_question(6, "finding outlook", "open", slots, facts=facts)
    turn.restates = True
    _set_dependencies(draft, turn, [change])
    _set_evidence(turn, [change])
    turn.answer = draft.fill_answer(
        turn, change.kind_of_answer, {**slots, "described": change.before.described}
    )


def _set_dependencies(draft: ConversationDraft, turn: Turn, changes: list[Change]) -> None:
    settled = [
        draft.presence[change.before.id]
        for change in changes
        if change.before is not None and change.before.id in draft.presence
    ]
    turn.depends = list(dict.fromkeys(settled))


def _ask_all(draft: ConversationDraft, task: str, changes: list[Change]) -> None:
    facts = [target_row("study", "course")]
    facts += [trend_row(change.before.id, change.trend) for change in changes if change.before is not None]
    turn = draft.add_question(6, task, "open", facts=facts)
    _set_dependencies(draft, turn, changes)
    turn.history = bool(turn.depends)
    _set_evidence(turn, changes)
    said = [
        make_sentence(
            draft.fill_clause(
                6,
                "future_device" if change.kind == "device" else "future",
                change.trend,
                slots=_name_slots(draft, change),
            )
        )
        for change in changes
    ]
    better = any(change.trend in _BETTER for change in changes)
    worse = any(change.trend == "worse" for change in changes)
    course = "mixed" if better and worse else "better" if better else "worse" if worse else "stable"
    turn.answer = draft.fill_answer(turn, "any" if task == "outlook" else course, {"changes": " ".join(said)})


def _name_slots(draft: ConversationDraft, change: Change) -> dict[str, str]:
    name = draft.words.name(change.name)
    thing = change.before
    return {"a_finding": name.a, "the_finding": name.the if thing is None else thing.the}
