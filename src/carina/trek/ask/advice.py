"""Stage 7: what to do next, where the study recommends something."""

from carina.trek.language import sentence
from carina.trek.records import cited, fact, target
from carina.trek.turn import Examiner


def ask_advice(examiner: Examiner) -> None:
    """One question about all that is recommended."""
    subject, draw = examiner.subject, examiner.draw
    due = [r for r in subject.study.recommendations if any(about in subject.by_id for about in r.about)]
    if not due:
        return
    things = list(
        dict.fromkeys(subject.by_id[about] for r in due for about in r.about if about in subject.by_id)
    )
    restating = draw.chance(0.55)
    because = examiner.words.join([thing.described for thing in things])
    shown = examiner.words.join([thing.a for thing in subject.things])
    facts = [target("study", "advice")]
    facts += [fact("recommendation", " ".join(r.about), r.action) for r in due]
    turn = examiner.ask(7, "advice", "open/restating" if restating else "open", {"list": shown}, facts=facts)
    turn.restates = restating
    settled = [examiner.presence[thing.id] for thing in things if thing.id in examiner.presence]
    turn.depends = list(dict.fromkeys(settled))
    turn.history = bool(settled) and not restating
    numbers = sorted({number for recommendation in due for number in recommendation.evidence})
    turn.evidence = cited("current", tuple(numbers))
    actions = [
        sentence(_action(examiner, recommendation.action, recommendation.about)) for recommendation in due
    ]
    report = subject.study.report
    quotes = [report.quote(report.sentences[number]).strip() for number in numbers] if report else []
    kind = "any" if quotes else "unquoted"
    turn.answer = examiner.say(
        turn,
        kind,
        {"actions": " ".join(actions), "because": because, "quote": " ".join(map(sentence, quotes))},
    )


def _action(examiner: Examiner, action: str, about: tuple[str, ...]) -> str:
    known = examiner.words.wording.phrases[7]["action"]
    there = examiner.subject.by_id
    named = examiner.words.join([there[thing].the for thing in about if thing in there])
    name = action if action in known else "other"
    return examiner.clause(7, "action", name, slots={"the_finding": named, "action": action})
