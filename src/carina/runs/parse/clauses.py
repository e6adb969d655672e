"""Label sentences that state a finding without the words yes or no, by comparing their clauses with the question."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from carina.cases.model import Label
from carina.runs.parse.choices import word_set
from carina.runs.parse.normalise import normalise_text

FoundLabel = Label | Literal["both"] | None

LONGEST_TEXT: Final = 4000
"""Characters of a reply whose sentences are labelled."""
SENTENCE: Final = re.compile(r"[.!?;\n][\s\"')\]-]*")

_UNABLE: Final = (
    r"(?:can(?:'t|not| not)|could(?:n't| not)|(?:unable|not able|not possible|impossible|hard|difficult) to)"
)
_SETTLE: Final = (
    r"(?:\w+ ){0,2}?(?:determin|tell\b|say\b|decid|exclu|rul|confirm|assess|conclu|judg|made with"
    r"|be certain|be sure)"
)
UNCERTAIN: Final = (
    r"uncertain|unsure|unclear|undetermined|undecided|indeterminate|indeterminable|inconclusive|equivocal|questionable"
    r"|doubtful|possibly|(?<!the )possible|perhaps|maybe|unknown|ambiguous"
    r"|not (?:sure|certain|clear|definite|conclusive)"
    rf"|{_UNABLE} {_SETTLE}|(?:may|might|could) (?:be\b|or)|may or may not|neither (?:yes|confirm)"
)
_UNDECIDED: Final = re.compile(
    rf"\b(?:{UNCERTAIN}|suspicious for|suspected|might|may (?:represent|have|reflect)|could represent"
    r"|likely|probabl[ey])"
)
_ABSENT: Final = re.compile(
    r"\b(?:no|none|nothing|neither|never|without|absent|absence of|negative for|free of|unlikely|improbable|ruled out"
    r"|lacks|lacking|missing|not|isn't|aren't|doesn't|don't|cannot|can't|wasn't|hasn't)\b"
)
_PRESENT: Final = re.compile(
    r"^\W*(?:present|visible|seen)\b|:\s*(?:present|positive|visible|seen)\b"
    r"|\b(?:there (?:is|are)|(?:is|are) (?:\w+ )?(?:present|seen|visible|noted|identified"
    r"|evident|there|demonstrated|detected|shown|observed)|shows?|demonstrates?|consistent with"
    r"|i (?:can )?(?:see|identify|find)|evidence of|signs of)\b"
)
_NOT_NORMAL: Final = re.compile(r"\bnot (?:an? |entirely |quite |completely )?(?:normal|unremarkable|part)\b")
"""Negations of normality, which do not negate a finding."""
_TURNED: Final = re.compile(
    r"\b(?:normal|clear|free|without|no|not|absent|absence|unremarkable|unchanged|resolved|should|adequate|acceptable"
    r"|correct(?:ly)?|satisfactory)\b"
)
"""Words of a question to which "there is no effusion" may mean yes."""
_ASKING: Final = re.compile(r"[.!?\n]+")
_YES: Final = re.compile(r"\byes\b")
_NO: Final = re.compile(r"\bno\b")
_LABELS: Final = re.compile(r"\byes\b,?(?: or)? ?/? ?no\b(?:,? ?(?:or|and|/) ?uncertain\b)?")
_CLAUSE: Final = re.compile(r"\s*,\s*(?:(?P<after_comma>and|but)\b\s*)?|\s+(?P<word>and|but)\s+")
_VERB: Final = re.compile(
    r"\b(?:is|are|was|were|has|have|can|see|find|identify|shows?|demonstrates?|appears?|seems?|remains?|measures?"
    r"|looks?|lies)\b"
)
_RELATIVE: Final = re.compile(r"\b(?:that|which|as far as) (?:i|we|is|are|can|could|one)\b.*", re.DOTALL)
_FRESH: Final = re.compile(r"\W*(?:an?|the|there|i|we|it)\b")
"""Beginning of an independent clause, as opposed to another item of a list."""
_ARTICLE: Final = re.compile(r"\W*(?:also |only |rather )?an?\b")
_ELLIPTIC: Final = re.compile(
    r"\W*(?:(?:it|this|that|one)(?: is|'s) )?(?:clearly |definitely )?"
    r"(?P<no>absent|not (?:present|there|seen|visible|identified)|none(?: (?:is )?(?:seen|visible))?)?"
    r"(?P<yes>present|visible|seen)?\W*"
)
_CONTENT: Final = re.compile(r"[a-z]{4,}")
_COMMON: Final = word_set(
    "there this that these those with from have does what which where when your answer uncertain only "
    "image images radiograph radiographs chest x-ray film films seen visible present shown reply word just give "
    "single current please sign signs evidence read reading report tell whether would could side left right "
    "looking look make made study patient going find state"
)
_SIDES: Final = frozenset(("left", "right"))
_WORD: Final = re.compile(r"[a-z]+")


class QuestionTopic(NamedTuple):
    """What a yes/no question is about."""

    words: frozenset[str]
    sides: frozenset[str]
    has_negative_wording: bool
    """Whether a negation may mean yes."""

    def count_words(self, text: str) -> int:
        """Count the words of the question in a text; -1 for a text about the other side."""
        if len(self.sides) == 1:
            sides = _SIDES.intersection(_WORD.findall(text))
            if sides and not sides & self.sides:
                return -1
        return len(self.words.intersection(_CONTENT.findall(text)))


@lru_cache(maxsize=4096)
def find_topic(question: str) -> QuestionTopic:
    """The topic of a question, without its instruction to answer yes, no or uncertain."""
    words = normalise_text(question)
    # A sentence with both labels is an instruction and says nothing about the topic.
    kept = " . ".join(part for part in _ASKING.split(words) if not (_YES.search(part) and _NO.search(part)))
    if not _CONTENT.search(kept):
        kept = _LABELS.sub(" ", words)
    return QuestionTopic(
        frozenset(_CONTENT.findall(kept)) - _COMMON,
        _SIDES.intersection(_WORD.findall(kept)),
        _TURNED.search(kept) is not None,
    )


def label_clauses(words: str, topic: QuestionTopic) -> FoundLabel:
    """The label of the clauses that best match the topic; "both" if they disagree, None if they have no label."""
    sentences = [part for part in SENTENCE.split(words[:LONGEST_TEXT]) if part.strip()]
    if not sentences:
        return None
    elliptic = _ELLIPTIC.fullmatch(sentences[0])
    if elliptic is not None and not topic.has_negative_wording and (elliptic["no"] or elliptic["yes"]):
        return "no" if elliptic["no"] else "yes"
    clauses = [clause for sentence in sentences for clause in _split_clauses(sentence)]
    most = max(topic.count_words(text) for text, _ in clauses)
    if most > 0:
        labels = {label for text, label in clauses if topic.count_words(text) == most}
    elif most == 0 and len(sentences) == 1:
        # A reply in other words than the question counts only if its clauses agree.
        labels = {label for _, label in clauses}
        if len(labels - {None}) > 1:
            return None
    else:
        return None
    said = {
        label
        for label in labels
        if label is not None and (label == "uncertain" or not topic.has_negative_wording)
    }
    if not said:
        return None
    return said.pop() if len(said) == 1 else "both"


def _split_clauses(sentence: str) -> Iterator[tuple[str, Label | None]]:
    """The clauses of a sentence with their labels; items of a list have the label of its first or last item."""
    parts: list[tuple[str, str]] = []
    at, link = 0, ""
    for joint in _CLAUSE.finditer(sentence):
        parts.append((link, sentence[at : joint.start()]))
        at, link = joint.end(), joint["word"] or joint["after_comma"] or ","
    parts.append((link, sentence[at:]))
    waiting: list[str] = []
    before: Label | None = None
    verb = False
    for link, text in parts:
        body = _RELATIVE.sub("", text)
        label = _polarity(body)
        own_verb = _VERB.search(body) is not None
        if link == "but":
            if label is None and before == "no" and _ARTICLE.match(body):
                label = "yes"
        elif link and before is not None:
            listed = not verb and not _FRESH.match(body)
            if body.startswith(("or ", "nor ")) or (label is None and not own_verb):
                label = before
            elif label == "yes" and before == "no" and listed:
                # "No effusion, pneumothorax and consolidation are seen": the verb is that of the list.
                label = "no"
        if label is None and before is None and not own_verb and link != "but":
            waiting.append(text)
            continue
        if waiting:
            shared = label if own_verb and link and link != "but" else None
            yield from ((earlier, shared) for earlier in waiting)
            waiting.clear()
        yield text, label
        if label is not None:
            before, verb = label, own_verb
    yield from ((earlier, None) for earlier in waiting)


def _polarity(clause: str) -> Label | None:
    clause = _NOT_NORMAL.sub(" ", clause)
    if _UNDECIDED.search(clause):
        return "uncertain"
    if _ABSENT.search(clause):
        return "no"
    return "yes" if _PRESENT.search(clause) else None
