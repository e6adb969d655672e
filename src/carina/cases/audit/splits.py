"""Gate: does any patient or image stand in two splits?"""

from carina.cases.audit.frame import Objections, defects
from carina.cases.audit.record import GateResult
from carina.cases.audit.register import Firsts, Register
from carina.cases.audit.thresholds import Thresholds
from carina.cases.model import Case


class Splits:
    """Patients and images by split."""

    def __init__(self, thresholds: Thresholds, register: Register | None = None) -> None:
        self._objections = Objections(thresholds.worst)
        self._register = register or Register()
        self._patients = Firsts()
        self._images = Firsts()
        self._told = Firsts()

    def see(self, case: Case) -> None:
        if case.split is None:
            return
        number, cases = self._register.number(case), self._register
        owner = case.patient if case.patient is not None else f"(study) {case.study}"
        first = self._patients.first(owner, number)
        split = cases.split(first)
        if split != case.split and self._told.get(owner) is None:
            self._told.first(owner, number)
            self._objections.add(
                owner, f"is in {split!r} with {cases.id(first)} and in {case.split!r} with {case.id}"
            )
            return
        for image in case.images:
            first = self._images.first(image.sha256 or image.key, number)
            split = cases.split(first)
            if split != case.split and self._told.get(owner) is None:
                self._told.first(owner, number)
                self._objections.add(
                    owner,
                    f"image {image.key!r} of {case.id} is in {split!r} too, with {cases.id(first)}",
                )

    def result(self) -> GateResult:
        return defects(
            "splits",
            len(self._patients),
            self._objections,
            threshold="no patient and no image in two splits",
            good="Every patient is in one split.",
            bad="Some patients are in two splits, so a model may have been trained on what it is examined with; "
            "split by patient anew.",
            unit="patients with a split",
        )
