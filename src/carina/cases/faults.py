"""Finds what is wrong inside one case although every field has the right type.

The rules hold for every case that can be asked and scored; protocols add their own.
"""

import math
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from carina.cases.boxes import pixel_box
from carina.cases.draw import NAMED, Size
from carina.cases.model import Box, Case, CaseImage, CaseView, Constraints, Fact, Panel, Step
from carina.store.errors import RegionError
from carina.studies.faults import BITS, greyscale_faults, size_fault
from carina.studies.pixels import MAX_PIXELS

_SLOT: Final = re.compile(r"\{[A-Za-z_]\w*\}")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_NO_CONSTRAINTS: Final = Constraints()


def faults(case: Case) -> Iterator[str]:
    """Find the problems of a case, each with the name of the part."""
    if not case.id:
        yield "id: empty, expected a name that no other case has"
    for what, names in (
        ("image", [image.key for image in case.images]),
        ("region", [region.name for region in case.regions]),
        ("view", [view.id for view in case.views]),
        ("step", [step.id for step in case.steps]),
    ):
        yield from _find_duplicates(what, names)
    images = {image.key: image for image in case.images}
    for image in case.images:
        yield from (f"image {image.key!r}: {fault}" for fault in _image_faults(image))
    yield from _region_faults(case, images)
    for view in case.views:
        yield from (f"view {view.id!r}: {fault}" for fault in _view_faults(case, view, images))
    if not case.steps:
        yield "steps: empty, expected at least one"
    views = {view.id: view for view in case.views}
    regions = {region.name for region in case.regions}
    if case.context.age is not None and case.context.age < 0:
        yield f"context: age {case.context.age}, expected 0 or more"
    yield from _fact_faults(case.facts)
    earlier: dict[str, Step] = {}
    entered: set[str] = set()
    for step in case.steps:
        known = _KnownNames(images, views, regions, earlier, entered)
        for fault in _step_faults(step, known):
            yield f"step {step.id!r}: {fault}"
        earlier[step.id] = step
        entered.update(step.shows)


def _image_faults(image: CaseImage) -> Iterator[str]:
    # 0 x 0 stands for an image that was imported without its file; whatever shows it says so.
    if (image.width or image.height) and (wrong := size_fault(image.width, image.height)):
        yield wrong
    if image.bits not in BITS:
        yield f"{image.bits} bits, expected {BITS.start} to {BITS.stop - 1}"
    if image.sha256 is not None and not _SHA256.fullmatch(image.sha256):
        yield f"sha256 is {image.sha256!r}, expected 64 hexadecimal digits"
    yield from greyscale_faults(image)


def _region_faults(case: Case, images: dict[str, CaseImage]) -> Iterator[str]:
    for region in case.regions:
        image = images.get(region.image)
        size = (region.region.width, region.region.height)
        if image is None:
            yield f"region {region.name!r}: lies on image {region.image!r}, which the case does not have"
        elif size != (image.width, image.height):
            yield (
                f"region {region.name!r}: is for an image of {size[0]} x {size[1]}, but {region.image!r} is "
                f"{image.width} x {image.height}"
            )
        else:
            try:
                region.region.validate()
            except RegionError as error:
                yield f"region {region.name!r}: {error}"


def _view_faults(case: Case, view: CaseView, images: dict[str, CaseImage]) -> Iterator[str]:
    if not view.panels:
        yield "has no panel"
    if view.side is not None and view.side < 1:
        yield f"side is {view.side}, expected 1 or more"
    drawn = 0
    for panel in view.panels:
        image = images.get(panel.image)
        if image is None:
            yield f"shows image {panel.image!r}, which the case does not have"
        else:
            yield from _panel_faults(case, panel, image)
            drawn += _drawn_pixels(panel, image, view.side)
    if drawn > MAX_PIXELS:
        yield f"would be rendered with {drawn:,} pixels, more than the limit of {MAX_PIXELS:,}"


