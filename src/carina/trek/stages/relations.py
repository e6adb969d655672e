"""Stage 4: relations between findings, where the study states them."""

from carina.cases import Evidence, Fact
from carina.studies.model import Relation
from carina.trek.facts import relation_row, target_row
from carina.trek.interned import cite
from carina.trek.language import make_sentence
from carina.trek.subject import Thing
from carina.trek.turn import ConversationDraft


def ask_relations(draft: ConversationDraft) -> None:
    """Ask one question in general, or one about a pair, or both."""
    subject, sampler = draft.subject, draft.sampler
    there = subject.by_id
    relations = [
        r
        for r in subject.study.relations
        if r.subject in there and r.object in there and _can_be_related(there[r.subject], there[r.object])
    ]
    if not relations:
        return
    number = sampler.round_randomly(draft.quotas.relations)
    pairs = sampler.shuffle(relations)
    general = number > 1 or sampler.chance(0.5)
    if general:
        _ask_in_general(draft, relations)
        number -= 1
    # The general answer reveals all pairs, so a question about a pair replaces it or comes before it.
    for relation in [] if general else pairs[:number]:
        _ask_pair(draft, relation)
    if general and number > 0:
        turn = draft.turns.pop()
        _ask_pair(draft, pairs[0])
        turn.after = [draft.turns[-1]]
        draft.turns.append(turn)


def _can_be_related(one: Thing, other: Thing) -> bool:
    """Whether two things can be related: those in opposite lungs do not explain each other, whatever a record says."""
    if not (one.alone and other.alone):
        return False  # a name that two things share does not say which one is related
    return not one.sides or not other.sides or bool(one.sides & other.sides)


def _relation_facts(relation: Relation) -> Fact:
    return relation_row(relation.id, relation.subject, relation.kind, relation.object)


def _cite_relations(relations: list[Relation]) -> tuple[Evidence, ...]:
    numbers = sorted({number for relation in relations for number in relation.evidence})
    return cite("current", tuple(numbers))


def _ask_in_general(draft: ConversationDraft, relations: list[Relation]) -> None:
    there, sampler = draft.subject.by_id, draft.sampler
    named = list(dict.fromkeys(there[end] for r in relations for end in (r.subject, r.object)))
    restating = sampler.chance(0.4)
    phrases = draft.words.join([thing.a for thing in named])
    facts = [target_row("relation", "findings"), *map(_relation_facts, relations)]
    turn = draft.add_question(
        4, "relations", "open/restating" if restating else "open", {"list": phrases}, facts=facts
    )
    turn.restates = restating
    turn.evidence = _cite_relations(relations)
    turn.depends = [draft.presence[thing.id] for thing in named if thing.id in draft.presence]
    turn.depends = list(dict.fromkeys(turn.depends))
    turn.history = bool(turn.depends) and not restating
    chain = [
        make_sentence(
            draft.fill_clause(
                4,
                "relation",
                relation.kind,
                slots={"the_finding": there[relation.subject].the, "the_other": there[relation.object].the},
            )
        )
        for relation in relations
    ]
    turn.answer = draft.fill_answer(turn, "any", {"chain": " ".join(chain), "list": phrases})


def _ask_pair(draft: ConversationDraft, relation: Relation) -> None:
    one, other = (draft.subject.by_id[end] for end in (relation.subject, relation.object))
    slots = {"the_finding": one.the, "the_other": other.the}
    facts = [target_row(one.kind, one.name), target_row(other.kind, other.name), _relation_facts(relation)]
    turn = draft.add_question(4, "relation", "open", slots, facts=facts)
    turn.restates = True
    turn.evidence = _cite_relations([relation])
    turn.depends = [draft.presence[thing.id] for thing in (one, other) if thing.id in draft.presence]
    turn.depends = list(dict.fromkeys(turn.depends))
    turn.answer = draft.fill_answer(
        turn, relation.kind, {**slots, "described": one.described, "described_other": other.described}
    )
