"""`builtin/reader`: answers the turns of percept, trek and ground by classical image processing."""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

from carina.cases import Step
from carina.cases.messages import view_ids
from carina.models import ImageReader
from carina.models.served import Reply
from carina.runs.builtin.reader import questions
from carina.runs.builtin.reader.percept import GetReading, PerceptReader
from carina.runs.builtin.reader.reading import Reading
from carina.runs.builtin.reader.rendered_image import read_image
from carina.runs.builtin.reader.report import NORMAL
from carina.runs.builtin.reader.trek import TrekReader
from carina.runs.records import Turn

_CACHED_READINGS: Final = 64
"""Number of readings that are cached, about 2 MB each."""
_CONTOURS: Final = frozenset(
    {"detection", "recognition", "contour evaluation", "expansion", "contraction", "revision"}
)
_ATTRIBUTES: Final = frozenset({"distribution", "location", "severity", "comparison"})
"""Tasks of percept, with the recognition task of ground. Trek has tasks of the same names, in another stage."""
_ATTRIBUTE_STAGE: Final = 4


class Reader:
    """Classical image processing with anatomical priors, without weights or training.

    Its cut-offs were set on phantoms of seed 11 and are not adapted to other images.
    """

    name = "builtin/reader"
    batch = 16

    def __init__(self) -> None:
        self._readings: OrderedDict[bytes, Reading] = OrderedDict()

    def answer(self, turns: Sequence[Turn], images: ImageReader) -> list[Reply]:
        """One reply per turn; an image that was read before is not read again."""
        return [Reply(text=self._answer_turn(turn, images), stop="stop") for turn in turns]

    def _answer_turn(self, turn: Turn, images: ImageReader) -> str:
        step = turn.step
        views = tuple(dict.fromkeys(view_ids(turn.messages))) or step.uses or step.shows

        def get_reading(view: str) -> Reading:
            return self._reading(images(turn.case, view))

        if views and _is_percept_step(step):
            said = [message.text for message in turn.messages if message.role == "user"]
            finding = questions.find_lesion([step.question, *reversed(said)]) or "lung opacity"
            return _write_choice(self._make_percept_reader(turn, finding, views, get_reading).choose() or [1])
        used = [view for view in step.uses if view in views] or list(views[:1])
        readings = [get_reading(view) for view in used] or [Reading(read_image(b""))]
        reader = TrekReader(step, readings)
        says: dict[str, Callable[[], str]] = {
            "choice": lambda: _write_choice(reader.choose() or [1]),
            "yes_no": lambda: "Yes." if reader.holds() else "No.",
            "boxes": reader.write_box,
            "map": reader.write_box,
        }
        return says.get(step.format, reader.write_text)() or NORMAL

    def _make_percept_reader(
        self, turn: Turn, finding: str, views: Sequence[str], get_reading: GetReading
    ) -> PerceptReader:
        return PerceptReader(turn.step, finding, views, get_reading)

    def _reading(self, content: bytes) -> Reading:
        key = hashlib.blake2b(content, digest_size=16).digest()
        found = self._readings.get(key)
        if found is None:
            found = Reading(read_image(content))
            self._readings[key] = found
            while len(self._readings) > _CACHED_READINGS:
                self._readings.popitem(last=False)
        else:
            self._readings.move_to_end(key)
        return found


def _is_percept_step(step: Step) -> bool:
    """Whether a step is one of percept, or the recognition step of ground."""
    if step.format != "choice":
        return False
    return step.task in _CONTOURS or (step.task in _ATTRIBUTES and step.stage == _ATTRIBUTE_STAGE)


def _write_choice(numbers: Sequence[int]) -> str:
    return f"Answer: {', '.join(str(number) for number in numbers)}"
