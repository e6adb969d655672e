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
_AFTER_SENTENCE: Final = re.compile(r"(?<=[.!?;\n])")
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
    r"|not (?:been )?(?:\w+ )?(?:ruled out|excluded|unlikely|improbable)"
)
_UNDECIDED: Final = re.compile(
    rf"\b(?:{UNCERTAIN}|suspicious for|suspected|might|may (?:represent|have|reflect)|could represent"
    r"|likely|probabl[ey]|(?<!i )(?<!we )(?<!i would )doubts?)"
)
_ABSENT: Final = re.compile(
    r"\b(?:no|none|nothing|neither|never|without|absent|absence of|negative for|free of|unlikely|improbable|ruled out"
    r"|lacks|lacking|missing|not|isn't|aren't|doesn't|don't|cannot|can't|wasn't|hasn't|excluded|no longer|gone"
    r"|disappeared|resolved|doubt)\b"
)
_LIMITED: Final = re.compile(
    r"\bno (?:\w+ )?(new|large|larger|sizeable|sizable|substantial|massive|big|major|gross|tension|additional|further"
    r"|other|increasing|worsening|second)\b"
)
"""Denials of a degree or of something more, which do not deny the finding itself."""
_DOUBLE: Final = re.compile(
    r"\b(?:not|isn't|aren't|wasn't|never|no) (?:\w+ )?(?:absent|absence|without|free of|missing|lacking|negative)\b"
)
"""Double negations, which are not read."""
_DEGREE: Final = (
    r"(?:significant|appreciable|interval|relevant|obvious|definite|substantial|marked|major|clear|apparent|notable"
    r"|noticeable|convincing|visible|great|much|real|overall|other)"
)
_UNCHANGED: Final = re.compile(
    rf"\b(?:no|without|not any|little|any)(?: {_DEGREE}){{0,3}} (?:changes?|difference|increase|decrease|worsening"
    r"|improvement|progression|enlargement|growth|reduction|resolution)(?: (?:is|was|has been) (?:seen|noted))?"
    r"(?: in (?:the )?(?:size|extent|appearance|amount|degree|severity|volume))? (?:in|of|to|for|from|with)\b"
    r"|\b(?:not|hasn't|haven't)(?: been)?(?: (?:yet|significantly|fully|completely|entirely|totally|much|really))?"
    r" (?:changed|increased|decreased|improved|worsened|resolved|progressed|grown|cleared|disappeared|gone)\b"
    r"|\b(?:unchanged|stable|persistent|persists?|persisting|residual|remains (?!(?:clear|normal|absent))"
    r"|(?:has|have) (?:\w+ )?(?:increased|decreased|improved|worsened|progressed|grown)"
    r"|(?:incompletely|partially|partly) resolved)\b"
    r"|\b(?:increase|decrease|worsening|improvement|progression|enlargement|reduction) (?:in|of)\b"
)
"""What is said to have changed or not to have changed is present."""
_RARE: Final = word_set(
    "change changes changed difference increase increased decrease decreased worsening worsened improvement improved "
    "progression progressed enlargement growth grown reduction resolution resolved cleared disappeared gone unchanged "
    "stable persistent persist persists persisting residual remains incompletely partially partly new large larger "
    "sizeable sizable substantial massive big major gross tension additional further other increasing second absent "
    "absence without free missing lacking negative"
)
"""Words without which a clause is neither about a change nor a denial of a degree nor a double negation."""
_ASKS_CHANGE: Final = re.compile(
    r"\b(?:chang\w+|increas\w+|decreas\w+|worse\w*|better|improv\w+|grow\w*|enlarging|larger|smaller|new|newly"
    r"|progress\w*|resol\w+|stable|compar\w+|regress\w*|since|interval|still|remain\w*|persist\w*)\b"
)
_CERTAIN: Final = re.compile(
    r"\b(?:(?:there(?: i|')s|there can be|i have|we have|it is|is) )?(?:no|without(?: an?| any)?"
    r"|beyond(?: an?| any| all)?)"
    r" (?:reasonable |real )?(?:doubt|question|uncertainty)\b(?: (?:whatsoever|at all|about (?:it|this|that)))?"
    r"(?: that\b)?[,:]?"
)
"""Words that say how certain a statement is, and deny nothing."""
_DENYING: Final = (
    *(
        "no",
        "n't",
        "n\u2019t",
        "neither",
        "never",
        "without",
        "absen",
        "negativ",
        "free",
        "exclu",
        "resol",
        "gone",
    ),
)
"""Parts of words of which a denial has at least one; looking for them is faster than a pattern."""
_STATING: Final = (
    *(
        "present",
        "visible",
        "see",
        "show",
        "find",
        "found",
        "identif",
        "eviden",
        "sign",
        "demonstrat",
        "consistent",
    ),
    *("reveal", "noted", "unchanged", "stable", "persist", "enlarged"),
    # A reply in Spanish may begin with "no".
    *("hay", "exist", "observa", "aprecia", " ve ", "muestra"),
)
"""Parts of words of which a statement has at least one, unless it says "there is"."""
_THERE: Final = re.compile(r"\bthere(?: i|')s\b(?! no\b| not\b| neither\b)|\bthere are\b(?! no\b| not\b)")
_PRESENT: Final = re.compile(
    r"^\W*(?:present|visible|seen)\b|:\s*(?:present|positive|visible|seen)\b"
    r"|\b(?:there (?:is|are|appears? to be|seems? to be)|there's|(?:is|are|be) (?:\w+ )?(?:present|seen|visible|noted"
    r"|identified|evident|there|demonstrated|detected|shown|observed|found|appreciated|apparent|obvious|confirmed"
    r"|enlarged|made out)|exists?|shows?|demonstrates?|reveals?|exhibits?|displays?|(?:consistent|compatible) with"
    r"|(?:i|we|one) (?:can )?(?:clearly )?(?:see|identify|find|observe|note|detect)s?|evidence of|signs of"
    r"|positive for)\b"
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
_CLAUSE: Final = re.compile(
    r"\s*,\s*(?:(?P<after_comma>and|but|without|although|though|while|whereas)\b\s*)?"
    r"|\s+(?P<word>and|but|without|although|though|while|whereas)\s+"
)
_BREAKS: Final = frozenset(("but", "although", "though", "while", "whereas"))
"""Words between clauses that are no list."""
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
    "looking look make made study patient going find state show shows detect detected evident apparent exist exists "
    "presence observe observed identify identified demonstrate demonstrated noted been into also being they them "
    "some much more most than then yours provided given following question options option choose select xray scan "
    "radiology expert radiologist based according anywhere there's definite clear clearly"
)
_GENERIC: Final = word_set(
    "none nothing neither clearly definitely certainly definite small large mild moderate severe bilateral finding "
    "findings really both such kind anything something some certain absent obvious obviously however overall quite "
    "very likely probably possible possibly case here positive negative indeed well detected excluded resolved "
    "determine determined determining judge judged assess assessed tell told confirm confirmed alone view frontal "
    "projection reliably single sure cannot"
)
"""Words that a reply may add to a pronoun without being about something else than the question."""
_SYNONYMS: Final[dict[str, tuple[str, ...]]] = {
    "cardiomegaly": ("heart", "cardiac", "enlarged", "enlargement"),
    "effusion": ("fluid",),
    "edema": ("oedema",),
    "oedema": ("edema",),
    "opacity": ("opacification",),
}
"""Other words for what a question is about."""
_HYPOTHETICAL: Final = re.compile(
    r"\b(?:if|whether|would (?:show|be|appear|suggest|expect|have)|would not say|asked"
    r"|typically|usually|in general|the question"
    r"|(?:signs?|features?) of (?:\w+ ){1,3}includes?)\b"
)
"""Words of a sentence that states nothing about this image, unless that it is uncertain."""
_UNREAL: Final = word_set(
    "if whether would asked typically usually general question sign signs feature features"
)
"""Words without which no sentence is hypothetical; looking for them is faster than the pattern."""
_MODIFIERS: Final = word_set("pleural pulmonary lung cardiac thoracic")
"""Words of a question that a reply may leave out."""
_SIDES: Final = frozenset(("left", "right"))
_WORD: Final = re.compile(r"[a-z]+")


