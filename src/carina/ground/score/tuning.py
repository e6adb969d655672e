"""Thresholds that were chosen on one split of images and are applied, frozen, to another."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec

from carina.errors import CarinaError
from carina.files import write_bytes
from carina.ground.score.overlap import Counts
from carina.ground.score.rules import Chosen
from carina.ground.score.thresholds import best_threshold
from carina.ground.score.variants import Variant

EVERY: Final = ""
"""Stands for all findings together."""


class Thresholds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Thresholds by the name of the variant whose mean they make highest, and by finding."""

    split: str
    """On which images they were tuned."""
    chosen: dict[str, dict[str, float]]
    """Variant, then finding; the empty name has the threshold of all findings together."""

    def of(self, variant: Variant, finding: str) -> float:
        """The threshold of a finding; of all together where it was not in the split."""
        found = self.chosen.get(tuned_variant(variant).name)
        if found is None:
            raise CarinaError(f"{variant}: split {self.split!r} has no tuned threshold for it")
        return found.get(finding, found[EVERY])


def tuned_variant(variant: Variant) -> Variant:
    """The variant whose mean is the highest at the threshold that this one uses: it gives the threshold its name."""
    rule = variant.rule
    if not isinstance(rule, Chosen):
        raise CarinaError(f"{variant}: its threshold is not chosen on a set")
    return replace(
        variant, metric=rule.objective, empty=variant.empty or "positives", aggregation="per_image"
    )


def tune(
    variants: Sequence[Variant],
    findings: Sequence[str],
    curves: Callable[[Variant], Sequence[Counts]],
    *,
    split: str,
) -> Thresholds:
    """The best threshold for each finding and for all, from each image's curve and finding in the same order."""
    chosen: dict[str, dict[str, float]] = {}
    for variant in variants:
        named = tuned_variant(variant)
        rule = named.rule
        if named.name in chosen or not isinstance(rule, Chosen):
            continue
        every = curves(named)
        groups: Mapping[str, list[Counts]] = {
            EVERY: list(every),
            **{
                finding: [counts for counts, of in zip(every, findings, strict=True) if of == finding]
                for finding in sorted(set(findings))
            },
        }
        chosen[named.name] = {
            finding: best_threshold(own, rule.grid, rule.objective, named.empty)[1]
            for finding, own in groups.items()
        }
    return Thresholds(split, chosen)


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
