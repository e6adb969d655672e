"""On which side of the patient a region lies."""

from typing import Final

from carina.studies.model import Annotation, Image, Study
from carina.studies.region import Region
from carina.studies.vocabulary import BodySide

MIDDLE: Final = 0.1
"""Share of the width of an image, around its middle, in which a region says nothing about its side: patients are
rotated, and images are not always centred."""


def find_drawn_side(study: Study, annotation: Annotation) -> BodySide | None:
    """The side of the patient on which a region lies as a whole.

    Args:
        study: The study of the annotation.
        annotation: A region on one of its images.

    Returns:
        The side; None where the image is not known to be frontal, or the region reaches the middle of the image.

    Example:
        >>> from carina.studies import Finding, Image, Region
        >>> image = Image(key="a.png", view="PA", width=100, height=80)
        >>> box = Region.from_box(5, 40, 30, 20, height=80, width=100)
        >>> drawn = Annotation(image="a.png", region=box, drawn="box", annotator="A")
        >>> effusion = Finding(id="f1", name="pleural effusion", certainty="present", annotations=(drawn,))
        >>> study = Study(id="s1", patient="p1", source="mine", images=(image,), findings=(effusion,))
        >>> find_drawn_side(study, drawn)
        'right'
    """
    return find_region_side(study.image(annotation.image), annotation.region)


def find_region_side(image: Image, region: Region) -> BodySide | None:
    """The side of the patient on which a region of an image lies as a whole, as `find_drawn_side` tells it."""
    box = region.bbox
    if image.view not in ("PA", "AP") or box is None:
        return None
    first, last = box[0] / image.width, (box[0] + box[2]) / image.width
    # In a frontal image the patient's right is on the image's left.
    if last <= 0.5 - MIDDLE / 2:
        return "right"
    return "left" if first >= 0.5 + MIDDLE / 2 else None
