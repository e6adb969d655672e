"""Gate: is any question, study, patient or image used twice?"""

from collections import defaultdict
from collections.abc import Hashable
from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec import Meta

from carina.audits.first_seen import CaseRegister, FirstSeen
from carina.audits.gate import AuditContext, Gate, Limits, Share, gate
from carina.audits.result import GateResult, Objections
from carina.audits.text_model import hash_text
from carina.cases.model import Case
from carina.store.errors import RegionError
from carina.studies.region import Region

_EVERY_IMAGE: Final = frozenset({"ground"})
"""Protocols that ask about every image of a patient; their intervals are clustered by patient."""
_MOST_IMAGES: Final = 20_000
"""Images whose masks are kept for comparison; where there are more, a sample of them by a hash of their names."""
_ALL_HASHES: Final = 1 << 64


class DuplicateCasesLimits(Limits, frozen=True):
    """Limits of `duplicate-cases`."""

    mask_overlap: Annotated[
        Share, Meta(description="IoU above which two masks on one image are the same question asked twice.")
    ] = 0.98


class _CaseMasks(NamedTuple):
    case: str
    target: str | None
    regions: tuple[Region, ...]


@gate(
    "duplicate-cases",
    title="Duplicate cases",
    meaning="No question, study, patient or image is used twice for one target.",
    limits=DuplicateCasesLimits,
    order=70,
)
class DuplicateCases(Gate[DuplicateCasesLimits]):
    """The same question, study, patient or image more than once."""

    cost = 2.5

    def __init__(self, context: AuditContext, limits: DuplicateCasesLimits) -> None:
        super().__init__(context, limits)
        self._objections = Objections()
        self._warnings = Objections()
        self._register = context.shared(CaseRegister)
        self._studies = FirstSeen()
        self._patients = FirstSeen()
        self._contents = FirstSeen()
        self._images = FirstSeen()
        self._masks: defaultdict[str, list[_CaseMasks]] = defaultdict(list)
        self._sampled = _ALL_HASHES
        """Masks are compared on images with a hash below this."""
        self._n = 0

    def see(self, case: Case) -> None:
        self._n += 1
        found = self._find_same_study(case) or self._find_same_content(case)
        self._find_same_image(case)
        if not found and case.target is not None:
            self._find_same_mask(case)

    def _earlier_case(self, known: FirstSeen, thing: Hashable, case: Case) -> str | None:
        """Id of the earlier case with the same thing; None for a new one."""
        other = self._register.id(known.first(thing, self._register.number(case)))
        return None if other == case.id else other

    def _find_same_study(self, case: Case) -> bool:
        if case.protocol in _EVERY_IMAGE:
            return False
        # A case without a target is a conversation, of which a study has one.
        other = self._earlier_case(self._studies, (case.protocol, case.study, case.target), case)
        if other is not None:
            self._objections.add(case.id, f"asks about the same study and target as {other}")
            return True
        if case.patient is not None and case.target is not None:
            other = self._earlier_case(self._patients, (case.protocol, case.patient, case.target), case)
            if other is not None:
                self._objections.add(case.id, f"asks about the same patient and target as {other}")
                return True
        return False

    def _find_same_content(self, case: Case) -> bool:
        images = [image.sha256 or image.key for image in case.images]
        questions = [(step.question, [o.text for o in step.options], step.key) for step in case.steps]
        other = self._earlier_case(self._contents, msgspec.json.encode((images, questions)), case)
        if other is not None:
            self._objections.add(case.id, f"has the same images, questions and keys as {other}")
        return other is not None

    def _find_same_image(self, case: Case) -> None:
        for image in case.images:
            if image.sha256 is None or case.patient is None:
                continue
            first = self._images.first(image.sha256, self._register.number(case))
            patient = self._register.patient(first)
            if patient != case.patient:
                self._objections.add(
                    case.id,
                    f"image {image.key!r} is the same file as one of patient {patient!r}, in "
                    f"{self._register.id(first)}",
                )

    def _find_same_mask(self, case: Case) -> None:
        drawn = {overlay.region for view in case.views for panel in view.panels for overlay in panel.overlays}
        for image in case.images:
            regions = tuple(r.region for r in case.regions if r.image == image.key and r.name in drawn)
            if not regions:
                continue
            name = image.sha256 or image.key
            if hash_text(name) >= self._sampled:
                continue
            here = self._masks[name]
            for other in here:
                overlap = _highest_iou(regions, other.regions)
                if overlap > self.limits.mask_overlap:
                    what = (
                        f"shows a mask that overlaps one of {other.case} on the same image by {overlap:.3f}"
                    )
                    # One opacity may correctly have two names; the same name twice is the same question twice.
                    is_same = case.target == other.target
                    (self._objections if is_same else self._warnings).add(case.id, what, overlap)
            here.append(_CaseMasks(case.id, case.target, regions))
            if len(self._masks) > _MOST_IMAGES:
                self._halve_sample()

    def _halve_sample(self) -> None:
        self._sampled //= 2
        for name in [name for name in self._masks if hash_text(name) >= self._sampled]:
            del self._masks[name]

    def result(self) -> GateResult:
        has_failed = bool(self._objections)
        sample = f", on a sample of {len(self._masks)} images" if self._sampled < _ALL_HASHES else ""
        return self.report_defects(
            self._n,
            self._objections if has_failed else self._warnings,
            threshold="each study and patient once per target; no two equal cases; no image of two patients; masks of "
            f"one image overlap by at most {self.limits.mask_overlap:g} (warn where the targets differ){sample}",
            good="No question is asked twice.",
            bad="Some cases repeat others, so confidence intervals would be too narrow; keep one of each."
            if has_failed
            else "Some cases show the same mask of one image under two names; cluster intervals by patient.",
            severity="fail" if has_failed else "warn",
        )


def _highest_iou(these: tuple[Region, ...], those: tuple[Region, ...]) -> float:
    try:
        return max(one.iou(other) for one in these for other in those)
    except RegionError:
        return 0.0  # masks of different sizes, or damaged ones, which `case-integrity` reports
