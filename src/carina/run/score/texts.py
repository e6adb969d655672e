"""Answers in words: how they are worded, what they say, and whether they are right where that can be told.

Where the step's facts tell that it asks for attributes, courses, relations or advice, these are the score; other
answers are judged by the findings and devices that they name, and by how sure they are of them. A question that names
the things it is about ("Where is the effusion?") gives them away, and naming them again is worth nothing. Projections,
technique, measures, advice and relations are compared with the facts themselves.
"""

import re
from collections.abc import Hashable, Iterator
from typing import Final, NamedTuple, TypeVar

from carina.cases import Case, Step
from carina.cases.chat import answer as key_text
from carina.run.records import Scores
from carina.run.score.advice import advised_in
from carina.run.score.entities import (
    NOTHING,
    Attribute,
    Entity,
    Said,
    courses_in,
    denies,
    named_in,
    said_in,
    said_of,
    says,
)
from carina.run.score.measures import right_measure
from carina.run.score.quality import GOOD, score_quality
from carina.run.score.relations import Link, link, links_in
from carina.run.score.trends import trend_of
from carina.run.score.views import same_views, views_of
from carina.run.score.words import rouge_l

ATTRIBUTES: Final = frozenset(
    {
        "side",
        "location",
        "severity",
        "distribution",
        "appearance",
        "position",
        "trend",
        "relation",
        "recommendation",
    }
)
"""Names of facts that say what a thing is like, how it goes with others, and what to do about it."""
READ: Final = 20_000
"""Signs of a text that are read for what they say, about eight pages: no answer takes long."""
_THINGS: Final = frozenset({"finding", "device"})
_LISTS: Final = frozenset({"study", "region"})
"""Kinds of targets of which all is to be told that is there, which may be nothing."""
_LISTING: Final = 3
"""The last stage that asks what there is."""
_TECHNICAL: Final = frozenset({"view", "quality"})
"""Kinds of targets that are no findings: in praise of an image the reader would hear that the lungs are clear."""
_TERMS: Final = frozenset({"appearance", "location"})
_LENGTH: Final = re.compile(r"(\d+(?:\.\d+)?) [cm]m\b")
_OTHERS: Final = "others"
"""Task that asks for what there is beside things that the question names."""

Item = TypeVar("Item", bound=Hashable)


class _Content(NamedTuple):
    """What an answer says, against what it should."""

    correct: bool | None = None
    entity_f1: float | None = None
    attribute_f1: float | None = None
    score: float | None = None


def score_text(case: Case, step: Step, said: str) -> Scores:
    """Words against words. The score is that of what is said, where the key says anything that can be read."""
    key = key_text(case, step)
    rouge = rouge_l(key, said)
    content = _content(case, step, key[:READ], said[:READ])
    figure = content.score if content.score is not None else rouge
    return Scores(
        correct=content.correct,
        score=figure if figure is not None else 0.0,
        rouge=rouge,
        entity_f1=content.entity_f1,
        attribute_f1=content.attribute_f1,
    )


def _content(case: Case, step: Step, key: str, said: str) -> _Content:
    by_facts = _by_facts(case, step, key, said)
    if by_facts is not None:
        return by_facts
    asked, given = _asked(step), _given(step)
    if len(given) == 1:
        return _one_thing(step, given[0], key, said, asked)
    right, told = said_in(key), said_in(said)
    entities = None if given else _things(step, right, told, nothing=denies(key), denied=denies(said))
    if asked == {"trend"}:
        attributes = _attribute_f1(courses_in(key), courses_in(said), asked)
    else:
        attributes = _attribute_f1(right.attributes, told.attributes, asked)
    first, second = (attributes, entities) if asked else (entities, attributes)
    return _Content(None, entities, attributes, first if first is not None else second)


def _by_facts(case: Case, step: Step, key: str, said: str) -> _Content | None:
    """What is compared with the facts in a way of its own; None for what is not."""
    asked = _asked(step)
    content: _Content | None = None
    if step.task == "view":
        content = _projections(step, key, said)
    elif any(fact.name == "target" and fact.about in _TECHNICAL for fact in step.facts):
        content = _technique(step, said)
    elif any(fact.name == "measure" for fact in step.facts):
        content = _measure(step, key, said)
    elif asked == {"recommendation"}:
        content = _advice(step, key, said)
    elif asked == {"relation"}:
        content = _relations(case, step, key, said)
    return content


