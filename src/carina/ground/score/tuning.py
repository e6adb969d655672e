"""Thresholds that were chosen on one split of images and are applied, frozen, to another."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import msgspec

from carina.errors import CarinaError
from carina.files import write_bytes
from carina.ground.score.overlap import Counts
from carina.ground.score.rules import Chosen
from carina.ground.score.thresholds import best_threshold
from carina.ground.score.variants import Variant

_T = TypeVar("_T")

EVERY: Final = ""
"""Stands for all findings together."""


CUTOFFS: Final = tuple(k / 10 for k in range(9))
"""Probabilities below which cheXlocalize may show no map."""
LEAST_CUTOFFS: Final = {"Lung Lesion": 0.1}
"""Findings whose cut-off it keeps from being lower."""


class Thresholds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Thresholds, or cut-offs, by the name of the variant whose mean they make highest, and by finding."""

    split: str
    """On which images they were tuned."""
    chosen: dict[str, dict[str, float]]
    """Variant, then finding; the empty name has the threshold of all findings together."""
    images: tuple[str, ...] = ()
    """Digests of the images' ids, in order."""

    def of(self, variant: Variant, finding: str) -> float:
        """The threshold of a finding; of all together where it was not in the split."""
        found = self.chosen.get(tuned_variant(variant).name)
        if found is None:
            raise CarinaError(f"{variant}: split {self.split!r} has no tuned threshold for it")
        return found.get(finding, found[EVERY])


def digest(image: str) -> str:
    """What is kept of an image's id: enough to know it again, not to read it."""
    return hashlib.sha256(image.encode()).hexdigest()[:16]


def tuned_variant(variant: Variant) -> Variant:
    """The variant whose mean is the highest at the threshold that this one uses: it gives the threshold its name."""
    if variant.empty == "gated":
        return replace(variant, metric="iou")
    rule = variant.rule
    if not isinstance(rule, Chosen):
        raise CarinaError(f"{variant}: its threshold is not chosen on a set")
    return replace(
        variant, metric=rule.objective, empty=variant.empty or "positives", aggregation="per_image"
    )


def tune(
    variants: Sequence[Variant],
    curves: Callable[[Variant], Sequence[tuple[str, Counts]]],
    *,
    split: str,
    images: Iterable[str],
) -> Thresholds:
    """The best threshold for each finding and for all, from the finding and curve of each map."""
    chosen: dict[str, dict[str, float]] = {}
    for variant in variants:
        named = tuned_variant(variant)
        rule = named.rule
        if named.name in chosen or not isinstance(rule, Chosen):
            continue
        chosen[named.name] = {
            finding: best_threshold(own, rule.grid, rule.objective, named.empty)[1]
            for finding, own in _by_finding(curves(named)).items()
        }
    return Thresholds(split, chosen, _digests(images))


def tune_cutoffs(
    variants: Sequence[Variant],
    shown: Callable[[Variant], Sequence[tuple[str, "Shown"]]],
    *,
    split: str,
    images: Iterable[str],
) -> Thresholds:
    """The best cut-off for each finding and for all, from the finding of each map and how it fares if it is shown."""
    chosen = {}
    for named in dict.fromkeys(map(tuned_variant, variants)):
        chosen[named.name] = {
            finding: tune_cutoff(
                *zip(*own, strict=True), cutoffs=CUTOFFS, least=LEAST_CUTOFFS.get(finding, 0.0)
            )
            for finding, own in _by_finding(shown(named)).items()
        }
    return Thresholds(split, chosen, _digests(images))


class Shown(NamedTuple):
    """A map as it is, whatever the finding's probability."""

    probability: float
    iou: float
    """By `any_mask`."""
    truth_empty: bool


def _by_finding(every: Sequence[tuple[str, _T]]) -> dict[str, list[_T]]:
    """All together first, then each finding in order of names."""
    named = sorted({finding for finding, _ in every} - {EVERY})
    groups = {finding: [one for of, one in every if of == finding] for finding in named}
    return {EVERY: [one for _, one in every], **groups}


def _digests(images: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({digest(image) for image in images}))


def write_thresholds(path: Path, thresholds: Thresholds) -> None:
    """As JSON."""
    write_bytes(path, msgspec.json.format(msgspec.json.encode(thresholds), indent=2) + b"\n")


def read_thresholds(path: Path) -> Thresholds:
    """Thresholds that `write_thresholds` wrote."""
    try:
        read = msgspec.json.decode(path.read_bytes(), type=Thresholds)
    except OSError as error:
        raise CarinaError(f"{path}: cannot be read: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise CarinaError(f"{path}: not tuned thresholds: {error}") from error
    if any(EVERY not in by_finding for by_finding in read.chosen.values()):
        raise CarinaError(
            f"{path}: a variant lacks the threshold of all findings together, under an empty name"
        )
    if not read.images:
        raise CarinaError(f"{path}: lacks the digests of the images that it was tuned on; tune it again")
    return read


def tune_cutoff(
    probabilities: Sequence[float],
    shown: Sequence[float],
    truth_empty: Sequence[bool],
    *,
    cutoffs: Sequence[float],
    least: float = 0.0,
) -> float:
    """The probability below which a map is better not shown: cheXlocalize's cut-off, the first of equals.

    `shown` are the IoUs of the maps as they are, by `any_mask`. A map that is not shown predicts nothing: IoU 0 where
    something is true, undefined where nothing is. No cut-off is below `least`.
    """
    best, highest = max(least, cutoffs[0]), -1.0
    for cutoff in cutoffs:
        if cutoff < least:
            continue
        gated = [
            iou if probability >= cutoff else 0.0
            for probability, iou, empty in zip(probabilities, shown, truth_empty, strict=True)
            if iou == iou and (probability >= cutoff or not empty)  # noqa: PLR0124 - not NaN
        ]
        mean = sum(gated) / len(gated) if gated else -1.0
        if mean > highest:
            best, highest = cutoff, mean
    return best
