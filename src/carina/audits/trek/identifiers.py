"""Gate: does any record contain a path of a machine, or the id of a patient of a restricted data set?"""

import re
from collections import Counter
from typing import Final

from carina.audits.gate import AuditContext, NoLimits, gate
from carina.audits.result import GateResult, Objections, Status
from carina.audits.trek.base import ConversationGate
from carina.audits.trek.conversation import Conversation
from carina.audits.trek.proportions import share_row
from carina.cases.model import Case

_ABSOLUTE: Final = re.compile(r"^(?:[/\\~]|[A-Za-z]:|[a-z][a-z0-9+.-]*://)")
_PATH_PARTS: Final = ("/home/", "/users/", "/mnt/", "/data/", "/root/", ":\\", "file://")
_RESTRICTED: Final = re.compile(r"\bp1\d{7}\b|(?<!\d)s5\d{7}\b|\bpatient\d{5}\b")
"""Ids of patients and studies in MIMIC-CXR and CheXpert."""
_SEVERITY: Final[dict[str, Status]] = {"image keys": "fail", "text": "fail", "restricted ids": "warn"}


@gate(
    "identifiers",
    title="Paths and patient ids",
    meaning="No record contains an absolute path or an id of a known restricted data set.",
    protocols=("trek",),
    order=470,
)
class Identifiers(ConversationGate[NoLimits]):
    """Paths and ids that should not be published."""

    cost = 1.5

    def __init__(self, context: AuditContext, limits: NoLimits) -> None:
        super().__init__(context, limits)
        self._objections = Objections()
        self._warnings = Objections()
        self._counts: Counter[str] = Counter()

    def examine(self, conversation: Conversation) -> None:
        case = conversation.case
        self._check_restricted_ids(case)
        for image in case.images:
            parts = image.key.replace("\\", "/").split("/")
            if _ABSOLUTE.match(image.key) or ".." in parts:
                self._counts["image keys"] += 1
                self._objections.add(case.id, f"images: {image.key!r} is not a path inside the image root")
        # Most texts contain neither kind of slash.
        for step in case.steps:
            answer = step.key.text or ""
            if "/" in step.question or "\\" in step.question or "/" in answer or "\\" in answer:
                text = f"{step.question} {answer}".lower()
                part = next((part for part in _PATH_PARTS if part in text), None)
                if part:
                    self._counts["text"] += 1
                    self._objections.add(case.id, f"turn {step.id}: the text contains a path ({part!r})")

    def _check_restricted_ids(self, case: Case) -> None:
        names = (case.id, case.study, case.patient or "", *(image.key for image in case.images))
        restricted_id = next((match.group() for name in names if (match := _RESTRICTED.search(name))), None)
        if restricted_id:
            self._counts["restricted ids"] += 1
            self._warnings.add(
                case.id,
                f"contains {restricted_id!r}, an id of a restricted data set; do not publish it as it is",
            )

    def result(self) -> GateResult:
        has_failed = bool(self._objections)
        rows = tuple(
            share_row(
                name,
                min(self._counts[name], self._n),
                self._n,
                limit=0.0,
                status=status if self._counts[name] else "pass",
            )
            for name, status in _SEVERITY.items()
        )
        return self.report_defects(
            self._n,
            self._objections if has_failed else self._warnings,
            threshold="relative image keys without '..'; no path in a text; ids of restricted data sets warn",
            good="No absolute path and no id of a known restricted data set.",
            bad="Some records contain absolute paths; rewrite them relative to the image root."
            if has_failed
            else "Some records contain ids of a restricted data set; replace them by pseudonyms before publication.",
            unit="conversations",
            severity="fail" if has_failed else "warn",
            rows=rows if self._n else (),
        )
