"""Gate: can steps with contours be answered by a rule that ignores the radiograph?

Options of step 3c: the largest, smallest, smoothest or most typical mask, the one with the fewest corners or with the
longest straight run. Points of steps 3a and 3b: the nearest to the contour or the farthest, among those on the side
where such a revision can be needed. Verdict of step 2: does the length, the size, a corner count or the straightness of
the contour predict whether it needs revision? For options and verdict, a small linear classifier over all features of
contours is fitted too, and scored on other patients; for options also boosted trees, which find interactions. For
options, classifiers also see how typical a mask is of the four and what it changes in the shown contour.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Annotated, Final

import cv2
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from carina.audits.chance import Z95, at_least, at_most, hit_row, limit, normal_tail, separation
from carina.audits.first_seen import Reservoir
from carina.audits.gate import AuditContext, Limits, Share, gate
from carina.audits.percept.base import MaskGate
from carina.audits.percept.contour_classifier import (
    FEWEST,
    FOLDS,
    find_right_options,
    find_right_options_by_trees,
    score_class,
)
from carina.audits.percept.masks import CaseMasks, contains, distance, edge, iou, perimeter
from carina.audits.result import GateResult, Row
from carina.audits.text_model import hash_text
from carina.cases.model import Case
from carina.percept.contour_features import FEATURES, measure_features
from carina.studies.region import Mask

_WARNING_ONLY: Final = ("roughest", "least typical", "closest to", "farthest from")
"""Rules that only warn when they are above chance."""
_MOST_VALUES: Final = 20_000
"""Contours of each target and path whose measures are compared."""
_MOST_ROWS: Final = 5_000
"""Cases on which a classifier is fitted."""
_OPTION_WIDTH: Final = len(FEATURES) + 4
"""Features of an option: those of its contour, how typical it is, how close to the shown contour, and what it adds to
the shown contour and removes from it."""
_SEPARATING: Final = tuple(
    at for at, name in enumerate(FEATURES) if name.startswith("corners") or "straight" in name
)
"""Features of which each is a rule by itself."""
OPTIONS: Final = 4
_TEXTURE: Final = 4.0
"""Pixels of the frame over which a contour is smoothed: finer detail is texture, coarser detail is shape."""


class ContourShortcutsLimits(Limits, frozen=True):
    """Limits of `contour-shortcuts`."""

    max_auc: Annotated[
        float,
        Meta(
            ge=0.5,
            le=1,
            description="Area under the ROC curve from which a measure of the contour separates the paths. An edit "
            "always changes the length of a contour a little; up to 0.60 that gains less than seven points of balanced "
            "accuracy.",
        ),
    ] = 0.60
    max_found: Annotated[
        Share,
        Meta(
            description="Share of right masks that a classifier over features of contours may find before the gate "
            "fails; chance is 0.25. Between chance and this share it warns.",
        ),
    ] = 0.35


@gate(
    "contour-shortcuts",
    title="Shortcuts through contours",
    meaning="No rule that ignores the radiograph answers steps with masks or points better than chance.",
    limits=ContourShortcutsLimits,
    protocols=("percept",),
    order=250,
)
class ContourShortcuts(MaskGate[ContourShortcutsLimits]):
    """Scores of simple rules about masks and points, beside chance."""

    cost = 67.0

    def __init__(self, context: AuditContext, limits: ContourShortcutsLimits) -> None:
        super().__init__(context, limits)
        self._hits: Counter[str] = Counter()
        self._trials: defaultdict[str, Counter[float]] = defaultdict(Counter)
        self._option_features = Reservoir(_MOST_ROWS, 2 + OPTIONS * _OPTION_WIDTH)
        """Fold, place of the right option, features of all options."""
        self._shown_features = Reservoir(_MOST_ROWS, 3 + len(FEATURES))
        """Fold, target, whether the path is RR, features of the shown contour."""
        self._targets: list[str] = []
        self._measures: defaultdict[str, defaultdict[str, dict[str, Reservoir]]] = defaultdict(
            lambda: defaultdict(lambda: {path: Reservoir(_MOST_VALUES) for path in ("RR", "RF")})
        )

    def examine(self, case: Case, masks: CaseMasks) -> None:
        if case.path is None or not masks.has("shown"):
            return
        self._n += 1
        shown = masks.mask("shown")
        truth = masks.mask("truth") if masks.has("truth") else None
        for name, value in _measure_contour(shown, truth, masks.pixel):
            self._measures[name][case.target or ""][case.path].add(case.id, value)
        self._keep_shown(case, measure_features(shown, masks.pixel))
        if masks.key is not None and len(masks.options) > 1:
            self._try_options(masks)
        if masks.points:
            self._try_points(masks, shown)

    def _keep_shown(self, case: Case, features: NDArray[np.float64]) -> None:
        for at in _SEPARATING:
            self._measures[FEATURES[at]][case.target or ""][case.path or ""].add(case.id, float(features[at]))
        if (case.target or "") not in self._targets:
            self._targets.append(case.target or "")
        target = self._targets.index(case.target or "")
        self._shown_features.add(case.id, _fold(case), target, case.path == "RR", *features)

    def _try_options(self, masks: CaseMasks) -> None:
        options = [masks.masks[region] for region in masks.options.values()]
        right = np.array([option == masks.key for option in masks.options])
        features = np.array([measure_features(mask, masks.pixel) for mask in options])
        rules = dict(_rank_options(options, masks.mask("shown")))
        for name, scores in (*rules.items(), *_rank_features(features)):
            best = np.isclose(scores, scores.max(), rtol=0, atol=1e-9)
            self._count(f"3 revision: {name} mask", float(right[best].mean()), 1 / len(options))
        if len(options) == OPTIONS:
            shown = masks.mask("shown")
            related = [
                rules["most typical"],
                rules["closest to the shown"],
                *np.array([_measure_revision(mask, shown) for mask in options]).T,
            ]
            rows = np.concatenate([features, np.array(related).T], axis=1)
            case = masks.case
            self._option_features.add(case.id, _fold(case), int(right.argmax()), *rows.ravel())

    def _try_points(self, masks: CaseMasks, shown: Mask) -> None:
        outline = edge(shown)
        for part, is_inside in (("expansion", False), ("contraction", True)):
            candidates = [p for p in masks.points if contains(shown, masks.window(p)) is is_inside]
            right = np.array([point.part == part for point in candidates], bool)
            if len(candidates) < 2 or not right.any() or right.all():
                continue
            away = np.array([distance(masks.window(point), outline) for point in candidates])
            chance = float(right.mean())
            self._count(f"3 {part}: nearest point", float(right[away == away.min()].mean()), chance)
            self._count(f"3 {part}: farthest point", float(right[away == away.max()].mean()), chance)

    def _count(self, name: str, hit: float, chance: float) -> None:
        self._hits[name] += hit  # type: ignore[assignment]
        self._trials[name][chance] += 1

    def result(self) -> GateResult:
        context = self.context
        tests = len(self._trials) + len(self._measures) + 3
        rows = [self._rule_row(name, tests) for name in sorted(self._trials)]
        rows += [row for name in sorted(self._measures) for row in self._measure_rows(name, tests)]
        rows += [*self._option_classifier_rows(tests), *self._path_classifier_rows(tests)]
        return self.report_rows(
            rows,
            n=self._n,
            threshold=f"no simple rule above chance (fail at {context.fail_level:g}, warn at {context.warn_level:g}, "
            f"corrected for all rules), no classifier above {self.limits.max_found:g}; no measure or classifier "
            f"separates RR from RF (fail from an area of {self.limits.max_auc:g}, warn if it is not chance)",
            good="No simple rule about masks or points does better than chance.",
            bad="A rule that ignores the radiograph does better than chance; choose other distractors, points or "
            "edits, so that right and wrong ones look alike.",
            warned="A rule that ignores the radiograph does slightly better than chance, or so badly that its choice "
            "can be ruled out; make right and wrong ones more alike where possible.",
            none="No case has contours as masks.",
        )

    def _rule_row(self, name: str, tests: int) -> Row:
        trials, hits, context = self._trials[name], float(self._hits[name]), self.context
        n = sum(trials.values())
        p = min(1.0, at_least(hits, trials) * tests)
        status = context.judge(p)
        if status == "fail" and any(word in name for word in _WARNING_ONLY):
            status = "warn"
        note = f"right in {hits:.4g} of {n}"
        if status == "pass" and at_most(hits, trials) * tests <= context.fail_level:
            status, note = "warn", f"{note}: so rarely that its choice can be ruled out"
            p = min(1.0, at_most(hits, trials) * tests)
        return hit_row(
            name,
            hits,
            trials,
            limit=limit(trials, context.warn_level / tests),
            p=p,
            status=status,
            note=note,
        )

    def _measure_rows(self, name: str, tests: int) -> Iterator[Row]:
        groups = [(paths["RR"].values, paths["RF"].values) for paths in self._measures[name].values()]
        area, error, n = separation(groups)
        if n:
            note = f"larger in RR than in RF in {area:.3f} of all pairs of the same target"
            p = min(1.0, 2 * normal_tail(abs(area - 0.5) / error) * tests) if error else 1.0
            yield self._separation_row(name, area, error, n, p=p, note=note)

    def _separation_row(self, name: str, area: float, error: float, n: int, *, p: float, note: str) -> Row:
        status = self.context.judge(p)
        if status == "fail" and max(area, 1 - area) < self.limits.max_auc:
            status = "warn"
        return Row(
            name=f"2 contour evaluation: {name}",
            n=n,
            value=area,
            low=max(0.0, area - Z95 * error),
            high=min(1.0, area + Z95 * error),
            chance=0.5,
            limit=self.limits.max_auc,
            p=p,
            status=status,
            note=note,
        )

    def _option_classifier_rows(self, tests: int) -> Iterator[Row]:
        rows = np.array(self._option_features.values).reshape(-1, 2 + OPTIONS * _OPTION_WIDTH)
        if len(rows) < FEWEST:
            return
        features = rows[:, 2:].reshape(-1, OPTIONS, _OPTION_WIDTH)
        folds, right = rows[:, 0].astype(np.int64), rows[:, 1].astype(np.int64)
        for name, find in (
            ("classifier over contours", find_right_options),
            ("boosted trees over contours", find_right_options_by_trees),
        ):
            yield self._classifier_row(f"3 revision: {name}", find(features, right, folds), tests)

    def _classifier_row(self, name: str, found: NDArray[np.float64], tests: int) -> Row:
        hits, trials = float(found.sum()), Counter({1 / OPTIONS: len(found)})
        p = min(1.0, at_least(hits, trials) * tests)
        status = self.context.judge(p)
        if status == "fail" and hits / len(found) <= self.limits.max_found:
            status = "warn"
        return hit_row(
            name,
            hits,
            trials,
            limit=self.limits.max_found,
            p=p,
            status=status,
            note=f"right in {hits:.4g} of {len(found)}, on patients that it was not fitted on",
        )

    def _path_classifier_rows(self, tests: int) -> Iterator[Row]:
        rows = np.array(self._shown_features.values).reshape(-1, 3 + len(FEATURES))
        is_revised = rows[:, 2] > 0
        if min(np.count_nonzero(is_revised), np.count_nonzero(~is_revised)) < FEWEST:
            return
        targets = rows[:, 1].astype(np.int64)
        scores = score_class(rows[:, 3:], is_revised, targets, rows[:, 0].astype(np.int64))
        area, error, n = separation(
            [
                (scores[is_revised & (targets == target)], scores[~is_revised & (targets == target)])
                for target in np.unique(targets)
            ]
        )
        # Less than one half means that nothing was learned: one side is tested.
        p = min(1.0, normal_tail((area - 0.5) / error) * tests) if error else 1.0
        note = f"higher in RR than in RF in {area:.3f} of all pairs of the same target, on other patients"
        yield self._separation_row("classifier over contours", area, error, n, p=p, note=note)


def _fold(case: Case) -> int:
    return hash_text(case.patient or case.id) % FOLDS


def _measure_revision(mask: Mask, shown: Mask) -> tuple[float, float]:
    """What a mask adds to the shown contour and removes from it, as shares of the shown contour."""
    area = max(int(np.count_nonzero(shown)), 1)
    return int(np.count_nonzero(mask & ~shown)) / area, int(np.count_nonzero(shown & ~mask)) / area


def _rank_features(features: NDArray[np.float64]) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """The rules about corners and straightness, as `_rank_options`."""
    for at in _SEPARATING:
        low, high = ("fewest", "most") if FEATURES[at].startswith("corners") else ("smallest", "largest")
        yield f"{low} {FEATURES[at]}", -features[:, at]
        yield f"{high} {FEATURES[at]}", features[:, at]


def _measure_contour(shown: Mask, truth: Mask | None, pixel: float) -> Iterator[tuple[str, float]]:
    area, length = int(np.count_nonzero(shown)), perimeter(shown)
    yield "area of the contour", float(area)
    yield "roughness (perimeter² / area)", length**2 / max(area, 1)
    blurred = cv2.GaussianBlur(
        shown.astype(np.float32), (0, 0), _TEXTURE * pixel, borderType=cv2.BORDER_CONSTANT
    )
    yield "texture (perimeter / smoothed)", length / max(perimeter(np.asarray(blurred > 0.5, bool)), 1.0)
    if truth is not None:
        yield "size of the lesion", float(np.count_nonzero(truth))


def _rank_options(masks: list[Mask], shown: Mask) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Simple rules, each with a score for every option; the option with the highest score is chosen."""
    areas = np.array([np.count_nonzero(mask) for mask in masks], np.float64)
    rough = np.array([perimeter(mask) ** 2 for mask in masks]) / np.maximum(areas, 1)
    overlaps = np.array([[iou(one, other) for other in masks] for one in masks])
    typical = (overlaps.sum(axis=1) - 1) / (len(masks) - 1)
    to_shown = np.array([iou(mask, shown) for mask in masks])
    yield "largest", areas
    yield "smallest", -areas
    yield "smoothest", -rough
    yield "roughest", rough
    yield "most typical", typical
    yield "least typical", -typical
    yield "closest to the shown", to_shown
    yield "farthest from the shown", -to_shown
