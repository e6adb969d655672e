"""Gate: what do rules of thumb score? Always yes, the first, last or longest option, none of these, the mean box."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from carina.cases.audit import GateResult, Row, judged, measured
from carina.cases.audit.chance import Z95, at_least, limit, shifted, wilson
from carina.cases.audit.reservoir import Reservoir
from carina.cases.audit.steps import task_of
from carina.cases.model import Box, Case
from carina.trek.audit.form import sides
from carina.trek.audit.limits import Limits
from carina.trek.audit.tallies import share
from carina.trek.audit.turns import Decoder, Turn

_LEAST_BOXES: Final = 10
_MOST_NAMES: Final = 2000
"""Names whose boxes are kept; later ones are too rare to have a mean box."""


class Baselines:
    """Rules of thumb, against chance where it is known."""

    cost = 2.0

    def __init__(self, limits: Limits, decoder: Decoder) -> None:
        self._limits = limits
        self.decoder = decoder
        self._n = 0
        self._yes: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._hits: defaultdict[tuple[str, str], float] = defaultdict(float)
        self._trials: defaultdict[tuple[str, str], Counter[float]] = defaultdict(Counter)
        self._boxes: dict[str, Reservoir] = {}

    def see(self, case: Case) -> None:
        conversation = self.decoder.read(case)
        if conversation is None:
            return
        self._n += 1
        for turn in conversation.turns:
            step = turn.step
            if step.format == "yes_no":
                self._yes[task_of(step)][turn.label or ""] += 1
            elif turn.choices is not None and len(turn.choices.texts) > 1:
                self._see_options(turn)
            elif step.key.boxes:
                self._see_boxes(case, step.key.boxes)

    def _see_options(self, turn: Turn) -> None:
        found = turn.choices
        if found is None:
            return
        task, texts, right = task_of(turn.step), found.texts, found.right
        chance = len(right) / len(texts)
        lengths = list(map(len, texts))
        longest = max(lengths)
        tied = [place for place, length in enumerate(lengths) if length == longest]
        self._note(task, "first option", 0 in right, chance)
        self._note(task, "last option", len(texts) - 1 in right, chance)
        if len(tied) < len(texts):
            self._note(task, "longest option", sum(place in right for place in tied) / len(tied), chance)
        if len(found.content) < len(texts):
            none = min(set(range(len(texts))).difference(found.content))
            self._note(task, "none of these", none in right, chance)

    def _note(self, task: str, rule: str, hit: float, chance: float) -> None:
        self._hits[task, rule] += hit
        self._trials[task, rule][chance] += 1

    def _see_boxes(self, case: Case, boxes: tuple[Box, ...]) -> None:
        if len(boxes) != 1:
            return
        box = boxes[0]
        image = next((image for image in case.images if image.key == box.image), None)
        if image is None:
            return
        kept = self._boxes.get(box.name)
        if kept is None:
            if len(self._boxes) >= _MOST_NAMES:
                return
            kept = self._boxes[box.name] = Reservoir(self._limits.boxes, width=4)
        width, height = sides(box, image)
        x1, y1, x2, y2 = box.xyxy
        kept.add(f"{case.id} {box.name}", x1 / width, y1 / height, x2 / width, y2 / height)

    def result(self) -> GateResult:
        tests = len(self._trials)
        rows = [row for task in sorted(self._yes) for row in self._always(task)]
        rows += [self._rule(task, rule, tests) for task, rule in sorted(self._trials)]
        rows += list(self._mean_boxes())
        limits = self._limits
        return measured(
            "baselines",
            rows,
            n=self._n,
            threshold=f"first, last, longest option and none of these at most {limits.baseline:g} above chance (fail "
            f"at {limits.common.fail_level:g}, warn at {limits.common.warn_level:g}, all together); the others for "
            "information",
            good="No rule of thumb about the list of options does better than chance.",
            bad="A rule of thumb that ignores image and question does better than chance; draw the places, lengths and "
            "number of right options anew.",
            none="No question is closed or answered with a box.",
        )

    def _always(self, task: str) -> Iterator[Row]:
        answers = self._yes[task]
        n = answers.total()
        yield share(
            f"{task}: always yes",
            answers["yes"],
            n,
            note=f"for information; uncertain in {answers['uncertain']}",
        )

    def _rule(self, task: str, rule: str, tests: int) -> Row:
        trials, hits, limits = self._trials[task, rule], self._hits[task, rule], self._limits
        n = sum(trials.values())
        allowed = shifted(trials, limits.baseline)
        p = min(1.0, at_least(hits, allowed) * tests)
        low, high = wilson(hits, n)
        return Row(
            name=f"{task}: {rule}",
            n=n,
            value=hits / n,
            low=low,
            high=high,
            chance=sum(chance * times for chance, times in trials.items()) / n,
            limit=limit(allowed, limits.common.warn_level / tests),
            p=p,
            status=judged(p, warn=limits.common.warn_level, fail=limits.common.fail_level),
            note=f"right in {hits:.4g} of {n}",
        )

    def _mean_boxes(self) -> Iterator[Row]:
        """How well the mean box of a name does on each of them."""
        everything: list[float] = []
        for name in sorted(self._boxes):
            boxes = np.array(self._boxes[name].values).reshape(-1, 4)
            if len(boxes) < _LEAST_BOXES:
                continue
            overlaps = iou(boxes, boxes.mean(axis=0))
            everything += overlaps.tolist()
            yield _mean_row(f"mean box: {name}", overlaps)
        if everything:
            yield _mean_row("mean box: all names", np.array(everything))


def _mean_row(name: str, overlaps: NDArray[np.float64]) -> Row:
    mean = float(overlaps.mean())
    half = Z95 * float(overlaps.std(ddof=1)) / len(overlaps) ** 0.5 if len(overlaps) > 1 else 0.0
    half_right = float((overlaps >= 0.5).mean())
    return Row(
        name=name,
        n=len(overlaps),
        value=mean,
        low=max(0.0, mean - half),
        high=min(1.0, mean + half),
        note=f"mean IoU, for information; at least 0.5 in {half_right:.0%}",
    )


def iou(boxes: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """Overlap of each box with another one."""
    width = np.minimum(boxes[:, 2], other[2]) - np.maximum(boxes[:, 0], other[0])
    height = np.minimum(boxes[:, 3], other[3]) - np.maximum(boxes[:, 1], other[1])
    common = np.clip(width, 0, None) * np.clip(height, 0, None)
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    area = (other[2] - other[0]) * (other[3] - other[1])
    return np.asarray(common / np.maximum(areas + area - common, 1e-12), np.float64)
