"""Stage 5: what has changed since the prior study; its images are shown here at the latest."""

from carina.cases import Fact
from carina.trek.changes import Change, changes_between, tells_all
from carina.trek.facts import target_row, trend_row
from carina.trek.language import sentence
from carina.trek.stages.findings import options_wanted, with_none
from carina.trek.subject import Subject
from carina.trek.turn import Choice, ConversationDraft, Turn

_TRENDS = ("new", "worse", "improved", "unchanged", "resolved")


def compared(reference: Subject | None, subject: Subject) -> list[Change] | None:
    """What has changed between two studies; None where they say nothing that a comparison could be asked about."""
    if reference is None or not reference.images:
        return None
    changes = changes_between(reference, subject)
    normal = not subject.things and not reference.things
    return changes if changes or normal else None


def ask_comparison(draft: ConversationDraft, changes: list[Change]) -> None:
    """Single findings first, where asked, then the comparison as a whole."""
    reference, sampler = draft.reference, draft.sampler
    assert reference is not None  # noqa: S101 - who asks has looked
    number = sampler.rounded(draft.quotas.comparison)
    if changes and number > 1:
        change = sampler.pick(changes)
        if sampler.chance(0.25) and _ask_choice(draft, change):
            pass
        else:
            _ask_trend(draft, change)
    # Something whose course nobody can tell keeps one from saying that nothing else has changed.
    stable = all(change.trend == "unchanged" for change in changes)
    partial = bool(changes) and stable and not tells_all(changes, reference, draft.subject)
    single = bool(changes) and number == 1 and (partial or sampler.chance(0.3))
    if partial and number > 1:
        return
    if single:
        _ask_trend(draft, sampler.pick(changes))
    else:
        _ask_in_general(draft, changes)


def _reference(draft: ConversationDraft) -> str:
    assert draft.reference is not None  # noqa: S101
    several = "several" if len(draft.reference.images) > 1 else "one"
    return str(draft.sampler.pick(draft.words.wording.common["reference"][several]))


def _the(change: Change) -> str:
    thing = change.now or change.before
    assert thing is not None  # noqa: S101
    return thing.the


def _facts(change: Change) -> list[Fact]:
    return [target_row(change.kind, change.name), trend_row(change.id, change.trend)]


def _compare(draft: ConversationDraft, turn: Turn, changes: list[Change]) -> None:
    turn.compares = True
    turn.evidence = tuple(dict.fromkeys(mark for change in changes for mark in change.evidence))
    settled = [draft.presence[c.id] for c in changes if c.now is not None and c.id in draft.presence]
    turn.depends = list(dict.fromkeys(settled))


def _ask_in_general(draft: ConversationDraft, changes: list[Change]) -> None:
    facts = [target_row("study", "comparison")]
    facts += [trend_row(change.id, change.trend) for change in changes]
    turn = draft.add_question(5, "comparison", "open", {"reference": _reference(draft)}, facts=facts)
    _compare(draft, turn, changes)
    turn.history = bool(turn.depends)
    stable = all(change.trend == "unchanged" for change in changes)
    kind = "none" if not changes else "stable" if stable else "changed"
    said = [sentence(_clause(draft, change)) for change in changes]
    turn.answer = draft.fill_answer(turn, kind, {"changes": " ".join(said)})


def _clause(draft: ConversationDraft, change: Change) -> str:
    name = "trend_device" if change.kind == "device" else "trend"
    return draft.fill_clause(5, name, change.trend, slots={"the_finding": _the(change)})


def _ask_trend(draft: ConversationDraft, change: Change) -> None:
    slots = {"the_finding": _the(change), "reference": _reference(draft)}
    turn = draft.add_question(5, "trend", "open", slots, facts=_facts(change))
    _compare(draft, turn, [change])
    turn.restates = True
    slots["described"] = "" if change.now is None else change.now.described
    slots["before"] = "" if change.before is None else change.before.described
    turn.answer = draft.fill_answer(turn, change.kind_of_answer, slots)


def _ask_choice(draft: ConversationDraft, change: Change) -> bool:
    """What happened to it: from one state to another, or a trend. Options differ in what is not known yet."""
    sampler = draft.sampler
    grade = None if change.before is None else change.before.values.get("severity")
    now = None if change.now is None else change.now.values.get("severity")
    slots = {"the_finding": _the(change), "reference": _reference(draft)}
    if change.kind == "device":
        return False
    if grade is not None and now is not None and grade != now and sampler.chance(0.5):
        # The grade now may be known from earlier turns, so all options agree on it.
        right = draft.fill_clause(5, "change", "from_to", slots={"before": grade, "now": now})
        wrong = [
            draft.fill_clause(5, "change", "from_to", slots={"before": other, "now": now})
            for other in ("mild", "moderate", "severe")
            if other not in (grade, now)
        ]
    else:
        # What is there has not resolved, and what is not there is not new: that much is known by now.
        possible = [t for t in _TRENDS if t != ("new" if change.now is None else "resolved")]
        right = draft.fill_clause(5, "change", "trend", change.trend, slots={})
        wrong = [draft.fill_clause(5, "change", "trend", t, slots={}) for t in possible if t != change.trend]
        if change.now is None:
            return False
    wrong = sampler.sample(wrong, options_wanted(draft) - 1)
    turn = draft.add_question(5, "change", "choice", slots, facts=_facts(change))
    _compare(draft, turn, [change])
    turn.restates = True
    turn.choices = with_none(draft, Choice(right, right=True), [Choice(text) for text in wrong])
    return True
