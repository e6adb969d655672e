"""A percept case as a published record, and the files that show its views.

A case that was read from a bundle gives back the record it was read from. One of our own gives a record with the same
field names: names of masks are made up, since a case has regions instead, and tell nothing.
"""

import json
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any, Final

from carina.cases.model import Case, Panel, Step
from carina.percept.bundle import layout, steps
from carina.percept.bundle.case import PROTOCOL
from carina.percept.bundle.faults import BundleError
from carina.percept.bundle.pictures import folder
from carina.studies.vocabulary import SIDES

Record = dict[str, Any]
Size = Callable[[str], tuple[int, int]]
"""Width and height of the picture that shows a view: points are given in its pixels."""

_COMPONENT: Final = "0"
_SHOWN_MASK: Final = "mask_0"
_ZONE_CUT: Final = 0.20
"""Share of a zone from which on the published rule counts it; ours leaves a margin on both sides."""
_LUNG_CUT: Final = 0.01
"""The same of a lung."""


def record_of(case: Case, size: Size, *, neutral_names: bool = False) -> Record:
    """The record of a case; `size` is asked for our own cases alone, and only for points."""
    _check_protocol(case)
    if not came_from_a_bundle(case):
        return _our_record(case, size)
    record: Record = json.loads(case.extra or "{}")
    if neutral_names:
        # A record without that question may hold the block all the same, and names of files with it.
        block = (record.get(layout.CONTOUR) or {}).get(layout.REVISION_RESULT) or {}
        for number, option in enumerate(block.get("answer_options") or [], start=1):
            option["relative_path"] = layout.option_file(number)
    return record


def files_of(case: Case, *, neutral_names: bool = False) -> dict[str, str]:
    """Where the picture of each view lies, relative to the bundle."""
    _check_protocol(case)
    start = folder(key_id_of(case))
    if not came_from_a_bundle(case):
        return _our_files(case, start)
    files = {view.id: view.panels[0].image for view in case.views}
    if neutral_names and case.path == "RR":
        files |= _option_files(case.step("3c"), start / layout.OPTIONS_FROM)
    return files


def _check_protocol(case: Case) -> None:
    if case.protocol != PROTOCOL:
        raise BundleError(
            f"case {case.id!r}: is of protocol {case.protocol!r}; CheXpercept's layout holds {PROTOCOL} alone"
        )


def came_from_a_bundle(case: Case) -> bool:
    """Whether a case was read from a published record, which is then written back."""
    return case.extra is not None and all(image.finished for image in case.images)


def key_id_of(case: Case) -> str:
    """The published name: the lesion, an underscore, and an id that tells nothing."""
    if came_from_a_bundle(case):
        return case.id
    lesion = (case.target or "").replace("_", " ")
    return f"{lesion}_{case.id}"


def _our_files(case: Case, start: PurePosixPath) -> dict[str, str]:
    asked = {step.id: step for step in case.steps}
    files = {_shown(case, asked["1"]): str(start / layout.XRAY)}
    if "2" in asked:
        files[_shown(case, asked["2"])] = str(start / layout.OVERLAY_FROM / layout.OVERLAY)
    if "3a" in asked:
        files[_shown(case, asked["3a"])] = str(start / layout.POINTS)
        files |= _option_files(asked["3c"], start / layout.OPTIONS_FROM)
    return files


def _our_record(case: Case, size: Size) -> Record:
    asked = {step.id: step for step in case.steps}
    record: Record = {layout.DETECTION: _single(asked["1"])}
    if "2" in asked:
        record[layout.CONTOUR] = _contour(case, asked, size)
        record[layout.ATTRIBUTES] = _attributes(asked) if "4a" in asked else None
    return record | {"pair_id": case.id, "dicom_id": case.study}


