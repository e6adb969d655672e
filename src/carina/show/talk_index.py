"""The index of conversations: what each asks about, in a list that can be narrowed, and pictures of the first."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from carina.cases.model import Case
from carina.draw import colour_of
from carina.show.bench_cards import CaseCard
from carina.show.case_source import CaseSet
from carina.show.case_stages import stage_title

LISTED: Final = 2000
"""Conversations in the list: more of them would make a page that no phone opens."""
_ASKED: Final = ("finding", "device")
"""What the target of a question may be that is worth a filter; views and regions are in every conversation."""
_EARLIER: Final = "earlier"
_LATER: Final = "later"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One conversation of the list."""

    id: str
    page: str | None
    """File name of its page, where one was written."""
    turns: int
    stages: tuple[int, ...]
    current: int
    reference: int
    """Numbers of images."""
    earlier: bool
    later: bool
    shuffled: bool
    asked: tuple[str, ...]
    """Findings and devices that questions name or are about."""
    tokens: str
    """What the filters find it by."""


@dataclass(frozen=True, kw_only=True)
class Filter:
    """A button that leaves the conversations with something."""

    token: str
    text: str
    count: int
    colour: str | None = None


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Buttons of one kind."""

    title: str
    members: tuple[Filter, ...]


def talk_values(cases: CaseSet, cards: Sequence[CaseCard]) -> dict[str, object]:
    """What the page of the index is filled with."""
    pages = {card.case.id: card.page for card in cards}
    listed = list(islice(cases, max(LISTED, len(cards))))
    counts = Counter(name for case in listed for name in asked_about(case))
    names = [name for name, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    tokens = {name: f"f{place}" for place, name in enumerate(names)}
    entries = [_entry(case, pages.get(case.id), tokens) for case in listed]
    by_id = {entry.id: entry for entry in entries}
    protocols = sorted({case.protocol for case in listed})
    return {
        "entries": entries,
        "talks": [by_id[card.case.id] for card in cards],
        "turns": sum(entry.turns for entry in entries),
        "protocols": protocols,
        "filters": _filters(entries, protocols, counts, tokens),
        "shuffled": any(entry.shuffled for entry in entries),
    }


def asked_about(case: Case) -> tuple[str, ...]:
    """Findings and devices that the questions are about, each once, in the order in which they come up."""
    facts = (fact for step in case.steps for fact in step.facts)
    names = (fact.text for fact in facts if fact.name == "target" and fact.about in _ASKED and fact.text)
    return tuple(dict.fromkeys(names))


def _entry(case: Case, page: str | None, tokens: dict[str, str]) -> Entry:
    stages = tuple(sorted({step.stage for step in case.steps}))
    asked = asked_about(case)
    roles = [image.role for image in case.images]
    marks = [f"s{stage}" for stage in stages] + [tokens[name] for name in asked]
    marks += [_EARLIER] * bool(case.reference_study) + [_LATER] * bool(case.later_study)
    return Entry(
        id=case.id,
        page=page,
        turns=len(case.steps),
        stages=stages,
        current=roles.count("current"),
        reference=roles.count("reference"),
        earlier=case.reference_study is not None,
        later=case.later_study is not None,
        shuffled=case.order == "shuffled",
        asked=asked,
        tokens=" ".join(marks),
    )


def _filters(
    entries: Sequence[Entry], protocols: Sequence[str], counts: Counter[str], tokens: dict[str, str]
) -> tuple[Filters, ...]:
    stages = Counter(stage for entry in entries for stage in entry.stages)
    # Stages have names of their own only where all conversations follow one protocol.
    protocol = protocols[0] if len(protocols) == 1 else ""
    groups = (
        Filters(
            title="Stage",
            members=tuple(
                Filter(token=f"s{stage}", text=_numbered(protocol, stage), count=count)
                for stage, count in sorted(stages.items())
            ),
        ),
        Filters(title="Other studies", members=_present(entries)),
        Filters(
            title="Asked about",
            members=tuple(
                Filter(token=token, text=name, count=counts[name], colour=colour_of(name).hex)
                for name, token in tokens.items()
            ),
        ),
    )
    return tuple(group for group in groups if group.members)


def _present(entries: Iterable[Entry]) -> tuple[Filter, ...]:
    held = list(entries)
    made = (
        Filter(
            token=_EARLIER, text="compared with an earlier one", count=sum(entry.earlier for entry in held)
        ),
        Filter(token=_LATER, text="followed by a later one", count=sum(entry.later for entry in held)),
    )
    return tuple(item for item in made if item.count)


def _numbered(protocol: str, stage: int) -> str:
    title = stage_title(protocol, stage)
    return title if title.endswith(str(stage)) else f"{stage} {title}"
