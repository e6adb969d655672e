"""A percept case as a published record, and the files that show its views.

A case that was imported from a bundle gives back the record it was read from. A case that Carina built gives a record
with the same field names; it has regions instead of named masks, so the names of masks are made up and tell nothing.
"""

import json
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any, Final

from carina.cases.facts import Margin
from carina.cases.model import Case, Panel, Step
from carina.percept.facts import PerceptStepFacts
from carina.sources.chexpercept import layout
from carina.sources.chexpercept.case import ATTRIBUTE_STEPS, PROTOCOL, find_picture_folder
from carina.store.errors import BenchmarkError
from carina.studies.vocabulary import SIDES

Record = dict[str, Any]
Size = Callable[[str], tuple[int, int]]
"""Width and height of the picture that shows a view: points are given in its pixels."""

_COMPONENT: Final = "0"
_SHOWN_MASK: Final = "mask_0"
_ZONE_CUT: Final = 0.20
"""Share of a zone above which the published rule counts it; Carina leaves a margin on both sides."""
_LUNG_CUT: Final = 0.01
"""Share of a lung above which the published rule counts it."""


def make_record(case: Case, size: Size, *, neutral_names: bool = False) -> Record:
    """The record of a case.

    Args:
        case: A percept case.
        size: Gives width and height of the picture of a view; only used for points of cases that Carina built.
        neutral_names: Whether names of option files of imported records are replaced.
    """
    _check_protocol(case)
    if not is_from_bundle(case):
        return _build_record(case, size)
    record: Record = json.loads(case.extra or "{}")
    if neutral_names:
        # A record without that question may hold the block all the same, and names of files with it.
        block = (record.get(layout.CONTOUR) or {}).get(layout.REVISION_RESULT) or {}
        for number, option in enumerate(block.get("answer_options") or [], start=1):
            option["relative_path"] = layout.option_file(number)
    return record


def list_files(case: Case, *, neutral_names: bool = False) -> dict[str, str]:
    """The file of the picture of each view, relative to the bundle."""
    _check_protocol(case)
    start = find_picture_folder(make_key_id(case))
    if not is_from_bundle(case):
        return _name_files(case, start)
    files = {view.id: view.panels[0].image for view in case.views}
    if neutral_names and case.path == "RR":
        files |= _option_files(case.step("3c"), start / layout.OPTIONS_FROM)
    return files


def _check_protocol(case: Case) -> None:
    if case.protocol != PROTOCOL:
        raise BenchmarkError(
            f"case {case.id!r}: is of protocol {case.protocol!r}; the CheXpercept layout holds {PROTOCOL} cases only"
        )


def is_from_bundle(case: Case) -> bool:
    """Whether a case was imported from a published record, which is then written back."""
    return case.extra is not None and all(image.finished for image in case.images)


def make_key_id(case: Case) -> str:
    """The published name: the lesion, an underscore, and an id that reveals nothing."""
    if is_from_bundle(case):
        return case.id
    lesion = (case.target or "").replace("_", " ")
    return f"{lesion}_{case.id}"


def _name_files(case: Case, start: PurePosixPath) -> dict[str, str]:
    steps = {step.id: step for step in case.steps}
    files = {_single_view(case, steps["1"]): str(start / layout.XRAY)}
    if "2" in steps:
        files[_single_view(case, steps["2"])] = str(start / layout.OVERLAY_FROM / layout.OVERLAY)
    if "3a" in steps:
        files[_single_view(case, steps["3a"])] = str(start / layout.POINTS)
        files |= _option_files(steps["3c"], start / layout.OPTIONS_FROM)
    return files


def _build_record(case: Case, size: Size) -> Record:
    steps = {step.id: step for step in case.steps}
    record: Record = {layout.DETECTION: _single_choice_block(steps["1"])}
    if "2" in steps:
        record[layout.CONTOUR] = _contour_block(case, steps, size)
        record[layout.ATTRIBUTES] = _attribute_block(steps)
    return record | {"pair_id": case.id, "dicom_id": case.study}


def _contour_block(case: Case, steps: dict[str, Step], size: Size) -> Record:
    after = steps.get("3c")
    masks = [f"mask_{number}" for number, _ in enumerate(after.options, start=1)] if after else []
    right = [masks[number - 1] for number in after.right] if after else []
    wrong = [mask for mask in masks if mask not in right]
    record: Record = {
        "no_deformation": case.path == "RF",
        "initial_context": steps["3a"].context or "" if after else "",
        "revision_before_masks": [_SHOWN_MASK],
        "revision_after_masks": right or [_SHOWN_MASK],
        "true_masks": {_COMPONENT: right},
        "fake_masks": {_COMPONENT: wrong},
        "true_combination": right,
        "fake_combinations": [[mask] for mask in wrong],
        layout.CONTOUR_EVAL: {**_single_choice_block(steps["2"]), "relative_path": str(layout.OVERLAY)},
    }
    if after:
        view = _single_view(case, steps["3a"])
        panel, picture = case.view(view).panels[0], size(view)
        for step, block in (("3a", layout.EXPANSION), ("3b", layout.CONTRACTION)):
            points = [_point_of_mark(case, panel, option.mark, picture) for option in steps[step].options]
            record[block] = {**_multiple_choice_block(steps[step]), "answer_options": points}
        record[layout.REVISION_RESULT] = _mask_block(after, masks)
    return record


