"""Defects of records that are used: how often each occurs, and in which row of which file."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeAlias

from carina.sources._tables import Row


class RecordPlace(NamedTuple):
    """A record in a file."""

    file: str = ""
    """Path of the file; empty where the reader does not say."""
    number: int = 0
    """Number of the row as the file counts them: the header of a table is row 1, the first record of a JSON file is 1.
    0 where the reader does not say."""


DefectPlaces: TypeAlias = Mapping[str, Mapping[RecordPlace, int]]
"""By defect, how often it occurs in each place."""


class DefectCounts(Counter[str]):
    """How often each defect occurs; every count is noted with the record that is being read.

    Args:
        place: The record that is being read.

    Example:
        >>> found = DefectCounts(RecordPlace("boxes.csv", 2))
        >>> found["region"] += 1
        >>> found.place = RecordPlace("boxes.csv", 3)
        >>> found["region"] += 2
        >>> found["region"], {place.number: times for place, times in found.places["region"].items()}
        (3, {2: 1, 3: 2})
    """

    def __init__(self, place: RecordPlace | None = None) -> None:
        super().__init__()
        self.place = place or RecordPlace()
        self.places: dict[str, dict[RecordPlace, int]] = {}

    def __setitem__(self, defect: str, times: int) -> None:
        more = times - self.get(defect, 0)
        super().__setitem__(defect, times)
        if more > 0:
            own = self.places.setdefault(defect, {})
            own[self.place] = own.get(self.place, 0) + more

    def read_row(self, row: Row) -> None:
        """Say that what is counted from now on is wrong in this row."""
        self.place = RecordPlace(row.file, row.number)


def add_defects(defects: Counter[str], more: Mapping[str, int]) -> None:
    """Add counts to others, with their places where both have them."""
    if not isinstance(defects, DefectCounts) or not isinstance(more, DefectCounts):
        for defect, times in more.items():  # not `update`, which may leave out the places
            defects[defect] += times
        return
    here = defects.place
    for defect, place, times in list_places(more, more.places, here):
        defects.place = place
        defects[defect] += times
    defects.place = here


def list_places(
    defects: Mapping[str, int], places: DefectPlaces, record: RecordPlace
) -> Iterator[tuple[str, RecordPlace, int]]:
    """Each defect, where it stands and how often; what has no place of its own stands where the record does."""
    for defect, times in defects.items():
        known = places.get(defect, {})
        for place, own in known.items():
            yield defect, place if any(place) else record, own
        rest = times - sum(known.values())
        if rest > 0:
            yield defect, record, rest
