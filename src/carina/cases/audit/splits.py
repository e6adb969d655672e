"""Gate: does any patient or image stand in two splits?"""

from carina.cases.audit.frame import Objections, defects
from carina.cases.audit.record import GateResult
from carina.cases.audit.thresholds import Thresholds
from carina.cases.model import Case


class Splits:
    """Patients and images by split."""

    def __init__(self, thresholds: Thresholds) -> None:
        self._objections = Objections(thresholds.worst)
        self._patients: dict[str, tuple[str, str]] = {}
        self._images: dict[str, tuple[str, str]] = {}
        self._told: set[str] = set()

    def see(self, case: Case) -> None:
        if case.split is None:
            return
        owner = case.patient if case.patient is not None else f"(study) {case.study}"
        split, first = self._patients.setdefault(owner, (case.split, case.id))
        if split != case.split and owner not in self._told:
            self._told.add(owner)
            self._objections.add(owner, f"is in {split!r} with {first} and in {case.split!r} with {case.id}")
            return
        for image in case.images:
            name = image.sha256 or image.key
            split, first = self._images.setdefault(name, (case.split, case.id))
            if split != case.split and owner not in self._told:
                self._told.add(owner)
                self._objections.add(
                    owner,
                    f"image {image.key!r} of {case.id} is in {split!r} too, with {first}",
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