def _drawn_pixels(panel: Panel, image: CaseImage, side: int | None) -> int:
    """About the number of pixels of a panel in the rendered image."""
    _, _, width, height = panel.crop or (0, 0, image.width, image.height)
    longest, shortest = max(width, height, 1), max(min(width, height), 0)
    if side is None:
        return longest * shortest
    return side * max(1, side * shortest // longest)


def _panel_faults(case: Case, panel: Panel, image: CaseImage) -> Iterator[str]:
    for overlay in panel.overlays:
        region = next((region for region in case.regions if region.name == overlay.region), None)
        what = f"draws region {overlay.region!r}"
        if region is None:
            yield f"{what}, which the case does not have"
        elif region.image != panel.image:
            yield f"{what} on an image that it does not lie on"
        if not 0 <= overlay.fill <= 1:
            yield f"{what} with fill {overlay.fill}, expected 0 to 1"
        if not 0 <= overlay.outline <= max(image.width, image.height, 1):
            yield f"{what} with an outline of {overlay.outline} pixels, expected 0 to the size of the image"
        if overlay.colour not in NAMED:
            yield f"{what} in colour {overlay.colour!r}, expected one of {', '.join(NAMED)}"
    for mark in panel.marks:
        if not (0 <= mark.x <= image.width and 0 <= mark.y <= image.height):
            yield f"mark {mark.text!r} at ({mark.x}, {mark.y}) lies outside its image"
        if mark.colour not in NAMED:
            yield f"mark {mark.text!r} has colour {mark.colour!r}, expected one of {', '.join(NAMED)}"
    if panel.crop:
        x, y, w, h = panel.crop
        if w < 1 or h < 1 or x < 0 or y < 0 or x + w > image.width or y + h > image.height:
            yield f"crop {panel.crop} leaves the image of {image.width} x {image.height}"


class _KnownNames(NamedTuple):
    """Names that a step may refer to: images, views, regions, earlier steps, and views that they show."""

    images: dict[str, CaseImage]
    views: dict[str, CaseView]
    regions: set[str]
    earlier: dict[str, Step]
    entered: set[str]
    """Ids of views that earlier steps show."""


def _step_faults(step: Step, known: _KnownNames) -> Iterator[str]:
    if not step.id:
        yield "has an empty id"
    if step.stage < 1:
        yield f"is of stage {step.stage}, expected 1 or more"
    yield from _reference_faults(step, known)
    if step.options:
        yield from _option_faults(step, known.views)
    texts = (step.question, step.context or "", *(option.text for option in step.options))
    for text in texts:
        if "{" in text and _SLOT.search(text):
            yield f"has an unfilled slot in {text!r}"
    if not step.question.strip():
        yield "has an empty question"
    if step.constraints is not _NO_CONSTRAINTS:
        yield from _constraint_faults(step.constraints)
    for evidence in step.evidence:
        if evidence.sentence < 0:
            yield f"rests on sentence {evidence.sentence} of a report, expected 0 or more"
    yield from _key_faults(step, known)
    yield from _fact_faults(step.facts)


def _reference_faults(step: Step, known: _KnownNames) -> Iterator[str]:
    """Views and earlier steps that a step refers to."""
    earlier, entered = known.earlier, known.entered
    yield from _find_unknown_names("shows view", step.shows, known.views)
    yield from _find_unknown_names("uses view", step.uses, known.views)
    yield from _find_unknown_names("depends on step", step.depends_on, earlier)
    for view in step.uses:
        if view not in entered and view not in step.shows:
            yield f"uses view {view!r}, which no step up to this one shows"
    for view in sorted(entered.intersection(step.shows)):
        yield f"shows view {view!r} a second time"
    for branch in step.reached_by:
        before = earlier.get(branch.step)
        if before is None:
            yield f"is reached by step {branch.step!r}, which is not an earlier step"
            continue
        there = {option.id for option in before.options}
        for option in branch.options:
            if option not in there:
                yield f"is reached by option {option!r} of step {branch.step!r}, which has no such option"
        if not set(before.key.options) & set(branch.options):
            yield f"is not reached on the path of the case: step {branch.step!r} is not keyed {branch.options}"


def _option_faults(step: Step, views: dict[str, CaseView]) -> Iterator[str]:
    yield from _find_duplicates("option", [option.id for option in step.options])
    yield from _find_duplicates(
        "option text", [" ".join(option.text.lower().split()) for option in step.options]
    )
    if any(not option.id for option in step.options):
        yield "has an option with an empty id"
    marks = {mark.text for view in step.uses if view in views for p in views[view].panels for mark in p.marks}
    for option in step.options:
        if option.view is not None and option.view not in step.uses:
            yield f"option {option.id!r} is shown by view {option.view!r}, which the step does not use"
        if option.mark is not None and option.mark not in marks:
            yield f"option {option.id!r} names mark {option.mark!r}, which no view of the step has"


def _constraint_faults(constraints: Constraints) -> Iterator[str]:
    least, most = constraints.min_words, constraints.max_words
    if (least is not None and least < 0) or (most is not None and most < max(least or 0, 1)):
        yield f"asks for {least} to {most} words"


def _key_faults(step: Step, known: _KnownNames) -> Iterator[str]:
    key = step.key
    options = {option.id for option in step.options}
    yield from _find_unknown_names("is keyed to option", key.options, options)
    if step.options:
        if not key.options:
            yield "has options and no key"
        if len(key.options) > 1 and not step.multiple:
            yield f"is keyed to {len(key.options)} options but takes one"
        if key.kinds and len(key.kinds) != len(step.options):
            yield f"states {len(key.kinds)} kinds for {len(step.options)} options"
    elif step.format == "choice":
        yield "is a choice without options"
    elif step.format == "yes_no" and key.label is None:
        yield "is a yes/no question without a label in its key"
    elif key.label is None and key.text is None and not (key.boxes or key.regions or key.sections):
        yield "has no key"
    yield from _find_duplicates("key option", key.options)
    yield from _find_unknown_names("is keyed to region", key.regions, known.regions)
    for box in key.boxes:
        yield from _box_faults(box, known.images)
    yield from _find_duplicates("key section", [section.name for section in key.sections])


def _box_faults(box: Box, images: dict[str, CaseImage]) -> Iterator[str]:
    image = images.get(box.image)
    if image is None:
        yield f"is keyed to a box on image {box.image!r}, which the case does not have"
        return
    if not all(map(math.isfinite, box.xyxy)):
        yield f"is keyed to the box {box.xyxy}, expected finite numbers"
        return
    if not (image.width and image.height):
        return
    x0, y0, x1, y1 = pixel_box(box, Size(image.width, image.height))
    if max(x0, x1) < 0 or max(y0, y1) < 0 or min(x0, x1) > image.width or min(y0, y1) > image.height:
        yield f"is keyed to the box {box.xyxy} ({box.frame}), which lies outside image {box.image!r}"


def _fact_faults(facts: Iterable[Fact]) -> Iterator[str]:
    for fact in facts:
        for number in (fact.value, fact.low, fact.high):
            if number is not None and not math.isfinite(number):
                yield f"fact {fact.name!r} is {number}"
        if fact.low is not None and fact.high is not None and fact.low > fact.high:
            yield f"fact {fact.name!r} holds from {fact.low} to {fact.high}"


def _find_duplicates(what: str, names: Sequence[str]) -> Iterator[str]:
    if len(set(names)) < len(names):
        yield from (f"{what} {name!r} occurs {n} times" for name, n in Counter(names).items() if n > 1)


def _find_unknown_names(what: str, names: Iterable[str], known: Container[str]) -> Iterator[str]:
    for name in names:
        if name not in known:
            yield f"{what} {name!r}, which the case does not have"
