"""Why a reply has no answer: a refusal, a reply that was cut off, or none of these."""

import re
from typing import Final

from carina.runs.parse.normalise import VisibleReply
from carina.runs.records import ParsedAnswer

LENGTH_STOPS: Final = frozenset(("max_tokens", "length", "model_length"))
"""Stop reasons of a reply that was cut off by length."""
_FILTERED: Final = frozenset(("content_filter", "refusal", "safety"))


def is_unfinished(reply: VisibleReply, stop: str) -> bool:
    """Whether a reply ended before it was finished."""
    return reply.ends_in_reasoning or stop in LENGTH_STOPS


def classify_failure(words: str, reply: VisibleReply, stop: str) -> ParsedAnswer:
    """The failure class of a reply without an answer, from its normalised text."""
    if is_unfinished(reply, stop) or (reply.has_reasoning and not reply.text):
        return ParsedAnswer(status="truncated")
    return ParsedAnswer(status="refusal" if stop in _FILTERED or is_refusal(words) else "no_answer")


_HEAD: Final = 2000
"""Characters from the beginning of a reply in which a refusal is looked for."""

_REFUSAL: Final = re.compile(
    r"\b(?:can(?:'t|not| not)|(?:am|'m) (?:not able|unable|not in a position)(?: to)?|unable to|not able to|won't"
    r"|(?:am|'m) not (?:qualified|licensed|trained|designed|allowed|permitted|authori[sz]ed|equipped)(?: to)?"
    r"|must decline(?: to)?|have to decline(?: to)?|decline to|refuse to|don't have the ability to"
    r"|do not have the ability to|not comfortable|not appropriate for me to)"
    r"(?: \w+){0,2}? (?:interpret|analy[sz]|diagnos|assist|help|provid|offer|giv|evaluat|examin|read|review|view|see"
    r"|process|access|comment|make|answer|fulfil|comply|respond|do|perform|look|open|assess|identify|discuss|engage)"
    r"|\bas an ai\b|\bi'?m (?:just |only )?an ai\b|\bi am (?:just |only )?an ai\b"
    r"|\b(?:i'm|i am) not a (?:doctor|physician|radiologist|medical)"
    r"|\b(?:against|violates?) (?:my|the|our) (?:policy|policies|guidelines)"
    r"|\bnot (?:a substitute for|intended to provide) (?:professional )?medical"
    r"|\b(?:please )?(?:consult|seek|see) (?:with )?(?:a|an|your) (?:\w+ ){0,2}(?:doctor|physician|radiologist"
    r"|healthcare|health care|medical|professional|specialist|clinician)"
    r"|\bno images? (?:was|were|is|has been|have been|are)? ?(?:provided|attached|uploaded|included|visible to me)"
    r"|\b(?:don't|do not) see (?:any|an) (?:attached |uploaded )?(?:images?|attachments?|x-rays?|pictures?)"
    r"|\bplease (?:upload|provide|attach|share) (?:the|an|a|your) "
    r"|\b(?:i'm|i am) sorry,? but (?:i|we)\b"
    r"|\bi (?:apologi[sz]e|regret),? but\b"
)
_REFUSING: Final = (
    *("can", "not", "n't", "unable", "decline", "refuse", "ability", "an ai", "polic", "guideline", "doctor"),
    *("physician", "radiologist", "health", "medical", "professional", "specialist", "clinician", "no image"),
    *("please", "sorry", "apologi", "regret"),
)
"""Parts of words of which a refusal has at least one; looking for them is faster than the pattern."""
_UNDECIDED: Final = re.compile(
    r"\b(?:can(?:'t|not| not)|unable to|not able to|not possible to) (?:be )?(?:\w+ )?"
    r"(?:determin|tell|say|exclud|rul|confirm|decid|distinguish|differentiat|establish|conclu|assess)"
)


def is_refusal(text: str) -> bool:
    """Whether a reply without an answer is a refusal, from its normalised text. An undecided reply is not a refusal."""
    head = text[:_HEAD]
    for part in _REFUSING:
        if part in head:
            break
    else:
        return False
    found = _REFUSAL.search(head)
    if found is None:
        return False
    undecided = _UNDECIDED.search(head)
    return undecided is None or undecided.start() > found.start() or "medical" in head
