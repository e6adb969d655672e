"""What a study set holds on the whole, and how often to ask what so that no answer can be guessed from the question.

A conversation is made from one study, but whether its questions are balanced is a matter of the set: a "no" must be as
common as a "yes" for every finding that is named, a wrong place as typical of the finding as the right one. One pass
over the set (over an even sample of a large one) gives the weights; every conversation then draws on its own.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from carina.studies.model import Study
from carina.trek.confusable import is_clearly_absent, plausibility
from carina.trek.language import Language
from carina.trek.subject import ATTRIBUTES, Kind, Subject, Thing, subject_of

_MOST_VALUES: Final = 40
"""Values of one attribute of one finding that may stand in for the right one."""
_MOST_DESCRIPTIONS: Final = 200
_ROUNDS: Final = 60
_ENOUGH: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Wrong:
    """What to say instead of each value of an attribute, so that wrong values are as common as right ones."""

    values: tuple[str, ...]
    weights: Mapping[str, tuple[float, ...]]
    """By right value; zero for what is right, or right in part."""
    asked: Mapping[str, float]
    """By right value, the share to ask about in a closed form: less than 1 where wrong ones are too few."""


@dataclass(frozen=True)
class Survey:
    """What every conversation must know of the set."""

    studies: int
    known: tuple[tuple[Kind, str], ...]
    """Findings and devices that occur at all, present or absent."""
    asked: Mapping[str, float]
    """By name, the share of those that are there to ask about by name: less than 1 where negatives are too few."""
    negative: Mapping[str, float]
    """By name, the weight with which it is drawn as a negative."""
    wrong: Mapping[tuple[str, str], Wrong]
    """By name and attribute."""
    descriptions: Mapping[str, tuple[str, ...]]
    """By name, how it is described elsewhere in the set, most common first."""
    any_asked: Mapping[tuple[Kind, bool], float]
    """Share of studies with and without any finding or device to ask whether there is any."""


@dataclass
class _Seen:
    """One study of the survey."""

    there: list[str]
    """What can be asked about by name."""
    noticed: frozenset[str]
    """What is there or may be there."""
    settled: frozenset[str]
    """What else can't be asked for in vain."""


@dataclass
class _Counts:
    seen: dict[Kind, list[_Seen]] = field(default_factory=lambda: {"finding": [], "device": []})
    values: dict[tuple[str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    meaning: dict[tuple[str, str, str], frozenset[str]] = field(default_factory=dict)
    descriptions: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))


def survey(studies: Iterable[Study], words: Language) -> Survey:
    """One pass over the studies, none of which is kept."""
    known: dict[tuple[Kind, str], None] = {}
    counts = _Counts()
    total = 0
    for study in studies:
        total += 1
        known.update({("finding", finding.name): None for finding in study.findings})
        known.update({("device", device.name): None for device in study.devices})
        _count(counts, subject_of(study, words, known=(), most_images=1))
    names = tuple(sorted(known))
    asked: dict[str, float] = {}
    negative: dict[str, float] = {}
    for kind, seen in counts.seen.items():
        of_kind = [name for other, name in names if other == kind]
        shares, weights = _balance(of_kind, seen)
        asked.update(shares)
        negative.update(weights)
    return Survey(
        studies=total,
        known=names,
        asked=asked,
        negative=negative,
        wrong={
            (name, attribute): _wrong(
                values, {value: counts.meaning[name, attribute, value] for value in values}
            )
            for (name, attribute), values in counts.values.items()
            if len(values) > 1
        },
        descriptions={
            name: tuple(text for text, _ in _common(texts, _MOST_DESCRIPTIONS))
            for name, texts in counts.descriptions.items()
        },
        any_asked={
            (kind, there): _any(seen, there=there)
            for kind, seen in counts.seen.items()
            for there in (True, False)
        },
    )


