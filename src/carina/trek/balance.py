"""How often each question must be asked so that answers cannot be guessed: the arithmetic behind the survey."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from carina.trek.confusable import is_clearly_absent, plausibility

_ROUNDS: Final = 30
_PASSES: Final = 2
_HALVINGS: Final = 20
_MOST_NEGATIVES: Final = 6
"""Most questions with the answer "no" in one study that the fit considers."""
_MOST_ROWS: Final = 600
"""Most kinds of studies that the fit considers; the most common ones."""
_ENOUGH: Final = 1e-9
_MOST_WEIGHT: Final = 100.0
_ANY: Final = 0.75
"""Share of studies that are asked whether there is anything at all, of those that can be balanced."""
_MOST_NEGATIVES_FIRST: Final = 3
"""Most questions by name in a study without findings of the kind."""
_SURE: Final = 0.9
"""Largest probability that a question by name is answered "yes"."""


@dataclass(frozen=True, slots=True)
class KindContent:
    """What one study has of one kind, findings or devices."""

    there: tuple[str, ...]
    """What can be asked about by name."""
    noticed: frozenset[str]
    """What is present or uncertain, of any kind."""
    noticed_here: bool
    """Whether anything of this kind is present or uncertain."""
    settled: frozenset[str]
    """What else must not be asked about as absent."""
    stratum: str = ""
    """What is known before the first question, such as the projections; answers are balanced within a stratum."""


@dataclass(frozen=True, slots=True)
class NegativeQuestion:
    """The next question by name, after questions that were all answered "no"."""

    yes: float
    """Probability that its answer is "yes", in a study that has something of the kind."""
    continues: float
    """Probability that it is asked, in a study that has nothing of the kind."""


@dataclass(frozen=True, slots=True)
class WrongValues:
    """Wrong values to offer instead of each value of an attribute, as common as right ones."""

    values: tuple[str, ...]
    shares: tuple[float, ...]
    """How common each value is."""
    weights: Mapping[str, tuple[float, ...]]
    """By right value; zero for what is right, or right in part."""
    asked: Mapping[str, float]
    """By right value, the share to ask about in a closed form: less than 1 where wrong ones are too few."""


@dataclass(frozen=True, slots=True)
class Balance:
    """Weights for questions about present and absent findings (or devices)."""

    asked: Mapping[str, float]
    """By name, the share of present ones to ask about by name; less than 1 where negatives are too few."""
    negative: Mapping[str, float]
    """By name, its weight as a negative; the sum over a study is the number of negatives that it can supply."""
    beside: Mapping[tuple[str, str], float]
    """By a present and an absent name, the probability to offer both: as often as the other way round."""
    in_company: Mapping[str, float]
    """By name, how common it is in studies with more than one of its kind."""
    opening: Mapping[str, "Opening"]
    """By stratum."""


@dataclass(frozen=True, slots=True)
class Opening:
    """How the questions about a kind begin, in studies of one stratum."""

    any_asked: Mapping[bool, float]
    """Probability to ask whether there is anything, in studies with and without something."""
    negatives_first: tuple[NegativeQuestion, ...]
    """Named questions up to the first "yes"."""


NO_OPENING: Final = Opening(any_asked={True: 0.0, False: 0.0}, negatives_first=())
"""For a stratum that no study of the survey was in."""


def as_often(rare: int, common: int) -> float:
    """The share of the common that is as many as the rare; 0 where there is no rare one."""
    return min(1.0, rare / common) if common and rare else 0.0


def balance(names: Sequence[str], seen: Counter[KindContent], *, choices: float) -> Balance:
    """From all studies; `choices` is the share of findings that are not asked about by name."""
    strata = sorted({study.stratum for study in seen})
    told = {stratum: _told(seen, stratum) for stratum in strata}
    rows = _Rows.of(names, seen)
    if not names or not len(rows.times):
        nothing = dict.fromkeys(names, 0.0)
        return Balance(nothing, nothing, {}, nothing, dict.fromkeys(strata, NO_OPENING))
    begin = (rows.wanted > 0).astype(np.float64)
    negatives_first: dict[str, tuple[NegativeQuestion, ...]] = {}
    asked = weights = np.zeros(len(names))
    for _ in range(_PASSES):
        negatives_first = {
            stratum: _negatives_first(rows, begin, stratum, told[stratum]) for stratum in strata
        }
        due = np.array(
            [
                _negatives(int(number), negatives_first[stratum], told[stratum])
                for number, stratum in zip(rows.wanted, rows.strata, strict=True)
            ]
        )
        asked, weights, enough = _fitted(rows, due)
        # Studies that have something and ask about none of it by name leave less to balance.
        begin = 1 - (1 - (1 - choices) * enough) ** rows.wanted
    together = rows.there.T @ (rows.times[:, None] * (rows.may > 0))
    either = np.divide(together.T, together, out=np.zeros_like(together), where=together > 0)
    several = rows.times * (rows.wanted > 1)
    return Balance(
        asked=dict(zip(names, asked.tolist(), strict=True)),
        negative=dict(zip(names, weights.tolist(), strict=True)),
        beside={
            (one, other): float(min(1.0, either[row, column]))
            for row, one in enumerate(names)
            for column, other in enumerate(names)
            if either[row, column] > 0
        },
        in_company=dict(zip(names, (several @ rows.there / max(1.0, several.sum())).tolist(), strict=True)),
        opening={stratum: Opening(told[stratum], negatives_first[stratum]) for stratum in strata},
    )


def _told(seen: Counter[KindContent], stratum: str) -> dict[bool, float]:
    """Probability to ask whether there is anything, in studies with and without something: equally many of both."""
    having = sum(times for study, times in seen.items() if study.stratum == stratum and study.there)
    lacking = sum(
        times for study, times in seen.items() if study.stratum == stratum and not study.noticed_here
    )
    return {True: _ANY * as_often(lacking, having), False: _ANY * as_often(having, lacking)}


@dataclass(frozen=True)
class _Rows:
    """Studies that are alike, one row each; those that only may have something are left out."""

    times: NDArray[np.float64]
    there: NDArray[np.float64]
    may: NDArray[np.float64]
    """Weight of each name as a negative; 0 where it must not be asked about as absent."""
    wanted: NDArray[np.float64]
    """How many names can be asked about."""
    lacking: NDArray[np.bool_]
    strata: tuple[str, ...]

    @classmethod
    def of(cls, names: Sequence[str], seen: Counter[KindContent]) -> "_Rows":
        fit = [study for study in seen if study.there or not study.noticed_here]
        picked = sorted(fit, key=lambda study: -seen[study])[:_MOST_ROWS]
        return cls(
            times=np.array([float(seen[study]) for study in picked]),
            there=np.array([[float(name in study.there) for name in names] for study in picked]).reshape(
                len(picked), len(names)
            ),
            may=np.array([[_readily(name, study) for name in names] for study in picked]).reshape(
                len(picked), len(names)
            ),
            wanted=np.array([float(len(study.there)) for study in picked]),
            lacking=np.array([not study.there for study in picked], dtype=bool),
            strata=tuple(study.stratum for study in picked),
        )


def _readily(name: str, study: KindContent) -> float:
    if name in study.settled or not is_clearly_absent(name, study.noticed):
        return 0.0
    return plausibility(name, study.noticed)


def _negatives_first(
    rows: _Rows, begin: NDArray[np.float64], stratum: str, told: Mapping[bool, float]
) -> tuple[NegativeQuestion, ...]:
    """Named questions in studies that have nothing to say yes to, as many as "yes" elsewhere can balance.

    Where it was told that there is nothing, nothing is asked by name. Of the others, some go on after every "no", and
    the studies that have something say "yes" the sooner, so that the next answer is "yes" half of the time. `begin` is
    how likely each study is to ask about something it has.
    """
    here = np.array([name == stratum for name in rows.strata], dtype=bool)
    having = float((begin * rows.times)[here & ~rows.lacking].sum()) * (1 - told[True])
    lacking = float(rows.times[here & rows.lacking].sum()) * (1 - told[False])
    steps: list[NegativeQuestion] = []
    for _ in range(_MOST_NEGATIVES_FIRST):
        if having <= 0 or lacking <= 0:
            break
        going = min(lacking, having * (_SURE / 0.5 - 1))
        yes = 0.5 * (having + going) / having
        steps.append(NegativeQuestion(yes=yes, continues=going / lacking))
        having, lacking = having * (1 - yes), going
    return tuple(steps)


def _fitted(
    rows: _Rows, due: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Shares of positives to ask about, weights of negatives, and how much of its own each row asks about.

    A study asks about as many negatives as positives, on average. The weights of the negatives that it could ask about
    add up to how many it can supply; where that is less than its positives, it asks about fewer of those. The weights
    are fitted round by round, each name to its positives.
    """
    names = rows.there.shape[1]
    weights = np.full(names, 2.0)
    positives = negatives = np.zeros(names)
    enough = np.zeros(len(rows.times))
    for _ in range(_ROUNDS):
        supply = rows.may @ weights
        enough = np.minimum(
            1.0, np.divide(supply, rows.wanted, out=np.ones_like(rows.wanted), where=rows.wanted > 0)
        )
        # Not at the average number of draws: long runs of "no" reach names that short ones hardly do.
        negatives = sum(
            (rows.times * enough * due[:, number]) @ _drawn(rows.may * weights, float(number))
            for number in range(1, _MOST_NEGATIVES + 1)
        )
        positives = (rows.times * enough) @ rows.there
        if not positives.sum() or not negatives.sum():
            break
        ratio = np.divide(positives, negatives, out=np.zeros(names), where=negatives > _ENOUGH)
        # Only the proportions are fitted: less of everything would balance, too.
        ratio *= negatives.sum() / positives.sum()
        weights = np.minimum(weights * np.sqrt(ratio), _MOST_WEIGHT)
    asked = np.divide(negatives, positives, out=np.zeros(names), where=positives > _ENOUGH)
    return np.minimum(1.0, asked), weights, enough


