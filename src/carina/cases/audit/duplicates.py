"""Gate: is anything asked twice?"""

from collections import defaultdict
from collections.abc import Hashable
from typing import Final, NamedTuple

import msgspec

from carina.cases.audit.frame import Objections, defects
from carina.cases.audit.learning import hashed
from carina.cases.audit.record import GateResult
from carina.cases.audit.register import Firsts, Register
from carina.cases.audit.thresholds import Thresholds
from carina.cases.model import Case
from carina.errors import RegionError
from carina.studies.region import Region

_EVERY_IMAGE: Final = frozenset({"ground"})
"""Protocols that ask about every image of a patient; their intervals are by patient."""
_MOST_IMAGES: Final = 20_000
"""Images whose masks are kept to be compared; where there are more, a sample of them by a hash of their names."""
_ALL_HASHES: Final = 1 << 64


class _Drawn(NamedTuple):
    case: str
    target: str | None
    regions: tuple[Region, ...]


class Duplicates:
    """The same question, study, patient or picture more than once."""

    cost = 2.5

    def __init__(self, thresholds: Thresholds, register: Register | None = None) -> None:
        self._near = thresholds.near_duplicate
        self._objections = Objections(thresholds.worst)
        self._remarks = Objections(thresholds.worst)
        self._register = register or Register()
        self._studies = Firsts()
        self._patients = Firsts()
        self._contents = Firsts()
        self._owners = Firsts()
        self._drawn: defaultdict[str, list[_Drawn]] = defaultdict(list)
        self._sampled = _ALL_HASHES
        """Masks are compared on images whose hash is below this."""
        self._n = 0

    def see(self, case: Case) -> None:
        self._n += 1
        found = self._same_study(case) or self._same_content(case)
        self._same_picture(case)
        if not found and case.target is not None:
            self._near_duplicate(case)

    def _earlier(self, known: Firsts, thing: Hashable, case: Case) -> str | None:
        """Id of the case of which the same is known; None where this is the first."""
        other = self._register.id(known.first(thing, self._register.number(case)))
        return None if other == case.id else other

    def _same_study(self, case: Case) -> bool:
        if case.protocol in _EVERY_IMAGE:
            return False
        # Without a target a case is a conversation, of which a study has one.
        other = self._earlier(self._studies, (case.protocol, case.study, case.target), case)
        if other is not None:
            self._objections.add(case.id, f"asks about the same study and target as {other}")
            return True
        if case.patient is not None and case.target is not None:
            other = self._earlier(self._patients, (case.protocol, case.patient, case.target), case)
            if other is not None:
                self._objections.add(case.id, f"asks about the same patient and target as {other}")
                return True
        return False

    def _same_content(self, case: Case) -> bool:
        images = [image.sha256 or image.key for image in case.images]
        asked = [(step.question, [o.text for o in step.options], step.key) for step in case.steps]
        other = self._earlier(self._contents, msgspec.json.encode((images, asked)), case)
        if other is not None:
            self._objections.add(case.id, f"has the same images, questions and keys as {other}")
        return other is not None

    def _same_picture(self, case: Case) -> None:
        for image in case.images:
            if image.sha256 is None or case.patient is None:
                continue
            first = self._owners.first(image.sha256, self._register.number(case))
            patient = self._register.patient(first)
            if patient != case.patient:
                self._objections.add(
                    case.id,
                    f"image {image.key!r} is the same file as one of patient {patient!r}, in "
                    f"{self._register.id(first)}",
                )

    def _near_duplicate(self, case: Case) -> None:
        drawn = {overlay.region for view in case.views for panel in view.panels for overlay in panel.overlays}
        for image in case.images:
            regions = tuple(r.region for r in case.regions if r.image == image.key and r.name in drawn)
            if not regions:
                continue
            name = image.sha256 or image.key
            if hashed(name) >= self._sampled:
                continue
            here = self._drawn[name]
            for other in here:
                overlap = _overlap(regions, other.regions)
                if overlap > self._near:
                    what = (
                        f"shows a mask that overlaps one of {other.case} on the same image by {overlap:.3f}"
                    )
                    # Two names for one shadow may both be right; the same name for it twice is one question twice.
                    same = case.target == other.target
                    (self._objections if same else self._remarks).add(case.id, what, overlap)
            here.append(_Drawn(case.id, case.target, regions))
            if len(self._drawn) > _MOST_IMAGES:
                self._keep_half()

    def _keep_half(self) -> None:
        self._sampled //= 2
        for name in [name for name in self._drawn if hashed(name) >= self._sampled]:
            del self._drawn[name]

    def result(self) -> GateResult:
        grave = bool(self._objections)
        some = f", on a sample of {len(self._drawn)} images" if self._sampled < _ALL_HASHES else ""
        return defects(
            "duplicates",
            self._n,
            self._objections if grave else self._remarks,
            threshold="a study or patient once per target; no two cases alike; no image in two patients; masks of one "
            f"image overlap by at most {self._near:g} (warn where the targets differ){some}",
            good="Nothing is asked twice.",
            bad="Some cases repeat others, so intervals would be too narrow; keep one of each."
            if grave
            else "Some cases of one image show the same mask under two names; intervals must be by patient.",
            grave="fail" if grave else "warn",
        )


def _overlap(these: tuple[Region, ...], those: tuple[Region, ...]) -> float:
    try:
        return max(one.iou(other) for one in these for other in those)
    except RegionError:
        return 0.0  # of different sizes or damaged, which another gate tells
