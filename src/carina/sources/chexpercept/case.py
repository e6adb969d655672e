"""A published record as a case: questions verbatim, pictures as files, everything checked.

Fields that a case does not have (coordinates of points, names of masks, unknown fields) are kept in `Case.extra`, so
that the record can be written back unchanged.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, Final, Literal, NamedTuple

from carina.cases.faults import faults
from carina.cases.model import Branch, Case, CaseImage, CaseView, Key, Option, Panel, Step
from carina.percept.lesions import LESIONS
from carina.sources._record import RecordError, describe
from carina.sources.chexpercept import layout
from carina.sources.chexpercept.questions import (
    Fields,
    Question,
    attribute_ids,
    read_multiple_choice,
    read_single_choice,
    yes_no_ids,
)
from carina.store.errors import ImageError
from carina.studies import image_files
from carina.studies.model import Origin
from carina.studies.pixels import read_colour, read_header

PROTOCOL: Final = "percept"
_XRAY, _OVERLAY, _POINTS, _FIRST_OPTION = "v1", "v2", "v3", 4
"""Ids of views; those of the offered masks are numbered from `_FIRST_OPTION` on."""
_LESIONS: Final = {lesion.finding: lesion.name for lesion in LESIONS.values()}
_LONGEST_NAME: Final = 200
"""Bytes; file systems take 255, and temporary names are longer than names."""

CasePath = Literal["LF", "RF", "RR"]
"""Lesion-free, revision-free, revision-required."""


# ---- pictures of a bundle -------------------------------------------------------------------------------------------


class Picture(NamedTuple):
    """A picture of the bundle, by key relative to the bundle's directory."""

    key: str
    width: int
    height: int
    sha256: str


Inspect = Callable[[str], Picture]
"""From the key of a picture to what a case must know of it; raises `ImageError` where it cannot be read."""


def inspect_picture(bundle: Path, key: str) -> Picture:
    """Size and checksum of a picture that decodes from its first to its last byte."""
    try:
        path = image_files.inside(bundle.resolve(), key)
    except ValueError as error:
        raise ImageError(f"{bundle / key}: {error}") from error
    header = read_header(path)
    read_colour(path)  # refuses what is too large from the header
    return Picture(key, header.width, header.height, hashlib.sha256(path.read_bytes()).hexdigest())


def find_picture_folder(key_id: str) -> PurePosixPath:
    """The folder of a record's pictures, relative to the bundle."""
    if (
        not key_id.strip()
        or key_id in (".", "..")
        or any(sign in key_id for sign in "/\\")
        or not key_id.isprintable()
        or len(key_id.encode("utf-8", "replace")) > _LONGEST_NAME
    ):
        raise RecordError("", f"the key_id {key_id[:60]!r} cannot be the name of a folder", kind="path")
    return PurePosixPath(layout.PICTURES, key_id)


def find_picture_key(start: PurePosixPath, relative: str, field: str) -> str:
    """The key of the file that a relative path leads to, which must lie below `start`."""
    path = PurePosixPath(relative)
    windows = PureWindowsPath(relative)
    if (
        path.is_absolute()
        or windows.drive
        or windows.root
        or ".." in path.parts
        or "\\" in relative
        or not path.parts
        or not relative.isprintable()
    ):
        raise RecordError(field, f"{relative[:80]!r} does not lead to a file below {start}", kind="path")
    return str(start / path)


# ---- steps ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class StepKind:
    """What is the same for a step in every case."""

    id: str
    stage: int
    task: str
    block: str
    """Its name in the record."""
    multiple: bool = False


DETECTION_STEP: Final = StepKind(id="1", stage=1, task="detection", block=layout.DETECTION)
CONTOUR_EVAL_STEP: Final = StepKind(id="2", stage=2, task="contour evaluation", block=layout.CONTOUR_EVAL)
EXPANSION_STEP: Final = StepKind(id="3a", stage=3, task="expansion", block=layout.EXPANSION, multiple=True)
CONTRACTION_STEP: Final = StepKind(
    id="3b", stage=3, task="contraction", block=layout.CONTRACTION, multiple=True
)
REVISION_STEP: Final = StepKind(id="3c", stage=3, task="revision", block=layout.REVISION_RESULT)
ATTRIBUTE_STEPS: Final = (
    StepKind(id="4a", stage=4, task="distribution", block=layout.DISTRIBUTION),
    StepKind(id="4b", stage=4, task="location", block=layout.LOCATION, multiple=True),
    StepKind(id="4c", stage=4, task="severity", block=layout.SEVERITY),
    StepKind(id="4d", stage=4, task="comparison", block=layout.COMPARISON),
)


def _reached_by(step: str, path: CasePath) -> tuple[Branch, ...]:
    """The answers that lead to a step, by the path of its case."""
    if step == "1":
        return ()
    if step == "2":
        return (Branch(step="1", options=("yes",)),)
    return (Branch(step="2", options=("no" if path == "RF" else "yes",)),)