class QuestionTopic(NamedTuple):
    """What a yes/no question is about."""

    words: frozenset[str]
    synonyms: frozenset[str]
    sides: frozenset[str]
    has_negative_wording: bool
    """Whether a negation may mean yes."""
    asks_change: bool
    """Whether it asks about a change since another study."""

    def count_words(self, text: str) -> int:
        """Count the words of the question in a text; -1 for a text about the other side."""
        if len(self.sides) == 1:
            sides = _SIDES.intersection(_WORD.findall(text))
            if sides and not sides & self.sides:
                return -1
        found = _content_words(text)
        return len(self.words & found) + len(self.synonyms & found)

    def covers(self, text: str) -> bool:
        """Whether a text is about all that the question is about."""
        found = _content_words(text)
        needed = self.words - _MODIFIERS
        return bool(needed) and (
            needed <= found or (len(needed) == 1 and not self.synonyms.isdisjoint(found))
        )


def _content_words(text: str) -> frozenset[str]:
    """The words of at least four letters in a text, in the singular."""
    return frozenset(map(_singular, _CONTENT.findall(text)))


@lru_cache(maxsize=1 << 14)
def _singular(word: str) -> str:
    if word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "is", "us")) else word


@lru_cache(maxsize=4096)
def find_topic(question: str) -> QuestionTopic:
    """The topic of a question, without its options and its instruction to answer yes, no or uncertain."""
    words = normalise_text(question.partition("\nOptions:")[0])
    # A sentence with both labels is an instruction and says nothing about the topic.
    kept = " . ".join(part for part in _ASKING.split(words) if not (_YES.search(part) and _NO.search(part)))
    if not _CONTENT.search(kept):
        kept = _LABELS.sub(" ", words)
    topic = _content_words(kept) - _COMMON
    synonyms = frozenset(other for word in topic for other in _SYNONYMS.get(word, ()))
    return QuestionTopic(
        topic,
        synonyms - topic,
        _SIDES.intersection(_WORD.findall(kept)),
        _TURNED.search(kept) is not None,
        _ASKS_CHANGE.search(kept) is not None,
    )


