"""What an import does with images that do not look like what their study says of them."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

from carina.cases import Case
from carina.sources._source import Item, Repaired, Skipped, WithImages
from carina.store.errors import ImageError
from carina.studies import Study
from carina.studies.image_files import find_key_problem, inside
from carina.studies.model import Image
from carina.studies.pixels import Pixels
from carina.studies.plausibility import (
    PlausibilityProblem,
    PlausibilityResult,
    check_plausibility,
    correct_study,
    read_for_plausibility,
)

Implausible = Literal["report", "exclude", "correct", "ignore"]
"""List such images; leave their studies out; correct what can be corrected; or do not open the images at all."""

_REPORTED = "listed"
_EXCLUDED = "the study is left out"


class CheckedItem(NamedTuple):
    """An item of a reader, and what was found in its images."""

    item: Item
    plausibility: PlausibilityResult | None = None
    """None where nobody has looked."""


def describe_action(implausible: Implausible, problem: PlausibilityProblem) -> str:
    """What was done about a problem."""
    if implausible == "exclude":
        return _EXCLUDED
    return problem.correction or _REPORTED if implausible == "correct" else _REPORTED


@dataclass(frozen=True)
class LookAtImages:
    """Compares the images of studies with what the studies say of them; sent to worker processes."""

    folder: Path | None
    """Where image keys start, without links; None where the reader makes the images, or nobody knows."""
    implausible: Implausible
    place: str
    """Where the records come from, for messages."""
    keeps_undecodable: bool = False
    """Whether studies are kept whose image files cannot be decoded, as are those without a file."""

    def __call__(self, item: Item) -> CheckedItem:
        """The item, corrected or replaced by the reason why it is left out, with what was found."""
        if isinstance(item, Skipped):
            return CheckedItem(item)
        used = item.item if isinstance(item, WithImages) else item
        study = used.record if isinstance(used, Repaired) else used
        if isinstance(study, Case):
            return CheckedItem(item)
        files = item.files if isinstance(item, WithImages) else {}
        can_read = self.folder is not None or bool(files)
        result = check_plausibility(study, partial(self._read, files) if can_read else None)
        undecodable = [] if self.keeps_undecodable else list(filter(_is_undecodable, result.problems))
        if undecodable:
            # A study without pixels is no truth that any model can be asked about.
            first = undecodable[0]
            item = Skipped(
                place=f"{self.place}: {study.id}", field="image", reason=f"{first.image!r} is {first.seen}",
                kind="image", study=study.id,
            )  # fmt: skip
            rest = tuple(problem for problem in result.problems if problem not in undecodable)
            result = result._replace(problems=rest)
        elif result.problems and self.implausible == "exclude":
            item = leave_out(study.id, result.problems[0], self.place)
        elif result.problems and self.implausible == "correct":
            item = _replace_study(item, correct_study(study, result.problems))
        return CheckedItem(item, result)

    def _read(self, files: Mapping[str, bytes], image: Image) -> Pixels | None:
        content = files.get(image.key)
        if content is not None:
            return read_for_plausibility(content, image)
        if self.folder is None:
            return None
        # Sets without their images have hundreds of thousands of missing files.
        if not find_key_problem(image.key) and not os.path.lexists(f"{self.folder}/{image.key}"):
            return None
        try:
            path = inside(self.folder, image.key)
        except ValueError as error:
            raise ImageError(f"{image.key}: {error}") from error
        return read_for_plausibility(path, image)


def leave_out(study: str, problem: PlausibilityProblem, place: str) -> Skipped:
    """A study that is left out for a problem of one of its images."""
    reason = f"image {problem.image!r} shows {problem.seen}, expected {problem.expected}"
    return Skipped(
        place=f"{place}: {study}", field=problem.check, reason=reason, kind="implausible", study=study
    )


def _is_undecodable(problem: PlausibilityProblem) -> bool:
    return problem.check == "pixels"


def _replace_study(item: Item, study: Study) -> Item:
    """The same item with another study."""
    if isinstance(item, WithImages):
        inner = replace(item.item, record=study) if isinstance(item.item, Repaired) else study
        return replace(item, item=inner)
    return replace(item, record=study) if isinstance(item, Repaired) else study
