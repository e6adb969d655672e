"""Where the mask of a lesion comes from: the study set's own regions. For masks by a model see `segmented`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from carina.percept.anatomy import mask_on
from carina.percept.lesions import Lesion
from carina.percept.rules import Ineligible
from carina.studies.model import Annotation, Finding, Image, Study
from carina.studies.region import Mask


@dataclass(frozen=True, kw_only=True, eq=False)
class Truth:
    """The mask that everything about a case is measured against."""

    mask: Mask
    provenance: str
    """In words."""
    reviewed: bool
    """Whether somebody who knows has drawn or approved this very mask."""


class TruthSource(Protocol):
    """Where the mask of a lesion comes from."""

    def __call__(self, study: Study, image: Image, lesion: Lesion) -> Truth:
        """The mask on the image; `Ineligible` where there is none."""
        ...


def drawn_masks(study: Study, image: Image, lesion: Lesion) -> Truth:
    """The study set's own regions: all findings of the name, as one annotator drew them."""
    by_annotator: dict[str, list[Mask]] = {}
    for finding, drawn in drawn_on(study, image, lesion):
        if drawn.drawn == "box":
            raise Ineligible("drawn as a box", f"finding {finding!r} has a box, a contour is needed")
        by_annotator.setdefault(drawn.annotator, []).append(
            mask_on(image, drawn.region, f"finding {finding!r}")
        )
    annotator = next(iter(sorted(whole(study, lesion, by_annotator))))
    return Truth(
        mask=np.logical_or.reduce(by_annotator[annotator]), provenance=f"drawn by {annotator}", reviewed=True
    )


def drawn_on(study: Study, image: Image, lesion: Lesion) -> Iterator[tuple[str, Annotation]]:
    """What annotators drew of a lesion on an image, with the ids of the findings; each finding must be drawn."""
    for finding in _present(study, lesion):
        here = [drawn for drawn in finding.annotations if drawn.image == image.key]
        if not here:
            raise Ineligible("not drawn", f"finding {finding.id!r} has no region on {image.key!r}")
        yield from ((finding.id, drawn) for drawn in here)


def whole(study: Study, lesion: Lesion, by_annotator: Mapping[str, Sequence[object]]) -> list[str]:
    """Annotators who have drawn every finding of the name; at least one."""
    findings = len(_present(study, lesion))
    names = [name for name, drawn in by_annotator.items() if len(drawn) >= findings]
    if not names:
        raise Ineligible("not drawn", "no annotator has drawn every finding of the name")
    return names


def _present(study: Study, lesion: Lesion) -> list[Finding]:
    return [f for f in study.findings if f.name == lesion.finding and f.certainty == "present"]
