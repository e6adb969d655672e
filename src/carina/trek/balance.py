"""How often each question must be asked so that answers cannot be guessed: the arithmetic behind the survey."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from carina.studies.lookalikes import is_clearly_absent
from carina.trek.companions import negative_weight

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
"""Share of studies that are asked whether anything is present, of those that can be balanced."""
_MOST_NEGATIVES_FIRST: Final = 3
"""Most questions by name in a study without findings of the kind."""
_SURE: Final = 0.9
"""Largest probability that a question by name is answered "yes"."""


@dataclass(frozen=True, slots=True)
class KindContent:
    """What one study has of one kind, findings or devices."""

    askable: tuple[str, ...]
    """Present findings (or devices) that can be asked about by name."""
    noticed: frozenset[str]
    """Everything that is present or uncertain, of any kind."""
    has_noticed: bool
    """Whether anything of this kind is present or uncertain."""
    not_negative: frozenset[str]
    """Other names that must not be asked about as absent."""
    stratum: str = ""
    """What is known before the first question, such as the projections; answers are balanced within a stratum."""
    looked_for: frozenset[str] | None = None
    """Names that are absent where they are not present or uncertain; None for all names."""
    is_none_known: bool = True
    """Of a study that has nothing of this kind: whether that is known, so that it can be asked."""


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
    """By right value, the weight of each value as a wrong one; zero for values that are right or partly right."""
    asked: Mapping[str, float]
    """By right value, the share of closed questions: less than 1 where there are too few wrong values."""


@dataclass(frozen=True, slots=True)
class Balance:
    """Weights for questions about present and absent findings (or devices)."""

    asked: Mapping[str, float]
    """By name, the share of present ones to ask about by name; less than 1 where negatives are too few."""
    negative: Mapping[str, float]
    """By name, its weight as a negative; the sum over a study is the number of negatives that it can supply."""
    pair_probability: Mapping[tuple[str, str], float]
    """By a present and an absent name, the probability to offer both, so that each is right equally often."""
    frequency_among_several: Mapping[str, float]
    """By name, how common it is in studies with more than one of its kind."""
    opening: Mapping[str, "Opening"]
    """By stratum, how the questions begin."""
    uncertain: float = 1.0
    """Share of uncertain ones to ask about by name."""


@dataclass(frozen=True, slots=True)
class Opening:
    """How the questions about a kind begin, in studies of one stratum."""

    any_probability: Mapping[bool, float]
    """Probability to ask whether anything is present, in studies with (True) and without (False) something."""
    negatives_first: tuple[NegativeQuestion, ...]
    """Named questions up to the first "yes"."""
    alone: float = 0.0
    """Probability of one question by name in a study that has something, and of which nothing is known to be absent."""


NO_OPENING: Final = Opening(any_probability={True: 0.0, False: 0.0}, negatives_first=())
"""For a stratum without studies in the survey."""


def matching_share(rare: int, common: int) -> float:
    """The share of the common items that equals the number of rare items; 0 where there is no rare item."""
    return min(1.0, rare / common) if common and rare else 0.0


def fit_balance(
    names: Sequence[str],
    seen: Counter[KindContent],
    *,
    choices: float,
    uncertain: int = 0,
    most_uncertain: float = 1.0,
) -> Balance:
    """Fit the weights to the studies.

    Args:
        names: Names of findings, or of devices.
        seen: How many studies have each content.
        choices: Share of present ones that are not asked about by name.
        uncertain: Number of uncertain ones in the studies.
        most_uncertain: Largest share of the questions by name with the answer "uncertain".
    """
    strata = sorted({study.stratum for study in seen})
    any_probability = {stratum: _any_question_probabilities(seen, stratum) for stratum in strata}
    rows = _StudyRows.of(names, seen).keep_balanced()
    if not names or not len(rows.times):
        nothing = dict.fromkeys(names, 0.0)
        asked_uncertain = _share_of_uncertain(0.0, uncertain, most_uncertain)
        return Balance(
            nothing, nothing, {}, nothing, dict.fromkeys(strata, NO_OPENING), uncertain=asked_uncertain
        )
    begin = (rows.askable_count > 0).astype(np.float64)
    opening: dict[str, Opening] = {}
    asked = weights = np.zeros(len(names))
    for _ in range(_PASSES):
        opening = {
            stratum: _plan_opening(rows, begin, stratum, any_probability[stratum]) for stratum in strata
        }
        due = np.array(
            [
                _negative_count_probabilities(
                    int(number),
                    opening[stratum].negatives_first,
                    # Where it is not known that there is nothing, it is not asked.
                    any_probability[stratum] if known else {**any_probability[stratum], False: 0.0},
                )
                for number, stratum, known in zip(
                    rows.askable_count, rows.strata, rows.is_none_known, strict=True
                )
            ]
        )
        asked, weights, enough = _fit_weights(
            rows, due, alone=np.array([opening[stratum].alone for stratum in rows.strata])
        )
        # Studies that have something and ask about nothing by name do not count in the balance.
        begin = 1 - (1 - (1 - choices) * enough) ** rows.askable_count
    # Every "yes" has a "no".
    certain = 2 * (1 - choices) * float(((rows.times * enough) @ rows.askable * asked).sum())
    together = rows.askable.T @ (rows.times[:, None] * (rows.negative_weights > 0))
    either = np.divide(together.T, together, out=np.zeros_like(together), where=together > 0)
    several = rows.times * (rows.askable_count > 1)
    return Balance(
        asked=dict(zip(names, asked.tolist(), strict=True)),
        negative=dict(zip(names, weights.tolist(), strict=True)),
        pair_probability={
            (one, other): float(min(1.0, either[row, column]))
            for row, one in enumerate(names)
            for column, other in enumerate(names)
            if either[row, column] > 0
        },
        frequency_among_several=dict(
            zip(names, (several @ rows.askable / max(1.0, several.sum())).tolist(), strict=True)
        ),
        opening=opening,
        uncertain=_share_of_uncertain(certain, uncertain, most_uncertain),
    )


def _share_of_uncertain(certain: float, uncertain: int, most: float) -> float:
    """The share of uncertain ones to ask about, so that they are at most the share `most` of all questions by name.

    None are asked about where nothing else is: "uncertain" would always be right.
    """
    if most >= 1 or not uncertain:
        return 1.0
    return min(1.0, most / (1 - most) * certain / uncertain)


def _any_question_probabilities(seen: Counter[KindContent], stratum: str) -> dict[bool, float]:
    """Probability to ask whether anything is present, so that "yes" and "no" are equally frequent."""
    having = sum(times for study, times in seen.items() if study.stratum == stratum and study.askable)
    lacking = sum(
        times
        for study, times in seen.items()
        if study.stratum == stratum and not study.has_noticed and study.is_none_known
    )
    return {True: _ANY * matching_share(lacking, having), False: _ANY * matching_share(having, lacking)}


@dataclass(frozen=True)
class _StudyRows:
    """Groups of studies with the same content, one row each; studies with only uncertain things are not included."""

    times: NDArray[np.float64]
    """Number of studies."""
    askable: NDArray[np.float64]
    """1 for each name that can be asked about, 0 for others."""
    negative_weights: NDArray[np.float64]
    """Weight of each name as a negative; 0 where it must not be asked about as absent."""
    askable_count: NDArray[np.float64]
    """Number of names that can be asked about."""
    is_lacking: NDArray[np.bool_]
    """Whether no name can be asked about."""
    is_none_known: NDArray[np.bool_]
    """Whether it is known that there is nothing, where no name can be asked about."""
    strata: tuple[str, ...]

    @property
    def is_alone(self) -> NDArray[np.bool_]:
        """Whether a study has something to ask about, and nothing of it is known to be absent."""
        return np.asarray((self.askable_count > 0) & (self.negative_weights.sum(axis=1) == 0))

    @classmethod
    def of(cls, names: Sequence[str], seen: Counter[KindContent]) -> "_StudyRows":
        fit = [study for study in seen if study.askable or not study.has_noticed]
        picked = sorted(fit, key=lambda study: -seen[study])[:_MOST_ROWS]
        return cls(
            times=np.array([float(seen[study]) for study in picked]),
            askable=np.array([[float(name in study.askable) for name in names] for study in picked]).reshape(
                len(picked), len(names)
            ),
            negative_weights=np.array(
                [[_negative_weight(name, study) for name in names] for study in picked]
            ).reshape(len(picked), len(names)),
            askable_count=np.array([float(len(study.askable)) for study in picked]),
            is_lacking=np.array([not study.askable for study in picked], dtype=bool),
            is_none_known=np.array([study.is_none_known for study in picked], dtype=bool),
            strata=tuple(study.stratum for study in picked),
        )

    def keep_balanced(self) -> "_StudyRows":
        """The same studies without names that are never present, or never known to be absent.

        Reports name many findings that no report denies: a question about one could only be answered "yes".
        """
        is_kept = _can_be_balanced(self)
        askable = self.askable * is_kept
        return replace(
            self,
            askable=askable,
            askable_count=askable.sum(axis=1),
            negative_weights=self.negative_weights * is_kept,
        )


def _can_be_balanced(rows: _StudyRows) -> NDArray[np.bool_]:
    """Whether each name is present in one study and certainly absent in another."""
    return np.asarray((rows.times @ rows.askable > 0) & (rows.times @ rows.negative_weights > 0))


def _negative_weight(name: str, study: KindContent) -> float:
    if name in study.not_negative or not is_clearly_absent(name, study.noticed):
        return 0.0
    if study.looked_for is not None and name not in study.looked_for:
        return 0.0
    return negative_weight(name, study.noticed)


def _plan_opening(
    rows: _StudyRows, begin: NDArray[np.float64], stratum: str, any_probability: Mapping[bool, float]
) -> Opening:
    """Questions by name for studies in which nothing is present, as many as questions with "yes" can balance.

    A study that was asked whether anything is present, and has nothing, gets no questions by name. Of the others, a
    share continues after every "no". Studies that have something get their first "yes" earlier, so that the next answer
    is "yes" half of the time. `begin` is the probability that a study asks about something it has.

    A study of which nothing is known to be absent can only be answered "yes". It gets one question, the only one, as
    far as studies in which nothing is present get a first question that is answered "no".
    """
    here = np.array([name == stratum for name in rows.strata], dtype=bool)
    having = float((begin * rows.times)[here & ~rows.is_lacking & ~rows.is_alone].sum())
    having *= 1 - any_probability[True]
    alone = float(rows.times[here & rows.is_alone].sum()) * (1 - any_probability[True])
    # A study in which nothing is certainly absent is asked nothing by name.
    empty = here & rows.is_lacking & (rows.negative_weights.sum(axis=1) > 0)
    lacking = float(rows.times[empty & rows.is_none_known].sum()) * (1 - any_probability[False])
    lacking += float(rows.times[empty & ~rows.is_none_known].sum())
    share = min(1.0, lacking / alone) if alone else 0.0
    matched = share * alone
    steps: list[NegativeQuestion] = []
    for _ in range(_MOST_NEGATIVES_FIRST):
        if having + matched <= 0 or lacking <= 0:
            break
        going = min(lacking - matched, having * (_SURE / 0.5 - 1))
        yes = 0.5 * (having + going) / having if having > 0 else _SURE
        steps.append(NegativeQuestion(yes=yes, continues=(matched + going) / lacking))
        having, lacking, matched = having * (1 - yes), matched + going, 0.0
    return Opening(any_probability, tuple(steps), share)


def _fit_weights(
    rows: _StudyRows, due: NDArray[np.float64], *, alone: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Share of positives to ask about and weight as a negative, by name; and the share of positives that each row uses.

    A study asks about as many negatives as positives, on average. The sum of the weights of its possible negatives is
    the number of negatives that it can supply; where that is less than its positives, it asks about fewer positives;
    where it can supply none, about one, with the probability `alone`.
    The weights are fitted iteratively, so that each name is as often a negative as a positive.
    """
    names = rows.askable.shape[1]
    weights = np.full(names, 2.0)
    positives = negatives = np.zeros(names)
    most = rows.times @ (rows.negative_weights > 0)
    enough = np.zeros(len(rows.times))
    one_of_them = alone / np.maximum(1.0, rows.askable_count)
    for _ in range(_ROUNDS):
        supply = rows.negative_weights @ weights
        enough = np.minimum(
            1.0,
            np.divide(
                supply, rows.askable_count, out=np.ones_like(rows.askable_count), where=rows.askable_count > 0
            ),
        )
        enough = np.where(rows.is_alone, one_of_them, enough)
        # Summed over the number of draws, since names of low weight are mostly drawn in long series of "no".
        negatives = sum(
            (
                (rows.times * enough * due[:, number])
                @ _expected_draws(rows.negative_weights * weights, float(number))
                for number in range(1, _MOST_NEGATIVES + 1)
            ),
            start=np.zeros(names),
        )
        positives = (rows.times * enough) @ rows.askable
        if not positives.sum() or not negatives.sum():
            break
        # What is hardly ever known to be absent is asked about as often as that, however often it is present.
        wanted = np.minimum(positives, most)
        ratio = np.divide(wanted, negatives, out=np.zeros(names), where=negatives > _ENOUGH)
        # Only the proportions are fitted: lowering all weights would balance, too.
        ratio *= negatives.sum() / wanted.sum()
        weights = np.minimum(weights * np.sqrt(ratio), _MOST_WEIGHT)
    asked = np.divide(negatives, positives, out=np.zeros(names), where=positives > _ENOUGH)
    return np.minimum(1.0, asked), weights, enough


