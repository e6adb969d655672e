"""Answers in words: how they are worded, what they say, and whether they are right where that can be told.

Where the step's facts tell that it asks for attributes, courses, relations or advice, these are the score; other
answers are judged by the findings and devices that they name, and by how sure they are of them. A question that names
the things it is about ("Where is the effusion?") gives them away, and naming them again is worth nothing.
"""

from collections.abc import Hashable
from typing import Final, NamedTuple, TypeVar

from carina.cases import Case, Step
from carina.cases.chat import answer as key_text
from carina.run.records import Scores
from carina.run.score.entities import (
    NOTHING,
    Attribute,
    Entity,
    courses_in,
    named_in,
    said_in,
    said_of,
)
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
    content = _content(step, key[:READ], said[:READ])
    figure = content.score if content.score is not None else rouge
    return Scores(
        correct=content.correct,
        score=figure if figure is not None else 0.0,
        rouge=rouge,
        entity_f1=content.entity_f1,
        attribute_f1=content.attribute_f1,
    )


def _content(step: Step, key: str, said: str) -> _Content:
    if step.task == "view":
        return _projections(step, key, said)
    kinds = {fact.about for fact in step.facts if fact.name == "target"}
    if kinds & _TECHNICAL:
        return _Content()
    asked = frozenset(fact.name for fact in step.facts) & ATTRIBUTES
    given = _given(step)
    if len(given) == 1:
        return _one_thing(step, given[0], key, said, asked)
    right, told = said_in(key), said_in(said)
    empty = bool(kinds & _LISTS) and step.stage <= _LISTING and not asked
    entities = None if given else _entity_f1(right.entities, told.entities, empty=empty)
    if asked == {"trend"}:
        attributes = _attribute_f1(courses_in(key), courses_in(said), asked)
    else:
        attributes = _attribute_f1(right.attributes, told.attributes, asked)
    first, second = (attributes, entities) if asked else (entities, attributes)
    return _Content(None, entities, attributes, first if first is not None else second)


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
    figure = _attribute_f1(said_of(thing, key), said_of(thing, said), asked, _stated(step, thing))
    return _Content(attribute_f1=figure, score=figure)


# ---- what a step is about -------------------------------------------------------------------------------------------


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


def _course(thing: str, said: str) -> str | None:
    """What an answer says of the course of one thing: in its own words, or as our reader understands them."""
    told = trend_of(said)
    if told is not None:
        return told
    courses = {value for name, kind, value in said_in(said).attributes if name == thing and kind == "trend"}
    return courses.pop() if len(courses) == 1 else None


# ---- sets -----------------------------------------------------------------------------------------------------------


def _entity_f1(right: frozenset[Entity], told: frozenset[Entity], *, empty: bool) -> float | None:
    """F1 of things with their certainty. To deny what the key is silent about costs nothing: it may well be true.

    Where the right answer may be that there is nothing (`empty`), whatever denies something and claims nothing says so.
    """
    if empty and right == {NOTHING}:
        return float(bool(told) and all(certainty == "absent" for _, certainty in told))
    right, told = right - {NOTHING}, told - {NOTHING}
    named = {name for name, _ in right}
    counted = frozenset(entity for entity in told if entity[0] in named or entity[1] != "absent")
    return _f1(right, right, counted)


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
