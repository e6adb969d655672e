"""A study painted by hand: two elliptic lungs, a round consolidation in the right one; and a segmenter by script."""

from dataclasses import dataclass, field
from pathlib import Path

import cv2
import numpy as np

from carina.models import Proposal
from carina.studies import (
    Anatomy,
    Annotation,
    Finding,
    Image,
    Provenance,
    Region,
    SourceInfo,
    Study,
    open_studies,
    write_png,
    write_studies,
)

HEIGHT, WIDTH = 520, 500
CENTRE, RADII = (150, 250), (70, 90)
"""Of the lesion: x and y."""
FINDING = "consolidation"


def ellipse(centre, radii):
    filled = np.zeros((HEIGHT, WIDTH), np.uint8)
    cv2.ellipse(filled, centre, radii, 0, 0, 360, 1, cv2.FILLED)
    return filled.astype(bool)


def lesion_mask():
    return ellipse(CENTRE, RADII)


LUNGS = {"right lung": ellipse((140, 260), (105, 215)), "left lung": ellipse((357, 260), (105, 215))}


def study_of(*, drawn="mask", regions=None, annotators=("reader A",), number=0):
    """`regions` are those of one finding each; by default the lesion, or its box."""
    region = Region.from_mask(lesion_mask())
    if drawn == "box":
        x, y, w, h = region.bbox
        region = Region.from_box(x, y, w, h, height=HEIGHT, width=WIDTH)
    key = f"images/s{number}.png"
    findings = tuple(
        Finding(
            id=f"f{n}",
            name=FINDING,
            certainty="present",
            annotations=tuple(
                Annotation(image=key, region=one, drawn=drawn, annotator=name) for name in annotators
            ),
        )
        for n, one in enumerate(regions or (region,))
    )
    return Study(
        id=f"s{number}",
        patient=f"p{number}",
        source="painted",
        order=0,
        images=(Image(key=key, view="PA", width=WIDTH, height=HEIGHT),),
        findings=findings,
        anatomy=tuple(
            Anatomy(name=name, image=key, region=Region.from_mask(mask), annotator="painter")
            for name, mask in LUNGS.items()
        ),
    )


def pixels():
    """Grey values with a bright lesion on dark lungs."""
    grey = np.full((HEIGHT, WIDTH), 160, np.uint8)
    for lung in LUNGS.values():
        grey[lung] = 60
    grey[lesion_mask()] = 130
    return cv2.GaussianBlur(grey, (0, 0), 4)


def write_set(directory: Path, *studies):
    """A study set on disk, opened."""
    for study in studies:
        write_png(directory / study.images[0].key, pixels())
    provenance = Provenance(
        command="painted", seed=0, options={}, sources=(SourceInfo(name="painted", licence="CC0-1.0"),)
    )
    write_studies(directory, studies, provenance)
    return open_studies(directory)


@dataclass
class Scripted:
    """A segmenter that answers with what a function says, and remembers what it was asked."""

    answer: object
    name: str = "scripted:one"
    weights: str = "0123456789abcdef" * 4
    asked: list = field(default_factory=list)

    def propose(self, image, prompts):
        self.asked.append((image, prompts))
        logits = np.asarray(self.answer(image, prompts), np.float32)
        return [Proposal(region=Region.from_mask(logits > 0), score=0.9, logits=logits)]
