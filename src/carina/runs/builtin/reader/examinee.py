"""The reader as an examinee: takes turns with their pictures, gives words."""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

from carina.cases import Step
from carina.cases.messages import view_ids
from carina.models import ImageReader as Pictures
from carina.models.served import Reply
from carina.runs.builtin.reader import questions
from carina.runs.builtin.reader.percept import Examination, Look
from carina.runs.builtin.reader.picture import read_picture
from carina.runs.builtin.reader.reading import Reading
from carina.runs.builtin.reader.report import NORMAL
from carina.runs.builtin.reader.trek import Visit
from carina.runs.records import Turn

_KEPT: Final = 64
"""Readings to remember, about 2 MB each."""
_CONTOURS: Final = frozenset(
    {"detection", "recognition", "contour evaluation", "expansion", "contraction", "revision"}
)
_ATTRIBUTES: Final = frozenset({"distribution", "location", "severity", "comparison"})
"""Tasks of percept, and ground's recognition; trek has some of the same name, in another stage."""
_ATTRIBUTE_STAGE: Final = 4


class Reader:
    """Classical image processing with anatomical priors: no weights, no training, nothing but pixels and words.

    Its few cut-offs were set on phantoms of seed 11; on any other image they are what they are.
    """

    name = "builtin/reader"
    batch = 16

    def __init__(self) -> None:
        self._readings: OrderedDict[bytes, Reading] = OrderedDict()

    def answer(self, turns: Sequence[Turn], pictures: Pictures) -> list[Reply]:
        """One reply a turn; a picture that comes again is not read again."""
        return [Reply(text=self._say(turn, pictures), stop="stop") for turn in turns]

    def _say(self, turn: Turn, pictures: Pictures) -> str:
        step = turn.step
        views = tuple(dict.fromkeys(view_ids(turn.messages))) or step.uses or step.shows

        def look(view: str) -> Reading:
            return self._reading(pictures(turn.case, view))

        if views and _of_percept(step):
            said = [message.text for message in turn.messages if message.role == "user"]
            finding = questions.lesion([step.question, *reversed(said)]) or "lung opacity"
            return _answer(self._examination(turn, finding, views, look).chosen() or [1])
        used = [view for view in step.uses if view in views] or list(views[:1])
        readings = [look(view) for view in used] or [Reading(read_picture(b""))]
        visit = Visit(step, readings)
        says: dict[str, Callable[[], str]] = {
            "choice": lambda: _answer(visit.chosen() or [1]),
            "yes_no": lambda: "Yes." if visit.yes() else "No.",
            "boxes": visit.boxes,
            "map": visit.boxes,
        }
        return says.get(step.format, visit.words)() or NORMAL

    def _examination(self, turn: Turn, finding: str, views: Sequence[str], look: Look) -> Examination:
        return Examination(turn.step, finding, views, look)

    def _reading(self, content: bytes) -> Reading:
        key = hashlib.blake2b(content, digest_size=16).digest()
        found = self._readings.get(key)
        if found is None:
            found = Reading(read_picture(content))
            self._readings[key] = found
            while len(self._readings) > _KEPT:
                self._readings.popitem(last=False)
        else:
            self._readings.move_to_end(key)
        return found


def _of_percept(step: Step) -> bool:
    """Whether a question is one of an examination of a lesion."""
    if step.format != "choice":
        return False
    return step.task in _CONTOURS or (step.task in _ATTRIBUTES and step.stage == _ATTRIBUTE_STAGE)


def _answer(numbers: Sequence[int]) -> str:
    return f"Answer: {', '.join(str(number) for number in numbers)}"
