"""A bounded sample of numbers, drawn by hashes of names: the same for the same cases in the same order."""

from array import array

from carina.cases.audit.learning import hashed


class Reservoir:
    """Keeps all rows of numbers up to so many; of more, a sample in which each is kept with the same chance."""

    def __init__(self, most: int, width: int = 1) -> None:
        self._most = most
        self._width = width
        self._seen = 0
        self.values = array("d")
        """Row after row."""

    def add(self, name: str, *row: float) -> None:
        """A row of so many numbers; the name is of what it was measured on."""
        self._seen += 1
        place = len(self.values) // self._width
        if place >= self._most:
            place = hashed(name) % self._seen
        if place < self._most:
            start = place * self._width
            self.values[start : start + self._width] = array("d", row)
