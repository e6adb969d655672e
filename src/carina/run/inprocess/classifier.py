"""A classifier of findings as a folder, and what its figures say of a question.

    <folder>/model.onnx     one input (batch, channels, height, width) of float32; a batch of any size, or of 1
    <folder>/carina.json    this description

    {
      "kind": "carina/classifier", "schema": "1.0",
      "input": {"size": [224, 224], "channels": 1, "mean": [0.5], "std": [0.25], "fit": "pad"},
      "output": "probabilities",
      "findings": ["pleural effusion", "cardiomegaly"],
      "thresholds": {"cardiomegaly": 0.35},
      "synonyms": {"cardiomegaly": ["enlarged heart"]},
      "grid": {"output": "patches", "threshold": 0.4}
    }

`output` names the model's output (batch, findings), `grid.output` the one (batch, findings, rows, columns) that tells
where; both hold probabilities, or log-odds with `"activation": "sigmoid"`. A grey value v of 0 to 255 becomes
(v / 255 - mean) / std. With `"fit": "stretch"` the picture fills the input, with `"pad"` it keeps its shape and lies in
the upper left corner. A threshold is the probability from which a finding counts as present.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import cv2
import msgspec
import numpy as np
from numpy.typing import NDArray

from carina.cases import Box, Step
from carina.cases.chat import box_text
from carina.errors import CarinaError
from carina.run.builtin.draw import NOTHING, SPOKEN

DESCRIPTION: Final = "carina.json"
_MAJOR: Final = "1."
_PRESENCE: Final = frozenset({"detection", "presence", "any abnormality", "others", "abnormalities"})
"""Tasks that ask what is there. In others a finding may be named too, and its probability is no answer."""
_DENIED: Final = re.compile(r"\s*(?:none|no|nothing|normal|without)\b", re.IGNORECASE)
"""How an option begins that says that something, or everything else, is not there."""
_WHOLE: Final = (0.0, 0.0, 100.0, 100.0)
_MOST_SURE: Final = 1e-6

Activation = Literal["none", "sigmoid"]
Figures = NDArray[np.float32]


class InputSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a picture becomes the model's input."""

    size: tuple[int, int]
    """Height and width."""
    channels: Literal[1, 3] = 1
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    """For each channel, or one for all."""
    fit: Literal["stretch", "pad"] = "stretch"

    def __post_init__(self) -> None:
        if min(self.size) < 1:
            raise ValueError("`size` must be height and width, 1 or more each")
        for name, values in (("mean", self.mean), ("std", self.std)):
            if len(values) not in (1, self.channels):
                raise ValueError(
                    f"`{name}` must hold one number, or one for each of {self.channels} channels"
                )
        if min(self.std) <= 0:
            raise ValueError("`std` must be above 0")


class GridSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The output that tells where."""

    output: str
    threshold: float = 0.5
    activation: Activation = "none"


class Description(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`carina.json`."""

    kind: Literal["carina/classifier"]
    schema: str
    input: InputSpec
    output: str
    findings: tuple[str, ...]
    activation: Activation = "none"
    threshold: float = 0.5
    """Of findings that `thresholds` does not name."""
    thresholds: dict[str, float] = {}
    synonyms: dict[str, tuple[str, ...]] = {}
    grid: GridSpec | None = None

    def __post_init__(self) -> None:
        if not self.schema.startswith(_MAJOR):
            raise ValueError(f"schema {self.schema!r}: this Carina reads {_MAJOR}x")
        if not self.findings or len(set(self.findings)) != len(self.findings):
            raise ValueError("`findings` must name at least one finding, each once")
        for name, mapping in (("thresholds", self.thresholds), ("synonyms", self.synonyms)):
            unknown = sorted(set(mapping) - set(self.findings))
            if unknown:
                raise ValueError(f"`{name}` names {unknown[0]!r}, which is not among `findings`")
        if not all(0 < value < 1 for value in (self.threshold, *self.thresholds.values())):
            raise ValueError("a threshold must lie between 0 and 1")


def read_description(path: Path) -> Description:
    """What a folder's `carina.json` says."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Description)
    except FileNotFoundError:
        raise CarinaError(f"{path}: missing; it says what the classifier takes and gives") from None
    except msgspec.DecodeError as error:
        raise CarinaError(f"{path}: {error}") from error


@dataclass(frozen=True, eq=False)
class Looked:
    """What the classifier made of one picture."""

    probabilities: Figures
    """In the order of the findings."""
    grid: Figures | None
    """(findings, rows, columns), over the model's whole input."""
    filled: tuple[float, float] = (1.0, 1.0)
    """How much of the input's height and width the picture takes."""


