"""Sentences of a report that speak of what the images at hand do not show.

A report may compare with an earlier study ("stable cardiomegaly", "no change since the prior radiograph"), describe
another view ("on the lateral view"), or quote another examination ("seen on CT"). Who sees the images of one study
cannot say the same, so such a sentence is no key of a question about them.
"""

import re
from collections.abc import Collection
from functools import lru_cache
from typing import Final, Literal, NamedTuple, get_args

from carina.reports.lexicon import lexicon
from carina.reports.phrases import Item, Word, split_words, word_set
from carina.reports.read import DATE
from carina.studies.vocabulary import View

Unseen = Literal["an earlier study", "another examination", "a view that is not shown"]
"""What a sentence speaks of although the images do not show it."""
UNSEEN: Final[tuple[Unseen, ...]] = get_args(Unseen)

_OF_ONE_IMAGE: Final = word_set(
    "increased increase decreased decrease diminished reduced better progressive enlargement more less larger smaller "
    "greater bigger worse residual the of same similar static equal comparable different appearance placement insertion"
)
"""First words of phrases that say of one image, too, how something looks: "increased markings". They count as a
comparison only where the sentence is known to state a change."""
_CHANGE: Final = frozenset({"trend", "gone"})
_NONE_THERE: Final = re.compile(
    r"\b(?:no|without|without an?|in the absence of|lack of) (?:\w+ )?(?:prior|previous|comparison|old|earlier)\b"
    r"|\b(?:prior|previous|comparison|old|earlier)\b.{0,40}\bnot available\b",
    re.IGNORECASE,
)
"""Says that there is no earlier study to compare with."""
_EARLIER: Final = re.compile(
    r"\b(?:prior|previous|earlier|preceding|comparison) (?:\w+ )?"
    r"(?:stud|exam|film|radiogra|image|imaging|x-?ray|report)"
    r"|\b(?:previously|earlier) (?:seen|noted|described|identified|reported|visuali[sz]ed|demonstrated)\b"
    r"|\b(?:on|from|since|than) (?:the )?priors?\s*(?:[.,;)]|$)",
    re.IGNORECASE,
)
"""Names an earlier study, also within a phrase of the lexicon: "similar to the prior study"."""
_COURSE: Final = re.compile(
    r"\b(?:again|interval|interim|now|persistently|recurrent|continues? to)\b"
    r"|\b(?:in|de)creased? in (?:\w+ )?(?:size|number|extent|prominence|conspicuity|volume)\b"
    r"|^\W*(?:(?:slightly|mildly|markedly|minimally) )?(?:increased|decreased|improved|worsened)\W*$",
    re.IGNORECASE,
)
"""Words of a course, which no single image shows, whatever they stand beside: "interval pacemaker placed"."""
_OTHER: Final = re.compile(
    r"\b(?:on|by|from|in|with|to|of|per) (?:\w+ ){0,4}?"
    r"(?:ct|cta|mri|mr|pet|ultrasound|sonogra\w+|mammogra\w+|echocardiogra\w+|angiogra\w+|scan|tomogra\w+)\b",
    re.IGNORECASE,
)
_VIEW: Final = re.compile(
    r"\b(lateral|frontal|pa|ap|oblique|decubitus|lordotic)\b(?: and (lateral|frontal|oblique))?"
    r"(?: (?:chest|upright|supine))? (?:view|film|radiograph|image|projection|exam(?:ination)?)s?\b"
    r"|\b(?:on|in) (?:the )?(lateral|frontal|oblique|decubitus)\b(?=[\s.,;)]*(?:$|[.,;)]))",
    re.IGNORECASE,
)
_VIEW_WORD: Final = re.compile(r"\b(lateral|frontal|pa|ap)\b", re.IGNORECASE)
_FRONTAL: Final = frozenset({"pa", "ap", "frontal"})
_NAMES: Final[dict[View, str]] = {"PA": "frontal", "AP": "frontal"}
"""What sentences call the views."""


