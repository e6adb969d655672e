"""What an answer advises, where advice is all that is asked for: "Chest CT." is enough.

Our report reader wants to be told that something is advice. Here phrases without a verb are taken as advice too, and
where none is found, whatever the answer names as an action.
"""

import re
from collections.abc import Iterator
from typing import Final

from carina.run.score.denial import denied, spelled_out
from carina.run.score.entities import said_in
from carina.trek.reports.lexicon import lexicon
from carina.trek.reports.phrases import Word, words

_FRAGMENT: Final = re.compile(r"[.;!?:]\s+|\n+")
_NEEDLESS: Final = re.compile(
    r"\b(?:not|no longer)(?: \w+)? (?:needed|necessary|indicated|required|recommended|warranted|advised|useful)\b"
    r"|\bunnecessary\b|\bno need\b",
    re.IGNORECASE,
)
_RADIOGRAPH: Final = re.compile(r"\b(?:chest )?x-?rays?\b", re.IGNORECASE)


def advised_in(text: str) -> frozenset[str]:
    """Actions that a text advises, by their keys in the reader's lexicon."""
    # The reader's phrases know X-rays by the longer name: "repeat X-ray".
    plain = _RADIOGRAPH.sub("radiograph", spelled_out(text))
    parts = [part for part in _FRAGMENT.split(plain) if part and not _NEEDLESS.search(part)]
    told = {value for _, kind, value in said_in(". ".join(parts)).attributes if kind == "recommendation"}
    signs = [words(part) for part in parts]
    verbs = lexicon().verbs
    for part in signs:
        if not any(sign.text in verbs for sign in part):
            told.update(_named(part))
    if not told:
        told.update(action for part in signs for action in _named(part))
    return frozenset(told)


def _named(signs: list[Word]) -> Iterator[str]:
    """The actions that a fragment names, as the reader would count them."""
    reach = denied(signs)
    found = {
        role.key
        for item in lexicon().phrases.find(signs)
        if not reach[item.start]
        for role in item.roles
        if role.kind == "action"
    }
    if "reposition device" in found:
        found.discard("follow-up radiograph")
    if len(found) > 1 and not any(sign.text.startswith("correlat") for sign in signs):
        found.discard("clinical correlation")
    yield from found
