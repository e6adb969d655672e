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

CENTRAL: Final = word_set("atrium atrial ventricle ventricular main mainstem bronchus heart pulmonary")
"""Behind a side: parts of the middle of the chest, in which tips lie."""

LUNG: Final = word_set("lung lungs zone zones field fields hemithorax base lobe")
SHOWING: Final = word_set(
    "shows show demonstrates demonstrate contains contain reveals reveal exhibits exhibit has have"
)
"""Behind a place: verbs whose object lies there."""


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


def weaken(sentence: SentenceText) -> None:
    """A denied grade denies no more than the grade: "no large effusion" leaves room for a small one.

    What is denied in a size or a form alone is not stated, nor are the bare nouns listed behind it, of which the
    adjective may be said as well ("no large effusion or pneumothorax"). What is absent has no grade, spread or look.
    """
    for kind in ("severity", "part"):
        for item, role in sentence.of_kind(kind):
            if role.key == "mild":
                continue  # not even a small one
            target = sentence.adjective_of(item)
            if target is not None:
                _unstate(sentence, target)
                continue
            target = sentence.before(item.start)
            if target is not None and _can_be_graded(sentence, target, item) and target.denied:
                target.past = True
    for mention in sentence.mentions:
        if mention.denied and mention.how != "state" and _names_a_part(sentence, mention):
            mention.past = True
        if mention.certainty == "absent":
            mention.severity = mention.distribution = None
            mention.looks.clear()


def _unstate(sentence: SentenceText, target: Mention) -> None:
    for mention in sentence.listed_after(target):
        if mention is not target and sentence.words[mention.start - 1].text not in ("or", "and", ",", "/"):
            return
        if not mention.denied or mention.trend == "resolved":
            return
        mention.past = True


def _names_a_part(sentence: SentenceText, mention: Mention) -> bool:
    """ "No significant abnormality", "no tension pneumothorax": a word of the name itself is a grade or a form."""
    return any(
        role.kind == "part" or (role.kind == "severity" and role.key != "mild")
        for word in sentence.words[mention.start : mention.end]
        for role in sentence.lexicon.phrases.roles(word.text)
    )


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
        target = inside or _with_organ(sentence, place) or _shown_by(sentence, place) or target
        if target is not None and not _is_of_a_tip(sentence, target, place):
            target.places.append(place)


def _with_organ(sentence: SentenceText, place: Place) -> Mention | None:
    """ "No consolidation, and the right costophrenic angle is sharp": the place of the organ that has the state."""
    return next(
        (
            m
            for m in sentence.mentions
            if m.organ and place.start < m.organ.end and m.organ.start <= place.end
        ),
        None,
    )


def _shown_by(sentence: SentenceText, place: Place) -> Mention | None:
    """ "Clear right lung, and the left lung shows consolidation": what the place as a subject shows."""
    words, index = sentence.words, place.end
    while index < len(words) and words[index].text in LUNG:
        index += 1
    if index < len(words) and words[index].text in SHOWING:
        return sentence.after(index + 1)
    return None


def _is_of_a_tip(sentence: SentenceText, target: Mention, place: Place) -> bool:
    """ "Pacemaker with leads in the right atrium": the side of a chamber or bronchus is not that of the device."""
    if target.kind != "device" or place.start < target.end or place.end >= len(sentence.words):
        return False
    return sentence.words[place.end].text in CENTRAL
