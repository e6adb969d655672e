"""Gate: does anything tell where files lie on a machine, or who a patient of a restricted set is?"""

import re
from collections import Counter
from typing import Final

from carina.cases.audit import GateResult, Objections, Status, defects
from carina.cases.model import Case
from carina.trek.audit.limits import Limits
from carina.trek.audit.tallies import share
from carina.trek.audit.turns import Decoder

_ABSOLUTE: Final = re.compile(r"^(?:[/\\~]|[A-Za-z]:|[a-z][a-z0-9+.-]*://)")
_IN_TEXT: Final = ("/home/", "/users/", "/mnt/", "/data/", "/root/", ":\\", "file://")
_RESTRICTED: Final = re.compile(r"\bp1\d{7}\b|(?<!\d)s5\d{7}\b|\bpatient\d{5}\b")
"""Patients and studies as MIMIC-CXR and CheXpert name them."""
_GRAVITY: Final[dict[str, Status]] = {"image keys": "fail", "text": "fail", "restricted ids": "warn"}


class Identifiers:
    """Paths and ids that should not leave the house."""

    cost = 1.5

    def __init__(self, limits: Limits, decoder: Decoder) -> None:
        self.decoder = decoder
        self._objections = Objections(limits.common.worst)
        self._remarks = Objections(limits.common.worst)
        self._n = 0
        self._found: Counter[str] = Counter()

    def see(self, case: Case) -> None:
        if self.decoder.read(case) is None:
            return
        self._n += 1
        self._restricted(case)
        for image in case.images:
            parts = image.key.replace("\\", "/").split("/")
            if _ABSOLUTE.match(image.key) or ".." in parts:
                self._found["image keys"] += 1
                self._objections.add(case.id, f"images: {image.key!r} is not a path inside the image root")
        # Most texts hold none of these marks at all.
        for step in case.steps:
            answer = step.key.text or ""
            if "/" in step.question or "\\" in step.question or "/" in answer or "\\" in answer:
                text = f"{step.question} {answer}".lower()
                told = next((mark for mark in _IN_TEXT if mark in text), None)
                if told:
                    self._found["text"] += 1
                    self._objections.add(case.id, f"turn {step.id}: its text holds a path ({told!r})")

    def _restricted(self, case: Case) -> None:
        names = (case.id, case.study, case.patient or "", *(image.key for image in case.images))
        held = next((match.group() for name in names if (match := _RESTRICTED.search(name))), None)
        if held:
            self._found["restricted ids"] += 1
            self._remarks.add(
                case.id, f"holds {held!r}, an id of a restricted set; do not publish it as it is"
            )

    def result(self) -> GateResult:
        grave = bool(self._objections)
        rows = tuple(
            share(
                name,
                min(self._found[name], self._n),
                self._n,
                limit=0.0,
                status=status if self._found[name] else "pass",
            )
            for name, status in _GRAVITY.items()
        )
        return defects(
            "identifiers",
            self._n,
            self._objections if grave else self._remarks,
            threshold="relative image keys without '..'; no path in a text; ids of restricted sets warn",
            good="No absolute path and no id of a known restricted set.",
            bad="Some records hold absolute paths; rewrite them relative to the image root."
            if grave
            else "Some records hold ids of a restricted set; give pseudonyms before anything is published.",
            unit="conversations",
            grave="fail" if grave else "warn",
            rows=rows if self._n else (),
        )