def find_unseen(
    sentence: str, *, views: Collection[View], has_prior: bool, states_change: bool = False
) -> Unseen | None:
    """Find out whether a sentence speaks of what is not on the images at hand.

    Args:
        sentence: One sentence of a report.
        views: Views of the images that are shown.
        has_prior: Whether the study with which the report compares is shown as well.
        states_change: Whether the sentence is known to state a change of a finding, such as by its statements; then
            words count that otherwise only say how something looks ("increased").

    Returns:
        What it speaks of; None where the images may show everything that it says. What a sentence advises is no
        statement about images.

    Example:
        >>> find_unseen("Stable cardiomegaly.", views=("PA",), has_prior=False)
        'an earlier study'
        >>> find_unseen("Stable cardiomegaly.", views=("PA",), has_prior=True)
        >>> find_unseen("The nodule is only seen on the lateral view.", views=("PA",), has_prior=False)
        'a view that is not shown'
    """
    found = _read(sentence)
    if found.advises and not states_change:
        return None
    if not has_prior and (found.compares or (states_change and found.changes)):
        return "an earlier study"
    if found.examination:
        return "another examination"
    if found.views and not found.views <= {_NAMES.get(view, view) for view in views}:
        return "a view that is not shown"
    return None


def is_seen_elsewhere(sentence: str, *, views: Collection[View]) -> bool:
    """Whether what a sentence states was seen on another view or in another examination, and perhaps only there.

    Who compares with an earlier study has looked at the images as well, and so has who names a view that is shown.

    Args:
        sentence: One sentence of a report.
        views: Views of the images that are shown.

    Example:
        >>> is_seen_elsewhere("There is a nodule on the lateral view.", views=("PA",))
        True
        >>> is_seen_elsewhere("PA and lateral views show a nodule.", views=("PA",))
        False
    """
    if not (_VIEW.search(sentence) or _OTHER.search(sentence)):
        return False  # most sentences: the rest takes many times as long
    found = _read(sentence)
    if found.advises:
        return False
    if found.views:
        # "Frontal (on two cassettes) and lateral views" are both.
        words = {word.lower() for word in _VIEW_WORD.findall(sentence)}
        named = found.views | {"frontal" if word in _FRONTAL else word for word in words}
        shown = {_NAMES.get(view, view) for view in views}
        return named.isdisjoint(shown) and not ("unknown" in shown and named >= {"frontal", "lateral"})
    return found.examination and not (found.compares or found.changes)


class _Spoken(NamedTuple):
    """What a sentence speaks of, apart from the images at hand."""

    compares: bool
    """Whether it compares with an earlier study, whatever else is known of it."""
    changes: bool
    """Whether it has any word of change."""
    examination: bool
    views: frozenset[str]
    """Views that it names: "frontal", "lateral", "oblique", "decubitus", "lordotic"."""
    advises: bool


@lru_cache(maxsize=16384)
def _read(sentence: str) -> _Spoken:
    words = split_words(sentence)
    items = lexicon().phrases.find(words)
    kinds = {role.kind for item in items for role in item.roles}
    named = {view.lower() for match in _VIEW.finditer(sentence) for view in match.groups() if view}
    return _Spoken(
        compares=_compares(sentence, words, items),
        changes=not _CHANGE.isdisjoint(kinds),
        examination=_OTHER.search(sentence) is not None,
        views=frozenset({"frontal" if view in _FRONTAL else view for view in named}),
        advises="advice" in kinds and ("action" in kinds or "comparison" in sentence.lower()),
    )


def _compares(sentence: str, words: list[Word], items: list[Item]) -> bool:
    if _NONE_THERE.search(sentence):
        return False
    if DATE.search(sentence) or _EARLIER.search(sentence) or _COURSE.search(sentence):
        return True
    return any(
        role.kind == "prior" or (role.kind in _CHANGE and words[item.start].text not in _OF_ONE_IMAGE)
        for item in items
        for role in item.roles
    )