def _measure(step: Step, key: str, said: str) -> _Content | None:
    """One number, right or wrong."""
    measures = [(fact.text, fact.value) for fact in step.facts if fact.name == "measure"]
    (name, value), *more = measures
    if value is None or more:
        return None
    correct = right_measure(name or "", value, key, said)
    return _Content(correct=correct, score=float(correct))


def _technique(step: Step, said: str) -> _Content:
    """How an image was taken, criterion by criterion."""
    right = {fact.about: fact.text for fact in step.facts if fact.name == "quality" and fact.text}
    return _Content(score=score_quality(right, said)) if right and right.keys() <= GOOD.keys() else _Content()


def _advice(step: Step, key: str, said: str) -> _Content:
    """What to do: what the facts advise is demanded, what else the key says is allowed."""
    stated = frozenset(fact.text for fact in step.facts if fact.name == "recommendation" and fact.text)
    allowed = advised_in(key)
    figure = _f1(allowed & stated or allowed, allowed | stated, advised_in(said)) if allowed else None
    return _Content(attribute_f1=figure, score=figure)


def _relations(case: Case, step: Step, key: str, said: str) -> _Content:
    """How things go together: what the facts relate is demanded, what else the key says is allowed."""
    given, called = _given(step), _called(case, step)
    pair = (given[0], given[1]) if len(given) == 2 else None
    names = frozenset(pair or called.values() or named_in(key))
    stated = frozenset(_stated_links(step, called))
    allowed = links_in(key, names, pair)
    if not allowed:
        return _Content()
    figure = _f1(allowed & stated or allowed, allowed | stated, links_in(said, names, pair))
    return _Content(attribute_f1=figure, score=figure)


def _projections(step: Step, key: str, said: str) -> _Content:
    """Which projections: those of the step's facts, else those that its key names."""
    facts = [fact.text for fact in step.facts if fact.name == "view" and fact.text]
    right = views_of(", ".join(facts) if facts else key)
    if not right:
        return _Content()
    correct = same_views(right, views_of(said), step.question)
    return _Content(correct=correct, score=float(correct))


def _one_thing(step: Step, thing: str, key: str, said: str, asked: frozenset[str]) -> _Content:
    if asked == {"trend"}:
        courses = [fact.text for fact in step.facts if fact.name == "trend"]
        correct = len(courses) == 1 and _course(thing, said) == courses[0]
        return _Content(correct, None, float(correct), float(correct))
    own = _own_terms(step, thing)
    right, told = (said_of(thing, text) | _terms_in(text, own) for text in (key, said))
    figure = _attribute_f1(right, told, asked, _stated(step, thing) | own)
    return _Content(attribute_f1=figure, score=figure)


# ---- what a step is about -------------------------------------------------------------------------------------------


def _asked(step: Step) -> frozenset[str]:
    """The kinds of attributes that a step asks for."""
    return frozenset(fact.name for fact in step.facts) & ATTRIBUTES


def _given(step: Step) -> list[str]:
    """The findings and devices that a question is about, where it names all of them."""
    targets = (fact for fact in step.facts if fact.name == "target" and fact.about in _THINGS)
    names = [fact.text for fact in targets if fact.text]
    question = step.question.lower()
    unseen = [name for name in names if name.lower() not in question]
    return names if not unseen or named_in(step.question).issuperset(unseen) else []


def _stated(step: Step, thing: str) -> frozenset[Attribute]:
    """What the step's facts say of the thing, read as an answer would be."""
    return frozenset(
        triple
        for fact in step.facts
        if fact.name in ATTRIBUTES and fact.text
        for triple in said_of(thing, fact.text)
    )


def _own_terms(step: Step, thing: str) -> frozenset[Attribute]:
    """Looks and places of the facts that our reader has no word for: "left ventricular", "in the stomach"."""
    terms = (
        (fact.name, term)
        for fact in step.facts
        if fact.name in _TERMS and fact.text
        for term in (fact.text.split(", ") if fact.name == "appearance" else (fact.text,))
    )
    return frozenset(
        (thing, kind, term)
        for kind, term in terms
        if not any(read == kind for _, read, _ in said_of(thing, term))
    )


def _terms_in(text: str, terms: frozenset[Attribute]) -> frozenset[Attribute]:
    return frozenset(term for term in terms if _tells(term[2], text))


def _tells(term: str, text: str) -> bool:
    """Whether a text has the words of a term; a distance in it ("3.5 cm above the carina") need only be near."""
    length = _LENGTH.match(term)
    if length is None:
        return says(term, text)
    return says(term[length.end() :], text) and right_measure("distance", float(length[1]), term, text)


