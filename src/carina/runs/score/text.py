"""Score answers in words: open answers and reports. `carina.reports` reads the texts; here they are compared.

| the step asks for | score |
|---|---|
| findings and devices, or a report | entity F1, with negation, side, place, severity and trend (`compare_entities`) |
| attributes of one finding that the question names | F1 of the attributes; naming the finding is worth nothing |
| the trend of one finding | right or wrong |
| trends of several findings, relations, recommendations | F1 of these |
| projections | right or wrong |
| image quality | share of the criteria that are right, less those that are wrong |
| a measurement | right or wrong, within a tolerance |

What the facts of the step state is demanded; what else the key says is allowed. Where the key states nothing that can
be read, the score is ROUGE-L.
"""

import re
from collections.abc import Collection, Hashable
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple, TypeVar

from carina.cases import Case, Step
from carina.cases.messages import answer as key_text
from carina.reports import (
    Attribute,
    Entity,
    ReportFacts,
    compare_entities,
    denies_findings,
    names_in,
    read_actions,
    read_attributes,
    read_measurements,
    read_quality,
    read_relations,
    read_report,
    read_trend,
    read_trends,
    read_views,
    relation_name,
)
from carina.reports.answers import CACHED_TEXTS, FLAWLESS, UNSPECIFIED, is_near, is_near_ratio, states_term
from carina.reports.compare import PRIOR_STUDY
from carina.runs.records import Scores
from carina.trek.facts import ATTRIBUTES, THINGS, TrekStepFacts

MOST_SIGNS: Final = 20_000
"""Signs of a text that are read, about eight pages, so that no answer takes long."""
LAST_LISTING_STAGE: Final = 3
"""Last stage whose questions may ask for everything that is present."""
UNSPECIFIED_CREDIT: Final = 0.5
"""Credit for seeing that a criterion of image quality fails, but not in which way. A choice."""
_TECHNICAL: Final = ("view", "quality")

Item = TypeVar("Item", bound=Hashable)


class _Content(NamedTuple):
    """Agreement of an answer with the key; None where a score has no meaning."""

    correct: bool | None = None
    entity_f1: float | None = None
    attribute_f1: float | None = None
    score: float | None = None


def score_text(case: Case, step: Step, answer: str) -> Scores:
    """Score an answer in words against the key of its step.

    Args:
        case: The case of the step.
        step: A step of the format "open" or "report", with its key.
        answer: The answer, without reasoning.
    """
    key = key_text(case, step)
    rouge = rouge_l(key, answer)
    content = _score_content(case, step, key[:MOST_SIGNS], answer[:MOST_SIGNS])
    figure = content.score if content.score is not None else rouge
    return Scores(
        correct=content.correct,
        score=figure if figure is not None else 0.0,
        rouge=rouge,
        entity_f1=content.entity_f1,
        attribute_f1=content.attribute_f1,
    )


def _score_content(case: Case, step: Step, key: str, answer: str) -> _Content:
    facts = TrekStepFacts.of(step)
    asked = _asked_attributes(facts)
    if step.task == "view":
        content = _score_views(step, facts, key, answer)
    elif _target_names(facts, _TECHNICAL):
        content = _score_quality(facts, answer)
    elif len(facts.measures) == 1:
        content = _score_measurement(facts, key, answer)
    elif asked == {"recommendation"}:
        content = _score_demanded(
            frozenset(advice.action for advice in facts.recommendations),
            read_actions(key),
            read_actions(answer),
        )
    elif asked == {"relation"}:
        content = _score_relations(case, step, facts, key, answer)
    elif len(named := _things_in_question(step, facts)) == 1:
        content = _score_one_thing(facts, named[0], key, answer)
    else:
        content = _score_report(case, step, facts, key, answer)
    return content


def _target_names(facts: TrekStepFacts, kinds: Collection[str]) -> list[str]:
    """Names of the targets of some kinds."""
    return [target.name for target in facts.targets if target.kind in kinds and target.name]


def _asked_attributes(facts: TrekStepFacts) -> frozenset[str]:
    """Kinds of attributes that the step asks for; "trend", "relation" and "recommendation" are among them."""
    asked = {kind for kind in (*ATTRIBUTES, "trend") if getattr(facts, kind)}
    asked |= {"relation"} if facts.relations else set()
    asked |= {"recommendation"} if facts.recommendations else set()
    return frozenset(asked)


