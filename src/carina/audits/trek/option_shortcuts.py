"""Gate: what do simple rules score? Always yes; the first, last or longest option; none of these; the mean box."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Annotated, Final

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from carina.audits.answer_options import task_of
from carina.audits.chance import Z95, at_least, hit_row, limit, shift
from carina.audits.first_seen import Reservoir
from carina.audits.gate import AuditContext, Count, Limits, Share, gate
from carina.audits.result import GateResult, Row
from carina.audits.trek.base import ConversationGate
from carina.audits.trek.conversation import Conversation, Turn
from carina.audits.trek.proportions import share_row
from carina.audits.trek.turn_structure import frame_size
from carina.cases.model import Box, Case

_MIN_BOXES: Final = 10
"""Boxes of a name from which its mean box is tried."""
_MOST_NAMES: Final = 2000
"""Names whose boxes are kept; later ones are too rare to have a mean box."""


class OptionShortcutsLimits(Limits, frozen=True):
    """Limits of `option-shortcuts`."""

    margin: Annotated[
        Share,
        Meta(
            description='Share by which the first, last or longest option, or "none of these", may be right more often '
            "than chance."
        ),
    ] = 0.05
    max_boxes: Annotated[Count, Meta(description="Boxes of each name that the mean box is tried on.")] = 400


@gate(
    "option-shortcuts",
    title="Shortcuts through options and boxes",
    meaning="No simple rule about the list of options does better than chance.",
    limits=OptionShortcutsLimits,
    protocols=("trek",),
    order=400,
)
class OptionShortcuts(ConversationGate[OptionShortcutsLimits]):
    """Scores of simple rules, beside chance where it is known."""

    cost = 2.0

    def __init__(self, context: AuditContext, limits: OptionShortcutsLimits) -> None:
        super().__init__(context, limits)
        self._yes: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._hits: defaultdict[tuple[str, str], float] = defaultdict(float)
        self._trials: defaultdict[tuple[str, str], Counter[float]] = defaultdict(Counter)
        self._boxes: dict[str, Reservoir] = {}

    def examine(self, conversation: Conversation) -> None:
        for turn in conversation.turns:
            step = turn.step
            if step.format == "yes_no":
                self._yes[task_of(step)][turn.label or ""] += 1
            elif turn.choices is not None and len(turn.choices.texts) > 1:
                self._try_options(turn)
            elif step.key.boxes:
                self._add_boxes(conversation.case, step.key.boxes)

    def _try_options(self, turn: Turn) -> None:
        choices = turn.choices
        if choices is None:
            return
        task, texts, right = task_of(turn.step), choices.texts, choices.right
        chance = len(right) / len(texts)
        lengths = list(map(len, texts))
        longest = max(lengths)
        tied = [place for place, length in enumerate(lengths) if length == longest]
        self._count(task, "first option", 0 in right, chance)
        self._count(task, "last option", len(texts) - 1 in right, chance)
        if len(tied) < len(texts):
            self._count(task, "longest option", sum(place in right for place in tied) / len(tied), chance)
        if len(choices.content) < len(texts):
            none = min(set(range(len(texts))).difference(choices.content))
            self._count(task, "none of these", none in right, chance)

    def _count(self, task: str, rule: str, hit: float, chance: float) -> None:
        self._hits[task, rule] += hit
        self._trials[task, rule][chance] += 1

    def _add_boxes(self, case: Case, boxes: tuple[Box, ...]) -> None:
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
            kept = self._boxes[box.name] = Reservoir(self.limits.max_boxes, width=4)
        width, height = frame_size(box, image)
        x1, y1, x2, y2 = box.xyxy
        kept.add(f"{case.id} {box.name}", x1 / width, y1 / height, x2 / width, y2 / height)

    def result(self) -> GateResult:
        tests = len(self._trials)
        rows = [row for task in sorted(self._yes) for row in self._always_yes_row(task)]
        rows += [self._rule_row(task, rule, tests) for task, rule in sorted(self._trials)]
        rows += list(self._mean_box_rows())
        limits = self.limits
        return self.report_rows(
            rows,
            n=self._n,
            threshold=f"first, last, longest option and none of these at most {limits.margin:g} above chance (fail "
            f"at {self.context.fail_level:g}, warn at {self.context.warn_level:g}, corrected for all rules); other "
            "rows are for information",
            good="No simple rule about the list of options does better than chance.",
            bad="A simple rule that ignores image and question does better than chance; randomise the positions, "
            "lengths and number of right options.",
            none="No question is closed or answered with a box.",
        )

    def _always_yes_row(self, task: str) -> Iterator[Row]:
        answers = self._yes[task]
        n = answers.total()
        yield share_row(
            f"{task}: always yes",
            answers["yes"],
            n,
            note=f"for information; uncertain in {answers['uncertain']}",
        )

    def _rule_row(self, task: str, rule: str, tests: int) -> Row:
        trials, hits, limits = self._trials[task, rule], self._hits[task, rule], self.limits
        n = sum(trials.values())
        allowed = shift(trials, limits.margin)
        p = min(1.0, at_least(hits, allowed) * tests)
        return hit_row(
            f"{task}: {rule}",
            hits,
            trials,
            limit=limit(allowed, self.context.warn_level / tests),
            p=p,
            status=self.context.judge(p),
            note=f"right in {hits:.4g} of {n}",
        )

    def _mean_box_rows(self) -> Iterator[Row]:
        """IoU of the mean box of a name with each of its boxes."""
        everything: list[float] = []
        for name in sorted(self._boxes):
            boxes = np.array(self._boxes[name].values).reshape(-1, 4)
            if len(boxes) < _MIN_BOXES:
                continue
            overlaps = box_iou(boxes, boxes.mean(axis=0))
            everything += overlaps.tolist()
            yield _mean_row(f"mean box: {name}", overlaps)
        if everything:
            yield _mean_row("mean box: all names", np.array(everything))


def _mean_row(name: str, overlaps: NDArray[np.float64]) -> Row:
    mean = float(overlaps.mean())
    half = Z95 * float(overlaps.std(ddof=1)) / len(overlaps) ** 0.5 if len(overlaps) > 1 else 0.0
    at_half = float((overlaps >= 0.5).mean())
    return Row(
        name=name,
        n=len(overlaps),
        value=mean,
        low=max(0.0, mean - half),
        high=min(1.0, mean + half),
        note=f"mean IoU, for information; at least 0.5 in {at_half:.0%}",
    )


def box_iou(boxes: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """IoU of each box with another box."""
    width = np.minimum(boxes[:, 2], other[2]) - np.maximum(boxes[:, 0], other[0])
    height = np.minimum(boxes[:, 3], other[3]) - np.maximum(boxes[:, 1], other[1])
    common = np.clip(width, 0, None) * np.clip(height, 0, None)
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    area = (other[2] - other[0]) * (other[3] - other[1])
    return np.asarray(common / np.maximum(areas + area - common, 1e-12), np.float64)
