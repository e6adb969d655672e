"""Gate: can the answer be learned from the words alone?

For each task a conditional logit learns, from the questions about four fifths of the patients, which option is right:
by wording, order, number and ids of the options, and by the case's id. It is tried on the other patients, fold by
fold. What it may know is how often an answer is right for the target (the prior, reported apart); the gate asks
whether the text adds to that and to the best constant answer.
"""

import hashlib
import heapq
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from carina.cases.audit import logit
from carina.cases.audit.chance import Z95, more_often
from carina.cases.audit.frame import judged, measured
from carina.cases.audit.record import GateResult, Row
from carina.cases.audit.steps import Choices, choices, task_of
from carina.cases.audit.thresholds import Thresholds
from carina.cases.model import Case, Step

_FOLDS: Final = 5
_RARE: Final = 3
"""Features of fewer questions are left out."""
_WORDS: Final = re.compile(r"[a-z]+|\d+")
_OPTIONS: Final = "\nOptions:"


_Features = tuple[tuple[str, ...], ...]
"""What is known of each option."""


class _Asked(NamedTuple):
    patient: str
    target: str
    texts: tuple[str, ...]
    right: frozenset[int]
    features: _Features


class TextOnly:
    """What text predicts, by task."""

    def __init__(self, thresholds: Thresholds) -> None:
        self._thresholds = thresholds
        self._n = 0
        self._asked: defaultdict[str, list[tuple[int, str, _Asked]]] = defaultdict(list)

    def see(self, case: Case) -> None:
        self._n += 1
        for step in case.steps:
            found = choices(step)
            if found is None or len(found.texts) < 2:
                continue
            kept = self._asked[task_of(step)]
            name = f"{case.id} {step.id}"
            rank = -_hash(name)
            if len(kept) >= self._thresholds.most_cases and rank <= kept[0][0]:
                continue
            asked = _Asked(
                patient=case.patient or case.study,
                target=case.target or "",
                texts=found.texts,
                right=found.right,
                features=tuple(_features(case, step, found)),
            )
            push = heapq.heappush if len(kept) < self._thresholds.most_cases else heapq.heappushpop
            push(kept, (rank, name, asked))

    def result(self) -> GateResult:
        tasks = {
            task: [asked for *_, asked in sorted(kept, key=lambda entry: entry[:2])]
            for task, kept in sorted(self._asked.items())
        }
        enough = {task: asked for task, asked in tasks.items() if self._enough(asked)}
        rows = [row for task, asked in enough.items() for row in self._rows(task, asked, len(enough))]
        return measured(
            "text",
            rows,
            n=self._n,
            threshold="text no better than the best constant answer and the prior of the target (fail at "
            f"{self._thresholds.fail_level:g}, warn at {self._thresholds.warn_level:g}, all tasks together; tasks with "
            f"at least {self._thresholds.least_cases} cases)",
            good="The words of a question do not tell its answer.",
            bad="The answer can be guessed from the text alone better than from the frequency of answers; look at the "
            "wording, order and number of options of these tasks.",
            none=f"No task has {self._thresholds.least_cases} cases of several patients to learn from.",
        )

    def _enough(self, asked: list[_Asked]) -> bool:
        return (
            len(asked) >= self._thresholds.least_cases and len({one.patient for one in asked}) >= 2 * _FOLDS
        )

    def _rows(self, task: str, asked: list[_Asked], tests: int) -> Iterator[Row]:
        folds = np.array([_hash(one.patient) % _FOLDS for one in asked])
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
        yield Row(
            name=f"{task}: text",
            n=len(asked),
            value=float(text.mean()),
            low=low,
            high=high,
            chance=float(known.mean()),
            p=p,
            status=judged(p, warn=self._thresholds.warn_level, fail=self._thresholds.fail_level),
            note=f"text adds {gain.mean():+.3f} ({gain.mean() - half:+.3f} to {gain.mean() + half:+.3f}) to the best "
            "constant or prior",
        )
        low, high = _interval(prior, asked)
        yield Row(
            name=f"{task}: prior of the target",
            n=len(asked),
            value=float(prior.mean()),
            low=low,
            high=high,
            chance=chance,
            note=f"for information; the best constant answer has {constant.mean():.3f}",
        )


