"""Gate: is any patient or image in two splits?"""

from carina.audits.first_seen import CaseRegister, FirstSeen
from carina.audits.gate import AuditContext, Gate, NoLimits, gate
from carina.audits.result import GateResult, Objections
from carina.cases.model import Case


@gate(
    "patient-overlap",
    title="Patient overlap between splits",
    meaning="Every patient and every image is in one split only.",
    order=80,
)
class PatientOverlap(Gate[NoLimits]):
    """Patients and images by split."""

    def __init__(self, context: AuditContext, limits: NoLimits) -> None:
        super().__init__(context, limits)
        self._objections = Objections()
        self._register = context.shared(CaseRegister)
        self._patients = FirstSeen()
        self._images = FirstSeen()
        self._reported = FirstSeen()

    def see(self, case: Case) -> None:
        if case.split is None:
            return
        number, cases = self._register.number(case), self._register
        owner = case.patient if case.patient is not None else f"(study) {case.study}"
        first = self._patients.first(owner, number)
        split = cases.split(first)
        if split != case.split and self._reported.get(owner) is None:
            self._reported.first(owner, number)
            self._objections.add(
                owner, f"is in {split!r} with {cases.id(first)} and in {case.split!r} with {case.id}"
            )
            return
        for image in case.images:
            first = self._images.first(image.sha256 or image.key, number)
            split = cases.split(first)
            if split != case.split and self._reported.get(owner) is None:
                self._reported.first(owner, number)
                self._objections.add(
                    owner, f"image {image.key!r} of {case.id} is also in {split!r}, with {cases.id(first)}"
                )

    def result(self) -> GateResult:
        return self.report_defects(
            len(self._patients),
            self._objections,
            threshold="no patient and no image in two splits",
            good="Every patient is in one split.",
            bad="Some patients are in two splits, so a model may have been trained on its test cases; split by "
            "patient again.",
            unit="patients with a split",
        )
