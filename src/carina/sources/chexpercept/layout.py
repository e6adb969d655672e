"""The published CheXpercept layout: files, blocks of a record, and the fields that hold the answer key.

    <bundle>/chexpercept.json                                        {key_id: record}
    <bundle>/chexpercept/<key_id>/detection_qa/xray.png              every record
      .../contour_qa/contour_eval_qa/xray_with_mask.png              where the lesion is present
      .../contour_qa/contour_revision_qa/xray_with_mask_and_points.png   where the mask needs a revision
      .../contour_qa/contour_revision_qa/option_...png               one for each offered mask

The only module that spells the names. `case.py` reads what they mean; `carina.exports.chexpercept` writes it.
"""

from pathlib import PurePosixPath
from typing import Any, Final

from carina.sources._record import RecordError

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


def is_key_field(field: str) -> bool:
    """Whether a field of a record, at any depth, states the right answer."""
    return field in _KEY_FIELDS or field.startswith(("true_", "fake_"))


def option_file(place: int) -> str:
    """The file name of an offered mask, which does not reveal whether the mask is the right one."""
    return f"option_{place}.png"


def point_text(colour: str) -> str:
    """The text of an option that is a point."""
    return NO_POINT if colour == NO_POINT else f"{colour} point"


def mask_text(place: int) -> str:
    """The text of an option that is a mask, such as "2nd mask"."""
    ending = "th" if place % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place}{ending} mask"


# ---- the answer key apart from the questions ------------------------------------------------------------------------

Json = Any


def split_keys(record: Json) -> tuple[Json, Json]:
    """A record without its answers, and only its answers in the same nesting; None where there is no answer.

    Lists of objects keep their length in both, so that each item finds its other half again.
    """
    if isinstance(record, dict):
        questions, keys = {}, {}
        for name, value in record.items():
            if is_key_field(name):
                keys[name] = value
                continue
            questions[name], below = split_keys(value)
            if below is not None:
                keys[name] = below
        return questions, keys or None
    if isinstance(record, list):
        halves = [split_keys(item) for item in record]
        below = [keys for _, keys in halves]
        return [questions for questions, _ in halves], below if any(
            keys is not None for keys in below
        ) else None
    return record, None


def merge_keys(questions: Json, keys: Json, field: str = "") -> Json:
    """A record with its answers put back.

    Raises:
        RecordError: The two do not fit; names the field.
    """
    if keys is None:
        return questions
    if isinstance(questions, dict) and isinstance(keys, dict):
        found = dict(questions)
        for name, value in keys.items():
            called = f"{field}.{name}" if field else name
            if is_key_field(name):
                if name in found and found[name] != value:
                    raise RecordError(called, f"differs between {RECORDS} and {KEYS}", kind="json")
                found[name] = value
            elif name not in found:
                raise RecordError(called, f"is in {KEYS} but not in {RECORDS}", kind="missing")
            else:
                found[name] = merge_keys(found[name], value, called)
        return found
    if isinstance(questions, list) and isinstance(keys, list) and len(questions) == len(keys):
        return [
            merge_keys(item, key, f"{field}[{place}]")
            for place, (item, key) in enumerate(zip(questions, keys, strict=True))
        ]
    raise RecordError(field, f"has another form in {KEYS} than in {RECORDS}", kind="json")