class Classifier:
    """Answers from probabilities."""

    def __init__(self, description: Description) -> None:
        self._description = description
        self._patterns = [
            (number, _pattern((name, *description.synonyms.get(name, ()))))
            for number, name in enumerate(description.findings)
        ]

    def answer(self, step: Step, looked: Looked | None) -> str:
        """The answer in words, valid for every format; one that says nothing where the figures tell nothing."""
        if step.format == "choice":
            return f"Answer: {', '.join(str(number + 1) for number in self._chosen(step, looked))}"
        if step.format == "yes_no":
            return SPOKEN[self._label(step, looked)]
        if step.format in ("boxes", "map"):
            return "\n".join(box_text(box) for box in self._boxes(step, looked))
        there = [] if looked is None else self._present(looked)
        return f"{', '.join(there).capitalize()}." if there else NOTHING

    def _present(self, looked: Looked) -> list[str]:
        odds = zip(self._description.findings, self._odds(looked), strict=True)
        return [name for name, above in odds if above >= 0]

    def _odds(self, looked: Looked) -> list[float]:
        """Log-odds of every finding, above those of its threshold: 0 at the threshold, so that they compare."""
        description = self._description
        thresholds = [
            description.thresholds.get(name, description.threshold) for name in description.findings
        ]
        # In the precision of the figures, so that a probability that equals its threshold does.
        return [
            _logit(float(probability)) - _logit(float(np.float32(threshold)))
            for probability, threshold in zip(looked.probabilities, thresholds, strict=True)
        ]

    def _named(self, text: str) -> list[int]:
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

    def _evidence(self, step: Step, looked: Looked | None) -> float | None:
        """How much speaks for "yes" to whether something is there; None where the figures tell nothing."""
        if looked is None or step.task not in _PRESENCE:
            return None
        odds = self._odds(looked)
        named = self._named(step.question)
        if not named and step.task != "any abnormality":
            return None
        return max(odds[number] for number in named) if named else max(odds)

    def _label(self, step: Step, looked: Looked | None) -> Literal["yes", "no", "uncertain"]:
        evidence = self._evidence(step, looked)
        if evidence is None:
            return "uncertain"
        return "yes" if evidence >= 0 else "no"

    def _chosen(self, step: Step, looked: Looked | None) -> list[int]:
        """Places of the options to choose, from 0."""
        texts = [option.text.strip().lower().rstrip(".") for option in step.options]
        if set(texts) == {"yes", "no"}:
            evidence = self._evidence(step, looked)
            return [texts.index("yes" if evidence is not None and evidence >= 0 else "no")]
        named = [self._named(text) for text in texts]
        denied = [_DENIED.match(text) is not None for text in texts]
        nothing = [place for place, numbers in enumerate(named) if denied[place] and not numbers]
        neutral = nothing[:1] or [0]
        if looked is None or step.task not in _PRESENCE:
            return neutral
        odds = self._odds(looked)
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

    def _boxes(self, step: Step, looked: Looked | None) -> list[Box]:
        """Boxes around what lies above the threshold, or around the likeliest patch; else the whole picture."""
        named = self._named(step.question)
        grid = self._description.grid
        if grid is None or looked is None or looked.grid is None or len(named) != 1:
            return [Box(image="", xyxy=_WHOLE, frame="percent")]
        values = looked.grid[named[0]]
        above = values >= min(grid.threshold, float(values.max()))
        name = self._description.findings[named[0]]
        return [
            Box(image="", xyxy=xyxy, frame="percent", name=name) for xyxy in _around(above, looked.filled)
        ]


def _around(cells: NDArray[np.bool_], filled: tuple[float, float]) -> list[tuple[float, float, float, float]]:
    """Boxes around connected cells of a grid over the input, in percent of the picture."""
    number, _, stats, _ = cv2.connectedComponentsWithStats(cells.astype(np.uint8), connectivity=8)
    down, across = 100 / (cells.shape[0] * filled[0]), 100 / (cells.shape[1] * filled[1])
    boxes = []
    for left, top, width, height, _ in stats[1:number].tolist():
        x1, y1 = round(left * across, 2), round(top * down, 2)
        x2, y2 = round(min(100.0, (left + width) * across), 2), round(min(100.0, (top + height) * down), 2)
        if x1 < x2 and y1 < y2:
            boxes.append((x1, y1, x2, y2))
    # Where all lies beyond the picture's edge, in what fills the input up.
    return boxes or [_WHOLE]


def _pattern(names: Iterable[str]) -> re.Pattern[str]:
    """Any of the names as whole words, in singular or plural, whatever the case."""
    longest_first = sorted(names, key=len, reverse=True)
    return re.compile(r"\b(?:" + "|".join(map(_either_number, longest_first)) + r")\b", re.IGNORECASE)


def _either_number(name: str) -> str:
    words = r"\s+".join(map(re.escape, name.split()))
    return f"{words[:-1]}(?:y|ies)" if words.endswith("y") else f"{words}(?:e?s)?"


def _logit(probability: float) -> float:
    sure = min(max(probability, _MOST_SURE), 1 - _MOST_SURE)
    return math.log(sure / (1 - sure))