def _depends_on(step: str, path: CasePath) -> tuple[str, ...]:
    """Earlier steps whose right answers a step presupposes: the four places where the published runner corrects."""
    return {
        "2": ("1",),
        "3a": ("2",),
        "3c": ("3a", "3b"),
        "4a": ("3c",) if path == "RR" else ("2",),
    }.get(step, ())


# ---- the case -------------------------------------------------------------------------------------------------------


def read_case(
    key_id: str,
    record: Mapping[str, Any],
    inspect: Inspect,
    *,
    patient: str | None = None,
    source: str = layout.NAME,
) -> Case:
    """The case of a record.

    Args:
        key_id: Name of the record.
        record: Its JSON object.
        inspect: Reads size and checksum of a picture.
        patient: Patient of the image, if known.
        source: Name of the source, for the case.

    Raises:
        RecordError: The record cannot be used; names the field that is wrong.
    """
    return _CaseReader(key_id, record, inspect).case(patient=patient, source=source)


def read_target(key_id: str) -> str:
    """The lesion in the words of the percept protocol; an unknown one keeps its own name."""
    lesion = key_id.partition("_")[0].strip()
    return _LESIONS.get(lesion.lower(), lesion.lower() if lesion.lower() in LESIONS else lesion)


class _CaseReader:
    """Collects the pictures, views and steps of one record, in the order of the questions."""

    def __init__(self, key_id: str, record: Mapping[str, Any], inspect: Inspect) -> None:
        self._key_id = key_id
        self._record = Fields(record)
        self._extra = _record_text(record)
        self._folder = find_picture_folder(key_id)
        self._inspect = inspect
        self._pictures: dict[str, Picture] = {}
        """By view."""
        self._steps: list[Step] = []

    def case(self, *, patient: str | None, source: str) -> Case:
        record = self._record
        study = record.text("dicom_id")
        record.text("pair_id")
        path = self._read_path()
        self._read_detection(path)
        if path != "LF":
            contour = record.fields(layout.CONTOUR)
            self._read_contour(contour, path)
            if path == "RR":
                self._read_revision(contour)
            if record.has(layout.ATTRIBUTES):
                self._read_attributes(record.fields(layout.ATTRIBUTES), path)
        case = Case(
            id=self._key_id,
            protocol=PROTOCOL,
            study=study,
            patient=patient,
            source=source,
            target=read_target(self._key_id) or None,
            path=path,
            images=tuple(
                CaseImage(
                    key=picture.key,
                    width=picture.width,
                    height=picture.height,
                    sha256=picture.sha256,
                    finished=True,
                )
                for picture in self._pictures.values()
            ),
            views=tuple(
                CaseView(id=view, panels=(Panel(image=picture.key),))
                for view, picture in self._pictures.items()
            ),
            steps=tuple(self._steps),
            extra=self._extra,
        )
        fault = next(faults(case), None)
        if fault is not None:
            raise RecordError("", fault, kind="case")
        return case

    def _read_path(self) -> CasePath:
        """The published rule: the lesion's presence, then whether the mask was deformed."""
        if self._record.fields(layout.DETECTION).text("answer") != "Yes":
            return "LF"
        return "RF" if self._record.fields(layout.CONTOUR).boolean("no_deformation") else "RR"

    def _read_detection(self, path: CasePath) -> None:
        block = self._record.fields(layout.DETECTION)
        self._add_view(_XRAY, str(self._folder / layout.XRAY), layout.DETECTION)
        step = self._ask_yes_no(DETECTION_STEP, block, path, shows=(_XRAY,))
        if step.key.options != ("no" if path == "LF" else "yes",):
            raise RecordError(
                block.full_name("answer"),
                f'is {describe(block.text("answer"))}, expected "Yes" or "No" as written here',
                kind="answer",
            )

    def _read_contour(self, contour: Fields, path: CasePath) -> None:
        block = contour.fields(layout.CONTOUR_EVAL)
        field = block.full_name("relative_path")
        start = self._folder / layout.OVERLAY_FROM
        self._add_view(_OVERLAY, find_picture_key(start, block.text("relative_path"), field), field)
        step = self._ask_yes_no(CONTOUR_EVAL_STEP, block, path, shows=(_OVERLAY,))
        expected = "yes" if path == "RR" else "no"
        if step.key.options != (expected,):
            raise RecordError(
                block.full_name("answer"),
                f"is {describe(block.text('answer'))}, but {contour.full_name('no_deformation')} is "
                f"{str(path == 'RF').lower()}",
                kind="answer",
            )

    def _read_revision(self, contour: Fields) -> None:
        expansion, contraction = contour.fields(layout.EXPANSION), contour.fields(layout.CONTRACTION)
        self._add_view(_POINTS, str(self._folder / layout.POINTS), layout.EXPANSION)
        context = contour.text("initial_context")
        self._ask_points(EXPANSION_STEP, expansion, shows=(_POINTS,), context=context)
        self._ask_points(CONTRACTION_STEP, contraction, shows=(), context=None)
        self._ask_masks(contour.fields(layout.REVISION_RESULT))

    def _read_attributes(self, attributes: Fields, path: CasePath) -> None:
        for kind in ATTRIBUTE_STEPS:
            if attributes.is_null(kind.block):
                continue
            block = attributes.fields(kind.block)
            texts = block.texts("answer_options")
            ids = attribute_ids(kind.block, texts)
            none = ids.index("none") + 1 if "none" in ids else 0
            question = (
                read_multiple_choice(block, texts, none=none)
                if kind.multiple
                else read_single_choice(block, texts)
            )
            options = tuple(Option(id=name, text=text) for name, text in zip(ids, texts, strict=True))
            self._add_step(kind, question, options, path=path, uses=(_XRAY,))

    def _ask_yes_no(self, kind: StepKind, block: Fields, path: CasePath, *, shows: tuple[str, ...]) -> Step:
        texts = block.texts("answer_options")
        ids = yes_no_ids(texts)
        if ids is None:
            raise RecordError(
                block.full_name("answer_options"),
                f"expected Yes and No, found {describe(', '.join(texts))}",
                kind="options",
            )
        question = read_single_choice(block, texts)
        options = tuple(Option(id=name, text=text) for name, text in zip(ids, texts, strict=True))
        uses = tuple(dict.fromkeys((_XRAY, *shows)))
        return self._add_step(kind, question, options, path=path, shows=shows, uses=uses)

    def _ask_points(
        self, kind: StepKind, block: Fields, *, shows: tuple[str, ...], context: str | None
    ) -> None:
        picture = self._pictures[_POINTS]
        options = []
        for number, option in enumerate(block.objects("answer_options"), start=1):
            point, colour = option.point("point"), option.text("color")
            if (point is None) != (colour == layout.NO_POINT):
                raise RecordError(
                    option.full_name("point"),
                    f"is {point}, but the color is {describe(colour)}",
                    kind="point",
                )
            if point is not None and not (0 <= point[0] < picture.width and 0 <= point[1] < picture.height):
                raise RecordError(
                    option.full_name("point"),
                    f"[{point[0]:g}, {point[1]:g}] lies outside its picture of {picture.width} x {picture.height}",
                    kind="point",
                )
            name = "none" if point is None else f"p{number}"
            options.append(Option(id=name, text=layout.point_text(colour)))
        none = next((n for n, option in enumerate(options, start=1) if option.id == "none"), 0)
        question = read_multiple_choice(block, [option.text for option in options], none=none)
        self._add_step(
            kind, question, tuple(options), path="RR", shows=shows, uses=(_XRAY, _POINTS), context=context
        )

    def _ask_masks(self, block: Fields) -> None:
        options, kinds = [], []
        for number, option in enumerate(block.objects("answer_options"), start=1):
            view = f"v{_FIRST_OPTION + number - 1}"
            field = option.full_name("relative_path")
            key = find_picture_key(self._folder / layout.OPTIONS_FROM, option.text("relative_path"), field)
            self._add_view(view, key, field)
            kind = option.text("type")
            if kind not in ("true", "fake"):
                raise RecordError(
                    option.full_name("type"),
                    f'expected "true" or "fake", found {describe(kind)}',
                    kind="type",
                )
            kinds.append("key" if kind == "true" else "fake")
            options.append(Option(id=f"o{number}", text=layout.mask_text(number), view=view))
        question = read_single_choice(block, [option.text for option in options])
        true = tuple(number for number, kind in enumerate(kinds, start=1) if kind == "key")
        if true != question.right:
            raise RecordError(
                block.full_name("answer_index"),
                f'is {question.right[0]}, but the options of type "true" are {list(true)}',
                kind="answer",
            )
        views = tuple(f"v{_FIRST_OPTION + place}" for place in range(len(options)))
        self._add_step(
            REVISION_STEP,
            question,
            tuple(options),
            path="RR",
            shows=views,
            uses=(_XRAY, _POINTS, *views),
            kinds=tuple(kinds),
        )

    def _add_view(self, view: str, key: str, field: str) -> None:
        for other, picture in self._pictures.items():
            if picture.key == key:
                raise RecordError(field, f"{key} is used already, as picture {other[1:]}", kind="path")
        try:
            self._pictures[view] = self._inspect(key)
        except ImageError as error:
            raise RecordError(field, str(error), kind="image") from error

    def _add_step(
        self,
        kind: StepKind,
        question: Question,
        options: tuple[Option, ...],
        *,
        path: CasePath,
        uses: tuple[str, ...],
        shows: tuple[str, ...] = (),
        context: str | None = None,
        kinds: tuple[str, ...] = (),
    ) -> Step:
        step = Step(
            id=kind.id,
            stage=kind.stage,
            task=kind.task,
            format="choice",
            question=question.text,
            multiple=kind.multiple,
            context=context,
            options=options,
            shows=shows,
            uses=uses,
            score="set" if kind.multiple else "exact",
            reached_by=_reached_by(kind.id, path),
            depends_on=_depends_on(kind.id, path),
            origin=Origin(method="import"),
            key=Key(options=tuple(options[number - 1].id for number in question.right), kinds=kinds),
        )
        self._steps.append(step)
        return step


def _record_text(record: Mapping[str, Any]) -> str:
    """The record as JSON text that can be stored anywhere."""
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise RecordError("", f"holds half of a character at {error.start}", kind="json") from error
    return text
