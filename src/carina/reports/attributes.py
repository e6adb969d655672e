"""Attributes of mentions: trend, severity, distribution, appearance and place; position and tip of devices.

An adjective belongs to the noun it stands before, else to the one behind it; a word of change may also be said of all
that is listed before it ("effusion and atelectasis are unchanged").
"""

from itertools import takewhile
from typing import Final, cast

from carina.reports.facts import Position
from carina.reports.phrases import Item, word_set
from carina.reports.places import Place
from carina.reports.sentence import STOPS, Mention, SentenceText
from carina.studies.vocabulary import Distribution, Severity, Side, Trend

GRADED_BEHIND: Final = word_set("is are be been remains remain appears appear of as now considered a an , (")
"""Words behind which a severity belongs to the noun before: "effusion, small", "effusion of moderate size"."""

CENTRAL: Final = word_set("atrium atrial ventricle ventricular main mainstem bronchus heart pulmonary")
"""Words that, behind a side, name a central part of the chest, in which tips lie."""

LUNG: Final = word_set("lung lungs zone zones field fields hemithorax base lobe")
LISTING: Final = frozenset({"or", "and", ",", "/"})
"""Words before a noun that stands in a list without an adjective of its own."""
LIFTING: Final = frozenset({"non", "not"})
"""Words that turn a limit into its opposite: "non displaced"."""
LIMIT_STOPS: Final = (STOPS - {","}) | {"no", "without"}
"""Words at which the reach of a limit towards its noun ends."""
COMPARATIVES: Final = word_set("worse more less larger smaller greater bigger better")
"""First words of phrases that compare two times, or two places of one image."""
SEEN: Final = word_set(
    "seen visualized visualised appreciated demonstrated evaluated characterized defined shown"
)
AT: Final = word_set("on in at along within over than towards toward")
"""Words that, behind a comparative, lead to the place where it holds."""
SIDE_WORDS: Final = word_set("left right")
PLACE_WORDS: Final = SIDE_WORDS | word_set(
    "base bases apex apices lower upper mid middle perihilar basal basilar apical central periphery lung lungs lobe "
    "lobes"
)
POSITION_WORDS: Final = word_set("position positions place location")
REACH_OF_COMPARATIVE: Final = 4
"""Words behind a comparative in which its place is looked for."""
SPARING: Final = word_set("sparing spares spare")
REACH_OF_SPARING: Final = 4
"""Words between such a word, or "spared", and the place that it speaks of: "sparing of both lung apices"."""
DATING: Final = word_set("become now")
"""Words that, before a comparative, make it one of time."""
SHOWING: Final = word_set(
    "shows show demonstrates demonstrate contains contain reveals reveal exhibits exhibit has have"
)
"""Verbs that, behind a place, have as their object what lies there."""


def add_trends(sentence: SentenceText, *, advice: bool) -> None:
    """Add trends: new, worse, improved, unchanged and resolved."""
    if not advice:
        for item, _ in sentence.of_kind("gone"):
            for mention in _find_changed(sentence, item):
                if mention.certainty != "absent" or mention.how == "named":
                    mention.certainty, mention.trend = "absent", "resolved"
    for item, role in sentence.of_kind("trend"):
        if advice and role.key == "improved":
            continue
        if _compares_places(sentence, item):
            continue
        for mention in _find_changed(sentence, item):
            if mention.certainty == "absent" and mention.how != "named":
                continue
            if mention.trend is None and not (mention.certainty == "absent" and role.key != "resolved"):
                mention.trend = cast(Trend, role.key)


def _compares_places(sentence: SentenceText, item: Item) -> bool:
    """Whether a comparative compares two places of one image: "worse on the right", "left greater than right".

    "Better seen on the lateral view" compares two views.
    """
    texts = [word.text for word in sentence.words]
    if texts[item.start] not in COMPARATIVES or sentence.has("prior"):
        return False
    behind = texts[item.end : item.end + REACH_OF_COMPARATIVE]
    if texts[item.end - 1] == "better":
        return behind[:1] != [] and behind[0] in SEEN
    if texts[item.end - 1] == "than":
        return not SIDE_WORDS.isdisjoint(behind)
    before = texts[item.start - 1] if item.start else ""
    is_at_place = behind[:1] != [] and behind[0] in AT and not PLACE_WORDS.isdisjoint(behind[1:])
    return before not in DATING and (is_at_place or (before in SIDE_WORDS and behind[:1] == ["than"]))


