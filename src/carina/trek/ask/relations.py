"""Stage 4: how the findings hang together, where the study says so."""

from carina.cases import Evidence, Fact
from carina.studies.model import Relation
from carina.trek.language import sentence
from carina.trek.records import cited, fact, target
from carina.trek.subject import Thing
from carina.trek.turn import Examiner


def ask_relations(examiner: Examiner) -> None:
    """One question in general, or one about a pair, or both."""
    subject, draw = examiner.subject, examiner.draw
    there = subject.by_id
    relations = [
        r
        for r in subject.study.relations
        if r.subject in there and r.object in there and _can_meet(there[r.subject], there[r.object])
    ]
    if not relations:
        return
    number = draw.rounded(examiner.quotas.relations)
    pairs = draw.shuffled(relations)
    general = number > 1 or draw.chance(0.5)
    if general:
        _ask_in_general(examiner, relations)
        number -= 1
    # What the general answer has told is not asked again, but a pair alone may be.
    for relation in [] if general else pairs[:number]:
        _ask_pair(examiner, relation)
    if general and number > 0:
        turn = examiner.turns.pop()
        _ask_pair(examiner, pairs[0])
        turn.after = [examiner.turns[-1]]
        examiner.turns.append(turn)


def _can_meet(one: Thing, other: Thing) -> bool:
    """What lies in opposite lungs is not explained by each other, whatever a record says."""
    if not (one.alone and other.alone):
        return False  # a name that two have says of neither what it is related to
    return not one.sides or not other.sides or bool(one.sides & other.sides)


def _fact(relation: Relation) -> Fact:
    return fact("relation", relation.id, f"{relation.subject} {relation.kind} {relation.object}")


def _sentences(relations: list[Relation]) -> tuple[Evidence, ...]:
    numbers = sorted({number for relation in relations for number in relation.evidence})
    return cited("current", tuple(numbers))


def _ask_in_general(examiner: Examiner, relations: list[Relation]) -> None:
    there, draw = examiner.subject.by_id, examiner.draw
    named = list(dict.fromkeys(there[end] for r in relations for end in (r.subject, r.object)))
    restating = draw.chance(0.4)
    phrases = examiner.words.join([thing.a for thing in named])
    facts = [target("relation", "findings"), *map(_fact, relations)]
    turn = examiner.ask(
        4, "relations", "open/restating" if restating else "open", {"list": phrases}, facts=facts
    )
    turn.restates = restating
    turn.evidence = _sentences(relations)
    turn.depends = [examiner.presence[thing.id] for thing in named if thing.id in examiner.presence]
    turn.depends = list(dict.fromkeys(turn.depends))
    turn.history = bool(turn.depends) and not restating
    chain = [
        sentence(
            examiner.clause(
                4,
                "relation",
                relation.kind,
                slots={"the_finding": there[relation.subject].the, "the_other": there[relation.object].the},
            )
        )
        for relation in relations
    ]
    turn.answer = examiner.say(turn, "any", {"chain": " ".join(chain), "list": phrases})


def _ask_pair(examiner: Examiner, relation: Relation) -> None:
    one, other = (examiner.subject.by_id[end] for end in (relation.subject, relation.object))
    slots = {"the_finding": one.the, "the_other": other.the}
    facts = [target(one.kind, one.name), target(other.kind, other.name), _fact(relation)]
    turn = examiner.ask(4, "relation", "open", slots, facts=facts)
    turn.restates = True
    turn.evidence = _sentences([relation])
    turn.depends = [examiner.presence[thing.id] for thing in (one, other) if thing.id in examiner.presence]
    turn.depends = list(dict.fromkeys(turn.depends))
    turn.answer = examiner.say(
        turn, relation.kind, {**slots, "described": one.described, "described_other": other.described}
    )
