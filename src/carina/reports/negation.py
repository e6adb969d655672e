"""Negation and hedging: which mentions of a sentence a cue denies or doubts, and which words of an answer.

- a denial or doubt acts forwards through a list and ends at a clause word ("but"), at "with", at a new subject
  ("there is", "the heart is"), or at a comma or "and" behind a finished verb;
- a cue that stands behind ("cannot be excluded", "is not seen") acts backwards on the nearest finding and on what is
  listed with it without a verb between;
- alternatives ("atelectasis versus infiltrate", "pneumonia or aspiration") are in doubt, also where one of them is
  nothing that the reader knows as a finding; a slash that joins two findings ("calcified lymph nodes/granulomas")
  is no doubt by itself, and carries that of a hedge before it.
"""

import re
from collections.abc import Collection, Sequence
from itertools import takewhile
from typing import Final

from carina.reports.phrases import Item, Word, word_set
from carina.reports.sentence import Mention, SentenceText

AFTER_LISTS: Final = frozenset({"and", ","})
NEW_PHRASE: Final = frozenset({"there", "with", "without", "which", "after", "following", "status"})
VERSUS: Final = frozenset({"versus", "vs"})
STUDIES: Final = word_set(
    "prior priors previous previously earlier preceding last former before baseline comparison study studies "
    "radiograph radiographs film films exam examination image images imaging yesterday today outside old older"
)
ON_EARLIER: Final = re.compile(
    r"previously\b|(?:on|in) (?:\w+ ){0,3}?(?:priors?|previous|earlier|preceding|comparison)\b"
)
ON_ONE_VIEW: Final = re.compile(
    r"(?:on|in) (?:the )?(?:lateral|frontal|pa|ap|oblique)"
    r"(?: (?:chest )?(?:view|film|radiograph|image|projection|exam|examination)s?)?"
)
REACH_OF_STUDY: Final = 6
"""Words behind "not seen" in which a study or a view is looked for: "on the most recent prior"."""
MOST_WORDS_BETWEEN: Final = 5
"""Largest number of words between an alternative and its "versus": enough for a place."""


def apply_denials(sentence: SentenceText) -> None:
    """Set the mentions that a cue denies to absent."""
    for item, _ in sentence.of_kind("denial"):
        if any(role.kind in ("no denial", "doubts", "doubted", "state") for role in item.roles):
            continue
        for mention in _find_scope(sentence, item):
            _make_absent(mention)
    for item, _ in sentence.of_kind("denied"):
        target = sentence.before(item.start)
        behind = _read_place_of_denial(sentence, item)
        if ON_EARLIER.match(behind):
            continue  # "opacity, not visualized on prior": so it is there now
        if ON_ONE_VIEW.fullmatch(behind):
            # "A nodule, not seen on the lateral view" is there; of "effusion is not seen on the lateral view" nothing
            # is known.
            if target is not None and sentence.words[item.start - 1].text != ",":
                target.past = True
            continue
        for mention in sentence.find_listed_before(target) if target else _find_scope(sentence, item):
            _make_absent(mention)


def _read_place_of_denial(sentence: SentenceText, cue: Item) -> str:
    """The words behind "not seen" that may say on which images: "on the prior study"."""
    texts = [word.text for word in sentence.words[cue.end : cue.end + REACH_OF_STUDY]]
    return " ".join(takewhile(lambda word: word not in (",", ";", ".", "and", "but"), texts))


def _make_absent(mention: Mention) -> None:
    if mention.how == "state" and mention.certainty == "absent":
        mention.past = True  # "not clear": no statement on any one finding
    mention.certainty, mention.denied = "absent", True


def _find_scope(sentence: SentenceText, cue: Item) -> list[Mention]:
    """Mentions behind a cue that it applies to."""
    found: list[Mention] = []
    finished = False  # whether the verb behind a list has been read: "no effusion is seen, ..."
    position, clause = cue.end, sentence.clauses[cue.start]
    while position < len(sentence.words) and sentence.clauses[position] == clause:
        here = sentence.mentions_at.get(position)
        if here:
            if found and here[0].how == "state" and here[0].certainty == "absent":
                break  # "no effusion, normal heart"
            found += here
            position = max([position + 1, *(mention.end for mention in here if mention.how != "state")])
            continue
        if _takes_over(sentence, position, cue) or (
            found and _ends_scope(sentence, position, finished=finished)
        ):
            break
        finished |= bool(found) and sentence.words[position].text in sentence.lexicon.verbs
        position += 1
    return found


