"""Find the phrases that announce an answer, such as "Answer:" or "I choose"."""

import re
from collections.abc import Iterator
from typing import Final

from carina.runs.parse.normalise import ANSWER_SIGN

_ADJECTIVES: Final = "correct|best|right|final|selected|chosen|my|appropriate|accurate|likely"
_NOUNS: Final = (
    "option|choice|selection|decision|response|mask|point|region|pick|one|statement|verdict|conclusion|label"
)
_SPEAKERS: Final = "i|we"
_NAMES: Final = "choice|selection|verdict|conclusion|decision|prediction|response|result|output|option|label"
_MARKER: Final = re.compile(
    r"\banswers?\b(?!\s+(?:choices|options)\b)(?:\s+(?:choice|option|number|letter|key)\b)?"
    r"(?:\s+(?:to|for)\s[^\n.:?]{1,80}?(?=\s(?:is|are)\b|:))?"
    rf"|\b(?:{_ADJECTIVES})\s+(?:final\s+)?(?:{_NOUNS})"
    r"(?:s|\(s\))?(?:\s+(?:number|letter))?(?=\s*(?:is|are|would|should|must|[:=(\[\"-]))"
    rf"|\b(?:{_SPEAKERS})(?:'(?:d|ll|m|ve)|\s(?:would|will|shall|must|should|can|have|had|am|do|therefore|thus|hence|finally|"
    r"then|now|also))*\s(?:select|choos|chose|pick|opt\sfor|opted\sfor|go\swith|going\swith|went\swith|settle\son)"
    r"(?:ed|e|en|ing|n)?\b"
    rf"|\b(?:{_NAMES})\s?[\"']?\s?:"
    rf"|{ANSWER_SIGN}",
)
SHORTEST_REVISION: Final = 14
"""Characters of the shortest answer that is revised: "yes. wait, no."."""
_REVISION: Final = re.compile(
    r"\b(?:wait|actually|correction|on second thoughts?)[,:.]{0,3}\s"
    r"(?:(?:no|i mean|it is|it's|it should be|rather),?\s(?!$))?"
)
_WORD: Final = re.compile(r"[a-z]+")
_PARTS: Final = (
    (frozenset(_ADJECTIVES.split("|")), tuple(_NOUNS.split("|"))),
    (frozenset(_SPEAKERS.split("|")), ("select", "choos", "chose", "pick", "opt", "go", "went", "settle")),
)
"""First words of a marker, and the beginnings of another word that it must contain."""
_BEFORE_COLON: Final = frozenset(_NAMES.split("|"))
_FIRST: Final = _BEFORE_COLON.union(*(first for first, _ in _PARTS))
_DENIED: Final = re.compile(
    r"(?:\bnot|n't|\bcannot|\bnever|\bno|\bunable\sto|\bwithout|\bwrong|\bincorrect|\bpossible)"
    r"\s(?:(?:the|an?|any|my|final|correct|definitive|possible|that)\s)*$"
)
_DENIED_BY: Final = (
    *("not", "n't", "never", "no", "to", "without", "wrong", "incorrect", "possible"),
    *("the", "a", "an", "any", "my", "final", "correct", "definitive", "that"),
)
"""Possible endings of the text before a negated marker, checked first because the pattern is slow."""
_BEFORE: Final = 32


def find_marked_answers(text: str) -> Iterator[str]:
    """The text after each marker, up to the next marker; the last marker first.

    In most replies the last marker is the word "answer", so the text after it is searched before the rest.
    """
    final = text.rfind("answer")
    if final > 0:
        yield from find_after_markers(text, final, len(text))
    yield from find_after_markers(text, 0, final if final > 0 else len(text))


def find_after_markers(text: str, start: int, stop: int) -> Iterator[str]:
    """The text after each marker that begins between two positions; the last marker first."""
    if text.find("answer", start, stop) < 0 and not may_have_marker(text, start, stop):
        return
    found: list[tuple[int, int]] = []
    seen, same_line = start, False
    for marker in _MARKER.finditer(text, start):
        at = marker.start()
        if at >= stop:
            break
        same_line = same_line and text.find("\n", seen, at) < 0
        seen = at
        # A boxed part of an announced answer, or of a list of boxes, is not a new answer.
        if (text[at] == ANSWER_SIGN and same_line) or _is_denied(text, at):
            continue
        found.append((at, marker.end()))
        same_line = True
    end = stop
    for at, after in reversed(found):
        yield text[after : max(end, after)]
        end = at


def may_revise(tail: str) -> bool:
    """Whether a text after an answer has words with which it may revise it; faster than `find_revision`."""
    return "wait" in tail or "actually" in tail or "correction" in tail or "thought" in tail


def find_revision(text: str) -> str:
    """The text after the last "wait" or "actually" that follows the last answer; empty where there is none."""
    last = None
    for found in _REVISION.finditer(text, max(text.rfind("answer"), 0)):
        last = found
    return "" if last is None else text[last.end() :]


def may_have_marker(text: str, start: int, stop: int) -> bool:
    """Whether a marker other than the word "answer" can begin between two positions: all words that it needs are there.

    The part must end with the text or before the word "answer".
    """
    if text.find(ANSWER_SIGN, start, stop) >= 0:
        return True
    words = _WORD.findall(text, start, stop)
    if _FIRST.isdisjoint(words):
        return False
    for first, others in _PARTS:
        if not first.isdisjoint(words) and any(word.startswith(others) for word in words):
            return True
    return text.find(":", start, stop) >= 0 and not _BEFORE_COLON.isdisjoint(words)


def _is_denied(text: str, at: int) -> bool:
    before = max(0, at - 1)
    # An empty line between the two makes no difference.
    if not text.endswith(_DENIED_BY, 0, before) and not (
        text.endswith("\n", 0, at) and text.endswith(_DENIED_BY, 0, max(0, before - 1))
    ):
        return False
    return _DENIED.search(text, max(0, at - _BEFORE), at) is not None
