"""Relations between two findings or devices of one sentence, by the words that stand between them."""

from collections.abc import Iterator
from typing import NamedTuple, cast

from carina.studies.vocabulary import RelationKind
from carina.trek.reports.observe import Read
from carina.trek.reports.phrases import Item
from carina.trek.reports.sentence import Mention

FAR = 14
"""Words between a mention and the word that relates it."""


class Related(NamedTuple):
    """Numbers of two mentions of a sentence, and how the first relates to the second."""

    subject: int
    kind: RelationKind
    object: int


def relations_in(read: Read) -> Iterator[Related]:
    """What a sentence relates; nothing in advice, and nothing that is not there."""
    if read.advice or len(read.mentions) < 2:
        return
    for item, role in read.text.of_kind("relation"):
        kind, _, first = role.key.rpartition(" ")
        before = _last_before(read, item)
        if before is None:
            continue
        for after in _after(read, item):
            pair = (before, after) if first == "first" else (after, before)
            if read.mentions[before].name != read.mentions[after].name:
                yield Related(pair[0], cast(RelationKind, kind), pair[1])


def _there(mention: Mention) -> bool:
    return mention.certainty != "absent" and not mention.past and mention.how != "panel"


def _last_before(read: Read, item: Item) -> int | None:
    found = [n for n, mention in enumerate(read.mentions) if mention.end <= item.start]
    if not found:
        return None
    last = found[-1]
    mention = read.mentions[last]
    near = item.start - mention.end <= FAR and mention.clause == read.text.clauses[item.start]
    return last if near and _there(mention) else None


def _after(read: Read, item: Item) -> list[int]:
    """The first mention behind the words, and the alternatives listed with it."""
    behind = [n for n, mention in enumerate(read.mentions) if mention.start >= item.end]
    if not behind or read.mentions[behind[0]].start - item.end > FAR:
        return []
    others = [other for other, _ in read.text.of_kind("relation") if other.start >= item.end]
    if others and others[0].start < read.mentions[behind[0]].start and not _extends(item, others[0]):
        return []
    found: list[int] = []
    for number in behind:
        mention = read.mentions[number]
        if found:
            last = read.mentions[found[-1]]
            between = {word.text for word in read.text.words[last.end : mention.start]}
            if not read.text.listed(last.end, mention.start) or not between & {
                "or",
                "versus",
                "vs",
                "and",
                ",",
            }:
                break
        if not _there(mention) or mention.clause != read.text.clauses[item.start]:
            break
        found.append(number)
    return found[:1] if "and" in _words(read, found) else found


def _extends(item: Item, other: Item) -> bool:
    """ "Which is possibly due to": words that follow at once are one phrase."""
    return other.start - item.end <= 1


def _words(read: Read, found: list[int]) -> set[str]:
    if len(found) < 2:
        return set()
    start, end = read.mentions[found[0]].end, read.mentions[found[-1]].start
    return {word.text for word in read.text.words[start:end]}