def _takes_over(sentence: SentenceText, position: int, cue: Item) -> bool:
    """Whether another cue of the same kind starts here and takes over."""
    item = sentence.item_at.get(position)
    if item is None:
        return False
    kinds = {role.kind for role in cue.roles}
    return any(role.kind in kinds and role.kind in ("denial", "doubts") for role in item.roles)


def _ends_scope(sentence: SentenceText, position: int, *, finished: bool) -> bool:
    """Whether the scope of a cue that applies to some mention ends at a word."""
    words, verbs = sentence.words, sentence.lexicon.verbs
    word = words[position].text
    if word in NEW_PHRASE or (finished and word in AFTER_LISTS):
        return True
    if word == "," and position > sentence.last_or(position) and _starts_anew(sentence, position + 1):
        return True
    item = sentence.item_at.get(position)
    if item is None:
        return False
    kinds = {role.kind for role in item.roles}
    if "relation" in kinds and not kinds & {"doubt", "doubts"}:
        return True
    # "No effusion, the heart is enlarged": an organ with a verb is a new subject.
    return "organ" in kinds and item.end < len(words) and words[item.end].text in verbs


def _starts_anew(sentence: SentenceText, index: int) -> bool:
    """Whether a grade or a "stable" opens a new phrase behind a comma: "no effusion, mild cardiomegaly"."""
    if index >= len(sentence.words):
        return False
    roles = sentence.lexicon.phrases.roles(sentence.words[index].text)
    return any(role.kind == "severity" or (role.kind == "trend" and role.key != "new") for role in roles)


def apply_doubts(sentence: SentenceText) -> None:
    """Set the mentions that are hedged to uncertain."""
    for item, _ in sentence.of_kind("doubts"):
        for mention in _find_scope(sentence, item):
            _make_uncertain(mention)
    for item, _ in sentence.of_kind("doubt"):
        _doubt_noun(sentence, item)
    for item, _ in sentence.of_kind("doubted"):
        target = sentence.before(item.start)
        if target is not None:
            for mention in sentence.find_listed_before(target):
                mention.certainty = "uncertain"
        elif (target := sentence.find_described(item)) is not None:
            _make_uncertain(target)  # "There is questionable atelectasis."
    _doubt_alternatives(sentence)
    for item, _ in sentence.of_kind("same"):
        before, after = sentence.before(item.start), sentence.after(item.end)
        if before is not None and after is not None:
            after.certainty = before.certainty


def _doubt_noun(sentence: SentenceText, item: Item) -> None:
    """Hedge the next noun and its alternatives ("possible effusion"), or the one before ("effusion, probably")."""
    words, target = sentence.words, sentence.after(item.end)
    if (
        target is None
        or not sentence.is_list(item.end, target.start)
        or _has_comma(words, item.end, target.start)
    ):
        back = sentence.before(item.start)
        closed = item.end < len(words) and words[item.end].text in (".", ",", ")")
        if back is not None and (closed or words[item.end - 1].text == ","):
            _make_uncertain(back)
        return
    _make_uncertain(target)
    for other in sentence.mentions:
        if other.start >= target.end and _is_joined_by_or(sentence, target.end, other.start):
            _make_uncertain(other)


def _has_comma(words: list[Word], start: int, end: int) -> bool:
    return any(word.text == "," for word in words[start:end])


def _is_joined_by_or(sentence: SentenceText, start: int, end: int) -> bool:
    if not sentence.is_list(start, end):
        return False
    between = {word.text for word in sentence.words[start:end]}
    has_or = bool(between & {"or", "versus", "vs", "/", "than"})
    return has_or and not _is_joined_by_and(between) and len(between) <= 6