def _expected_draws(weights: NDArray[np.float64], number: float) -> NDArray[np.float64]:
    """Probability that each name is drawn, row by row, where `number` names are drawn by weight without replacement.

    This uses the equivalent process of exponential waiting times whose rates are the weights.
    """
    due = np.minimum(number, 0.999 * (weights > _ENOUGH).sum(axis=1))
    early, late = np.full_like(due, 1e-6), np.full_like(due, 1e6)
    for _ in range(_HALVINGS):
        middle = np.sqrt(early * late)
        soon = -np.expm1(-weights * middle[:, None]).sum(axis=1) < due
        early, late = np.where(soon, middle, early), np.where(soon, late, middle)
    return np.asarray(-np.expm1(-weights * late[:, None]) * (due > 0)[:, None])


def _negative_count_probabilities(
    positives: int, negatives_first: Sequence[NegativeQuestion], any_probability: Mapping[bool, float]
) -> list[float]:
    """Probability of each number of questions with the answer "no" in a study.

    `any_probability` is the probability that the study was asked whether anything is present.
    """
    spread = [0.0] * (_MOST_NEGATIVES + 1)
    if not positives:
        going = 1 - any_probability[False]
        spread[0] = 1.0
        for number, step in enumerate(negatives_first[:_MOST_NEGATIVES], start=1):
            going *= step.continues
            spread[number - 1] -= going
            spread[number] += going
        return spread
    for share, opening in ((any_probability[True], ()), (1 - any_probability[True], tuple(negatives_first))):
        for number, likely in enumerate(_negatives_before_last_yes(positives, opening)):
            spread[number] += share * likely
    return spread