def _drawn(weights: NDArray[np.float64], number: float) -> NDArray[np.float64]:
    """How often each is drawn, row by row, where so many are drawn by weight and none twice.

    As clocks that ring at random, each at the pace of its weight, until so many have rung.
    """
    due = np.minimum(number, 0.999 * (weights > _ENOUGH).sum(axis=1))
    early, late = np.full_like(due, 1e-6), np.full_like(due, 1e6)
    for _ in range(_HALVINGS):
        middle = np.sqrt(early * late)
        soon = -np.expm1(-weights * middle[:, None]).sum(axis=1) < due
        early, late = np.where(soon, middle, early), np.where(soon, late, middle)
    return np.asarray(-np.expm1(-weights * late[:, None]) * (due > 0)[:, None])


def _negatives(
    positives: int, negatives_first: Sequence[NegativeQuestion], told: Mapping[bool, float]
) -> list[float]:
    """Probability of each number of questions with the answer "no" in a study.

    `told` is how often the study was asked whether there is anything at all.
    """
    spread = [0.0] * (_MOST_NEGATIVES + 1)
    if not positives:
        going = 1 - told[False]
        spread[0] = 1.0
        for number, step in enumerate(negatives_first[:_MOST_NEGATIVES], start=1):
            going *= step.continues
            spread[number - 1] -= going
            spread[number] += going
        return spread
    for share, opening in ((told[True], ()), (1 - told[True], tuple(negatives_first))):
        for number, likely in enumerate(_until_last(positives, opening)):
            spread[number] += share * likely
    return spread


