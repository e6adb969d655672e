"""What text alone predicts: a bounded sample of questions, and a model that is trained and tested on other patients.

A conditional logit learns from the questions of four fifths of the patients which option is right, and is tested on the
others, fold by fold. Each gate decides what the model may read. Thousands of questions are kept, so the features of an
option are kept as numbers, not as words.
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

from carina.audits.chance import Z95, sign_test
from carina.audits.conditional_logit import QuestionTable, fit_logit, score_hits
from carina.audits.gate import AuditContext
from carina.audits.result import Row

FOLDS: Final = 5
_RARE: Final = 3
"""Features of fewer questions are ignored."""

Features = Sequence["array[int]"]
"""The features of each option, as `pack_features` gives them."""


class Question(NamedTuple):
    """A question as a model without images gets it."""

    patient: str
    target: str
    """What it asks about; a prior may use it."""
    texts: tuple[str, ...]
    right: frozenset[int]
    features: Features
    group: str = ""
    """Questions to which the best constant answer is chosen together."""


class Comparison(NamedTuple):
    """The accuracy of the text model, beside that of answer frequencies."""

    text: Row
    prior: Row
    gain: float
    gain_low: float
    """Lower end of the 95% interval of the gain."""


class QuestionSample:
    """Up to `most` questions of each task: those with the lowest hashes, whatever order they come in."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: defaultdict[str, list[tuple[int, str, Question]]] = defaultdict(list)

    def offer(self, task: str, name: str, rank: int, make: Callable[[], Question]) -> None:
        """Keep a question if its hash is among the lowest; `make` is called only then."""
        kept = self._kept[task]
        if len(kept) >= self._most:
            if -rank > kept[0][0]:
                heapq.heappushpop(kept, (-rank, name, make()))
        else:
            heapq.heappush(kept, (-rank, name, make()))

    def tasks(self, least: int) -> dict[str, list[Question]]:
        """Tasks with at least this many questions of enough patients; the questions in a fixed order."""
        questions = {
            task: [question for *_, question in sorted(kept, key=lambda entry: entry[:2])]
            for task, kept in sorted(self._kept.items())
        }
        return {
            task: here
            for task, here in questions.items()
            if len(here) >= least and len({question.patient for question in here}) >= 2 * FOLDS
        }


def compare_with_prior(
    questions: list[Question], context: AuditContext, *, name: str, what: str, tests: int
) -> Comparison:
    """What features add to the best constant answer and to the answer frequencies of the target.

    Args:
        questions: The questions of one task.
        context: Levels for the status of the row.
        name: Name of the task, for the rows.
        what: Name of the features, for the rows.
        tests: Comparisons that the gate makes in all.
    """
    folds = np.array([hash_text(question.patient) % FOLDS for question in questions])
    chance = float(np.mean([len(question.right) / len(question.texts) for question in questions]))
    prior = _cross_validate([_prior_features(question) for question in questions], questions, folds)
    constant = _best_constant(questions)
    text = _cross_validate([question.features for question in questions], questions, folds)
    baseline = constant if constant.mean() >= prior.mean() else prior
    by_patient: defaultdict[str, float] = defaultdict(float)
    gain = text - baseline
    for question, more in zip(questions, gain.tolist(), strict=True):
        by_patient[question.patient] += more
    plus = sum(net > 1e-9 for net in by_patient.values())
    minus = sum(net < -1e-9 for net in by_patient.values())
    p = min(1.0, sign_test(plus, minus) * tests)
    half = Z95 * _clustered_error(gain, [question.patient for question in questions])
    low, high = _interval(text, questions)
    text_row = Row(
        name=f"{name}: {what}",
        n=len(questions),
        value=float(text.mean()),
        low=low,
        high=high,
        chance=float(baseline.mean()),
        p=p,
        status=context.judge(p),
        note=f"{what} adds {gain.mean():+.3f} ({gain.mean() - half:+.3f} to {gain.mean() + half:+.3f}) to the best "
        "constant answer or prior",
    )
    low, high = _interval(prior, questions)
    prior_row = Row(
        name=f"{name}: prior of the target",
        n=len(questions),
        value=float(prior.mean()),
        low=low,
        high=high,
        chance=chance,
        note=f"for information; the best constant answer has {constant.mean():.3f}",
    )
    return Comparison(text_row, prior_row, float(gain.mean()), float(gain.mean()) - half)


