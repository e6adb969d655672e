"""Conditions on the records of a set, evaluated on a few columns before any other column is read."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from carina.store.columns import LIST, Row

Choice = str | Collection[str]
"""One value, or several values of which any is accepted."""


class Column(NamedTuple):
    """A leaf column that a condition may name: of the record itself, or of the items of one of its lists."""

    leaf: str
    words: tuple[str, ...] = ()
    """All values that it can hold, where these are few."""


@dataclass(frozen=True)
class Filter:
    """Conditions that a record must all meet; several conditions on one list must be met by one item."""

    wanted: tuple[tuple[str, str, frozenset[str]], ...]
    """Name, leaf column and accepted values of each condition."""

    @classmethod
    def of(cls, columns: Mapping[str, Column], given: Mapping[str, Choice | None]) -> "Filter":
        """Conditions from arguments by name, where None accepts any value.

        Raises:
            ValueError: A value that the column can never hold.
        """
        wanted = []
        for name, value in given.items():
            if value is None:
                continue
            leaf, words = columns[name]
            chosen = frozenset([value] if isinstance(value, str) else value)
            for choice in sorted(chosen):
                if words and choice not in words:
                    raise ValueError(f"{name}: unknown value {choice!r}, expected one of {', '.join(words)}")
            wanted.append((name, leaf, chosen))
        return cls(tuple(wanted))

    def leaves(self) -> set[str]:
        """Leaf columns that the conditions read."""
        return {leaf for _, leaf, _ in self.wanted}

    def matches(self, row: Row) -> bool:
        """Whether a row meets all conditions."""
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
