"""Stage 5: what has changed since the prior study, whose images are shown in this stage if not before."""

from carina.cases import Fact
from carina.trek.changes import Change, covers_all_changes, find_changes
from carina.trek.facts import target_row, trend_row
from carina.trek.language import make_sentence
from carina.trek.stages.findings import add_none_option, sample_option_count
from carina.trek.subject import KINDS, Subject
from carina.trek.turn import PRIOR_UNKNOWN, Choice, ConversationDraft, Turn

_TRENDS = ("new", "worse", "improved", "unchanged", "resolved")


def find_comparable_changes(reference: Subject | None, subject: Subject) -> list[Change] | None:
    """Changes between two studies; None where they state nothing that can be compared."""
    if reference is None or not reference.images:
        return None
    changes = find_changes(reference, subject)
    normal = all(not one.things and one.is_complete(*KINDS) for one in (subject, reference))
    return changes if changes or normal else None


def ask_comparison(draft: ConversationDraft, changes: list[Change]) -> None:
    """Ask about changes of single findings first, then about the comparison as a whole."""
    reference, sampler = draft.reference, draft.sampler
    assert reference is not None  # noqa: S101 - the caller has checked it
    number = sampler.round_randomly(draft.quotas.comparison)
    if changes and number > 1:
        change = sampler.pick(changes)
        if sampler.chance(0.25) and _ask_choice(draft, change):
            pass
        else:
            _ask_trend(draft, change)
    # With a finding of unknown course, one cannot say that nothing else has changed. Where not everything was looked
    # for, one cannot say what has changed on the whole.
    stable = all(change.trend == "unchanged" for change in changes)
    partial = bool(changes) and (
        leave_out_comparison(draft, reference)
        or (stable and not covers_all_changes(changes, reference, draft.subject))
    )
    single = bool(changes) and (partial or (number == 1 and sampler.chance(0.3)))
    if partial and number > 1:
        return
    if single:
        _ask_trend(draft, sampler.pick(changes))
    else:
        _ask_in_general(draft, changes)


def leave_out_comparison(draft: ConversationDraft, reference: Subject) -> bool:
    """Leave out the comparison as a whole where not everything was looked for in both studies; returns whether."""
    if not draft.is_complete("comparison", *KINDS):
        return True
    if reference.is_complete(*KINDS):
        return False
    draft.leave_out("comparison", PRIOR_UNKNOWN)
    return True


def _reference_phrase(draft: ConversationDraft) -> str:
    assert draft.reference is not None  # noqa: S101
    several = "several" if len(draft.reference.images) > 1 else "one"
    return str(draft.sampler.pick(draft.words.wording.common["reference"][several]))


def _noun_phrase(change: Change) -> str:
    thing = change.now or change.before
    assert thing is not None  # noqa: S101
    return thing.the


def _trend_facts(change: Change) -> list[Fact]:
    return [target_row(change.kind, change.name), trend_row(change.id, change.trend)]


def _add_comparison(draft: ConversationDraft, turn: Turn, changes: list[Change]) -> None:
    turn.compares = True
    turn.evidence = tuple(dict.fromkeys(mark for change in changes for mark in change.evidence))
    settled = [draft.presence[c.id] for c in changes if c.now is not None and c.id in draft.presence]
    turn.depends = list(dict.fromkeys(settled))


def _ask_in_general(draft: ConversationDraft, changes: list[Change]) -> None:
    facts = [target_row("study", "comparison")]
    facts += [trend_row(change.id, change.trend) for change in changes]
    turn = draft.add_question(5, "comparison", "open", {"reference": _reference_phrase(draft)}, facts=facts)
    _add_comparison(draft, turn, changes)
    turn.history = bool(turn.depends)
    stable = all(change.trend == "unchanged" for change in changes)
    kind = "none" if not changes else "stable" if stable else "changed"
    said = [make_sentence(_change_clause(draft, change)) for change in changes]
    turn.answer = draft.fill_answer(turn, kind, {"changes": " ".join(said)})


def _change_clause(draft: ConversationDraft, change: Change) -> str:
    name = "trend_device" if change.kind == "device" else "trend"
    return draft.fill_clause(5, name, change.trend, slots={"the_finding": _noun_phrase(change)})


def _ask_trend(draft: ConversationDraft, change: Change) -> None:
    slots = {"the_finding": _noun_phrase(change), "reference": _reference_phrase(draft)}
    turn = draft.add_question(5, "trend", "open", slots, facts=_trend_facts(change))
    _add_comparison(draft, turn, [change])
    turn.restates = True
    slots["described"] = "" if change.now is None else change.now.described
    slots["before"] = "" if change.before is None else change.before.described
    turn.answer = draft.fill_answer(turn, change.kind_of_answer, slots)


def _ask_choice(draft: ConversationDraft, change: Change) -> bool:
    """Ask for a change as a choice: from one state to another, or a trend. Options differ only in unknown facts."""
    sampler = draft.sampler
    grade = None if change.before is None else change.before.values.get("severity")
    now = None if change.now is None else change.now.values.get("severity")
    slots = {"the_finding": _noun_phrase(change), "reference": _reference_phrase(draft)}
    if change.kind == "device":
        return False
    if grade is not None and now is not None and grade != now and sampler.chance(0.5):
        # The current grade may be known from earlier turns, so it is the same in all options.
        right = draft.fill_clause(5, "change", "from_to", slots={"before": grade, "now": now})
        wrong = [
            draft.fill_clause(5, "change", "from_to", slots={"before": other, "now": now})
            for other in ("mild", "moderate", "severe")
            if other not in (grade, now)
        ]
    else:
        # Earlier turns reveal whether it is present: a present finding has not resolved, an absent one is not new.
        possible = [t for t in _TRENDS if t != ("new" if change.now is None else "resolved")]
        right = draft.fill_clause(5, "change", "trend", change.trend, slots={})
        wrong = [draft.fill_clause(5, "change", "trend", t, slots={}) for t in possible if t != change.trend]
        if change.now is None:
            return False
    wrong = sampler.sample(wrong, sample_option_count(draft) - 1)
    turn = draft.add_question(5, "change", "choice", slots, facts=_trend_facts(change))
    _add_comparison(draft, turn, [change])
    turn.restates = True
    turn.choices = add_none_option(draft, Choice(right, right=True), [Choice(text) for text in wrong])
    return True
