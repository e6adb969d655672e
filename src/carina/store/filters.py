"""Conditions on a set's records, decided from a few columns before any other is read."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from carina.store.columns import LIST, Row

Choice = str | Collection[str]
"""One value, or several of which any will do."""


class Column(NamedTuple):
    """A leaf column that can be asked for: of the record itself, or of the items of one of its lists."""

    leaf: str
    words: tuple[str, ...] = ()
    """All it can hold, where these are few."""


@dataclass(frozen=True)
class Filter:
    """Conditions that a record meets all of; several on one list, in a single item of it."""

    wanted: tuple[tuple[str, str, frozenset[str]], ...]
    """Name, leaf column and the values that will do."""

    @classmethod
    def of(cls, columns: Mapping[str, Column], given: Mapping[str, Choice | None]) -> "Filter":
        """From arguments by name, of which None stands for any; `ValueError` for a value that never occurs."""
        wanted = []
        for name, value in given.items():
            if value is None:
                continue
            leaf, words = columns[name]
            chosen = frozenset([value] if isinstance(value, str) else value)
            for choice in sorted(chosen):
                if words and choice not in words:
                    raise ValueError(f"{name} is never {choice!r}, but one of {', '.join(words)}")
            wanted.append((name, leaf, chosen))
        return cls(tuple(wanted))

    def leaves(self) -> set[str]:
        """The columns that decide."""
        return {leaf for _, leaf, _ in self.wanted}

    def matches(self, row: Row) -> bool:
        of_lists: dict[str, list[tuple[str, frozenset[str]]]] = {}
        for _, leaf, chosen in self.wanted:
            column, _, inner = leaf.partition(f"{LIST}.")
            if inner:
                of_lists.setdefault(column, []).append((inner, chosen))
            elif row[column] not in chosen:
                return False
        return all(
            any(all(item[name] in chosen for name, chosen in conditions) for item in row[column])
            for column, conditions in of_lists.items()
        )

    def __str__(self) -> str:
        return ", ".join(f"{name}={sorted(chosen)}" for name, _, chosen in self.wanted)
