"""Where the mask of a lesion comes from: the study set's own regions. For masks by a model see `segmented`."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from carina.percept.anatomy import mask_on
from carina.percept.lesions import Lesion
from carina.percept.outline import iou
from carina.percept.rules import Ineligible
from carina.studies.model import Annotation, Finding, Image, Study
from carina.studies.region import Mask

AGREEMENT: Final = 0.7
"""Overlap (IoU) of two annotators' masks, below which neither is the truth."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Truth:
    """The mask that everything about a case is measured against."""

    mask: Mask
    provenance: str
    """In words."""
    reviewed: bool
    """Whether somebody who knows has drawn or approved this very mask."""
    conspicuity: float | None
    """Contrast-to-noise ratio of the piece that is seen best, where the source knows it."""


class TruthSource(Protocol):
    """Where the mask of a lesion comes from."""

    def __call__(self, study: Study, image: Image, lesion: Lesion) -> Truth:
        """The mask on the image; `Ineligible` where there is none."""
        ...


def drawn_masks(study: Study, image: Image, lesion: Lesion) -> Truth:
    """The study set's own regions: all findings of the name, as one annotator drew them.

    Where several have drawn contours of them all, they must agree; the first by name is taken.
    """
    contours = {
        name: drawn
        for name, drawn in whole(study, image, lesion).items()
        if all(annotation.drawn != "box" for _, annotation in drawn)
    }
    if not contours:
        raise Ineligible("drawn as a box", "a contour of every finding of the name is needed")
    masks = {
        name: np.logical_or.reduce(
            [mask_on(image, annotation.region, f"finding {finding!r}") for finding, annotation in drawn]
        )
        for name, drawn in contours.items()
    }
    first, *others = masks
    provenance = f"drawn by {first}"
    for other in others:
        agreement = iou(masks[first], masks[other])
        if not agreement >= AGREEMENT:
            raise Ineligible("annotators disagree", f"{first} and {other} overlap by {agreement:.2f}")
        provenance += f"; {other} agrees to {agreement:.2f}"
    seen = conspicuity(contours[first])
    return Truth(mask=masks[first], provenance=provenance, reviewed=True, conspicuity=seen)


def conspicuity(drawn: list[tuple[str, Annotation]]) -> float | None:
    """Of a lesion in pieces: who sees one of them has found it."""
    known = [annotation.conspicuity for _, annotation in drawn if annotation.conspicuity is not None]
    return max(known, default=None)


def drawn_on(study: Study, image: Image, lesion: Lesion) -> Iterator[tuple[str, Annotation]]:
    """What annotators drew of a lesion on an image, with the ids of the findings; each finding must be drawn."""
    for finding in _present(study, lesion):
        here = [drawn for drawn in finding.annotations if drawn.image == image.key]
        if not here:
            raise Ineligible("not drawn", f"finding {finding.id!r} has no region on {image.key!r}")
        yield from ((finding.id, drawn) for drawn in here)


def whole(study: Study, image: Image, lesion: Lesion) -> dict[str, list[tuple[str, Annotation]]]:
    """What each annotator drew who has drawn every finding of the name, by name; at least one."""
    by_annotator: dict[str, list[tuple[str, Annotation]]] = {}
    for finding, drawn in drawn_on(study, image, lesion):
        by_annotator.setdefault(drawn.annotator, []).append((finding, drawn))
    findings = {finding.id for finding in _present(study, lesion)}
    names = [name for name, drawn in by_annotator.items() if {finding for finding, _ in drawn} == findings]
    if not names:
        raise Ineligible("not drawn", "no annotator has drawn every finding of the name")
    return {name: by_annotator[name] for name in sorted(names)}


def _present(study: Study, lesion: Lesion) -> list[Finding]:
    return [f for f in study.findings if f.name == lesion.finding and f.certainty == "present"]