def _find_changed(sentence: SentenceText, item: Item) -> list[Mention]:
    """Mentions that a word of change speaks of: what follows "of" or the adjective, else what stands before."""
    last = sentence.words[item.end - 1].text
    if last in ("of", "in", "residual"):
        target = sentence.after(item.end)
        if target is not None:
            return sentence.find_listed_after(target)
    before = sentence.words[item.start - 1].text if item.start else ""
    target = sentence.find_described(item)
    is_closed = _closes_clause(sentence, item)
    if target is not None and not is_closed and before not in ("is", "are", "has", "have", "been"):
        return [target]
    target = sentence.before(item.start)
    if target is not None:
        return [mention for mention in sentence.find_listed_before(target) if mention.how == "named"] or [
            target
        ]
    target = sentence.after(item.end)
    return [target] if target else []


def _closes_clause(sentence: SentenceText, item: Item) -> bool:
    """Whether a word of change ends what is said of the noun before it: "left effusion resolved, right one stable"."""
    words, end = sentence.words, item.start
    if item.end >= len(words) or words[item.end].text not in STOPS:
        return False
    return any(mention.end == end and mention.how == "named" for mention in sentence.mentions)


def drop_partial_denials(sentence: SentenceText) -> None:
    """Drop denials of a grade alone: "no large effusion" leaves room for a small one.

    What is denied in a size or a form alone is not stated, nor are the bare nouns listed behind it, of which the
    adjective may be said as well ("no large effusion or pneumothorax"). What is absent has no grade, spread or look.
    """
    for kind in ("severity", "part"):
        for item, role in sentence.of_kind(kind):
            if role.key == "mild":
                continue  # not even a small one
            target = sentence.find_described(item)
            if target is not None:
                _drop_partly_denied(sentence, target)
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


def _drop_partly_denied(sentence: SentenceText, target: Mention) -> None:
    for mention in sentence.find_listed_after(target):
        if mention is not target and sentence.words[mention.start - 1].text not in LISTING:
            return
        if not mention.denied or mention.trend == "resolved":
            return
        mention.past = True


def _names_a_part(sentence: SentenceText, mention: Mention) -> bool:
    """Whether a word of the name is a severity or a form: "no significant abnormality", "no tension pneumothorax"."""
    return any(
        role.kind == "part" or (role.kind == "severity" and role.key != "mild")
        for word in sentence.words[mention.start : mention.end]
        for role in sentence.lexicon.phrases.roles(word.text)
    )


def add_limits(sentence: SentenceText) -> None:
    """Add what a denial is limited to: "no acute, displaced rib fractures" leaves an old fracture open.

    The bare nouns listed behind the noun are limited as well ("no acute fracture or nodule"). Of the findings of a
    mention, only those count that are `chronic` in the lexicon: the others are denied as a whole.
    """
    for item, role in sentence.of_kind("limit"):
        target = _find_limited(sentence, item)
        for mention in sentence.find_listed_after(target) if target else ():
            if mention is not target and sentence.words[mention.start - 1].text not in LISTING:
                break
            _limit(mention, [role.key])
    for item, _ in sentence.of_kind("denial"):  # "no definite evidence of"
        target = sentence.after(item.end)
        for mention in sentence.find_listed_after(target) if target else ():
            _limit(mention, _list_limits(sentence, item.start, item.end))
    for item, _ in sentence.of_kind("denied"):  # "not definitely seen"
        target = sentence.before(item.start)
        for mention in sentence.find_listed_before(target) if target else ():
            _limit(mention, _list_limits(sentence, item.start, item.end))
    for mention in sentence.mentions:  # "acute bony abnormality"
        _limit(mention, _list_limits(sentence, mention.start, mention.end))


def _find_limited(sentence: SentenceText, item: Item) -> Mention | None:
    """The mention that a limiting word stands before; None where a word beside it lifts the limit."""
    target = sentence.after(item.end)
    words = sentence.words
    before = words[item.start - 1].text if item.start else ""
    if target is None or before in LIFTING:
        return None
    if any(
        word.text in LIMIT_STOPS or word.text in sentence.lexicon.verbs
        for word in words[item.end : target.start]
    ):
        return None
    first = item.start - 2 if before in LISTING else item.start
    return None if _list_roles(sentence, max(0, first), target.start, "limit lifted") else target