def _features(case: Case, step: Step, found: Choices) -> Iterator[tuple[str, ...]]:
    """What can be read about each option, as words with a prefix that says where they stand."""
    question = step.question.split(_OPTIONS)[0]
    words = sorted(set(_WORDS.findall(f"{step.context or ''} {question}".lower())))
    k, lengths = len(found.texts), [len(text) for text in found.texts]
    first = found.texts[0]
    for place, text in enumerate(found.texts):
        own = _WORDS.findall(text)
        back = k - place
        option = step.options[place] if step.options else None
        yield (
            f"prior {case.target} {text}",
            f"text {text}",
            *(f"word {word}" for word in own),
            *(f"pair {one} {other}" for one, other in pairwise(own)),
            f"place {place}",
            f"back {back}",
            f"place {place} of {k}",
            f"text {text} of {k}",
            f"text {text} at {place}",
            f"text {text} after {first}",
            f"longest {lengths[place] == max(lengths)}",
            f"shortest {lengths[place] == min(lengths)}",
            f"id {option.id if option else ''}",
            f"begins {case.id[2:3]} at {place}",
            f"begins {case.id[2:3]} {text}",
            f"ends {case.id[-1:]} at {place}",
            f"ends {case.id[-1:]} {text}",
            *(f"asked {word} {text}" for word in words),
            *(f"asked {word} at {place}" for word in words),
        )


def _prior_features(one: _Asked) -> _Features:
    """How often an answer is right, in general and for the target."""
    return tuple((f"prior {one.target} {text}", f"text {text}") for text in one.texts)


def _tried(features: list[_Features], asked: list[_Asked], folds: NDArray[np.int64]) -> NDArray[np.float64]:
    """Hits on each fold, learned from the others."""
    counted = Counter(name for options in features for name in {f for option in options for f in option})
    width = {name: at for at, name in enumerate(sorted(n for n, times in counted.items() if times >= _RARE))}
    data = logit.questions(
        [
            (
                [[width[name] for name in dict.fromkeys(option) if name in width] for option in options],
                [(place in one.right) / len(one.right) for place in range(len(options))],
            )
            for one, options in zip(asked, features, strict=True)
        ],
        max(1, len(width)),
    )
    result = np.zeros(len(asked))
    for fold in range(_FOLDS):
        test = folds == fold
        if test.any() and not test.all():
            result[test] = logit.hits(data.some(test), logit.fit(data.some(~test)))
    return result


def _best_constant(asked: list[_Asked]) -> NDArray[np.float64]:
    """Hits of the best answer for each target, by words or by number, chosen with the answers known."""
    result = np.zeros(len(asked))
    for target in {one.target for one in asked}:
        mine = [at for at, one in enumerate(asked) if one.target == target]
        words = Counter(asked[at].texts[place] for at in mine for place in asked[at].right)
        places = Counter(place for at in mine for place in asked[at].right)
        (text, by_text), (place, by_place) = words.most_common(1)[0], places.most_common(1)[0]
        for at in mine:
            one = asked[at]
            hit = place in one.right if by_place > by_text else text in {one.texts[n] for n in one.right}
            result[at] = hit
    return result


def _interval(values: NDArray[np.float64], asked: list[_Asked]) -> tuple[float, float]:
    half = Z95 * _clustered_error(values, [one.patient for one in asked])
    return max(0.0, float(values.mean()) - half), min(1.0, float(values.mean()) + half)


def _clustered_error(values: NDArray[np.float64], patients: list[str]) -> float:
    sums: defaultdict[str, float] = defaultdict(float)
    for patient, value in zip(patients, (values - values.mean()).tolist(), strict=True):
        sums[patient] += value
    return float(np.sqrt(sum(total * total for total in sums.values())) / len(values))


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
