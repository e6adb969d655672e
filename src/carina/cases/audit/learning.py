"""What a gate can learn: a bounded sample of questions, a model tried on other patients, and what it adds to the prior.

A conditional logit learns from the questions about four fifths of the patients which option is right, and is tried on
the other patients, fold by fold. What it is given to read is the gate's affair. Thousands of questions are kept, so
what is known of an option is kept as numbers, not as words.
"""

import hashlib
import heapq
import zlib
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from carina.cases.audit import logit
from carina.cases.audit.chance import Z95, more_often
from carina.cases.audit.frame import judged
from carina.cases.audit.record import Row
from carina.cases.audit.thresholds import Thresholds

FOLDS: Final = 5
_RARE: Final = 3
"""Features of fewer questions are left out."""

Features = Sequence["array[int]"]
"""What is known of each option, as `features` gives it."""


class Asked(NamedTuple):
    """A question as a model without eyes gets it."""

    patient: str
    target: str
    """What it is about, and what a prior may know of."""
    texts: tuple[str, ...]
    right: frozenset[int]
    features: Features
    group: str = ""
    """Questions for which somebody would learn one constant answer by heart."""


class Comparison(NamedTuple):
    """What text scores, against what the frequency of answers scores."""

    text: Row
    prior: Row
    gain: float
    low: float
    """Lower end of the 95% interval of the gain."""


class Sample:
    """As many questions of each task as are wanted, drawn by a hash of their names: whatever the order they come in."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: defaultdict[str, list[tuple[int, str, Asked]]] = defaultdict(list)

    def offer(self, task: str, name: str, rank: int, make: Callable[[], Asked]) -> None:
        """Keep it if it is among those with the lowest hash; it is made only then."""
        kept = self._kept[task]
        if len(kept) >= self._most:
            if -rank > kept[0][0]:
                heapq.heappushpop(kept, (-rank, name, make()))
        else:
            heapq.heappush(kept, (-rank, name, make()))

    def tasks(self, least: int) -> dict[str, list[Asked]]:
        """Tasks with so many questions of enough patients, each in a fixed order."""
        asked = {
            task: [one for *_, one in sorted(kept, key=lambda entry: entry[:2])]
            for task, kept in sorted(self._kept.items())
        }
        return {
            task: here
            for task, here in asked.items()
            if len(here) >= least and len({one.patient for one in here}) >= 2 * FOLDS
        }


def compared(asked: list[Asked], thresholds: Thresholds, *, name: str, what: str, tests: int) -> Comparison:
    """What these features add to the best constant answer and to the prior of the target.

    `what` is the model's name in rows and notes; `tests` how many comparisons the gate makes in all.
    """
    folds = np.array([hashed(one.patient) % FOLDS for one in asked])
    chance = float(np.mean([len(one.right) / len(one.texts) for one in asked]))
    prior = _tried([_prior_features(one) for one in asked], asked, folds)
    constant = _best_constant(asked)
    text = _tried([one.features for one in asked], asked, folds)
    known = constant if constant.mean() >= prior.mean() else prior
    clusters: defaultdict[str, float] = defaultdict(float)
    gain = text - known
    for one, more in zip(asked, gain.tolist(), strict=True):
        clusters[one.patient] += more
    plus = sum(net > 1e-9 for net in clusters.values())
    minus = sum(net < -1e-9 for net in clusters.values())
    p = min(1.0, more_often(plus, minus) * tests)
    half = Z95 * _clustered_error(gain, [one.patient for one in asked])
    low, high = _interval(text, asked)
    row = Row(
        name=f"{name}: {what}",
        n=len(asked),
        value=float(text.mean()),
        low=low,
        high=high,
        chance=float(known.mean()),
        p=p,
        status=judged(p, warn=thresholds.warn_level, fail=thresholds.fail_level),
        note=f"{what} adds {gain.mean():+.3f} ({gain.mean() - half:+.3f} to {gain.mean() + half:+.3f}) to the best "
        "constant or prior",
    )
    low, high = _interval(prior, asked)
    before = Row(
        name=f"{name}: prior of the target",
        n=len(asked),
        value=float(prior.mean()),
        low=low,
        high=high,
        chance=chance,
        note=f"for information; the best constant answer has {constant.mean():.3f}",
    )
    return Comparison(row, before, float(gain.mean()), float(gain.mean()) - half)


def hashed(text: str) -> int:
    """The same number for the same text, everywhere."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def feature(words: str) -> int:
    """Four bytes for something that is known of an option."""
    return zlib.crc32(words.encode())


