"""A model on a loopback port that recognises the case of each request; faults are scripted by case and turn.

Each case of the benchmark has its own image, by which requests are told apart.
"""

import base64
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType

import numpy as np
from PIL import Image
from tests.models.loopback import Answer, Asked, Service, serving

from carina.models.served.first_request import SYSTEM as FIRST_SYSTEM

RIGHT = "I look at the picture.\nAnswer: 1"
Faults = Mapping[tuple[str, int], Sequence[Answer]]
"""Answers that go wrong, by case and turn."""
NO_FAULTS: Faults = MappingProxyType({})


class ScriptedModel:
    """Answers every question in the same way, except for scripted faults."""

    def __init__(self, names: Sequence[str], faults: Faults = NO_FAULTS) -> None:
        self._names = names
        self._faults = {place: list(answers) for place, answers in faults.items()}
        self.answered: Counter[tuple[str, int]] = Counter()
        """Answers that were sent in full, by case and turn: what would be paid for."""
        self.first_requests = 0
        self.wait = 0.0
        self.service: Service

    def __call__(self, asked: Asked) -> Answer:
        if asked.system == FIRST_SYSTEM:
            self.first_requests += 1
            return Answer("yes")
        place = (self.case(asked), turn(asked))
        waiting = self._faults.get(place)
        if waiting:
            fault = waiting.pop(0)
            if fault.status == 200 and fault.body is None and fault.cut is None:
                self.answered[place] += 1
            return fault
        self.answered[place] += 1
        return Answer(RIGHT, wait=self.wait)

    def case(self, asked: Asked) -> str:
        grey = int(pixels(pictures(asked.body["messages"])[0])[0, 0])
        return self._names[(grey - 10) // 10]


def turn(asked: Asked) -> int:
    return sum(message["role"] == "user" for message in asked.body["messages"]) - 1


def pictures(messages: Sequence[dict]) -> list[str]:
    """Data URIs in the order in which they are sent."""
    parts = [
        part for message in messages if isinstance(message["content"], list) for part in message["content"]
    ]
    return [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]


def pixels(uri: str) -> np.ndarray:
    head, _, content = uri.partition(",")
    assert head == "data:image/png;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(content))).convert("L"))


@contextmanager
def serving_model(names: Sequence[str], faults: Faults = NO_FAULTS) -> Iterator[ScriptedModel]:
    """A running service."""
    scripted = ScriptedModel(names, faults)
    with serving(scripted) as service:
        scripted.service = service
        yield scripted
