"""What a sentence says of a device: where its tip lies, and whether that is where it should."""

from typing import Final, Literal, cast

from carina.trek.reports.phrases import word_set
from carina.trek.reports.sentence import Mention, SentenceText

Position = Literal["adequate", "malpositioned"]
ENDS: Final = word_set(
    "tip tips terminates terminating terminate ends ending end lies lying courses coursing extends extending "
    "projects projecting located position positioned coiled curled looped"
)
TIPS: Final = word_set("tip tips terminates terminating terminate ends ending end")
"""Of these words, those that speak of the tip and not of the course."""
STARTS: Final = word_set(
    "in at above below within over overlying near into just approximately about projecting projects beyond under "
    "inside outside coiled curled deep directed looped toward towards on"
)
"""Words with which a site may start; a number does as well."""
STOPS: Final = word_set(", ; . without with which but")
"""Words at which a site ends."""
NEW_VERBS: Final = word_set("could should may can must needs is are has was no there recommend consider")
"""Words behind "and" that go on about something else: "above the carina and could be withdrawn"."""
NO_SITE: Final = frozenset(
    {"in place", "in position", "in satisfactory", "in good", "in appropriate", "in suboptimal"}
)


def position_of(sentence: SentenceText, mention: Mention) -> Position | None:
    """The judgement nearest to the device; what is said of several devices is said of each."""
    found = sentence.of_kind("position")
    if not found:
        return None
    item, role = min(found, key=lambda each: abs(each[0].start - mention.start))
    before = sentence.words[item.start - 1].text if item.start else ""
    if before == "not" and role.key == "adequate":
        return "malpositioned"
    return cast(Position, role.key)


def tip_site(sentence: SentenceText, mention: Mention) -> str | None:
    """The words that say where the tip lies: "4.1 cm above the carina"."""
    words = sentence.words
    following = next((m.start for m in sentence.mentions if m.start > mention.start), len(words))
    ends = [index for index in range(len(words)) if words[index].text in ENDS]
    near = [index for index in ends if index < following]
    if not near:
        return None
    tips = [index for index in near if words[index].text in TIPS]
    for end in (*tips, near[0]):
        site = _site_behind(sentence, max(mention.end, end + (words[end].text not in STARTS)), following)
        if site is not None:
            return site
    return None


def _site_behind(sentence: SentenceText, first: int, following: int) -> str | None:
    words = sentence.words
    for index in range(first, min(following, first + 6)):
        word = words[index].text
        if word in STARTS or word[0].isdigit():
            return _until_stop(sentence, index, following)
    return None


def _until_stop(sentence: SentenceText, start: int, end: int) -> str | None:
    words = sentence.words
    stop = start
    while stop < end and words[stop].text not in STOPS and not _goes_on(sentence, stop):
        stop += 1
    if stop == start:
        return None
    text = " ".join(sentence.text[words[start].start : words[stop - 1].end].split())
    return None if text.lower().startswith(tuple(NO_SITE)) else text


def _goes_on(sentence: SentenceText, index: int) -> bool:
    words = sentence.words
    return words[index].text == "and" and index + 1 < len(words) and words[index + 1].text in NEW_VERBS
