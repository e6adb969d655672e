"""Parse a label (yes, no or uncertain) from a word or a sentence."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, Literal

from carina.cases.model import Label
from carina.runs.parse.clauses import (
    LONGEST_TEXT,
    SENTENCE,
    UNCERTAIN,
    FoundLabel,
    QuestionTopic,
    contradicts_label,
    find_topic,
    label_clauses,
    may_contradict,
    remove_certainty,
    remove_questions,
)
from carina.runs.parse.failure import classify_failure
from carina.runs.parse.languages import translate
from carina.runs.parse.markers import SHORTEST_REVISION, find_marked_answers, find_revision, may_revise
from carina.runs.parse.normalise import VisibleReply, normalise_text
from carina.runs.parse.structured import NO_VALUE, decode_json, find_answer_value
from carina.runs.records import ParsedAnswer

SHORTEST_CONTRADICTION: Final = 18
"""Characters of a reply, or of the rest after "answer", that cannot hold a label and its contradiction."""
_SHORT: Final = 80
"""Characters of a JSON value up to which its label is cached."""

_OPENS: Final = re.compile(
    r"(?P<likely>(?:most |more |very |quite |highly )?(?:likely|probably|probable)\b[,:]?\s*)?"
    r"(?:(?P<no>(?:no|nope|negative|false|(?:absolutely|certainly|definitely|of course|clearly|surely) not"
    r"|not at all|by no means)\b|incorrect(?=[\s\"')\]]*(?:[.,;!\n]|$)))"
    r"|(?P<yes>(?:yes|yeah|yep|affirmative|true|absolutely|certainly|definitely|indeed)\b"
    r"|correct(?=[\s\"')\]]*(?:[.,;!\n]|$)))|(?P<unlikely>(?:very |highly |rather |quite )?(?:unlikely|improbable)\b)"
    rf"|(?P<uncertain>{UNCERTAIN}))?"
)
"""Beginnings of a sentence that give a label. "Likely" alone is uncertain; "unlikely" is no, as in reports."""
_LEAD: Final = re.compile(
    r"[\s\x01\"'(\[{:=>#|-]{0,16}"
    r"(?:(?:is|are|would be|should be|must be|remains|a|an|the|it|this|that|it's|i|am|i'm|still|therefore|thus|hence|so"
    r"|overall|consequently|ultimately|finally|in (?:conclusion|summary|short))\b"
    r"[\s\"':,(\[-]{0,8}){0,6}"
)
_SECOND_LABEL: Final = re.compile(
    r"[\s\"')\]]{0,4}(?:/|,?\s?(?:or|and)\b)[\s\"'(\[]{0,4}(?:yes|no|uncertain|unclear|maybe)\b(?! \w)"
    r"|[\s\"')\]]{0,4}[,/]\s?[\"']?(?:yes|no|uncertain)\b[\"']?,?\s?(?:or|and|/)\s?[\"']?(?:yes|no|uncertain)\b"
    r"|[\s\"')\]]{0,4}[,/]\s?[\"']?(?:yes|no|uncertain)\b[\"']?\s?(?:[,/]|[.\s]{0,4}$)"
)
_LABEL_END: Final = re.compile(r"[\s\"')\]}]{0,8}(?:[,.;:!?\n(-]|$)")
_UNSEEN: Final = re.compile(
    r"\bcan(?:'t|not| not) (see|find|identify|detect|make out)\b(?! (?:\w{1,12} ){0,3}(?:images?|pictures?|attachments?"
    r"|x-?rays?|radiographs?|films?|scans?|photos?|files?)\b)"
)
"""A reply that cannot see an effusion means no; a reply that cannot see the image is a refusal."""
_LETTER: Final = re.compile(r"[\s\x01\"'(\[:=]{0,8}([yn])[\s\"')\].!]{0,8}(?:\n|$)")
_LETTERS: Final[dict[str, Label]] = {"y": "yes", "n": "no"}
_CONCLUDED: Final = re.compile(
    r"[,;]\s(?:and\s)?(?:so|therefore|thus|hence)[,:]?\s(?:the answer is\s|it is\s|i would say\s)?"
    r"(yes|no|uncertain)[\s.!]{0,8}$"
)
_ENTRY: Final = re.compile(r"(?:^|\n|[.;,])[\s\"'#-]{0,8}([a-z][^:\n.;,]{0,80}):[ \t]{0,8}(?=[a-z\"'(\[])")
"""The name of an entry before its colon, as in "Effusion: yes"."""
_GENERAL: Final = re.compile(r"(?:present|presence|finding|assessment|impression|diagnosis|reading)s?\b")
"""Names of an entry that fit every question."""


def parse_label(question: str, reply: VisibleReply, stop: str) -> ParsedAnswer:
    """The label of a reply, or why there is none; two labels are `ambiguous`."""
    text = reply.text
    found = _find_label(text)
    if found is not None:
        if found != "both" and has_contradiction(question, text, found):
            found = "both"
        return answer_from_label(found)
    words = normalise_text(text)
    failure = classify_failure(_UNSEEN.sub(r"do not \1", words) if "can" in words else words, reply, stop)
    if failure.status != "no_answer" or decode_json(text) is not NO_VALUE:
        return failure
    topic = find_topic(question)
    translated = translate(words)
    if translated:
        found = find_label_in_text(translated) or find_sentence_label(translated, topic)
        if found in ("yes", "no") and contradicts_label(translated, found, topic):
            found = "both"
        if found is None:
            failure = classify_failure(translated, reply, stop)
    else:
        found = find_sentence_label(words, topic)
    return failure if found is None else answer_from_label(found)


def find_sentence_label(words: str, topic: QuestionTopic, *, on_topic: bool = False) -> FoundLabel:
    """The label of a normalised text that states or denies what the question is about."""
    if "can" in words:
        words = _UNSEEN.sub(r"do not \1", words)
    words = remove_questions(words[:LONGEST_TEXT])
    certain = remove_certainty(words)
    if certain != words:
        if not any(sign.isalnum() for sign in certain):
            return "yes"
        found = _find_opening_label(certain)
        if found is not None:
            return found
    concluded = _CONCLUDED.search(certain)
    if concluded is not None:
        found, _ = _read_label_at(certain, concluded.start(1))
        return found
    return _find_entry_label(certain, topic) or label_clauses(certain, topic, on_topic=on_topic)


def has_contradiction(question: str, text: str, label: Label) -> bool:
    """Whether a reply says the opposite of its label: "Yes, there is no effusion.".

    Args:
        question: The question.
        text: The reply, in which the label was found.
        label: The label.
    """
    size = len(text)
    if size < SHORTEST_CONTRADICTION:
        return False
    return (
        _has_contradiction_cached(question, text, label)
        if size <= _SHORT
        else _has_contradiction(question, text, label)
    )


def _has_contradiction(question: str, text: str, label: Label) -> bool:
    start = max(text.rfind("nswer"), 0)
    if len(text) - start < SHORTEST_CONTRADICTION or text[:1] in ("{", "[") or "```" in text:
        return False
    raw = text[start:].lower()
    if not may_contradict(raw, label):
        return False
    words = normalise_text(raw)
    return contradicts_label(translate(words) or words, label, find_topic(question))


_has_contradiction_cached = lru_cache(maxsize=1 << 12)(_has_contradiction)


def answer_from_label(found: Label | Literal["both"]) -> ParsedAnswer:
    """A label as a parsed answer."""
    return ParsedAnswer(status="ambiguous") if found == "both" else ParsedAnswer(status="ok", label=found)


def _find_label(text: str) -> FoundLabel:
    """The label of a reply in JSON, after a marker, or at the beginning of a sentence."""
    if text[:1] in ("{", "[") or "```" in text:
        value = decode_json(text)
        if value is not NO_VALUE:
            return _find_in_json(value)
    return find_label_in_text(normalise_text(text))


def find_label_in_text(words: str) -> FoundLabel:
    """The label of a normalised text after a marker, or at the beginning of a sentence."""
    letter = _LETTER.fullmatch(words) if len(words) < 24 else None
    if letter is not None:
        return _LETTERS[letter[1]]
    found = find_label_after_marker(find_marked_answers(words)) or _find_opening_label(words)
    if found is not None and len(words) >= SHORTEST_REVISION and may_revise(words):
        tail = find_revision(words)
        revised, end = _read_label_at(tail, 0)
        if revised is not None and revised != found and _LABEL_END.match(tail, end):
            return "both"
    return found


def _find_in_json(value: object) -> FoundLabel:
    """The label in a JSON value."""
    for inner in (False, True):
        answer = find_answer_value(value, inner=inner)
        if answer is NO_VALUE or isinstance(answer, dict):
            continue
        if isinstance(answer, list):
            answer = answer[0] if len(answer) == 1 else None
        if isinstance(answer, bool):
            return "yes" if answer else "no"
        if isinstance(answer, str):
            return _find_in_json_text_cached(answer) if len(answer) <= _SHORT else _find_in_json_text(answer)
        return None
    if isinstance(value, dict):
        said = [part for part in value.values() if isinstance(part, bool)]
        if len(said) == 1:
            return "yes" if said[0] else "no"
    return None


def _find_in_json_text(value: str) -> FoundLabel:
    return find_label_in_text(normalise_text(value[:LONGEST_TEXT]))


_find_in_json_text_cached = lru_cache(maxsize=1 << 14)(_find_in_json_text)


def _read_label_at(words: str, at: int) -> tuple[FoundLabel, int]:
    """The label at a position, after words such as "it is", and the position where it ends."""
    found = _OPENS.match(words, at)
    if found is None or found.end() == at:
        lead = _LEAD.match(words, at)
        at = at if lead is None else lead.end()
        found = _OPENS.match(words, at)
        if found is None or found.end() == at:
            return None, at
    end = found.end()
    if _SECOND_LABEL.match(words, end):
        return "both", end
    if found["yes"]:
        return "yes", end
    if found["no"] or found["unlikely"]:
        return "no", end
    if found["likely"] and not found["uncertain"] and words.startswith("not", end):
        return "no", end + 3
    return "uncertain", end


def find_label_after_marker(tails: Iterator[str]) -> FoundLabel:
    """The label in the first of these texts that begins with one."""
    for tail in tails:
        found, end = _read_label_at(tail, 0)
        if found is not None and (found != "no" or not tail.startswith(" doubt", end)):
            return found
        letter = _LETTER.match(tail)
        if letter is not None:
            return _LETTERS[letter[1]]
    return None


def _read_openings(words: str) -> Iterator[tuple[int, Label | Literal["both"]]]:
    """Positions and labels of the sentences that begin with a label as a separate word."""
    for at in (0, *[end.end() for end in SENTENCE.finditer(words)]):
        if at == len(words):
            return
        found, end = _read_label_at(words, at)
        # "No other finding is seen" is not the label no; a longer clause may begin with "uncertain".
        if found is not None and (found == "uncertain" or _LABEL_END.match(words, end) or found == "both"):
            yield at, found


def _find_opening_label(words: str) -> FoundLabel:
    """The label at the beginning of the sentences of a reply; "both" where they disagree."""
    first: FoundLabel = None
    for at, found in _read_openings(words):
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


def _find_entry_label(words: str, topic: QuestionTopic) -> FoundLabel:
    """The label of the entries that best match the topic, as in "Effusion: yes"."""
    entries: list[tuple[int, FoundLabel]] = []
    for entry in _ENTRY.finditer(words):
        found, end = _read_label_at(words, entry.end())
        if found is not None and _LABEL_END.match(words, end):
            entries.append((topic.count_words(entry[1]) or int(_GENERAL.match(entry[1]) is not None), found))
    most = max((names for names, _ in entries), default=0)
    labels = {found for names, found in entries if names == most}
    if most <= 0 or not labels:
        return None
    return labels.pop() if len(labels) == 1 else "both"