def _until_last(positives: int, negatives_first: Sequence[NegativeQuestion]) -> list[float]:
    """How likely so many "no" come before the last "yes", coin by coin; what is more counts as the most."""
    spread = [0.0] * (_MOST_NEGATIVES + 1)
    states = {(positives, 0): 1.0}
    while states:
        following: dict[tuple[int, int], float] = {}
        for (left, asked), likely in states.items():
            # Before the first "yes" the coin may be loaded.
            loaded = left == positives and asked < len(negatives_first)
            yes = negatives_first[asked].yes if loaded else 0.5
            if left == 1:
                spread[asked] += likely * yes
            else:
                following[left - 1, asked] = following.get((left - 1, asked), 0.0) + likely * yes
            if asked == _MOST_NEGATIVES:
                spread[asked] += likely * (1 - yes)
            else:
                following[left, asked + 1] = following.get((left, asked + 1), 0.0) + likely * (1 - yes)
        states = following
    return spread


def wrong_values(common: Sequence[tuple[str, int]], meaning: Mapping[str, frozenset[str]]) -> WrongValues:
    """For each right value the weights of the others, such that a value is as often said wrongly as rightly.

    Flows between values are symmetric, so that of two values neither is the likelier to be the right one.
    """
    texts = tuple(text for text, _ in common)
    may = np.array([[float(not meaning[one] & meaning[other]) for other in texts] for one in texts])
    share = np.array([float(times) for _, times in common])
    share /= share.sum()
    scale = np.sqrt(share)
    for _ in range(_ROUNDS):
        rest = may @ scale
        # The square root keeps the scaling of a symmetric matrix from swinging to and fro.
        wanted = np.divide(share, rest, out=np.zeros_like(share), where=rest > _ENOUGH)
        scale = np.minimum(np.sqrt(scale * wanted), _MOST_WEIGHT)
    flow = may * np.outer(scale, scale)
    # A value more common than all others together can't be balanced: less of it is asked, and of its partners too.
    spare = np.minimum(
        1.0, np.divide(share, flow.sum(axis=1), out=np.zeros_like(share), where=flow.sum(axis=1) > 0)
    )
    flow *= np.minimum.outer(spare, spare)
    asked = np.minimum(1.0, flow.sum(axis=1) / share)
    return WrongValues(
        values=texts,
        shares=tuple(share.tolist()),
        weights={text: tuple(flow[number].tolist()) for number, text in enumerate(texts)},
        asked={text: float(asked[number]) for number, text in enumerate(texts)},
    )