def _called(case: Case, step: Step) -> dict[str, str]:
    """By id, the names of what a step relates: its own targets, else those of steps that tell of one thing each."""
    targets = [
        fact.text for fact in step.facts if fact.name == "target" and fact.about in _THINGS and fact.text
    ]
    related = [(fact.text or "").split() for fact in step.facts if fact.name == "relation"]
    if len(targets) == 2 and len(related) == 1 and len(related[0]) == 3:
        return {related[0][0]: targets[0], related[0][2]: targets[1]}
    wanted = {end for words in related if len(words) == 3 for end in (words[0], words[2])}
    called: dict[str, str] = {}
    for other in case.steps:
        names = [fact.text for fact in other.facts if fact.name == "target" and fact.about in _THINGS]
        if len(names) == 1 and names[0]:
            called.update({fact.about: names[0] for fact in other.facts if fact.about in wanted})
    return called if wanted <= called.keys() else {}


def _stated_links(step: Step, called: dict[str, str]) -> Iterator[Link]:
    for fact in step.facts:
        words = (fact.text or "").split()
        if fact.name == "relation" and len(words) == 3 and {words[0], words[2]} <= called.keys():
            yield link(called[words[0]], words[1], called[words[2]])


def _course(thing: str, said: str) -> str | None:
    """What an answer says of the course of one thing: in its own words, or as our reader understands them."""
    told = trend_of(said)
    if told is not None:
        return told
    courses = {value for name, kind, value in said_in(said).attributes if name == thing and kind == "trend"}
    return courses.pop() if len(courses) == 1 else None


# ---- sets -----------------------------------------------------------------------------------------------------------


def _things(step: Step, right: Said, told: Said, *, nothing: bool, denied: bool) -> float | None:
    """F1 of the things that are there, surely or perhaps; that they are denied counts against an answer.

    Where all is to be told that is there and there is nothing, to claim nothing and to deny something is right, in
    whatever words. To deny what is not there is worth nothing elsewhere, unless the key does nothing else.
    """
    known, heard = _wanted(step, right), _wanted(step, told)
    there = frozenset(entity for entity in known if entity[1] != "absent")
    claimed = frozenset(entity for entity in heard if entity[1] != "absent")
    named = {name for name, _ in there or known}
    counted = claimed | frozenset(entity for entity in heard if entity[0] in named)
    if there:
        return _f1(there, known, counted)
    if _lists(step):
        return float(denied and not claimed) if nothing else None
    return _f1(known, known, counted)


def _lists(step: Step) -> bool:
    """Whether all is to be told that is there, which may be nothing."""
    kinds = {fact.about for fact in step.facts if fact.name == "target"}
    return bool(kinds & _LISTS) and (step.stage <= _LISTING or step.format == "report")


def _wanted(step: Step, said: Said) -> frozenset[Entity]:
    """What counts of the things that are told: of devices alone, or findings alone, where these are asked for."""
    entities = said.entities - {NOTHING}
    listed = {fact.text for fact in step.facts if fact.name == "target" and fact.about == "study"}
    if listed == {"devices"}:
        return frozenset(entity for entity in entities if entity[0] in said.devices)
    if listed == {"abnormalities"}:
        return frozenset(entity for entity in entities if entity[0] not in said.devices)
    if listed == {_OTHERS}:
        restated = named_in(step.question)
        return frozenset(entity for entity in entities if entity[0] not in said.devices | restated)
    return entities


def _attribute_f1(
    right: frozenset[Attribute],
    told: frozenset[Attribute],
    asked: frozenset[str],
    stated: frozenset[Attribute] = frozenset(),
) -> float | None:
    """F1 of attributes of the kinds that are asked for, or of all of them.

    What the facts state is demanded, as far as the key's words tell it; what the key tells beside it is allowed. None
    where something is asked for that our reader can't find in the key itself.
    """
    kinds = asked | {"side"} if "location" in asked else asked
    allowed = frozenset(triple for triple in right if not kinds or triple[1] in kinds)
    counted = frozenset(triple for triple in told if not kinds or triple[1] in kinds)
    return None if kinds and not allowed else _f1(allowed & stated or allowed, allowed, counted)


def _f1(demanded: frozenset[Item], allowed: frozenset[Item], told: frozenset[Item]) -> float | None:
    """Harmonic mean of the share of what is demanded that is told, and of what is told that is allowed."""
    if not demanded and not told:
        return None
    if not demanded or not told:
        return 0.0
    recall = len(demanded & told) / len(demanded)
    precision = len(allowed & told) / len(told)
    return 2 * precision * recall / (precision + recall) if precision and recall else 0.0
