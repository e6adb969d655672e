"""Thresholds and probability cut-offs that are selected on one split of images and applied, unchanged, to another."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import msgspec
import numpy as np

from carina.maps.counts import MaskCounts
from carina.maps.region_files import unify_finding
from carina.maps.rules import GRIDS, SelectedThreshold
from carina.maps.thresholds import select_threshold
from carina.maps.variants import Variant, parse_variant
from carina.store.documents import read_csv, read_json
from carina.store.errors import CarinaError
from carina.store.files import write_bytes
from carina.store.results import Location, as_path

_T = TypeVar("_T")

ALL_FINDINGS: Final = ""
"""Name under which `Thresholds` holds the threshold of all findings together."""
CUTOFFS: Final = tuple(k / 10 for k in range(9))
"""Candidates for the probability below which cheXlocalize shows no map."""
MIN_CUTOFFS: Final = {"Lung Lesion": 0.1}
"""Lowest cut-off of a finding, where cheXlocalize sets one."""
_CHEXLOCALIZE_VARIANT: Final = "iou.torch_full.full_image.tuned_iou_minmax7.tp_only"
"""The variant to which the thresholds in a table of cheXlocalize belong."""
_ROUNDING: Final = 1e-9
_CHEXLOCALIZE_COLUMNS: Final = ("threshold", "task")


class Thresholds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Thresholds, or probability cut-offs, by metric variant and finding. Written by `write_thresholds`."""

    split: str
    """Name of the split on which they were tuned."""
    chosen: dict[str, dict[str, float]]
    """Threshold by the variant whose mean it makes highest, then by finding; the empty name stands for all findings."""
    images: tuple[str, ...] = ()
    """Digests of the ids of the images on which they were tuned, sorted; empty in a table of cheXlocalize, which does
    not state them."""

    def find(self, variant: Variant, finding: str) -> float:
        """The threshold of a finding; that of all findings together where the split did not have the finding.

        Raises:
            CarinaError: Nothing was tuned for the variant, or for the finding and for all findings.
        """
        by_finding = self.chosen.get(tuned_variant(variant).name)
        if by_finding is None:
            raise CarinaError(f"{variant}: no threshold was tuned for it on split {self.split!r}")
        found = by_finding.get(finding, by_finding.get(ALL_FINDINGS))
        if found is None:
            raise CarinaError(
                f"{self.split}: no threshold for {finding!r}; it has {', '.join(sorted(by_finding))}"
            )
        return found


def digest_id(image: str) -> str:
    """A digest of an image's id, which recognises the id without disclosing it."""
    return hashlib.sha256(image.encode()).hexdigest()[:16]


def tuned_variant(variant: Variant) -> Variant:
    """The variant whose mean is highest at the threshold that this variant uses; thresholds are stored under its name.

    Raises:
        CarinaError: The threshold of the variant is not selected on a set of images.
    """
    if variant.empty == "gated":
        return replace(variant, metric="iou")
    rule = variant.rule
    if not isinstance(rule, SelectedThreshold):
        raise CarinaError(f"{variant}: its threshold is not selected on a set of images")
    return replace(
        variant, metric=rule.objective, empty=variant.empty or "positives", aggregation="per_image"
    )


def tune_thresholds(
    variants: Sequence[Variant],
    curves: Callable[[Variant], Sequence[tuple[str, MaskCounts]]],
    *,
    split: str,
    images: Iterable[str],
) -> Thresholds:
    """Select the best threshold for each finding and for all findings together.

    Args:
        variants: Variants whose thresholds are selected.
        curves: Gives the finding and the counts at each threshold of every map, for a variant.
        split: Name of the split.
        images: Ids of its images.
    """
    chosen: dict[str, dict[str, float]] = {}
    for variant in variants:
        objective = tuned_variant(variant)
        rule = objective.rule
        if objective.name in chosen or not isinstance(rule, SelectedThreshold):
            continue
        chosen[objective.name] = {
            finding: select_threshold(counts, rule.grid, rule.objective, objective.empty)[1]
            for finding, counts in _group_by_finding(curves(objective)).items()
        }
    return Thresholds(split, chosen, _digest_ids(images))


class UngatedScore(NamedTuple):
    """Probability of the finding, and score of its map without a cut-off."""

    probability: float
    iou: float
    """IoU with `any_mask`."""
    is_truth_empty: bool


def tune_cutoffs(
    variants: Sequence[Variant],
    ungated_scores: Callable[[Variant], Sequence[tuple[str, UngatedScore]]],
    *,
    split: str,
    images: Iterable[str],
) -> Thresholds:
    """Select the best probability cut-off for each finding and for all findings together.

    Args:
        variants: Gated variants.
        ungated_scores: Gives the finding and the score of every map without a cut-off, for a variant.
        split: Name of the split.
        images: Ids of its images.
    """
    chosen = {}
    for variant in dict.fromkeys(map(tuned_variant, variants)):
        chosen[variant.name] = {
            finding: tune_cutoff(
                *zip(*scores, strict=True), cutoffs=CUTOFFS, min_cutoff=MIN_CUTOFFS.get(finding, 0.0)
            )
            for finding, scores in _group_by_finding(ungated_scores(variant)).items()
        }
    return Thresholds(split, chosen, _digest_ids(images))


