"""The table of prices: list prices and rules of thumb for image tokens, from a dated file."""

import math
import re
from datetime import date
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from carina.store.documents import read_yaml
from carina.store.errors import CarinaError

TABLE: Final = Path(__file__).with_name("prices.yaml")
_VERSION: Final = re.compile(r"[-@:](\d{4}(-?\d{2}){0,2}|latest)")
"""Suffix of a dated version of a model."""

Count = Annotated[float, msgspec.Meta(ge=0)]
Size = Annotated[int, msgspec.Meta(gt=0)]


class ImageRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a provider counts the tokens of an image."""

    rule: Literal["tiles", "area", "patches"]
    fit: Size | None = None
    short: Size | None = None
    tile: Size = 1
    base: Count = 0
    each: Annotated[float, msgspec.Meta(gt=0)] = 1
    most: Size | None = None

    def tokens(self, width: int, height: int) -> int:
        """Tokens of an image of this size."""
        if self.fit is not None and max(width, height) > self.fit:
            width, height = _scale(width, height, self.fit / max(width, height))
        if self.short is not None and min(width, height) > self.short:
            width, height = _scale(width, height, self.short / min(width, height))
        if self.rule == "area":
            return math.ceil(width * height / self.each)
        squares = math.ceil(width / self.tile) * math.ceil(height / self.tile)
        if self.rule == "tiles":
            return round(self.base + self.each * squares)
        return squares if self.most is None else min(squares, self.most)


class Prices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Contents of a price table."""

    date: Annotated[str, msgspec.Meta(pattern=r"^\d{4}-(0[1-9]|1[0-2])$")]
    """Year and month."""
    answers: dict[str, Count]
    pictures: dict[str, ImageRule]
    prices: dict[str, tuple[Count, Count]]
    own: tuple[str, ...] = ()
    reasoning: dict[str, Count] = {}

    def price(self, model: str) -> tuple[float, float] | None:
        """US dollars per million tokens, in and out; None where the price is not known."""
        if model.startswith(self.own):
            return (0.0, 0.0)
        name = next(
            (
                known
                for known in self.prices
                if model.startswith(known) and (model == known or _VERSION.fullmatch(model[len(known) :]))
            ),
            None,
        )
        return None if name is None else self.prices[name]

    def image_rule(self, model: str) -> ImageRule:
        """The rule whose prefix of the name is the longest."""
        return self.pictures[max((start for start in self.pictures if model.startswith(start)), key=len)]

    def reasoning_tokens(self, model: str) -> int:
        """Tokens of reasoning before an answer, by the longest matching prefix of the name; 0 for other models."""
        matching = [start for start in self.reasoning if model.startswith(start)]
        return round(self.reasoning[max(matching, key=len)]) if matching else 0


def months_since(month: str, today: date) -> int:
    """Full months from a month, written YYYY-MM, to a day."""
    year, number = map(int, month.split("-"))
    return 12 * (today.year - year) + today.month - number


def read_prices(path: Path = TABLE) -> Prices:
    """Read a table in the layout of `prices.yaml`."""
    try:
        found = msgspec.convert(read_yaml(path), Prices, strict=False)
    except msgspec.ValidationError as error:
        raise CarinaError(f"{path}: not a table of prices: {error}") from error
    if "" not in found.pictures:
        raise CarinaError(f'{path}: pictures: expected a rule for all other models, under ""')
    return found


def _scale(width: int, height: int, factor: float) -> tuple[int, int]:
    return max(1, round(width * factor)), max(1, round(height * factor))