def remove_certainty(words: str) -> str:
    """A text without "there is no doubt that" and the like."""
    return (
        _CERTAIN.sub(" ", words)
        if "doubt" in words or "question" in words or "uncertainty" in words
        else words
    )


def remove_questions(words: str) -> str:
    """A text without the sentences that end in a question mark, which state nothing."""
    if "?" not in words:
        return words
    return "".join(part for part in _AFTER_SENTENCE.split(words) if not part.endswith("?"))


def label_clauses(words: str, topic: QuestionTopic, *, on_topic: bool = False) -> FoundLabel:
    """The label of the clauses that best match the topic; "both" if they disagree, None if they have no label.

    Args:
        words: A normalised text.
        topic: What the question is about.
        on_topic: Demand a word of the question.
    """
    sentences = [part for part in SENTENCE.split(words[:LONGEST_TEXT]) if part.strip()]
    if not sentences:
        return None
    elliptic = _ELLIPTIC.fullmatch(sentences[0])
    if elliptic is not None and not topic.has_negative_wording and (elliptic["no"] or elliptic["yes"]):
        return "no" if elliptic["no"] else "yes"
    may_be_hypothetical = not _UNREAL.isdisjoint(_WORD.findall(words))
    clauses = [
        (
            text,
            None
            if label != "uncertain" and may_be_hypothetical and _HYPOTHETICAL.search(sentence)
            else label,
        )
        for sentence in sentences
        for text, label in _split_clauses(sentence, topic)
    ]
    counts = [topic.count_words(text) for text, _ in clauses]
    most = max(counts)
    if most > 0:
        labels = {label for count, (_, label) in zip(counts, clauses, strict=True) if count == most}
    elif most == 0 and len(sentences) == 1 and not on_topic:
        # A reply in other words than the question counts only if it is about nothing else and its clauses agree.
        labels = {label for _, label in clauses}
        if len(labels - {None}) > 1 or _content_words(sentences[0]) - _COMMON - _GENERIC:
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


