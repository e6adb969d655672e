"""The index of conversations: a list that can be filtered, and cards of the first of them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from carina.cases.draw import colour_of
from carina.cases.model import Case
from carina.cases.protocol import stage_title
from carina.pages.benchmark_index import CaseCard
from carina.pages.case_facts import questioned_findings
from carina.pages.frame import render_page
from carina.studies import SourceInfo

LISTED: Final = 2000
"""Largest number of conversations in the list: more would make the page too large for a phone."""
_PRIOR: Final = "prior"
_FOLLOW_UP: Final = "followup"


@dataclass(frozen=True, kw_only=True)
class ConversationEntry:
    """One conversation of the list."""

    id: str
    protocol: str
    page: str | None
    """File name of its page, where one was written."""
    turns: int
    stages: tuple[int, ...]
    current: int
    reference: int
    """Numbers of images."""
    has_prior: bool
    has_follow_up: bool
    is_shuffled: bool
    findings: tuple[str, ...]
    """Findings and devices that questions are about."""
    tokens: str = ""
    """Tokens of the filters that keep it."""


@dataclass(frozen=True, kw_only=True)
class Filter:
    """A button that keeps the conversations of one kind."""

    token: str
    text: str
    count: int
    colour: str | None = None


@dataclass(frozen=True, kw_only=True)
class FilterGroup:
    """Buttons of one kind."""

    title: str
    members: tuple[Filter, ...]


def list_conversations(cases: Iterable[Case], cards: Sequence[CaseCard]) -> tuple[ConversationEntry, ...]:
    """List the first conversations of a benchmark.

    Args:
        cases: Conversations of the benchmark.
        cards: Cards of the conversations that have a page.

    Returns:
        Entries for `render_conversation_index`, with links to the pages of those that have a card.

    Example:
        >>> from carina import open_benchmark
        >>> [entry.turns for entry in list_conversations(open_benchmark("conversations"), [])][:3]
        [7, 9, 6]
    """
    pages = {card.id: card.page for card in cards}
    listed = islice(cases, max(LISTED, len(cards)))
    return tuple(_entry(case, pages.get(case.id)) for case in listed)


def render_conversation_index(
    entries: Sequence[ConversationEntry],
    cards: Sequence[CaseCard],
    *,
    title: str,
    total: int,
    sources: Sequence[SourceInfo] = (),
) -> str:
    """Render the index of conversations as HTML.

    Args:
        entries: Entries of conversations, as `list_conversations` returns them.
        cards: Cards of the conversations that have a page.
        title: Heading of the page.
        total: Number of conversations in the benchmark.
        sources: Sources of the images.

    Returns:
        A whole page.

    Example:
        >>> from carina import open_benchmark
        >>> entries = list_conversations(open_benchmark("conversations"), [])
        >>> html = render_conversation_index(entries, [], title="My conversations", total=len(entries))
        >>> "<title>My conversations · Carina</title>" in html
        True
    """
    counts = Counter(name for entry in entries for name in entry.findings)
    names = [name for name, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    tokens = {name: f"f{place}" for place, name in enumerate(names)}
    listed = [_with_tokens(entry, tokens) for entry in entries]
    by_id = {entry.id: entry for entry in listed}
    protocols = sorted({entry.protocol for entry in listed})
    values: dict[str, object] = {
        "title": title,
        "total": total,
        "sources": sources,
        "entries": listed,
        "cards": [(card, by_id[card.id]) for card in cards],
        "turns": sum(entry.turns for entry in listed),
        "protocols": protocols,
        "filters": _filters(listed, protocols, counts, tokens),
        "has_shuffled": any(entry.is_shuffled for entry in listed),
    }
    return render_page(
        "conversation_index.html.j2",
        values,
        title=title,
        styles=("index.css", "benchmark_index.css", "conversation_index.css"),
        scripts=("conversation_index.js",),
    )


def _entry(case: Case, page: str | None) -> ConversationEntry:
    roles = [image.role for image in case.images]
    return ConversationEntry(
        id=case.id,
        protocol=case.protocol,
        page=page,
        turns=len(case.steps),
        stages=tuple(sorted({step.stage for step in case.steps})),
        current=roles.count("current"),
        reference=roles.count("reference"),
        has_prior=case.reference_study is not None,
        has_follow_up=case.later_study is not None,
        is_shuffled=case.order == "shuffled",
        findings=questioned_findings(case),
    )


def _with_tokens(entry: ConversationEntry, tokens: dict[str, str]) -> ConversationEntry:
    every = [f"s{stage}" for stage in entry.stages] + [tokens[name] for name in entry.findings]
    every += [_PRIOR] * entry.has_prior + [_FOLLOW_UP] * entry.has_follow_up
    return replace(entry, tokens=" ".join(every))


def _filters(
    entries: Sequence[ConversationEntry],
    protocols: Sequence[str],
    counts: Counter[str],
    tokens: dict[str, str],
) -> tuple[FilterGroup, ...]:
    stages = Counter(stage for entry in entries for stage in entry.stages)
    # Stages have titles only where all conversations follow one protocol.
    protocol = protocols[0] if len(protocols) == 1 else ""
    groups = (
        FilterGroup(
            title="Stage",
            members=tuple(
                Filter(token=f"s{stage}", text=_stage_text(protocol, stage), count=count)
                for stage, count in sorted(stages.items())
            ),
        ),
        FilterGroup(title="Other studies", members=_neighbour_filters(entries)),
        FilterGroup(
            title="Findings",
            members=tuple(
                Filter(token=token, text=name, count=counts[name], colour=colour_of(name).hex)
                for name, token in tokens.items()
            ),
        ),
    )
    return tuple(group for group in groups if group.members)


def _neighbour_filters(entries: Sequence[ConversationEntry]) -> tuple[Filter, ...]:
    filters = (
        Filter(token=_PRIOR, text="with a prior study", count=sum(entry.has_prior for entry in entries)),
        Filter(
            token=_FOLLOW_UP,
            text="with a follow-up study",
            count=sum(entry.has_follow_up for entry in entries),
        ),
    )
    return tuple(item for item in filters if item.count)


def _stage_text(protocol: str, stage: int) -> str:
    title = stage_title(protocol, stage)
    return title if title.endswith(str(stage)) else f"{stage} {title}"
