"""Stage 7: recommendations of the study."""

from carina.reports.sections import has_removed_words
from carina.trek.facts import quote_row, recommendation_row, target_row
from carina.trek.interned import cite
from carina.trek.language import make_sentence
from carina.trek.turn import ConversationDraft


def ask_recommendations(draft: ConversationDraft) -> None:
    """Ask one question about all recommendations."""
    subject, sampler = draft.subject, draft.sampler
    due = [r for r in subject.study.recommendations if any(about in subject.by_id for about in r.about)]
    if not due:
        return
    things = list(
        dict.fromkeys(subject.by_id[about] for r in due for about in r.about if about in subject.by_id)
    )
    restating = sampler.chance(0.55)
    because = draft.words.join([thing.described for thing in things])
    shown = draft.words.join([thing.a for thing in subject.things])
    facts = [target_row("study", "advice")]
    facts += [recommendation_row(r.about, r.action) for r in due]
    turn = draft.add_question(
        7, "advice", "open/restating" if restating else "open", {"list": shown}, facts=facts
    )
    turn.restates = restating
    settled = [draft.presence[thing.id] for thing in things if thing.id in draft.presence]
    turn.depends = list(dict.fromkeys(settled))
    turn.history = bool(settled) and not restating
    numbers = sorted({number for recommendation in due for number in recommendation.evidence})
    turn.evidence = cite("current", tuple(numbers))
    actions = [
        make_sentence(_action_clause(draft, recommendation.action, recommendation.about))
        for recommendation in due
    ]
    report = subject.study.report
    said = [report.sentences[number] for number in numbers] if report else []
    texts = [report.quote(one).strip() for one in said if not draft.speaks_of_unseen(one)] if report else []
    quotes = [text for text in texts if not has_removed_words(text)]
    quoted = " ".join(map(make_sentence, quotes))
    if quoted:
        turn.facts.append(quote_row("current", quoted))
    kind = "any" if quotes else "unquoted"
    turn.answer = draft.fill_answer(
        turn,
        kind,
        {"actions": " ".join(actions), "because": because, "quote": quoted},
    )


def _action_clause(draft: ConversationDraft, action: str, about: tuple[str, ...]) -> str:
    known = draft.words.wording.phrases[7]["action"]
    there = draft.subject.by_id
    named = draft.words.join([there[thing].the for thing in about if thing in there])
    name = action if action in known else "other"
    return draft.fill_clause(7, "action", name, slots={"the_finding": named, "action": action})