def _stated_attributes(facts: TrekStepFacts) -> list[tuple[str, str]]:
    """Kind and words of the attributes that the facts state."""
    return [(kind, text) for kind in ATTRIBUTES for text in getattr(facts, kind).values()]


def _ids(facts: TrekStepFacts) -> set[str]:
    """Ids of the findings and devices that the facts are about."""
    by_id = (facts.truth, facts.trend, *(getattr(facts, kind) for kind in ATTRIBUTES))
    return {thing for mapping in by_id for thing in mapping} | {measure.thing for measure in facts.measures}


def _things_in_question(step: Step, facts: TrekStepFacts) -> list[str]:
    """Findings and devices that the question is about, where it names all of them, so that naming them is no merit."""
    names = _target_names(facts, THINGS)
    question = step.question.lower()
    unnamed = [name for name in names if name.lower() not in question]
    return names if not unnamed or names_in(step.question).issuperset(unnamed) else []


# ---- technique and measurements -------------------------------------------------------------------------------------


def _score_views(step: Step, facts: TrekStepFacts, key: str, answer: str) -> _Content:
    """Right where exactly the right projections are named: those of the facts, else those that the key names."""
    right = read_views(facts.view or key)
    if not right:
        return _Content()
    correct = _are_same_views(right, read_views(answer), step.question)
    return _Content(correct=correct, score=float(correct))


def _are_same_views(right: frozenset[str], stated: frozenset[str], question: str) -> bool:
    """Whether the projections are the same.

    "Frontal" is enough where the key says no more, or where the question asks for frontal or lateral alone.
    """
    asked = read_views(question)
    directions = {"PA", "AP"}
    names_direction = (
        bool(asked & directions) or "projection" in question.lower() or "beam" in question.lower()
    )
    if "frontal" not in right and ("frontal" not in asked or names_direction):
        return right == stated
    if {view == "lateral" for view in right} != {view == "lateral" for view in stated}:
        return False
    return "frontal" in right or not stated & directions or stated & directions == right & directions


def _score_quality(facts: TrekStepFacts, answer: str) -> _Content:
    """Share of the criteria that an answer states rightly, less those that it states wrongly."""
    right = facts.quality
    if not right or not right.keys() <= FLAWLESS.keys():
        return _Content()
    stated: dict[str, set[object]] = {}
    for entity in read_quality(answer):
        stated.setdefault(entity.name, set()).add(entity.value)
    total = sum(
        _criterion_credit(state, stated[name], FLAWLESS[name])
        for name, state in right.items()
        if name in stated
    )
    return _Content(score=max(total, 0.0) / len(right))


def _criterion_credit(right: str, stated: set[object], flawless: str) -> float:
    if stated == {right}:
        return 1.0
    return UNSPECIFIED_CREDIT if stated == {UNSPECIFIED} and right != flawless else -1.0


def _score_measurement(facts: TrekStepFacts, key: str, answer: str) -> _Content:
    """Right where every number of the answer is the right one, within the tolerance; the key tells the unit."""
    (measure,) = facts.measures
    if "ratio" in measure.name:
        correct = is_near_ratio(measure.value, answer)
    else:
        unit = next((found.unit for found in read_measurements(key) if found.unit), None)
        correct = is_near(measure.value, unit, answer)
    return _Content(correct=correct, score=float(correct))


# ---- relations ------------------------------------------------------------------------------------------------------


def _score_relations(case: Case, step: Step, facts: TrekStepFacts, key: str, answer: str) -> _Content:
    named, called = _things_in_question(step, facts), _names_by_id(case, facts)
    pair = (named[0], named[1]) if len(named) == 2 else None
    names = frozenset(pair or called.values() or names_in(key))
    stated = frozenset(
        relation_name(called[link.subject], link.kind, called[link.object])
        for link in facts.relations
        if {link.subject, link.object} <= called.keys()
    )
    return _score_demanded(stated, read_relations(key, names, pair), read_relations(answer, names, pair))


def _names_by_id(case: Case, facts: TrekStepFacts) -> dict[str, str]:
    """Names of what a step relates: its own targets, else those of steps that are about one thing each."""
    targets = _target_names(facts, THINGS)
    if len(targets) == 2 and len(facts.relations) == 1:
        link = facts.relations[0]
        return {link.subject: targets[0], link.object: targets[1]}
    wanted = {end for link in facts.relations for end in (link.subject, link.object)}
    called: dict[str, str] = {}
    for other in case.steps:
        others = TrekStepFacts.of(other)
        names = _target_names(others, THINGS)
        if len(names) == 1:
            called.update(dict.fromkeys(_ids(others) & wanted, names[0]))
    return called if wanted <= called.keys() else {}


