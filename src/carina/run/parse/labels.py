"""Yes, no or uncertain, from a word or from a sentence."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, Literal

from carina.cases import Step
from carina.cases.model import Label
from carina.run.parse.choices import word_set
from carina.run.parse.failure import failed
from carina.run.parse.markers import last_answers
from carina.run.parse.normalise import Spoken, plain
from carina.run.parse.structured import NOTHING, answer_in, decoded
from carina.run.records import Parsed

_Found = Label | Literal["both"] | None

_SHORT: Final = 80
_WEIGHED: Final = 4000
"""Characters of a reply whose sentences are weighed where none of them says yes or no."""

_UNABLE: Final = (
    r"(?:can(?:'t|not| not)|could(?:n't| not)|(?:unable|not able|not possible|impossible|hard|difficult) to)"
)
_SETTLE: Final = (
    r"(?:\w+ ){0,2}?(?:determin|tell\b|say\b|decid|exclu|rul|confirm|assess|conclu|judg|made with"
    r"|be certain|be sure)"
)
_UNCERTAIN: Final = (
    r"uncertain|unsure|unclear|undetermined|undecided|indeterminate|indeterminable|inconclusive|equivocal|questionable"
    r"|doubtful|possibly|possible|perhaps|maybe|unknown|ambiguous|not (?:sure|certain|clear|definite|conclusive)"
    rf"|{_UNABLE} {_SETTLE}|(?:may|might|could) (?:be\b|or)|may or may not|neither (?:yes|confirm)"
)
_OPENS: Final = re.compile(
    r"(?P<likely>(?:most |more |very |quite |highly )?(?:likely|probably|probable)\b[,:]?\s*)?"
    r"(?:(?P<yes>yes|yeah|yep|affirmative|true|absolutely|certainly|definitely|indeed)\b"
    r"|(?P<no>no|nope|negative|false)\b|(?P<unlikely>(?:very |highly |rather |quite )?(?:unlikely|improbable)\b)"
    rf"|(?P<uncertain>{_UNCERTAIN}))?"
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
_SENTENCE: Final = re.compile(r"[.!?;\n][\s\"')\]-]*")

_OPEN: Final = re.compile(
    rf"\b(?:{_UNCERTAIN}|suspicious for|suspected|might|may (?:represent|have|reflect)|could represent"
    r"|likely|probabl[ey])"
)
_DENIED: Final = re.compile(
    r"\b(?:no|none|nothing|neither|never|without|absent|absence of|negative for|free of|unlikely|improbable|ruled out"
    r"|lacks|not|isn't|aren't|doesn't|don't|cannot|can't|wasn't|hasn't)\b"
)
_ASSERTED: Final = re.compile(
    r"^\W*(?:present|visible|seen)\b|\b(?:there (?:is|are)|(?:is|are) (?:\w+ )?(?:present|seen|visible|noted|identified"
    r"|evident|there|demonstrated|detected|shown|observed)|shows?|demonstrates?|consistent with"
    r"|i (?:can )?(?:see|identify|find)|evidence of|signs of)\b"
)
_TURNED: Final = re.compile(
    r"\b(?:normal|clear|free|without|no|not|absent|absence|unremarkable|unchanged|resolved|should|adequate|acceptable"
    r"|correct(?:ly)?|satisfactory)\b"
)
"""Words of a question to which "there is no effusion" may well mean yes."""
_CONTENT: Final = re.compile(r"[a-z]{4,}")
_COMMON: Final = word_set(
    "there this that these those with from have does what which where when your answer uncertain only "
    "image images radiograph radiographs chest x-ray film seen visible present shown reply word just give "
    "single current please"
)


def parse_label(step: Step, said: Spoken, stop: str) -> Parsed:
    """The label that a reply gives. Uncertain is a label of its own; two labels are `ambiguous`."""
    text = said.text
    found = _remembered(text) if len(text) <= _SHORT else _found(text)
    if found is not None:
        return Parsed(status="ambiguous") if found == "both" else Parsed(status="ok", label=found)
    words = plain(text)
    lost = failed(words, said, stop)
    if lost.status != "no_answer" or decoded(text) is not NOTHING:
        return lost
    weighed = _weighed(words, plain(step.question))
    if weighed is None:
        return lost
    return Parsed(status="ambiguous") if weighed == "both" else Parsed(status="ok", label=weighed)


def _found(text: str) -> _Found:
    """The label that a reply gives in JSON, after a marker, or in the opening of a sentence."""
    if text[:1] in ("{", "[") or "```" in text:
        value = decoded(text)
        if value is not NOTHING:
            return _of_value(value)
    words = plain(text)
    return _marked(words) or _opening(words)


_remembered = lru_cache(maxsize=1 << 14)(_found)


def _of_value(value: object) -> _Found:
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
            words = plain(answer[:_WEIGHED])
            return _marked(words) or _opening(words)
        return None
    if isinstance(value, dict):
        said = [part for part in value.values() if isinstance(part, bool)]
        if len(said) == 1:
            return "yes" if said[0] else "no"
    return None


def _at(words: str, at: int) -> tuple[_Found, int]:
    """The label that stands at a place, after words that only lead to it, and where it ends."""
    lead = _LEAD.match(words, at)
    for start in (at, lead.end()) if lead is not None and lead.end() > at else (at,):
        found = _OPENS.match(words, start)
        if found is None or found.end() == start:
            continue
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
    return None, at


def _marked(words: str) -> _Found:
    """The label after the last marker that has one."""
    for tail in last_answers(words):
        found, end = _at(tail, 0)
        if found is not None and (found != "no" or not tail.startswith(" doubt", end)):
            return found
    return None


def _openings(words: str) -> Iterator[tuple[int, Label | Literal["both"]]]:
    """Labels with which sentences open, as words of their own."""
    at = 0
    for sentence in (*_starts(words), len(words)):
        if at < len(words):
            found, end = _at(words, at)
            # "No other finding is seen" does not say no; that something is uncertain may be said in a clause.
            if found is not None and (found == "uncertain" or _ENDED.match(words, end) or found == "both"):
                yield at, found
        at = sentence


def _starts(words: str) -> Iterator[int]:
    return (end.end() for end in _SENTENCE.finditer(words))


def _opening(words: str) -> _Found:
    """The label with which the reply opens, or the only one with which one of its sentences opens."""
    first: _Found = None
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


def _weighed(words: str, question: str) -> _Found:
    """The label that sentences without yes or no amount to, where the question allows one to tell."""
    asked = set(_CONTENT.findall(question)) - _COMMON
    sentences = [part for part in _SENTENCE.split(words[:_WEIGHED]) if part.strip()]
    if len(sentences) > 1:
        sentences = [part for part in sentences if asked.intersection(_CONTENT.findall(part))]
    labels: set[Label] = set()
    for part in sentences:
        if _OPEN.search(part):
            labels.add("uncertain")
        elif _TURNED.search(question):
            continue
        elif _DENIED.search(part):
            labels.add("no")
        elif _ASSERTED.search(part):
            labels.add("yes")
    if not labels:
        return None
    return labels.pop() if len(labels) == 1 else "both"
