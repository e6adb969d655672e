"""Answers from the probabilities of a classifier of findings, `onnx:PATH` (`carina.models.onnx`)."""

import math
import re
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Final, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.cases import Box, Step
from carina.cases.messages import box_text, view_ids
from carina.models import ImageReader, ModelName, ModelOptions, Reply, model_kind
from carina.models.onnx import Description, FindingClassifier, Prediction, fingerprint_of_onnx
from carina.runs.prompts import NORMAL_REPORT, SPOKEN_LABELS
from carina.runs.records import Turn

_PRESENCE: Final = frozenset({"detection", "presence", "any abnormality", "others", "abnormalities"})
"""Tasks that ask which findings are present. Other tasks may name a finding too, but its probability is no answer."""
_NEGATED: Final = re.compile(r"\s*(?:none|no|nothing|normal|without)\b", re.IGNORECASE)
"""Start of an option that says that a finding, or every other finding, is absent."""
_WHOLE_IMAGE: Final = (0.0, 0.0, 100.0, 100.0)
_SMALLEST_PROBABILITY: Final = 1e-6
_CACHED_VIEWS: Final = 2048
"""Images whose predictions are kept: the turns of a case come one after the other, with others between them."""

ViewId = tuple[str, str]
"""Case and view."""


class OnnxModel:
    """A classifier that answers questions. It looks at the first image that a question needs, once."""

    batch: int = 32

    def __init__(self, classifier: FindingClassifier) -> None:
        self.name = classifier.name
        self._classifier = classifier
        self._answers = FindingAnswers(classifier.description)
        self._predictions: OrderedDict[ViewId, Prediction] = OrderedDict()

    @classmethod
    def open(cls, location: str, *, device: str | None = None) -> "OnnxModel":
        """Open the classifier in a folder."""
        return cls(FindingClassifier.open(location, device=device))

    def answer(self, turns: Sequence[Turn], images: ImageReader) -> list[Reply]:
        """One reply per turn, in order."""
        views = [_view(turn) for turn in turns]
        needed = {view for view in views if view is not None}
        for view in needed & self._predictions.keys():
            self._predictions.move_to_end(view)
        # In the order of the turns, so that batches are the same every time.
        new = [view for view in dict.fromkeys(views) if view is not None and view not in self._predictions]
        size = self.batch if self._classifier.takes_batches else 1
        for start in range(0, len(new), size):
            part = new[start : start + size]
            predicted = self._classifier.predict([images(*view) for view in part])
            self._predictions.update(zip(part, predicted, strict=True))
        replies = [
            Reply(
                text=self._answers.answer(turn.step, None if view is None else self._predictions[view]),
                stop="stop",
            )
            for turn, view in zip(turns, views, strict=True)
        ]
        while len(self._predictions) > _CACHED_VIEWS:
            self._predictions.popitem(last=False)
        return replies


def _view(turn: Turn) -> ViewId | None:
    """The image to look at: the first that the question needs, or else the first that was shown."""
    present = view_ids(turn.messages)
    needed = [view for view in turn.step.uses if view in present]
    return (turn.case, (needed or present)[0]) if present else None


def _fingerprint(name: ModelName) -> str:
    return fingerprint_of_onnx(name.location)


@model_kind("onnx", capabilities=["chat"], extra="onnx", packages=("onnxruntime",), fingerprint=_fingerprint)
def open_onnx(name: ModelName, options: ModelOptions) -> OnnxModel:
    """Classifier of findings as ONNX, in this process."""
    return OnnxModel.open(name.location, device=options.device)