# ---- features -----------------------------------------------------------------------------------------------------


def hash_text(text: str) -> int:
    """A 64-bit hash of a text, the same on every machine."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def hash_feature(words: str) -> int:
    """A feature of an option as four bytes."""
    return zlib.crc32(words.encode())


def extend_features(prefixes: Iterable[int], words: str) -> Iterable[int]:
    """Features that continue each prefix with the same words: `hash_feature(prefix + words)`, several times as fast."""
    rest = words.encode()
    return (zlib.crc32(rest, prefix) for prefix in prefixes)


def pack_features(numbers: Iterable[int]) -> "array[int]":
    """All features of one option."""
    return array("I", numbers)


def _prior_features(question: Question) -> Features:
    """How often an answer is right, in general and for the target."""
    return tuple(
        pack_features((hash_feature(f"prior {question.target} {text}"), hash_feature(f"text {text}")))
        for text in question.texts
    )


# ---- baselines ----------------------------------------------------------------------------------------------------


def _cross_validate(
    features: list[Features], questions: list[Question], folds: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Hits in each fold of a model that is trained on the others."""
    table = _tabulate(features, questions)
    result = np.zeros(len(questions))
    for fold in range(FOLDS):
        test = folds == fold
        if test.any() and not test.all():
            result[test] = score_hits(table.select(test), fit_logit(table.select(~test)))
    return result


def _best_constant(questions: list[Question]) -> NDArray[np.float64]:
    """Hits of the best constant answer of each group, by words or by number, chosen with the answers known."""
    result = np.zeros(len(questions))
    for group in {question.group for question in questions}:
        places = [at for at, question in enumerate(questions) if question.group == group]
        words = Counter(questions[at].texts[place] for at in places for place in questions[at].right)
        numbers = Counter(place for at in places for place in questions[at].right)
        (text, by_text), (number, by_number) = words.most_common(1)[0], numbers.most_common(1)[0]
        for at in places:
            question = questions[at]
            right_texts = {question.texts[place] for place in question.right}
            result[at] = number in question.right if by_number > by_text else text in right_texts
    return result


def _interval(values: NDArray[np.float64], questions: list[Question]) -> tuple[float, float]:
    half = Z95 * _clustered_error(values, [question.patient for question in questions])
    return max(0.0, float(values.mean()) - half), min(1.0, float(values.mean()) + half)


def _clustered_error(values: NDArray[np.float64], patients: list[str]) -> float:
    sums: defaultdict[str, float] = defaultdict(float)
    for patient, value in zip(patients, (values - values.mean()).tolist(), strict=True):
        sums[patient] += value
    return float(np.sqrt(sum(total * total for total in sums.values())) / len(values))


def _tabulate(features: list[Features], questions: list[Question]) -> QuestionTable:
    """All options in rows and their frequent features in columns."""
    options = [option for of_question in features for option in of_question]
    sizes = np.array([len(of_question) for of_question in features], np.int64)
    names, at = np.unique(
        np.concatenate([np.frombuffer(option, np.uint32) for option in options]), return_inverse=True
    )
    row = np.repeat(np.arange(len(options)), [len(option) for option in options])
    # A feature that an option has twice counts once; the order stays.
    once = np.sort(np.unique(row * names.size + at, return_index=True)[1])
    row, at = row[once], at[once]
    question = np.repeat(np.arange(len(features)), sizes)[row]
    times = np.bincount(np.unique(question * names.size + at) % names.size, minlength=names.size)
    frequent = times >= _RARE
    kept = frequent[at]
    columns = (np.cumsum(frequent) - 1)[at[kept]]
    ends = np.cumsum(np.bincount(row[kept], minlength=len(options)))
    matrix = sparse.csr_matrix(
        (np.ones(columns.size), columns, np.concatenate([[0], ends])),
        shape=(len(options), max(1, int(frequent.sum()))),
    )
    right = [(place in one.right) / len(one.right) for one in questions for place in range(len(one.texts))]
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    return QuestionTable(features=matrix, starts=starts, right=np.array(right, np.float64))