def _list_limits(sentence: SentenceText, start: int, end: int) -> list[str]:
    return (
        []
        if _list_roles(sentence, start, end, "limit lifted")
        else _list_roles(sentence, start, end, "limit")
    )


def _list_roles(sentence: SentenceText, start: int, end: int, kind: str) -> list[str]:
    roles = sentence.lexicon.phrases.roles
    return [role.key for word in sentence.words[start:end] for role in roles(word.text) if role.kind == kind]


def _limit(mention: Mention, limits: list[str]) -> None:
    """Limit a denial; what has resolved was seen before and is gone as a whole."""
    if mention.certainty == "absent" and mention.trend != "resolved":
        mention.limits += [limit for limit in limits if limit not in mention.limits]


def add_distribution_and_severity(sentence: SentenceText) -> None:
    """Add severity, distribution and appearance."""
    for item, role in sentence.of_kind("severity"):
        target = sentence.find_described(item) or sentence.before(item.start)
        if target is not None and target.severity is None and _can_be_graded(sentence, target, item):
            target.severity = cast(Severity, role.key)
    for item, role in sentence.of_kind("distribution"):
        target = sentence.find_described(item) or sentence.before(item.start)
        if target is not None and target.distribution is None:
            target.distribution = cast(Distribution, role.key)
    for item in sentence.items:
        if item.start in sentence.used:
            continue
        for role in item.roles:
            if role.kind == "look":
                target = sentence.find_described(item) or sentence.before(item.start)
                if target is not None and role.key not in target.looks:
                    target.looks.append(role.key)


def _can_be_graded(sentence: SentenceText, target: Mention, item: Item) -> bool:
    """Whether a severity behind its noun belongs to it: "effusion, small", but not "effusion in a large patient"."""
    if item.end <= target.start or target.start <= item.start < target.end:
        return True
    return sentence.words[item.start - 1].text in GRADED_BEHIND


def add_looks_of_names(sentence: SentenceText) -> None:
    """Add attributes that are words of the name itself: "calcified granuloma", "tension pneumothorax"."""
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


def add_places(sentence: SentenceText) -> None:
    """Add places to the mentions that they belong to."""
    words, lexicon = sentence.words, sentence.lexicon
    for place in sentence.places:
        if any(m.start <= place.start and place.end <= m.end and m.how == "named" for m in sentence.mentions):
            continue
        if _is_spared(sentence, place):
            continue
        before = words[place.start - 1].text if place.start else ""
        if before == "the" and place.start > 1:
            before = words[place.start - 2].text
        if words[place.start].text in lexicon.into_place:  # "throughout"
            before = words[place.start].text
        item = Item(place.start, place.end, ())
        back = sentence.before(place.start)
        target = sentence.find_described(item)
        if before in lexicon.into_place and back is not None and target is not None:
            between = range(place.end, target.start)
            if not all(sentence.is_modifier(index) for index in between):
                target = None
        target = target or back or sentence.after(place.end)
        inside = next((m for m in sentence.mentions if m.start <= place.start < m.end), None)
        target = (
            inside
            or _find_mention_with_organ(sentence, place)
            or _find_shown_mention(sentence, place)
            or target
        )
        if target is not None and not _is_of_a_tip(sentence, target, place):
            target.places.append(place)
            for mention in _find_denied_with(sentence, target, place):
                mention.places.append(place)


def _is_spared(sentence: SentenceText, place: Place) -> bool:
    """Whether a place is named because the finding is not there: "with relative sparing of the apices"."""
    texts = [word.text for word in sentence.words]
    if not SPARING.isdisjoint(texts[max(0, place.start - REACH_OF_SPARING) : place.start]):
        return True
    behind = texts[place.end : place.end + REACH_OF_SPARING]
    return "spared" in behind and STOPS.isdisjoint(behind[: behind.index("spared")])


def _find_denied_with(sentence: SentenceText, target: Mention, place: Place) -> list[Mention]:
    """Other findings of a list that is denied, of which the place may be said as well.

    "No left effusion or pneumothorax" and "no effusion or pneumothorax on the left" say nothing of the right side.
    """
    if not target.denied or target.how != "named":
        return []
    if place.end <= target.start:
        listed = sentence.find_listed_after(target)[1:]
        bare = takewhile(lambda one: sentence.words[one.start - 1].text in LISTING, listed)
        return [one for one in bare if one.denied and one.how == "named"]
    listed = sentence.find_listed_before(target)[1:]
    return [one for one in listed if one.denied and one.how == "named" and not one.places]