def combined(before: Iterable[int], words: str) -> Iterable[int]:
    """Features that begin alike and go on with the same words: as `feature` of the whole, and several times as fast."""
    rest = words.encode()
    return (zlib.crc32(rest, begun) for begun in before)


def features(numbers: Iterable[int]) -> "array[int]":
    """All that is known of one option."""
    return array("I", numbers)


def _prior_features(one: Asked) -> Features:
    """How often an answer is right, in general and for the target."""
    return tuple(
        features((feature(f"prior {one.target} {text}"), feature(f"text {text}"))) for text in one.texts
    )


def _tried(known: list[Features], asked: list[Asked], folds: NDArray[np.int64]) -> NDArray[np.float64]:
    """Hits on each fold, learned from the others."""
    data = _questions(known, asked)
    result = np.zeros(len(asked))
    for fold in range(FOLDS):
        test = folds == fold
        if test.any() and not test.all():
            result[test] = logit.hits(data.some(test), logit.fit(data.some(~test)))
    return result


def _questions(known: list[Features], asked: list[Asked]) -> logit.Questions:
    """All options in rows and their frequent features in columns."""
    options = [option for of_question in known for option in of_question]
    sizes = np.array([len(of_question) for of_question in known], np.int64)
    names, at = np.unique(
        np.concatenate([np.frombuffer(option, np.uint32) for option in options]), return_inverse=True
    )
    row = np.repeat(np.arange(len(options)), [len(option) for option in options])
    # What is told twice of an option counts once; what is left stays in the order in which it is told.
    once = np.sort(np.unique(row * names.size + at, return_index=True)[1])
    row, at = row[once], at[once]
    question = np.repeat(np.arange(len(known)), sizes)[row]
    times = np.bincount(np.unique(question * names.size + at) % names.size, minlength=names.size)
    frequent = times >= _RARE
    kept = frequent[at]
    columns = (np.cumsum(frequent) - 1)[at[kept]]
    ends = np.cumsum(np.bincount(row[kept], minlength=len(options)))
    matrix = sparse.csr_matrix(
        (np.ones(columns.size), columns, np.concatenate([[0], ends])),
        shape=(len(options), max(1, int(frequent.sum()))),
    )
    right = [(place in one.right) / len(one.right) for one in asked for place in range(len(one.texts))]
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    return logit.Questions(features=matrix, starts=starts, right=np.array(right, np.float64))


def _best_constant(asked: list[Asked]) -> NDArray[np.float64]:
    """Hits of the best answer for each group, by words or by number, chosen with the answers known."""
    result = np.zeros(len(asked))
    for group in {one.group for one in asked}:
        mine = [at for at, one in enumerate(asked) if one.group == group]
        words = Counter(asked[at].texts[place] for at in mine for place in asked[at].right)
        places = Counter(place for at in mine for place in asked[at].right)
        (text, by_text), (place, by_place) = words.most_common(1)[0], places.most_common(1)[0]
        for at in mine:
            one = asked[at]
            hit = place in one.right if by_place > by_text else text in {one.texts[n] for n in one.right}
            result[at] = hit
    return result


def _interval(values: NDArray[np.float64], asked: list[Asked]) -> tuple[float, float]:
    half = Z95 * _clustered_error(values, [one.patient for one in asked])
    return max(0.0, float(values.mean()) - half), min(1.0, float(values.mean()) + half)


def _clustered_error(values: NDArray[np.float64], patients: list[str]) -> float:
    sums: defaultdict[str, float] = defaultdict(float)
    for patient, value in zip(patients, (values - values.mean()).tolist(), strict=True):
        sums[patient] += value
    return float(np.sqrt(sum(total * total for total in sums.values())) / len(values))