def _count(counts: _Counts, subject: Subject) -> None:
    noticed = frozenset(thing.name for thing in subject.things)
    settled = frozenset(gone.name for gone in subject.resolved)
    by_kind: dict[Kind, list[Thing]] = {"finding": subject.findings, "device": subject.devices}
    for kind, things in by_kind.items():
        there = [thing.name for thing in things if thing.is_present and thing.alone]
        counts.seen[kind].append(_Seen(there, noticed, settled))
        for thing in things:
            counts.descriptions[thing.name][thing.described] += 1
            for attribute in ATTRIBUTES:
                if attribute in thing.values:
                    value = thing.values[attribute]
                    counts.values[thing.name, attribute][value] += 1
                    counts.meaning[thing.name, attribute, value] = thing.means(attribute)


def _common(values: Counter[str], most: int) -> list[tuple[str, int]]:
    return sorted(values.items(), key=lambda item: (-item[1], item[0]))[:most]


def _any(seen: Sequence[_Seen], *, there: bool) -> float:
    """As often with as without, by leaving out some of the larger number."""
    having = sum(bool(study.there) for study in seen)
    lacking = len(seen) - having
    if not (having and lacking):
        return 0.0
    return min(1.0, (lacking / having) if there else (having / lacking))


def _balance(names: Sequence[str], seen: Sequence[_Seen]) -> tuple[dict[str, float], dict[str, float]]:
    """Shares of positives to ask about and weights of negatives, so that each name is asked as often for as in vain.

    A study asks about as many negatives as it has positives, on average; which ones is drawn by weight among those it
    can ask about. The weights are fitted by scaling each name to its positives, round by round.
    """
    column = {name: number for number, name in enumerate(names)}
    rows = [study for study in seen if study.there]
    if not rows:
        return {}, {}
    may = np.zeros((len(rows), len(names)))
    positives = np.zeros(len(names))
    due = np.array([float(len(study.there)) for study in rows])
    for number, study in enumerate(rows):
        for name in study.there:
            positives[column[name]] += 1
        for name in names:
            if name not in study.settled and is_clearly_absent(name, study.noticed):
                may[number, column[name]] = plausibility(name, study.noticed)
    weights = np.where(positives > 0, positives, 0.0)
    negatives = _expected(may, weights, due)
    for _ in range(_ROUNDS):
        with np.errstate(divide="ignore", invalid="ignore"):
            weights = np.where(negatives > _ENOUGH, weights * positives / negatives, 0.0)
        negatives = _expected(may, weights, due)
    asked = {
        name: float(min(1.0, negatives[number] / positives[number])) if positives[number] else 0.0
        for name, number in column.items()
    }
    top = weights.max() or 1.0
    return asked, {name: float(weights[number] / top) for name, number in column.items()}


def _expected(may: NDArray[np.float64], weights: NDArray[np.float64], due: NDArray[np.float64]) -> NDArray[np.float64]:
    """How often each name is drawn, where a study draws `due` times among those it may draw."""
    drawn = may * weights
    total = drawn.sum(axis=1)
    scale = np.divide(due, total, out=np.zeros_like(due), where=total > _ENOUGH)
    return np.asarray((drawn * scale[:, None]).sum(axis=0))


def _wrong(values: Counter[str], meaning: Mapping[str, frozenset[str]]) -> Wrong:
    """For each right value the weights of the others, such that a value is as often said wrongly as rightly.

    Flows between values are symmetric, so that of two values neither is the likelier to be the right one.
    """
    common = _common(values, _MOST_VALUES)
    texts = tuple(text for text, _ in common)
    may = np.array([[float(not meaning[one] & meaning[other]) for other in texts] for one in texts])
    share = np.array([float(times) for _, times in common])
    share /= share.sum()
    scale = np.sqrt(share)
    for _ in range(_ROUNDS):
        rest = may @ scale
        # The square root keeps the scaling of a symmetric matrix from swinging to and fro.
        scale = np.sqrt(scale * np.divide(share, rest, out=np.zeros_like(share), where=rest > _ENOUGH))
    flow = may * np.outer(scale, scale)
    asked = np.minimum(1.0, np.divide(flow.sum(axis=1), share))
    return Wrong(
        values=texts,
        weights={text: tuple(flow[number].tolist()) for number, text in enumerate(texts)},
        asked={text: float(asked[number]) for number, text in enumerate(texts)},
    )