def _find_mention_with_organ(sentence: SentenceText, place: Place) -> Mention | None:
    """The mention whose organ stands at the place: "... and the right costophrenic angle is sharp"."""
    return next(
        (
            m
            for m in sentence.mentions
            if m.organ and place.start < m.organ.end and m.organ.start <= place.end
        ),
        None,
    )


def _find_shown_mention(sentence: SentenceText, place: Place) -> Mention | None:
    """The mention that a place shows as the subject of the sentence: "the left lung shows consolidation"."""
    words, index = sentence.words, place.end
    while index < len(words) and words[index].text in LUNG:
        index += 1
    if index < len(words) and words[index].text in SHOWING:
        return sentence.after(index + 1)
    return None


def _is_of_a_tip(sentence: SentenceText, target: Mention, place: Place) -> bool:
    """Whether a side belongs to a chamber or bronchus and not to the device: "leads in the right atrium"."""
    if target.kind != "device" or place.start < target.end or place.end >= len(sentence.words):
        return False
    return sentence.words[place.end].text in CENTRAL


# ---- devices: position and tip ----

TIP_WORDS: Final = word_set(
    "tip tips terminates terminating terminate ends ending end lies lying courses coursing extends extending "
    "projects projecting located position positioned coiled curled looped"
)
STRICT_TIP_WORDS: Final = word_set("tip tips terminates terminating terminate ends ending end")
"""Those of the words above that speak of the tip and not of the course."""
SITE_STARTS: Final = word_set(
    "in at above below within over overlying near into just approximately about projecting projects beyond under "
    "inside outside coiled curled deep directed looped toward towards on"
)
"""Words with which a site may start; a number may start it as well."""
SITE_ENDS: Final = word_set(", ; . without with which but")
"""Words at which a site ends."""
NEW_VERBS: Final = word_set("could should may can must needs is are has was no there recommend consider")
"""Words behind "and" that go on about something else: "above the carina and could be withdrawn"."""
NO_SITE: Final = frozenset(
    {"in place", "in position", "in satisfactory", "in good", "in appropriate", "in suboptimal"}
)


def read_device_position(sentence: SentenceText, mention: Mention) -> Position | None:
    """Judgement of the position that stands nearest to the device; one judgement may serve several devices."""
    found = sentence.of_kind("position")
    if not found:
        return None
    item, role = min(found, key=lambda each: abs(each[0].start - mention.start))
    before = sentence.words[item.start - 1].text if item.start else ""
    if before == "not" and role.key == "adequate":
        return "malpositioned"
    return cast(Position, role.key)


def read_tip_site(sentence: SentenceText, mention: Mention) -> str | None:
    """Words of the sentence that say where the tip lies: "4.1 cm above the carina"."""
    words = sentence.words
    following = next((m.start for m in sentence.mentions if m.start > mention.start), len(words))
    ends = [index for index in range(len(words)) if words[index].text in TIP_WORDS]
    near = [index for index in ends if index < following]
    if not near:
        return None
    tips = [index for index in near if words[index].text in STRICT_TIP_WORDS]
    for end in (*tips, near[0]):
        site = _read_site_behind(
            sentence, max(mention.end, end + (words[end].text not in SITE_STARTS)), following
        )
        if site is not None:
            return site
    return None


def _read_site_behind(sentence: SentenceText, first: int, following: int) -> str | None:
    words = sentence.words
    for index in range(first, min(following, first + 6)):
        word = words[index].text
        if word in SITE_STARTS or word[0].isdigit():
            return _read_until_stop(sentence, index, following)
    return None


def _read_until_stop(sentence: SentenceText, start: int, end: int) -> str | None:
    words = sentence.words
    stop = start
    while stop < end and words[stop].text not in SITE_ENDS and not _starts_new_phrase(sentence, stop):
        stop += 1
    if stop == start:
        return None
    text = " ".join(sentence.text[words[start].start : words[stop - 1].end].split())
    return None if text.lower().startswith(tuple(NO_SITE)) else text


def _starts_new_phrase(sentence: SentenceText, index: int) -> bool:
    words = sentence.words
    if words[index].text == "in":  # "in stable position" says nothing of where it is
        return any(word.text in POSITION_WORDS for word in words[index + 1 : index + 4])
    return words[index].text == "and" and index + 1 < len(words) and words[index + 1].text in NEW_VERBS