# ---- one finding or device that the question names ------------------------------------------------------------------


def _score_one_thing(facts: TrekStepFacts, name: str, key: str, answer: str) -> _Content:
    asked = _asked_attributes(facts)
    if asked == {"trend"}:
        correct = [_trend_of(name, answer)] == list(facts.trend.values())
        return _Content(correct, None, float(correct), float(correct))
    unread = _terms_not_in_lexicon(facts)
    stated = {
        attribute for kind, text in _stated_attributes(facts) if text for attribute in read_attributes(text)
    } | unread
    right, told = (
        read_attributes(text) | {term for term in unread if states_term(text, term[1])}
        for text in (key, answer)
    )
    figure = _attribute_f1(right, told, asked, frozenset(stated))
    return _Content(attribute_f1=figure, score=figure)


def _trend_of(name: str, answer: str) -> str | None:
    """Trend of one finding: in the words of the answer, or as the report reader understands it."""
    trend = read_trend(answer)
    if trend is not None:
        return trend
    things = read_report(answer).things
    trends = {thing.trend for thing in things if thing.name == name and thing.trend}
    return trends.pop() if len(trends) == 1 else None


def _terms_not_in_lexicon(facts: TrekStepFacts) -> frozenset[Attribute]:
    """Appearances and places of the facts that the lexicon has no word for: "left ventricular", "in the stomach"."""
    terms = (
        (kind, term)
        for kind, text in _stated_attributes(facts)
        if kind in ("appearance", "location") and text
        for term in (text.split(", ") if kind == "appearance" else (text,))
    )
    return frozenset(
        (kind, term) for kind, term in terms if not any(known == kind for known, _ in read_attributes(term))
    )


# ---- findings, devices and reports ----------------------------------------------------------------------------------


def _score_report(case: Case, step: Step, facts: TrekStepFacts, key: str, answer: str) -> _Content:
    asked = _asked_attributes(facts)
    right, stated = read_text(key), read_text(answer)
    entities = None if _things_in_question(step, facts) else _entity_f1(case, step, facts, right, stated)
    if asked == {"trend"}:
        trends = read_trends(key)
        attributes = _f1(trends, trends, read_trends(answer)) if trends else None
    else:
        attributes = _attribute_f1(right.attributes, stated.attributes, asked)
    first, second = (attributes, entities) if asked else (entities, attributes)
    return _Content(None, entities, attributes, first if first is not None else second)


class ReadText(NamedTuple):
    """A text with what it states."""

    text: str
    facts: ReportFacts
    entities: tuple[Entity, ...]
    """Findings and devices."""
    attributes: frozenset[tuple[str, str, str]]
    """Name of the entity, kind of attribute, value."""


@lru_cache(maxsize=CACHED_TEXTS)
def read_text(text: str) -> ReadText:
    """Read a text as a report; the result is kept."""
    facts = read_report(text)
    entities = tuple(entity for entity in facts.entities if entity.kind in THINGS)
    attributes = {
        (entity.name, kind, value)
        for entity in entities
        for kind, value in entity.attributes
        if entity.certainty != "absent" or kind == "trend"
    }
    attributes.update(
        (entity.name, entity.kind, entity.name)
        for entity in facts.entities
        if entity.kind in ("relation", "recommendation")
    )
    return ReadText(text, facts, entities, frozenset(attributes))


def _entity_f1(
    case: Case, step: Step, facts: TrekStepFacts, right: ReadText, stated: ReadText
) -> float | None:
    """F1 of findings and devices; where nothing is present, to claim nothing and to deny something is right."""
    wanted, claimed = _entities_asked_for(step, facts, right), _entities_asked_for(step, facts, stated)
    if _lists_everything(step, facts) and all(entity.certainty == "absent" for entity in wanted):
        if not denies_findings(right.text):
            return None
        return float(denies_findings(stated.text) and all(entity.certainty == "absent" for entity in claimed))
    has_prior = right.facts.compares or any(image.role == "reference" for image in case.images)
    if stated.facts.compares and not has_prior:
        claimed.append(PRIOR_STUDY)
    return compare_entities(claimed, wanted, has_prior=has_prior).f1