def _group_by_finding(items: Sequence[tuple[str, _T]]) -> dict[str, list[_T]]:
    """All items first, then those of each finding in order of names."""
    findings = sorted({finding for finding, _ in items} - {ALL_FINDINGS})
    groups = {name: [item for finding, item in items if finding == name] for name in findings}
    return {ALL_FINDINGS: [item for _, item in items], **groups}


def _digest_ids(images: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({digest_id(image) for image in images}))


def write_thresholds(path: Location, thresholds: Thresholds) -> None:
    """Write thresholds or cut-offs as JSON.

    Args:
        path: File to write.
        thresholds: What `Scorer.tune` or `Scorer.tune_cutoffs` returned.

    Example:
        >>> tuned = Thresholds("valid", {"iou": {"": 0.5, "edema": 0.3}}, images=(digest_id("image-1"),))
        >>> write_thresholds("thresholds.json", tuned)
        >>> read_thresholds("thresholds.json").chosen
        {'iou': {'': 0.5, 'edema': 0.3}}
    """
    content = msgspec.json.format(msgspec.json.encode(thresholds), indent=2) + b"\n"
    write_bytes(as_path(path), content)


def read_thresholds(path: Location) -> Thresholds:
    """Read thresholds or cut-offs that `write_thresholds` wrote, or the table of thresholds that cheXlocalize writes.

    The table, `tuning_results.csv` with the columns threshold and task, holds a threshold for each finding. It does not
    state on which images they were tuned, so that no scored image can be refused because of that.

    Args:
        path: File to read; the name of a table ends in .csv.

    Returns:
        The thresholds. `find` returns that of a variant and finding.

    Raises:
        CarinaError: The file cannot be read, or does not hold thresholds.

    Example:
        >>> read_thresholds("regions.json")
        Traceback (most recent call last):
        carina.store.errors.CarinaError: regions.json: not tuned thresholds: ...
    """
    file = as_path(path)
    if file.suffix.lower() == ".csv":
        return _read_chexlocalize_thresholds(file)
    thresholds = read_json(file, Thresholds, what="tuned thresholds")
    for variant, by_finding in thresholds.chosen.items():
        if ALL_FINDINGS not in by_finding:
            raise CarinaError(
                f"{file}, {variant}: lacks the threshold of all findings together, under an empty name; tune it again"
            )
    if not thresholds.images:
        raise CarinaError(f"{file}: lacks the digests of the images that it was tuned on; tune it again")
    return thresholds


def _read_chexlocalize_thresholds(file: Path) -> Thresholds:
    rows = read_csv(file)
    missing = [name for name in _CHEXLOCALIZE_COLUMNS if not rows or name not in rows[0]]
    if missing:
        raise CarinaError(
            f"{file}: expected the columns threshold and task of cheXlocalize's tuning_results.csv"
        )
    chosen: dict[str, float] = {}
    for number, row in enumerate(rows, start=2):
        finding = unify_finding(row["task"].strip())
        if not finding or finding in chosen:
            raise CarinaError(
                f"{file}, row {number}, task: expected another finding in each row, found {finding!r}"
            )
        chosen[finding] = _find_chexlocalize_threshold(row, f"{file}, row {number}, threshold")
    return Thresholds(file.name, {parse_variant(_CHEXLOCALIZE_VARIANT).name: chosen})


def _find_chexlocalize_threshold(row: Mapping[str, str], where: str) -> float:
    """One of the thresholds that are tried; the table has it rounded, 0.3 where numpy's steps give a little more."""
    tried = GRIDS["minmax7"].make()
    text = row["threshold"].strip()
    try:
        nearest = tried[np.argmin(np.abs(tried - float(text)))]
        is_known = abs(nearest - float(text)) < _ROUNDING
    except ValueError:
        is_known = False
    if not is_known:
        raise CarinaError(
            f"{where}: expected one of {', '.join(f'{one:.1f}' for one in tried)}, found {text!r}"
        )
    return float(text)


def tune_cutoff(
    probabilities: Sequence[float],
    ious: Sequence[float],
    is_truth_empty: Sequence[bool],
    *,
    cutoffs: Sequence[float],
    min_cutoff: float = 0.0,
) -> float:
    """Select the probability below which showing no map gives the highest mean IoU, as cheXlocalize does.

    A map that is not shown predicts nothing: its IoU is 0 where the truth is not empty and undefined where it is.

    Args:
        probabilities: Probability of the finding for each map.
        ious: IoU of each map with `any_mask`; NaN where it is undefined.
        is_truth_empty: Whether the truth of each map is empty.
        cutoffs: Candidates, ascending.
        min_cutoff: Candidates below it are left out.

    Returns:
        The lowest of the equally good cut-offs.

    Example:
        >>> tune_cutoff([0.9, 0.1], [0.5, 0.0], [False, True], cutoffs=[0.0, 0.5])
        0.5
    """
    best, highest = max(min_cutoff, cutoffs[0]), -1.0
    for cutoff in cutoffs:
        if cutoff < min_cutoff:
            continue
        gated = [
            iou if probability >= cutoff else 0.0
            for probability, iou, is_empty in zip(probabilities, ious, is_truth_empty, strict=True)
            if iou == iou and (probability >= cutoff or not is_empty)  # noqa: PLR0124 - not NaN
        ]
        mean = sum(gated) / len(gated) if gated else -1.0
        if mean > highest:
            best, highest = cutoff, mean
    return best