def _contour(case: Case, asked: dict[str, Step], size: Size) -> Record:
    after = asked.get("3c")
    masks = [f"mask_{number}" for number, _ in enumerate(after.options, start=1)] if after else []
    right = [masks[number - 1] for number in after.right] if after else []
    wrong = [mask for mask in masks if mask not in right]
    record: Record = {
        "no_deformation": case.path == "RF",
        "initial_context": asked["3a"].context or "" if after else "",
        "revision_before_masks": [_SHOWN_MASK],
        "revision_after_masks": right or [_SHOWN_MASK],
        "true_masks": {_COMPONENT: right},
        "fake_masks": {_COMPONENT: wrong},
        "true_combination": right,
        "fake_combinations": [[mask] for mask in wrong],
        layout.CONTOUR_EVAL: {**_single(asked["2"]), "relative_path": str(layout.OVERLAY)},
    }
    if after:
        view = _shown(case, asked["3a"])
        panel, picture = case.view(view).panels[0], size(view)
        for step, block in (("3a", layout.EXPANSION), ("3b", layout.CONTRACTION)):
            points = [_point(case, panel, option.mark, picture) for option in asked[step].options]
            record[block] = {**_several(asked[step]), "answer_options": points}
        record[layout.REVISION_RESULT] = _masks(after, masks)
    return record


def _attributes(asked: dict[str, Step]) -> Record:
    zones, regions, severity, comparison = (asked[kind.id] for kind in steps.ATTRIBUTES)
    ratios = [(fact.about, fact.value) for fact in zones.facts if fact.name == "zone ratio"]
    sizes = {side: _size(comparison, side) for side in SIDES}
    return {
        layout.DISTRIBUTION: {
            **_single(zones),
            "answer_zones": [zone for zone, ratio in ratios if ratio is not None and ratio >= _ZONE_CUT],
        },
        layout.LOCATION: {
            **_several(regions),
            "answer_zones": [name.replace("-", " ") for name in regions.key.options if name != "none"],
        },
        layout.SEVERITY: {
            **_single(severity),
            "overlap_ratio": _value(severity, "share"),
            "selected_lung": _lung(severity),
        },
        layout.COMPARISON: {
            **_single(comparison),
            **{f"{side}_size": sizes[side] for side in ("left", "right")},
            **{f"{side}_has_overlap": _present(comparison, side) for side in ("left", "right")},
        },
    }


def _single(step: Step) -> Record:
    (number,) = step.right
    return {**_question(step), "answer": step.options[number - 1].text, "answer_index": number}


def _several(step: Step) -> Record:
    answer = ", ".join(step.options[number - 1].text for number in step.right)
    return {**_question(step), "answer": answer, "answer_index": list(step.right)}


def _question(step: Step) -> Record:
    return {"question": step.question, "answer_options": [option.text for option in step.options]}


def _masks(step: Step, masks: list[str]) -> Record:
    options = [
        {
            "type": "true" if number in step.right else "fake",
            "masks": [mask],
            "relative_path": layout.option_file(number),
        }
        for number, mask in enumerate(masks, start=1)
    ]
    return {**_single(step), "answer_options": options}


def _point(case: Case, panel: Panel, name: str | None, picture: tuple[int, int]) -> Record:
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


def _shown(case: Case, step: Step) -> str:
    """The one view that enters with a step."""
    if len(step.shows) != 1:
        raise BundleError(
            f"case {case.id!r}, step {step.id!r}: shows {len(step.shows)} views, but a published step has one picture"
        )
    return step.shows[0]


def _value(step: Step, name: str) -> float | None:
    return next((fact.value for fact in step.facts if fact.name == name), None)


def _size(step: Step, side: str) -> float | None:
    """Pixels of the lesion in one lung; the share of the lung where the case does not tell them."""
    pixels = _value(step, f"{side} size")
    return _value(step, f"{side} share") if pixels is None else round(pixels)


def _present(step: Step, side: str) -> bool:
    """A few pixels beyond the midline are no lesion of the other lung."""
    return (_value(step, f"{side} share") or 0.0) >= _LUNG_CUT


def _lung(step: Step) -> str | None:
    """The lung whose share is asked."""
    told = " ".join((*(fact.about for fact in step.facts if fact.name == "share"), step.question))
    return next((f"{side} lung" for side in SIDES if f"{side} lung" in told.lower()), None)