class FindingAnswers:
    """Turns the predictions of a classifier into answers."""

    def __init__(self, description: Description) -> None:
        self._description = description
        self._patterns = [
            (number, _pattern((name, *description.synonyms.get(name, ()))))
            for number, name in enumerate(description.findings)
        ]

    def answer(self, step: Step, prediction: Prediction | None) -> str:
        """The answer in words, valid for every format; a neutral one where the predictions say nothing."""
        if step.format == "choice":
            return f"Answer: {', '.join(str(number + 1) for number in self._choose(step, prediction))}"
        if step.format == "yes_no":
            return SPOKEN_LABELS[self._label(step, prediction)]
        if step.format in ("boxes", "map"):
            return "\n".join(box_text(box) for box in self._boxes(step, prediction))
        present = [] if prediction is None else self._present(prediction)
        return f"{', '.join(present).capitalize()}." if present else NORMAL_REPORT

    def _present(self, prediction: Prediction) -> list[str]:
        odds = zip(self._description.findings, self._odds(prediction), strict=True)
        return [name for name, above in odds if above >= 0]

    def _odds(self, prediction: Prediction) -> list[float]:
        """Log-odds of every finding, above those of its threshold: 0 at the threshold, so that they compare."""
        description = self._description
        thresholds = [
            description.thresholds.get(name, description.threshold) for name in description.findings
        ]
        # In the precision of the probabilities, so that a probability that equals its threshold does.
        return [
            _logit(float(probability)) - _logit(float(np.float32(threshold)))
            for probability, threshold in zip(prediction.probabilities, thresholds, strict=True)
        ]

    def _findings_in(self, text: str) -> list[int]:
        """Findings that a text names; a name within a longer one ("opacity" in "lung opacity") is not counted."""
        found = [
            (match.start(), -match.end(), number)
            for number, pattern in self._patterns
            for match in pattern.finditer(text)
        ]
        named, end = dict[int, None](), 0
        for start, negative_end, number in sorted(found):
            if start >= end:
                named[number] = None
                end = -negative_end
        return list(named)

    def _evidence(self, step: Step, prediction: Prediction | None) -> float | None:
        """Evidence for "yes" to a question whether a finding is present; None where the predictions say nothing."""
        if prediction is None or step.task not in _PRESENCE:
            return None
        odds = self._odds(prediction)
        named = self._findings_in(step.question)
        if not named and step.task != "any abnormality":
            return None
        return max(odds[number] for number in named) if named else max(odds)

    def _label(self, step: Step, prediction: Prediction | None) -> Literal["yes", "no", "uncertain"]:
        evidence = self._evidence(step, prediction)
        if evidence is None:
            return "uncertain"
        return "yes" if evidence >= 0 else "no"

    def _choose(self, step: Step, prediction: Prediction | None) -> list[int]:
        """Places of the options to choose, from 0."""
        texts = [option.text.strip().lower().rstrip(".") for option in step.options]
        if set(texts) == {"yes", "no"}:
            evidence = self._evidence(step, prediction)
            return [texts.index("yes" if evidence is not None and evidence >= 0 else "no")]
        named = [self._findings_in(text) for text in texts]
        denied = [_NEGATED.match(text) is not None for text in texts]
        nothing = [place for place, numbers in enumerate(named) if denied[place] and not numbers]
        neutral = nothing[:1] or [0]
        if prediction is None or step.task not in _PRESENCE:
            return neutral
        odds = self._odds(prediction)
        # An option may name several findings: for independent ones, log-odds of all of them add up.
        weights = {
            place: sum(odds[number] for number in numbers) * (-1 if denied[place] else 1)
            for place, numbers in enumerate(named)
            if numbers
        }
        if step.multiple:
            return [place for place, weight in weights.items() if weight >= 0] or neutral
        weights |= dict.fromkeys(nothing, 0.0)
        return [max(weights, key=lambda place: weights[place])] if weights else neutral

    def _boxes(self, step: Step, prediction: Prediction | None) -> list[Box]:
        """Boxes around what lies above the threshold, or around the likeliest cell; else the whole image."""
        named = self._findings_in(step.question)
        grid = self._description.grid
        if grid is None or prediction is None or prediction.grid is None or len(named) != 1:
            return [Box(image="", xyxy=_WHOLE_IMAGE, frame="percent")]
        values = prediction.grid[named[0]]
        above = values >= min(grid.threshold, float(values.max()))
        name = self._description.findings[named[0]]
        return [
            Box(image="", xyxy=xyxy, frame="percent", name=name) for xyxy in _around(above, prediction.filled)
        ]


def _around(cells: NDArray[np.bool_], filled: tuple[float, float]) -> list[tuple[float, float, float, float]]:
    """Boxes around connected cells of a grid over the input, in percent of the image."""
    number, _, stats, _ = cv2.connectedComponentsWithStats(cells.astype(np.uint8), connectivity=8)
    down, across = 100 / (cells.shape[0] * filled[0]), 100 / (cells.shape[1] * filled[1])
    boxes = []
    for left, top, width, height, _ in stats[1:number].tolist():
        x1, y1 = round(left * across, 2), round(top * down, 2)
        x2, y2 = round(min(100.0, (left + width) * across), 2), round(min(100.0, (top + height) * down), 2)
        if x1 < x2 and y1 < y2:
            boxes.append((x1, y1, x2, y2))
    # Where all lies beyond the image's edge, in the padding of the input.
    return boxes or [_WHOLE_IMAGE]


def _pattern(names: Iterable[str]) -> re.Pattern[str]:
    """Any of the names as whole words, in singular or plural, whatever the case."""
    longest_first = sorted(names, key=len, reverse=True)
    return re.compile(r"\b(?:" + "|".join(map(_either_number, longest_first)) + r")\b", re.IGNORECASE)


def _either_number(name: str) -> str:
    words = r"\s+".join(map(re.escape, name.split()))
    return f"{words[:-1]}(?:y|ies)" if words.endswith("y") else f"{words}(?:e?s)?"


def _logit(probability: float) -> float:
    bounded = min(max(probability, _SMALLEST_PROBABILITY), 1 - _SMALLEST_PROBABILITY)
    return math.log(bounded / (1 - bounded))
