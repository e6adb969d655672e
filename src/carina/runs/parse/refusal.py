"""Whether a reply declines to answer: it will not, or says that it cannot, look at medical images."""

import re
from typing import Final

_HEAD: Final = 2000
"""A refusal says so at once."""

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
_UNDECIDED: Final = re.compile(
    r"\b(?:can(?:'t|not| not)|unable to|not able to|not possible to) (?:be )?(?:\w+ )?"
    r"(?:determin|tell|say|exclud|rul|confirm|decid|distinguish|differentiat|establish|conclu|assess)"
)


def refuses(text: str) -> bool:
    """Whether a reply without an answer is a refusal; the text is plain. To leave open is not to refuse."""
    head = text[:_HEAD]
    found = _REFUSAL.search(head)
    if found is None:
        return False
    undecided = _UNDECIDED.search(head)
    return undecided is None or undecided.start() > found.start() or "medical" in head