def _is_joined_by_and(between: Collection[str]) -> bool:
    """Whether words join two findings by "and"; "and/or" does not say that both are there."""
    return "and" in between and not {"/", "or"} <= set(between)


def _doubt_alternatives(sentence: SentenceText) -> None:
    """Hedge alternatives: "atelectasis versus infiltrate", "scar or atelectasis"."""
    for first, second in zip(sentence.mentions, sentence.mentions[1:], strict=False):
        if first.how != "named" or second.how != "named" or first.clause != second.clause:
            continue
        between = [word.text for word in sentence.words[first.end : second.start]]
        if _is_joined_by_and(between) or not sentence.is_list(first.end, second.start):
            continue
        if {"versus", "vs"} & set(between) or (len(between) <= 5 and "or" in between):
            _make_uncertain(first)
            _make_uncertain(second)
    _doubt_beside_unnamed(sentence)


def _doubt_beside_unnamed(sentence: SentenceText) -> None:
    """Hedge a finding whose alternative is no finding: "pneumonia versus aspiration", "artifact or nodule"."""
    others = [item for item in sentence.items if any(role.kind == "alternative" for role in item.roles)]
    for index, word in enumerate(sentence.words):
        if word.text in VERSUS:
            if not _compares_studies(sentence, index):
                _doubt_beside(sentence, index, before=True, after=True)
        elif others and word.text in ("or", "/"):
            follows = any(index < item.start <= index + 3 for item in others)
            precedes = any(index - 3 <= item.end <= index for item in others)
            _doubt_beside(sentence, index, before=follows, after=precedes)


def _compares_studies(sentence: SentenceText, index: int) -> bool:
    """Whether "versus" compares studies and not alternatives: "larger versus the earlier film"."""
    behind = [word.text for word in sentence.words[index + 1 : index + 1 + MOST_WORDS_BETWEEN]]
    return index in sentence.item_at or any(word in STUDIES or word[0].isdigit() for word in behind)


def _doubt_beside(sentence: SentenceText, index: int, *, before: bool, after: bool) -> None:
    left = sentence.before(index) if before else None
    right = sentence.after(index + 1) if after else None
    if left and index - left.end <= MOST_WORDS_BETWEEN and sentence.is_list(left.end, index):
        _make_uncertain(left)
    if right and right.start - index <= MOST_WORDS_BETWEEN and sentence.is_list(index, right.start):
        _make_uncertain(right)


def _make_uncertain(mention: Mention) -> None:
    if mention.certainty == "present":
        mention.certainty = "uncertain"


# ---- words of short answers -----------------------------------------------------------------------------------------

_DENIES: Final = frozenset({"not", "no", "neither", "nor", "without", "never", "cannot", "non"})
_COMPARES: Final = {"than": "rather", "of": "instead"}
"""Second words of "rather than" and "instead of", with the first words."""
_LIMITS: Final = frozenset({"only", "merely", "just", "simply", "doubt", "change", "changes"})
"""Words that turn a denial into none: "not only", "no doubt"."""
_ENDS: Final = word_set(". ; : ! ? ( ) | but however whereas while although though yet and it there")
"""Words at which the reach of a denial ends."""
_JOINS: Final = frozenset({"or", "nor"})
_CONTRACTION: Final = re.compile(r"n['\u2019]t\b", re.IGNORECASE)


def expand_contractions(text: str) -> str:
    """Write "isn't" as two words, so that the denial is a word of its own."""
    return _CONTRACTION.sub(" not", text)


def find_denied_words(words: Sequence[Word]) -> list[bool]:
    """For each word, whether a denial before it reaches it; the reach ends with the clause."""
    reached: list[bool] = []
    denied = False
    for place, (word, _, _) in enumerate(words):
        follows = words[place + 1].text if place + 1 < len(words) else ""
        if word in _ENDS or (word == "," and follows not in _JOINS):
            denied = False
        elif word in _DENIES:
            denied = follows not in _LIMITS
        elif word in _COMPARES and place and words[place - 1].text == _COMPARES[word]:
            denied = True
        reached.append(denied)
    return reached
