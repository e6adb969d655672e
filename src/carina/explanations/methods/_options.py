"""Types that the options of several methods share, and how options are parsed and checked. Needs no torch.

A finding has positive prompts and, for most models, negative prompts. `contrast` says what a map is computed from:
`none` is the positive prompts alone, `difference` the positive minus the negative ones, and `probability`, for methods
that follow a score, the probability of the finding (`carina.models.clip.recognition.presence`).
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Literal, TypeVar

import msgspec

from carina.store.errors import CarinaError

Contrast = Literal["none", "difference"]
Followed = Literal["none", "difference", "probability"]
Measure = Literal["cosine", "dot"]
Over = Literal["mean", "max"]
Layers = Literal["mean", "last"]
Fill = Literal["zero", "mean"]
"""Value of hidden pixels: 0 on the scale of prepared pixels (grey where the mean was subtracted, else black), or the
mean of the image."""


Options = TypeVar("Options")


def parse_options(kind: type[Options], values: Mapping[str, Any], owner: str, *, seed: int) -> Options:
    """An options record from names and values, which may be text.

    Args:
        kind: Frozen dataclass of options.
        values: Options by name.
        owner: What the options belong to, for messages: "method rise".
        seed: Value of the option `seed`, where the record has one and none is given.

    Raises:
        CarinaError: An option is unknown, or its value is not of its type or range.
    """
    known = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    for name in values:
        if name not in known:
            raise CarinaError(
                f"{owner}: unknown option {name!r}. Known: {', '.join(sorted(known)) or 'none'}."
            )
    with_seed = {"seed": seed} | dict(values) if "seed" in known else dict(values)
    try:
        return msgspec.convert(with_seed, kind, strict=False)
    except msgspec.ValidationError as error:
        raise CarinaError(f"{owner}, options: {error}") from error


def require_at_least(where: str, value: float, minimum: float) -> None:
    if not value >= minimum:
        raise CarinaError(f"{where}: expected at least {minimum:g}, found {value:g}")


def require_share(where: str, value: float) -> None:
    if not 0 < value < 1:
        raise CarinaError(f"{where}: expected a share between 0 and 1, found {value:g}")
