"""Finds what is wrong inside one case although every field has the right type.

The rules hold for every case that can be asked and scored; protocols add their own.
"""

import math
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import NamedTuple

from carina.cases.model import Case, CaseView, Panel, Step
from carina.store.errors import RegionError
from carina.studies.faults import greyscale_faults

_SLOT = re.compile(r"\{[A-Za-z_]\w*\}")


def faults(case: Case) -> Iterator[str]:
    """Find the problems of a case, each with the name of the part."""
    for what, names in (
        ("image", [image.key for image in case.images]),
        ("region", [region.name for region in case.regions]),
        ("view", [view.id for view in case.views]),
        ("step", [step.id for step in case.steps]),
    ):
        yield from _find_duplicates(what, names)
    for image in case.images:
        yield from (f"image {image.key!r}: {fault}" for fault in greyscale_faults(image))
    yield from _region_faults(case)
    for view in case.views:
        if not view.panels:
            yield f"view {view.id!r}: has no panel"
        for panel in view.panels:
            yield from _panel_faults(case, view.id, panel)
    if not case.steps:
        yield "steps: empty, expected at least one"
    views = {view.id: view for view in case.views}
    regions = {region.name for region in case.regions}
    earlier: dict[str, Step] = {}
    entered: set[str] = set()
    for step in case.steps:
        known = _KnownNames(views, regions, earlier, entered)
        for fault in _step_faults(step, known):
            yield f"step {step.id!r}: {fault}"
        earlier[step.id] = step
        entered.update(step.shows)


def _region_faults(case: Case) -> Iterator[str]:
    images = {image.key: image for image in case.images}
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


def _panel_faults(case: Case, view: str, panel: Panel) -> Iterator[str]:
    image = next((image for image in case.images if image.key == panel.image), None)
    if image is None:
        yield f"view {view!r}: shows image {panel.image!r}, which the case does not have"
        return
    regions = {region.name: region for region in case.regions}
    for overlay in panel.overlays:
        if overlay.region not in regions:
            yield f"view {view!r}: draws region {overlay.region!r}, which the case does not have"
        elif regions[overlay.region].image != panel.image:
            yield f"view {view!r}: draws region {overlay.region!r} on an image that it does not lie on"
    for mark in panel.marks:
        if not (0 <= mark.x <= image.width and 0 <= mark.y <= image.height):
            yield f"view {view!r}: mark {mark.text!r} at ({mark.x}, {mark.y}) lies outside its image"
    if panel.crop:
        x, y, w, h = panel.crop
        if w < 1 or h < 1 or x < 0 or y < 0 or x + w > image.width or y + h > image.height:
            yield f"view {view!r}: crop {panel.crop} leaves the image of {image.width} x {image.height}"


class _KnownNames(NamedTuple):
    """Names that a step may refer to: views, regions, earlier steps, and views that they show."""

    views: dict[str, CaseView]
    regions: set[str]
    earlier: dict[str, Step]
    entered: set[str]
    """Ids of views that earlier steps show."""


def _step_faults(step: Step, known: _KnownNames) -> Iterator[str]:
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
        elif not set(before.key.options) & set(branch.options):
            yield f"is not reached on the path of the case: step {branch.step!r} is not keyed {branch.options}"
    if step.options:
        yield from _option_faults(step, known.views)
    texts = (step.question, step.context or "", *(option.text for option in step.options))
    for text in texts:
        if "{" in text and _SLOT.search(text):
            yield f"has an unfilled slot in {text!r}"
    if not step.question.strip():
        yield "has an empty question"
    yield from _key_faults(step, known.regions)


def _option_faults(step: Step, views: dict[str, CaseView]) -> Iterator[str]:
    yield from _find_duplicates("option", [option.id for option in step.options])
    yield from _find_duplicates(
        "option text", [" ".join(option.text.lower().split()) for option in step.options]
    )
    marks = {mark.text for view in step.uses if view in views for p in views[view].panels for mark in p.marks}
    for option in step.options:
        if option.view is not None and option.view not in step.uses:
            yield f"option {option.id!r} is shown by view {option.view!r}, which the step does not use"
        if option.mark is not None and option.mark not in marks:
            yield f"option {option.id!r} names mark {option.mark!r}, which no view of the step has"


def _key_faults(step: Step, regions: set[str]) -> Iterator[str]:
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
    elif key.label is None and key.text is None and not (key.boxes or key.regions or key.sections):
        yield "has no key"
    yield from _find_unknown_names("is keyed to region", key.regions, regions)
    for fact in step.facts:
        for number in (fact.value, fact.low, fact.high):
            if number is not None and not math.isfinite(number):
                yield f"fact {fact.name!r} is {number}"


def _find_duplicates(what: str, names: Sequence[str]) -> Iterator[str]:
    if len(set(names)) < len(names):
        yield from (f"{what} {name!r} occurs {n} times" for name, n in Counter(names).items() if n > 1)


def _find_unknown_names(what: str, names: Iterable[str], known: Container[str]) -> Iterator[str]:
    for name in names:
        if name not in known:
            yield f"{what} {name!r}, which the case does not have"
