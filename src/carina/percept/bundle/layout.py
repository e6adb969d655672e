"""Names of the published CheXpercept layout: files, blocks of a record, and which fields are keys.

    <bundle>/chexpercept.json                                        {key_id: record}
    <bundle>/chexpercept/<key_id>/detection_qa/xray.png              every record
      .../contour_qa/contour_eval_qa/xray_with_mask.png              where the lesion is there
      .../contour_qa/contour_revision_qa/xray_with_mask_and_points.png   where the mask needs a revision
      .../contour_qa/contour_revision_qa/option_...png               one a mask to choose from

The only module that spells them. What they mean is in `case.py` (reading) and `record.py` (writing).
"""

from pathlib import PurePosixPath
from typing import Final

NAME: Final = "chexpercept"
RECORDS: Final = "chexpercept.json"
KEYS: Final = "keys.json"
PICTURES: Final = "chexpercept"

DETECTION: Final = "detection_qa"
CONTOUR: Final = "contour_qa"
CONTOUR_EVAL: Final = "contour_eval_qa"
REVISION: Final = "contour_revision_qa"
EXPANSION: Final = "contour_revision_qa_expansion"
CONTRACTION: Final = "contour_revision_qa_contraction"
REVISION_RESULT: Final = "contour_revision_qa_revision_result"
ATTRIBUTES: Final = "attribute_extraction_qa"
DISTRIBUTION: Final = "distribution"
LOCATION: Final = "location"
SEVERITY: Final = "severity/measurement"
COMPARISON: Final = "comparison"

XRAY: Final = PurePosixPath(DETECTION, "xray.png")
OVERLAY_FROM: Final = PurePosixPath(CONTOUR)
"""`relative_path` of the overlay starts here."""
OVERLAY: Final = PurePosixPath(CONTOUR_EVAL, "xray_with_mask.png")
OPTIONS_FROM: Final = PurePosixPath(CONTOUR, REVISION)
"""`relative_path` of a mask to choose from starts here."""
POINTS: Final = OPTIONS_FROM / "xray_with_mask_and_points.png"

NO_POINT: Final = "None"

_KEY_FIELDS: Final = frozenset(
    {
        "answer", "answer_index", "answer_zones", "type", "masks", "no_deformation", "revision_before_masks",
        "revision_after_masks", "overlap_ratio", "selected_lung", "left_size", "right_size", "left_has_overlap",
        "right_has_overlap",
    }
)  # fmt: skip


def is_key(field: str) -> bool:
    """Whether a field, wherever in a record it stands, tells what is right."""
    return field in _KEY_FIELDS or field.startswith(("true_", "fake_"))


def option_file(place: int) -> str:
    """A name for the picture of a mask to choose from that does not tell whether it is the right one."""
    return f"option_{place}.png"


def point_text(colour: str) -> str:
    """A point as options name it."""
    return NO_POINT if colour == NO_POINT else f"{colour} point"


def mask_text(place: int) -> str:
    """A mask to choose from as options name it: "2nd mask"."""
    ending = "th" if place % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place}{ending} mask"
