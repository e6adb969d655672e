"""Sources: where studies can come from.

A provider exposes a constant `SOURCE` beside its reader; the command line gathers them. This package imports
no provider, so a provider may live in any package to the right (the phantom does).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from carina.store import SourceInfo


@dataclass(frozen=True, kw_only=True)
class Source:
    """What `carina sources` tells of one source."""

    name: str
    """As typed on the command line."""
    title: str
    needs: str
    """What must lie on disk, in one sentence."""
    licence: str
    truth: tuple[str, ...]
    """Kinds of truth it carries: "boxes", "masks", "report"."""
    url: str | None = None

    def info(self) -> SourceInfo:
        """As a manifest records it."""
        return SourceInfo(name=self.name, licence=self.licence, url=self.url)


def catalogue(sources: Iterable[Source]) -> dict[str, Source]:
    """Sources by name, in order of name."""
    listed = sorted(sources, key=lambda source: source.name)
    by_name = {source.name: source for source in listed}
    if len(by_name) < len(listed):
        raise ValueError(f"two sources share a name: {', '.join(source.name for source in listed)}")
    return by_name
