"""What the steps of a percept case have in common, and the order of their options.

No position in a list is right more often than another: the caller states the position of the right option.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from carina.cases import Branch, Fact, Key, Option, Step
from carina.percept import wording
from carina.percept.lesions import Lesion
from carina.percept.rules import Rules

Path = Literal["LF", "RF", "RR"]
PATHS: Final[tuple[Path, ...]] = ("LF", "RF", "RR")
LESION_PATHS: Final[tuple[Path, ...]] = ("RF", "RR")
"""Paths of studies that have the lesion."""
"""Lesion-free, revision-free, revision required."""

KeyPosition = Callable[[str, int], int]
"""Takes a step and its number of options, and returns the position (from 0) of the right option."""


@dataclass(frozen=True)
class Assembly:
    """What the steps of a case have in common."""

    lesion: Lesion
    path: Path
    rules: Rules
    key_position: KeyPosition
    chance: np.random.Generator


def make_choice_step(
    step: str,
    *,
    task: str,
    question: str,
    options: Sequence[Option],
    key: str,
    shows: tuple[str, ...] = (),
    uses: tuple[str, ...] = ("v1",),
    reached_by: tuple[Branch, ...] = (),
    depends_on: tuple[str, ...] = (),
    facts: tuple[Fact, ...] = (),
) -> Step:
    """A step with one right option."""
    return Step(
        id=step,
        stage=int(step[0]),
        task=task,
        format="choice",
        question=wording.with_options(question, [option.text for option in options]),
        options=tuple(options),
        shows=shows,
        uses=uses,
        reached_by=reached_by,
        depends_on=depends_on,
        key=Key(options=(key,)),
        facts=facts,
    )


def rotate_options(assembly: Assembly, step: str, texts: dict[str, str], key: str) -> list[Option]:
    """Ordinal options in rising or falling order, rotated so that the right one is at its balanced position.

    The direction and the first option are random. Without the rotation, middle answers would always be in the middle.
    """
    names = list(texts)
    if assembly.chance.integers(2):
        names.reverse()
    start = (names.index(key) - assembly.key_position(step, len(names))) % len(names)
    return [Option(id=name, text=texts[name]) for name in names[start:] + names[:start]]


def shuffle_with_first_at(place: int, count: int, chance: np.random.Generator) -> list[int]:
    """A random order of the numbers below `count`, with 0 at `place`."""
    others = [int(n) + 1 for n in chance.permutation(count - 1)]
    others.insert(place, 0)
    return others