def _negatives_before_last_yes(positives: int, negatives_first: Sequence[NegativeQuestion]) -> list[float]:
    """Probability of each number of "no" before the last "yes"; the last entry includes all larger numbers."""
    spread = [0.0] * (_MOST_NEGATIVES + 1)
    states = {(positives, 0): 1.0}
    while states:
        following: dict[tuple[int, int], float] = {}
        for (left, asked), likely in states.items():
            # Before the first "yes", its probability may be higher than one half.
            is_before_yes = left == positives and asked < len(negatives_first)
            yes = negatives_first[asked].yes if is_before_yes else 0.5
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


def balance_wrong_values(
    common: Sequence[tuple[str, int]], meaning: Mapping[str, frozenset[str]]
) -> WrongValues:
    """For each right value, the weights of the others, such that each value is offered as often wrong as right.

    The weights between two values are symmetric, so that neither of the two is more likely to be the right one.
    """
    texts = tuple(text for text, _ in common)
    may = np.array([[float(not meaning[one] & meaning[other]) for other in texts] for one in texts])
    share = np.array([float(times) for _, times in common])
    share /= share.sum()
    scale = np.sqrt(share)
    for _ in range(_ROUNDS):
        rest = may @ scale
        # The square root keeps the scaling of a symmetric matrix from oscillating.
        wanted = np.divide(share, rest, out=np.zeros_like(share), where=rest > _ENOUGH)
        scale = np.minimum(np.sqrt(scale * wanted), _MOST_WEIGHT)
    flow = may * np.outer(scale, scale)
    # A value more common than all others together cannot be balanced: it and its partners are asked about less often.
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