def _attribute_block(steps: dict[str, Step]) -> Record | None:
    """The attribute questions, null for those that are not asked; None where none is asked."""
    write = dict(
        zip(
            (kind.id for kind in ATTRIBUTE_STEPS),
            (_distribution_block, _location_block, _severity_block, _comparison_block),
            strict=True,
        )
    )
    if not write.keys() & steps.keys():
        return None
    return {
        kind.block: write[kind.id](steps[kind.id]) if kind.id in steps else None for kind in ATTRIBUTE_STEPS
    }


def _distribution_block(step: Step) -> Record:
    ratios = PerceptStepFacts.of(step).zone_ratios
    covered = [zone for zone, ratio in ratios.items() if ratio.value >= _ZONE_CUT]
    return {**_single_choice_block(step), "answer_zones": covered}


def _location_block(step: Step) -> Record:
    regions = [name.replace("-", " ") for name in step.key.options if name != "none"]
    return {**_multiple_choice_block(step), "answer_zones": regions}


def _severity_block(step: Step) -> Record:
    share = PerceptStepFacts.of(step).share
    return {
        **_single_choice_block(step),
        "overlap_ratio": None if share is None else share.value,
        "selected_lung": _asked_lung(step),
    }


def _comparison_block(step: Step) -> Record:
    facts = PerceptStepFacts.of(step)
    left, right = facts.left_share, facts.right_share
    return {
        **_single_choice_block(step),
        "left_size": _lesion_size(facts.left_size, left),
        "right_size": _lesion_size(facts.right_size, right),
        "left_has_overlap": _is_covered(left),
        "right_has_overlap": _is_covered(right),
    }


def _single_choice_block(step: Step) -> Record:
    (number,) = step.right
    return {**_question_block(step), "answer": step.options[number - 1].text, "answer_index": number}


def _multiple_choice_block(step: Step) -> Record:
    answer = ", ".join(step.options[number - 1].text for number in step.right)
    return {**_question_block(step), "answer": answer, "answer_index": list(step.right)}


def _question_block(step: Step) -> Record:
    return {"question": step.question, "answer_options": [option.text for option in step.options]}


def _mask_block(step: Step, masks: list[str]) -> Record:
    options = [
        {
            "type": "true" if number in step.right else "fake",
            "masks": [mask],
            "relative_path": layout.option_file(number),
        }
        for number, mask in enumerate(masks, start=1)
    ]
    return {**_single_choice_block(step), "answer_options": options}


def _point_of_mark(case: Case, panel: Panel, name: str | None, picture: tuple[int, int]) -> Record:
    """The pixel of the picture in which a mark's centre lies."""
    if name is None:
        return {"point": None, "color": layout.NO_POINT}
    mark = next(mark for mark in panel.marks if mark.text == name)
    image = case.image(panel.image)
    left, top, width, height = panel.crop or (0, 0, image.width, image.height)
    x = int((mark.x - left) * picture[0] / width)
    y = int((mark.y - top) * picture[1] / height)
    return {"point": [min(x, picture[0] - 1), min(y, picture[1] - 1)], "color": mark.colour}


def _option_files(step: Step, start: PurePosixPath) -> dict[str, str]:
    return {
        option.view: str(start / layout.option_file(number))
        for number, option in enumerate(step.options, start=1)
        if option.view is not None
    }


def _single_view(case: Case, step: Step) -> str:
    """The only view that enters with a step."""
    if len(step.shows) != 1:
        raise BenchmarkError(
            f"case {case.id!r}, step {step.id!r}: shows {len(step.shows)} views, but a published step has one picture"
        )
    return step.shows[0]


def _lesion_size(pixels: float | None, share: Margin | None) -> float | None:
    """Pixels of the lesion in one lung; the share of the lung where the case does not store the pixels."""
    if pixels is not None:
        return round(pixels)
    return None if share is None else share.value


def _is_covered(share: Margin | None) -> bool:
    """Whether a lung counts as affected; a few pixels beyond the midline do not count."""
    return share is not None and share.value >= _LUNG_CUT


def _asked_lung(step: Step) -> str | None:
    """The lung whose share the question asks for."""
    side = PerceptStepFacts.of(step).side
    if side is not None:
        return f"{side} lung"
    return next((f"{side} lung" for side in SIDES if f"{side} lung" in step.question.lower()), None)