def may_contradict(words: str, label: Label) -> bool:
    """Whether a lower-case text has a word that the opposite of a label needs; faster than `contradicts_label`."""
    for part in _DENYING if label == "yes" else _STATING:
        if part in words:
            return label != "uncertain"
    return label == "no" and "there" in words and _THERE.search(words) is not None


def contradicts_label(words: str, label: Label, topic: QuestionTopic) -> bool:
    """Whether all clauses about the topic say the opposite of a label: "Yes, there is no effusion."."""
    if label == "uncertain" or topic.has_negative_wording:
        return False
    said: set[Label] = set()
    for sentence in SENTENCE.split(remove_questions(remove_certainty(words[:LONGEST_TEXT]))):
        if _HYPOTHETICAL.search(sentence):
            continue
        for text, found in _split_clauses(sentence, topic):
            if found is None or not topic.covers(text) or topic.count_words(text) < 0:
                continue
            # "Yes, on the left. No effusion on the right.": a denial of one side denies nothing elsewhere.
            if found == "no" and not topic.sides and not _SIDES.isdisjoint(_WORD.findall(text)):
                continue
            said.add(found)
    return said == {"no" if label == "yes" else "yes"}


def _split_clauses(sentence: str, topic: QuestionTopic) -> Iterator[tuple[str, Label | None]]:
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
        if link == "without":
            yield from ((earlier, None) for earlier in waiting)
            waiting.clear()
            yield text, "no"
            before, verb = "no", False
            continue
        label = _polarity(body, topic)
        own_verb = _VERB.search(body) is not None
        if link in _BREAKS:
            if label is None and before == "no" and _ARTICLE.match(body):
                label = "yes"
        elif link and before is not None:
            listed = not verb and not _FRESH.match(body)
            if body.startswith(("or ", "nor ")) or (label is None and not own_verb):
                label = before
            elif label == "yes" and before == "no" and listed:
                # "No effusion, pneumothorax and consolidation are seen": the verb is that of the list.
                label = "no"
        if label is None and before is None and not own_verb and link not in _BREAKS:
            waiting.append(text)
            continue
        if waiting:
            shared = label if own_verb and link and link not in _BREAKS else None
            yield from ((earlier, shared) for earlier in waiting)
            waiting.clear()
        yield text, label
        if label is not None:
            before, verb = label, own_verb
    yield from ((earlier, None) for earlier in waiting)


def _polarity(clause: str, topic: QuestionTopic) -> Label | None:
    clause = _NOT_NORMAL.sub(" ", clause)
    has_rare_words = not _RARE.isdisjoint(_WORD.findall(clause))
    if has_rare_words and not topic.asks_change and _UNCHANGED.search(clause):
        return None if _ABSENT.search(_UNCHANGED.sub(" ", clause)) else "yes"
    if _UNDECIDED.search(clause):
        return "uncertain"
    if has_rare_words:
        limited = _LIMITED.search(clause)
        if _DOUBLE.search(clause) or (limited is not None and limited[1] not in topic.words):
            return None
    if _ABSENT.search(clause):
        return "no"
    return "yes" if _PRESENT.search(clause) else None
