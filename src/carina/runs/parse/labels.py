"""Yes, no or uncertain, from a word or from a sentence."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, Literal

from carina.cases.model import Label
from carina.runs.parse.failure import failed
from carina.runs.parse.markers import last_answers
from carina.runs.parse.normalise import Spoken, plain
from carina.runs.parse.structured import NOTHING, answer_in, decoded
from carina.runs.parse.weigh import SENTENCE, UNCERTAIN, WEIGHED, Asked, Found, asked_about, weighed
from carina.runs.records import Parsed

_SHORT: Final = 80
"""Characters of a value in JSON that is remembered."""

_OPENS: Final = re.compile(
    r"(?P<likely>(?:most |more |very |quite |highly )?(?:likely|probably|probable)\b[,:]?\s*)?"
    r"(?:(?P<no>(?:no|nope|negative|false|(?:absolutely|certainly|definitely|of course|clearly|surely) not"
    r"|not at all|by no means)\b|incorrect(?=[\s\"')\]]*(?:[.,;!\n]|$)))"
    r"|(?P<yes>(?:yes|yeah|yep|affirmative|true|absolutely|certainly|definitely|indeed)\b"
    r"|correct(?=[\s\"')\]]*(?:[.,;!\n]|$)))|(?P<unlikely>(?:very |highly |rather |quite )?(?:unlikely|improbable)\b)"
    rf"|(?P<uncertain>{UNCERTAIN}))?"
)
"""What a sentence can open with. What is likely is uncertain unless it says yes or no; what is unlikely is denied, as
in reports."""
_LEAD: Final = re.compile(
    r"[\s\x01\"'(\[{:=>#|-]{0,16}"
    r"(?:(?:is|are|would be|should be|must be|remains|a|an|the|it|this|that|it's|i|am|i'm|still)\b"
    r"[\s\"':(\[]{0,8}){0,6}"
)
_OTHER: Final = re.compile(
    r"[\s\"')\]]{0,4}(?:/|,?\s?(?:or|and)\b)[\s\"'(\[]{0,4}(?:yes|no|uncertain|unclear|maybe)\b(?! \w)"
)
_ENDED: Final = re.compile(r"[\s\"')\]}]{0,8}(?:[,.;:!?\n(-]|$)")
_UNSEEN: Final = re.compile(
    r"\bcan(?:'t|not| not) (see|find|identify|detect|make out)\b(?! (?:\w{1,12} ){0,3}(?:images?|pictures?|attachments?"
    r"|x-?rays?|radiographs?|films?|scans?|photos?|files?)\b)"
)
"""Who cannot see an effusion denies it; who cannot see the image declines."""
_LETTER: Final = re.compile(r"[\s\x01\"'(\[:=]{0,8}([yn])[\s\"')\].!]{0,8}(?:\n|$)")
_LETTERS: Final[dict[str, Label]] = {"y": "yes", "n": "no"}
_ENTRY: Final = re.compile(r"(?:^|\n|[.;,])[\s\"'#-]{0,8}([a-z][^:\n.;,]{0,80}):[ \t]{0,8}(?=[a-z\"'(\[])")
"""What stands before a colon, as in "Effusion: yes"."""
_GENERAL: Final = re.compile(r"(?:present|presence|finding|assessment|impression|diagnosis|reading)s?\b")
"""Names of an entry that are about whatever is asked."""


def parse_label(question: str, said: Spoken, stop: str) -> Parsed:
    """The label that a reply gives. Uncertain is a label of its own; two labels are `ambiguous`."""
    text = said.text
    found = _found(text)
    if found is not None:
        return labelled(found)
    words = _UNSEEN.sub(r"do not \1", plain(text))
    lost = failed(words, said, stop)
    if lost.status != "no_answer" or decoded(text) is not NOTHING:
        return lost
    about = asked_about(question)
    told = _entered(words[:WEIGHED], about) or weighed(words, about)
    return lost if told is None else labelled(told)


def labelled(found: Label | Literal["both"]) -> Parsed:
    """What was found, as an answer."""
    return Parsed(status="ambiguous") if found == "both" else Parsed(status="ok", label=found)


def _found(text: str) -> Found:
    """The label that a reply gives in JSON, after a marker, or in the opening of a sentence."""
    if text[:1] in ("{", "[") or "```" in text:
        value = decoded(text)
        if value is not NOTHING:
            return _of_value(value)
    return _said(plain(text))


def _said(words: str) -> Found:
    letter = _LETTER.fullmatch(words) if len(words) < 24 else None
    if letter is not None:
        return _LETTERS[letter[1]]
    return marked_label(last_answers(words)) or _opening(words)


def _of_value(value: object) -> Found:
    """The label in a JSON value."""
    for inner in (False, True):
        answer = answer_in(value, inner=inner)
        if answer is NOTHING or isinstance(answer, dict):
            continue
        if isinstance(answer, list):
            answer = answer[0] if len(answer) == 1 else None
        if isinstance(answer, bool):
            return "yes" if answer else "no"
        if isinstance(answer, str):
            return _worded_again(answer) if len(answer) <= _SHORT else _worded(answer)
        return None
    if isinstance(value, dict):
        said = [part for part in value.values() if isinstance(part, bool)]
        if len(said) == 1:
            return "yes" if said[0] else "no"
    return None


def _worded(value: str) -> Found:
    return _said(plain(value[:WEIGHED]))


_worded_again = lru_cache(maxsize=1 << 14)(_worded)


def _at(words: str, at: int) -> tuple[Found, int]:
    """The label that stands at a place, after words that only lead to it, and where it ends."""
    found = _OPENS.match(words, at)
    if found is None or found.end() == at:
        lead = _LEAD.match(words, at)
        at = at if lead is None else lead.end()
        found = _OPENS.match(words, at)
        if found is None or found.end() == at:
            return None, at
    end = found.end()
    if _OTHER.match(words, end):
        return "both", end
    if found["yes"]:
        return "yes", end
    if found["no"] or found["unlikely"]:
        return "no", end
    if found["likely"] and not found["uncertain"] and words.startswith("not", end):
        return "no", end + 3
    return "uncertain", end


def marked_label(tails: Iterator[str]) -> Found:
    """The label after the first of these markers that has one."""
    for tail in tails:
        found, end = _at(tail, 0)
        if found is not None and (found != "no" or not tail.startswith(" doubt", end)):
            return found
        letter = _LETTER.match(tail)
        if letter is not None:
            return _LETTERS[letter[1]]
    return None


def _openings(words: str) -> Iterator[tuple[int, Label | Literal["both"]]]:
    """Labels with which sentences open, as words of their own."""
    for at in (0, *[end.end() for end in SENTENCE.finditer(words)]):
        if at == len(words):
            return
        found, end = _at(words, at)
        # "No other finding is seen" does not say no; that something is uncertain may be said in a clause.
        if found is not None and (found == "uncertain" or _ENDED.match(words, end) or found == "both"):
            yield at, found


def _opening(words: str) -> Found:
    """The label with which the reply opens, or the only one with which one of its sentences opens."""
    first: Found = None
    for at, found in _openings(words):
        if found == "both":
            return "both"
        if first is None:
            first = found
        elif found != first:
            if first == "uncertain" and at and found in ("yes", "no"):
                return "both"
            if {first, found} == {"yes", "no"}:
                return "both"
    return first


def _entered(words: str, about: Asked) -> Found:
    """The label of the entries that name what is asked about, as in "Effusion: yes"."""
    entries: list[tuple[int, Found]] = []
    for entry in _ENTRY.finditer(words):
        found, end = _at(words, entry.end())
        if found is not None and _ENDED.match(words, end):
            entries.append((about.names(entry[1]) or int(_GENERAL.match(entry[1]) is not None), found))
    most = max((names for names, _ in entries), default=0)
    labels = {found for names, found in entries if names == most}
    if most <= 0 or not labels:
        return None
    return labels.pop() if len(labels) == 1 else "both"
