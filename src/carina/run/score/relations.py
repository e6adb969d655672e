"""How things go together, in the words of an answer: which causes, accompanies or suggests which.

A phrase relates the last thing named before it to the first one behind it within a sentence; some relate the two
before them ("coexist"), some the two behind them ("the arrow runs from"). Phrases are spelled as in the reader's
lexicon.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from typing import Final, NamedTuple

from carina.run.score.denial import denied, spelled_out
from carina.trek.reports.lexicon import lexicon
from carina.trek.reports.phrases import Phrases, Role, Word, words

Link = tuple[str, str, str]
"""What, how, and what else; what accompanies has no direction, and its names stand in order."""
MUTUAL: Final = "accompanies"

_TABLE: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    # (kind, where its ends stand): "first" is told before the phrase and "second" behind it.
    ("causes", "first second"): (
        "cause/causes/caused/causing",
        "(the/a) (likely/probable/main) cause of",
        "lead/leads/led/leading to",
        "account/accounts/accounted/accounting for",
        "responsible for",
        "give/gives/given/gave/giving rise to",
        "bring/brings/brought/bringing about",
        "produce/produces/produced/producing",
        "result/results/resulted/resulting in",
        "explain/explains/explained/explaining",
        "as the starting point",
        "as a result of it",
        "with resulting/resultant/consequent/secondary",
        "underlies/underlie",
        "responsible for",
        "triggers/triggered/induces/induced",
    ),
    ("causes", "second first"): (
        "due to",
        "secondary to",
        "caused by",
        "attributed/attributable to",
        "result/results/resulting/resulted from",
        "because of",
        "owing to",
        "(a/the) consequence/result/complication/sequela/effect/product of",
        "as a result of",
        "explained by",
        "produced by",
        "brought about by",
        "arises/arise/arising/arisen/stems/stem/follows/follow from",
        "reactive/consequent to",
        "no explanation other than",
    ),
    ("causes", "both before"): ("follows/follow from it",),
    ("causes", "both behind"): ("runs/run/goes/points from", "starting point is"),
    (MUTUAL, "first second"): (
        "accompany/accompanies/accompanying",
        "accompanied by",
        "associated with",
        "in association with",
        "together with",
        "along with",
        "alongside",
        "in company with",
        "(goes/go/going) hand in hand with",
        "in combination/conjunction with",
        "combined with",
        "coexist/coexists/coexisting/occurs/occur/goes/go with",
        "(a) companion of",
        "with associated/accompanying/concomitant/concurrent/coexisting",
    ),
    (MUTUAL, "both before"): (
        "coexist/co_exist",
        "coexistence",
        "go/goes/going/belong together",
        "occur/occurs/appear/appears/seen/found/present together",
        "(are/is) associated",
        "association",
        "same picture",
        "parts of one picture",
        "at the same time",
        "side by side",
        "in combination",
        "hand in hand",
        "accompany each other",
    ),
    ("suggests", "first second"): (
        "suggest/suggests/suggesting",
        "suggestive of",
        "point/points/pointing to/toward/towards",
        "raise/raises/raising (the) suspicion/question/possibility/thought of",
        "in keeping/line with",
        "consistent/compatible with",
        "may/might/could (well) reflect/represent/indicate",
        "(a) sign in favour/favor of",
        "sign of",
        "make/makes one think of",
        "makes/make",
        "lend/lends support to",
        "support/supports",
        "speak/speaks for",
        "indicate/indicates/indicative of",
        "infers/infer",
        "in favour/favor of",
    ),
    ("suggests", "second first"): ("suggested by", "(a) likely reading of", "inferred from"),
}
_SENTENCE: Final = re.compile(r"[.!?]\s+|\n+")


class _Named(NamedTuple):
    name: str
    start: int
    end: int


@cache
def _phrases() -> Phrases:
    tree = Phrases()
    for (kind, ends), spellings in _TABLE.items():
        tree.add_all(spellings, Role(kind, ends))
        if (kind, ends) == (MUTUAL, "both before"):
            # "They coexist", but "one coexists with the other".
            tree.add_all([f"{spelling} with" for spelling in spellings], Role(kind, "first second"))
    return tree


def links_in(text: str, names: Collection[str], pair: tuple[str, str] | None = None) -> frozenset[Link]:
    """What a text relates among the things with these names; of a given pair it need not name both.

    What causes or suggests something also accompanies it, which is not counted beside it.
    """
    found: set[Link] = set()
    for sentence in _SENTENCE.split(spelled_out(text)):
        found.update(_links(words(sentence), names, pair))
    directed = {frozenset(link[::2]) for link in found if link[1] != MUTUAL}
    return frozenset(link for link in found if link[1] != MUTUAL or frozenset(link[::2]) not in directed)


def link(subject: str, kind: str, other: str) -> Link:
    """A link as links are compared."""
    one, two = sorted((subject, other)) if kind == MUTUAL else (subject, other)
    return one, kind, two


def _links(signs: list[Word], names: Collection[str], pair: tuple[str, str] | None) -> Iterator[Link]:
    phrases = _phrases().find(signs)
    if not phrases:
        return
    named = [
        _Named(role.key, item.start, item.end)
        for item in lexicon().phrases.find(signs)
        for role in item.roles
        if role.kind in ("finding", "device") and role.key in names
    ]
    reach = denied(signs)
    for item in phrases:
        if reach[item.start] and signs[item.start].text != "no":
            continue
        before = [thing.name for thing in named if thing.end <= item.start]
        behind = [thing.name for thing in named if thing.start >= item.end]
        kind, ends = item.roles[0]
        two = _ends(ends, before, behind, pair if kind == MUTUAL else None)
        if two is not None and two[0] != two[1]:
            yield link(two[0], kind, two[1])


def _ends(
    ends: str, before: Sequence[str], behind: Sequence[str], pair: tuple[str, str] | None
) -> tuple[str, str] | None:
    """Subject and object of a phrase, from what is named around it."""
    if ends == "both behind":
        return _apart(behind)
    if ends == "both before":
        last = _apart(before[::-1])
        return (last[1], last[0]) if last else pair
    if before and behind:
        return (before[-1], behind[0]) if ends == "first second" else (behind[0], before[-1])
    # "Accompanied by a pleural effusion", of a pair.
    return pair if before or behind else None


def _apart(names: Sequence[str]) -> tuple[str, str] | None:
    """The first of some names, and the next that is another."""
    return next(((names[0], name) for name in names if name != names[0]), None)
