"""Gate: can a picture be answered by a rule that knows nothing of the X-ray?

Options of 3c: the largest, smallest, smoothest or most typical mask. Points of 3a and 3b: the nearest to the contour
or the farthest, among those on the side where such a revision can be needed. Verdict: does the length of the
contour or its size tell what needs revision?
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.cases.audit import GateResult, Row, judged, measured
from carina.cases.audit.chance import Z95, at_least, at_most, limit, normal_tail, separation, wilson
from carina.cases.audit.reservoir import Reservoir
from carina.cases.model import Case
from carina.percept.audit.limits import Limits
from carina.percept.audit.parts import Decoder, Parts, distance, edge, holds, iou, perimeter
from carina.studies.region import Mask

_TRIED_ONLY: Final = ("roughest", "least typical", "closest to", "farthest from")
"""Rules for information: above chance they are a warning."""
_MOST_VALUES: Final = 20_000
"""Contours of each target and path whose measures are compared."""
_TEXTURE: Final = 4.0
"""Pixels of the frame over which a contour is smoothed: finer detail is texture, coarser is shape."""


class Shortcuts:
    """Scores of rules of thumb, against chance."""

    cost = 67.0

    def __init__(self, limits: Limits, decoder: Decoder) -> None:
        self._limits = limits
        self.decoder = decoder
        self._hits: Counter[str] = Counter()
        self._trials: defaultdict[str, Counter[float]] = defaultdict(Counter)
        self._measures: defaultdict[str, defaultdict[str, dict[str, Reservoir]]] = defaultdict(
            lambda: defaultdict(lambda: {path: Reservoir(_MOST_VALUES) for path in ("RR", "RF")})
        )
        self._n = 0

    def see(self, case: Case) -> None:
        parts = self.decoder.parts(case)
        if parts is None or case.path is None or not parts.has("shown"):
            return
        self._n += 1
        shown = parts.mask("shown")
        truth = parts.mask("truth") if parts.has("truth") else None
        for name, value in _measures(shown, truth, parts.pixel):
            self._measures[name][case.target or ""][case.path].add(case.id, value)
        if parts.key is not None and len(parts.options) > 1:
            self._see_options(parts)
        if parts.points:
            self._see_points(parts, shown)

    def _see_options(self, parts: Parts) -> None:
        masks = [parts.masks[region] for region in parts.options.values()]
        right = np.array([option == parts.key for option in parts.options])
        for name, scores in _ranked(masks, parts.mask("shown")):
            best = np.isclose(scores, scores.max(), rtol=0, atol=1e-12)
            self._note(f"3 revision: {name} mask", float(right[best].mean()), 1 / len(masks))

    def _see_points(self, parts: Parts, shown: Mask) -> None:
        outline = edge(shown)
        for part, inside in (("expansion", False), ("contraction", True)):
            there = [p for p in parts.points if holds(shown, parts.window(p)) is inside]
            right = np.array([point.part == part for point in there], bool)
            if len(there) < 2 or not right.any() or right.all():
                continue
            away = np.array([distance(parts.window(point), outline) for point in there])
            chance = float(right.mean())
            self._note(f"3 {part}: nearest point", float(right[away == away.min()].mean()), chance)
            self._note(f"3 {part}: farthest point", float(right[away == away.max()].mean()), chance)

    def _note(self, name: str, hit: float, chance: float) -> None:
        self._hits[name] += hit  # type: ignore[assignment]
        self._trials[name][chance] += 1

    def result(self) -> GateResult:
        levels = self._limits.common
        tests = len(self._trials) + len(self._measures)
        rows = [self._rule(name, tests) for name in sorted(self._trials)]
        rows += [row for name in sorted(self._measures) for row in self._separation(name, tests)]
        return measured(
            "shortcuts",
            rows,
            n=self._n,
            threshold=f"no rule of thumb above chance (fail at {levels.fail_level:g}, warn at {levels.warn_level:g}, "
            f"all rules together); no measure tells RR from RF (fail from an area of {self._limits.separation:g}, "
            "warn if it is not chance)",
            good="No rule of thumb about masks or points does better than chance.",
            bad="A rule that ignores the X-ray does better than chance; choose other distractors, points or edits so "
            "that right and wrong ones look alike.",
            warned="A rule that ignores the X-ray does a little better than chance, or so badly that its choice can be "
            "ruled out; look whether right and wrong ones can be made more alike.",
            none="No case has contours as masks.",
        )

    def _rule(self, name: str, tests: int) -> Row:
        trials, hits, levels = self._trials[name], float(self._hits[name]), self._limits.common
        n = sum(trials.values())
        p = min(1.0, at_least(hits, trials) * tests)
        gated = not any(word in name for word in _TRIED_ONLY)
        status = judged(p, warn=levels.warn_level, fail=levels.fail_level if gated else -1.0)
        note = f"right in {hits:.4g} of {n}"
        if status == "pass" and at_most(hits, trials) * tests <= levels.fail_level:
            status, note = "warn", f"{note}: hardly ever, so it can be ruled out"
            p = min(1.0, at_most(hits, trials) * tests)
        low, high = wilson(hits, n)
        return Row(
            name=name,
            n=n,
            value=hits / n,
            low=low,
            high=high,
            chance=sum(share * times for share, times in trials.items()) / n,
            limit=limit(trials, levels.warn_level / tests),
            p=p,
            status=status,
            note=note,
        )

    def _separation(self, name: str, tests: int) -> Iterator[Row]:
        groups = [(paths["RR"].values, paths["RF"].values) for paths in self._measures[name].values()]
        area, error, n = separation(groups)
        if not n:
            return
        levels = self._limits.common
        p = min(1.0, 2 * normal_tail(abs(area - 0.5) / error) * tests) if error else 1.0
        grave = max(area, 1 - area) >= self._limits.separation
        status = judged(p, warn=levels.warn_level, fail=levels.fail_level if grave else -1.0)
        yield Row(
            name=f"2 contour evaluation: {name}",
            n=n,
            value=area,
            low=max(0.0, area - Z95 * error),
            high=min(1.0, area + Z95 * error),
            chance=0.5,
            limit=self._limits.separation,
            p=p,
            status=status,
            note=f"larger in RR than in RF in {area:.3f} of all pairs of the same target",
        )


def _measures(shown: Mask, truth: Mask | None, pixel: float) -> Iterator[tuple[str, float]]:
    area, length = int(np.count_nonzero(shown)), perimeter(shown)
    yield "area of the contour", float(area)
    yield "roughness (perimeter² / area)", length**2 / max(area, 1)
    blurred = cv2.GaussianBlur(
        shown.astype(np.float32), (0, 0), _TEXTURE * pixel, borderType=cv2.BORDER_CONSTANT
    )
    yield "texture (perimeter / smoothed)", length / max(perimeter(np.asarray(blurred > 0.5, bool)), 1.0)
    if truth is not None:
        yield "size of the lesion", float(np.count_nonzero(truth))


def _ranked(masks: list[Mask], shown: Mask) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Rules of thumb, each with a score for every option; the highest is chosen."""
    areas = np.array([np.count_nonzero(mask) for mask in masks], np.float64)
    rough = np.array([perimeter(mask) ** 2 for mask in masks]) / np.maximum(areas, 1)
    overlaps = np.array([[iou(one, other) for other in masks] for one in masks])
    typical = (overlaps.sum(axis=1) - 1) / (len(masks) - 1)
    beside = np.array([iou(mask, shown) for mask in masks])
    yield "largest", areas
    yield "smallest", -areas
    yield "smoothest", -rough
    yield "roughest", rough
    yield "most typical", typical
    yield "least typical", -typical
    yield "closest to the shown", beside
    yield "farthest from the shown", -beside