def _lists_everything(step: Step, facts: TrekStepFacts) -> bool:
    """Whether the step asks for everything that is present, which may be nothing."""
    return bool(_target_names(facts, ("study", "region"))) and (
        step.stage <= LAST_LISTING_STAGE or step.format == "report"
    )


def _entities_asked_for(step: Step, facts: TrekStepFacts, read: ReadText) -> list[Entity]:
    """Devices alone, or findings alone, where these are asked for; without what the question names as known."""
    listed = set(_target_names(facts, ("study",)))
    if listed == {"devices"}:
        return [entity for entity in read.entities if entity.kind == "device"]
    if listed == {"abnormalities"}:
        return [entity for entity in read.entities if entity.kind == "finding"]
    if listed == {"others"}:
        known = names_in(step.question)
        return [entity for entity in read.entities if entity.kind == "finding" and entity.name not in known]
    return list(read.entities)


# ---- F1 of sets -----------------------------------------------------------------------------------------------------


def _score_demanded(demanded: frozenset[Item], in_key: frozenset[Item], stated: frozenset[Item]) -> _Content:
    """F1 of items: those of the facts are demanded as far as the key states them, the others of the key allowed."""
    figure = _f1(in_key & demanded or in_key, in_key | demanded, stated) if in_key else None
    return _Content(attribute_f1=figure, score=figure)


def _attribute_f1(
    right: frozenset[tuple[str, ...]],
    stated: frozenset[tuple[str, ...]],
    asked: frozenset[str],
    demanded: frozenset[tuple[str, ...]] = frozenset(),
) -> float | None:
    """F1 of attributes of the kinds that are asked for, or of all kinds where none is.

    Args:
        right: Attributes that the key states; the last two elements are kind and value.
        stated: Attributes that the answer states.
        asked: Kinds that are asked for. A place that is asked for includes its side.
        demanded: Attributes of the facts: demanded as far as the key states them, the others of the key allowed.

    Returns:
        None where an attribute is asked for that cannot be read in the key.
    """
    kinds = asked | {"side"} if "location" in asked else asked
    allowed = frozenset(item for item in right if not kinds or item[-2] in kinds)
    counted = frozenset(item for item in stated if not kinds or item[-2] in kinds)
    return None if kinds and not allowed else _f1(allowed & demanded or allowed, allowed, counted)


def _f1(demanded: frozenset[Item], allowed: frozenset[Item], stated: frozenset[Item]) -> float | None:
    """Harmonic mean of the share of demanded items that are stated, and of stated items that are allowed."""
    if not demanded and not stated:
        return None
    if not demanded or not stated:
        return 0.0
    recall = len(demanded & stated) / len(demanded)
    precision = len(allowed & stated) / len(stated)
    return 2 * precision * recall / (precision + recall) if precision and recall else 0.0


# ---- ROUGE-L --------------------------------------------------------------------------------------------------------
#
# Words are those of the `rouge-score` package without stemming: runs of a-z and 0-9 in lower case. The longest common
# subsequence is found with one long integer per text (Hyyrö 2004), one bit per word.

LONGEST_ROUGE_TEXT: Final = 2000
"""Words of a text that are compared, so that a huge answer takes no longer than a long report."""
_CHARACTERS_PER_WORD: Final = 50
"""Most characters of a word with its separator, on average."""
_ROUGE_WORD: Final = re.compile(r"[a-z0-9]+")


def split_words(text: str) -> list[str]:
    """The first words of a text, at most `LONGEST_ROUGE_TEXT`."""
    matches = _ROUGE_WORD.finditer(text[: LONGEST_ROUGE_TEXT * _CHARACTERS_PER_WORD].lower())
    return [match.group() for match in islice(matches, LONGEST_ROUGE_TEXT)]


def count_common_words(one: list[str], other: list[str]) -> int:
    """Length of the longest common subsequence of two lists of words."""
    if len(one) > len(other):
        one, other = other, one
    places: dict[str, int] = {}
    for place, word in enumerate(one):
        places[word] = places.get(word, 0) | 1 << place
    every = (1 << len(one)) - 1
    free = every
    for word in other:
        at = places.get(word)
        if at is not None:
            taken = free & at
            free = (free + taken | free - taken) & every
    return len(one) - free.bit_count()


def rouge_l(key: str, answer: str) -> float | None:
    """ROUGE-L: F1 of the longest common subsequence of words; None where the key has no words."""
    right, stated = split_words(key), split_words(answer)
    if not right:
        return None
    if not stated:
        return 0.0
    return 2 * count_common_words(right, stated) / (len(right) + len(stated))
