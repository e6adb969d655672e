"""What a sentence says beside certainty: change, grade, spread, looks and place, each of the thing it belongs to.

An adjective belongs to the noun it stands before, else to the one behind it; a word of change may also be said of all
that is listed before it ("effusion and atelectasis are unchanged").
"""

from typing import Final, cast

from carina.studies.vocabulary import Distribution, Severity, Side, Trend
from carina.trek.reports.phrases import Item, word_set
from carina.trek.reports.places import Place
from carina.trek.reports.sentence import Mention, SentenceText

GRADED_BEHIND: Final = word_set("is are be been remains remain appears appear of as now considered a an , (")
"""Words behind which a grade is said of what stands before: "effusion, small", "effusion of moderate size"."""


def date(sentence: SentenceText, *, advice: bool) -> None:
    """Trends: new, worse, improved, unchanged, and what has gone."""
    words = sentence.words
    if not advice:
        for item, _ in sentence.of_kind("gone"):
            for mention in _acted_on(sentence, item):
                if mention.certainty != "absent" or mention.how == "named":
                    mention.certainty, mention.trend = "absent", "resolved"
    for item, role in sentence.of_kind("trend"):
        if advice and role.key == "improved":
            continue
        following = words[item.end].text if item.end < len(words) else ""
        if words[item.start].text in ("larger", "smaller") and following == "on":
            continue
        for mention in _acted_on(sentence, item):
            if mention.certainty == "absent" and mention.how != "named":
                continue
            if mention.trend is None and not (mention.certainty == "absent" and role.key != "resolved"):
                mention.trend = cast(Trend, role.key)


def _acted_on(sentence: SentenceText, item: Item) -> list[Mention]:
    """What a word of change is said of: what follows "... of" or the adjective, else what stands before."""
    last = sentence.words[item.end - 1].text
    if last in ("of", "in", "residual"):
        target = sentence.after(item.end)
        if target is not None:
            return sentence.listed_after(target)
    before = sentence.words[item.start - 1].text if item.start else ""
    target = sentence.adjective_of(item)
    if target is not None and before not in ("is", "are", "has", "have", "been"):
        return [target]
    target = sentence.before(item.start)
    if target is not None:
        return [mention for mention in sentence.listed_before(target) if mention.how == "named"] or [target]
    target = sentence.after(item.end)
    return [target] if target else []


def grade(sentence: SentenceText) -> None:
    for item, role in sentence.of_kind("severity"):
        target = sentence.adjective_of(item) or sentence.before(item.start)
        if target is not None and target.severity is None and _can_be_graded(sentence, target, item):
            target.severity = cast(Severity, role.key)
    for item, role in sentence.of_kind("distribution"):
        target = sentence.adjective_of(item) or sentence.before(item.start)
        if target is not None and target.distribution is None:
            target.distribution = cast(Distribution, role.key)
    for item in sentence.items:
        if item.start in sentence.used:
            continue
        for role in item.roles:
            if role.kind == "look":
                target = sentence.adjective_of(item) or sentence.before(item.start)
                if target is not None and role.key not in target.looks:
                    target.looks.append(role.key)


def _can_be_graded(sentence: SentenceText, target: Mention, item: Item) -> bool:
    """A grade behind its noun stands apart ("effusion, small"): not in "effusion in a large patient"."""
    if item.end <= target.start or target.start <= item.start < target.end:
        return True
    return sentence.words[item.start - 1].text in GRADED_BEHIND


def look_inside(sentence: SentenceText) -> None:
    """Words within a phrase that say more: "calcified granuloma", "tension pneumothorax"."""
    for mention in sentence.mentions:
        if mention.how != "named" or mention.end - mention.start < 2:
            continue
        for word in sentence.words[mention.start : mention.end]:
            for role in sentence.lexicon.phrases.roles(word.text):
                if role.kind == "look" and role.key not in mention.looks:
                    mention.looks.append(role.key)
                elif role.kind == "side":
                    side = cast(Side, role.key)
                    mention.places.append(Place(mention.start, mention.end, side, (), None))


def locate(sentence: SentenceText) -> None:
    words, lexicon = sentence.words, sentence.lexicon
    for place in sentence.places:
        if any(m.start <= place.start and place.end <= m.end and m.how == "named" for m in sentence.mentions):
            continue
        before = words[place.start - 1].text if place.start else ""
        if before == "the" and place.start > 1:
            before = words[place.start - 2].text
        if words[place.start].text in lexicon.into_place:  # "throughout"
            before = words[place.start].text
        item = Item(place.start, place.end, ())
        back = sentence.before(place.start)
        target = sentence.adjective_of(item)
        if before in lexicon.into_place and back is not None and target is not None:
            between = range(place.end, target.start)
            if not all(sentence.is_modifier(index) for index in between):
                target = None
        target = target or back or sentence.after(place.end)
        inside = next((m for m in sentence.mentions if m.start <= place.start < m.end), None)
        target = inside or target
        if target is not None:
            target.places.append(place)
