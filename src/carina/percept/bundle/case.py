"""A published record as a case: questions word for word, pictures as their files stand, everything checked.

What a case has no place for (coordinates of points, names of masks, fields that nobody knows) is kept in
`Case.extra`, so that the record can be written back as it was.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from carina.cases.faults import faults
from carina.cases.model import Case, CaseImage, CaseView, Key, Option, Origin, Panel, Step
from carina.errors import ImageError
from carina.percept.bundle import layout, option_ids, steps
from carina.percept.bundle.asked import Asked, read_several, read_single
from carina.percept.bundle.faults import RecordError
from carina.percept.bundle.fields import Fields, shown
from carina.percept.bundle.pictures import Picture, Probe, folder, inside
from carina.percept.lesions import LESIONS

PROTOCOL: Final = "percept"
XRAY, OVERLAY, POINTS, FIRST_OPTION = "v1", "v2", "v3", 4

_TARGETS: Final = {lesion.finding: lesion.name for lesion in LESIONS.values()}


def case_of(
    key_id: str,
    record: Mapping[str, Any],
    probe: Probe,
    *,
    patient: str | None = None,
    source: str = layout.NAME,
) -> Case:
    """The case that a record holds; `RecordError` names the field that is wrong."""
    return _Reading(key_id, record, probe).case(patient=patient, source=source)


def target_of(key_id: str) -> str:
    """The lesion by our name; one that is not known keeps its own."""
    lesion = key_id.partition("_")[0].strip()
    return _TARGETS.get(lesion.lower(), lesion.lower() if lesion.lower() in LESIONS else lesion)


class _Reading:
    """Gathers the pictures, views and steps of one record in the order in which they are asked."""

    def __init__(self, key_id: str, record: Mapping[str, Any], probe: Probe) -> None:
        self._key_id = key_id
        self._record = Fields(record)
        self._extra = _written(record)
        self._folder = folder(key_id)
        self._probe = probe
        self._pictures: dict[str, Picture] = {}
        """By view."""
        self._steps: list[Step] = []

    def case(self, *, patient: str | None, source: str) -> Case:
        record = self._record
        study = record.text("dicom_id")
        record.text("pair_id")
        path = self._path()
        self._detection(path)
        if path != "LF":
            contour = record.fields(layout.CONTOUR)
            self._contour(contour, path)
            if path == "RR":
                self._revision(contour)
            if record.has(layout.ATTRIBUTES):
                self._attributes(record.fields(layout.ATTRIBUTES), path)
        case = Case(
            id=self._key_id,
            protocol=PROTOCOL,
            study=study,
            patient=patient,
            source=source,
            target=target_of(self._key_id) or None,
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
            raise RecordError("case", "", fault)
        return case

    def _path(self) -> steps.Path:
        """The published rule: the lesion's presence, then whether the mask was deformed."""
        if self._record.fields(layout.DETECTION).text("answer") != "Yes":
            return "LF"
        return "RF" if self._record.fields(layout.CONTOUR).truth("no_deformation") else "RR"

    def _detection(self, path: steps.Path) -> None:
        block = self._record.fields(layout.DETECTION)
        self._show(XRAY, str(self._folder / layout.XRAY), layout.DETECTION)
        step = self._ask_yes_no(steps.DETECTION, block, path, shows=(XRAY,))
        if step.key.options != ("no" if path == "LF" else "yes",):
            raise RecordError(
                "answer",
                block.called("answer"),
                f'is {shown(block.text("answer"))}, expected "Yes" or "No" as written here',
            )

    def _contour(self, contour: Fields, path: steps.Path) -> None:
        block = contour.fields(layout.CONTOUR_EVAL)
        field = block.called("relative_path")
        start = self._folder / layout.OVERLAY_FROM
        self._show(OVERLAY, inside(start, block.text("relative_path"), field), field)
        asked = self._ask_yes_no(steps.CONTOUR_EVAL, block, path, shows=(OVERLAY,))
        expected = "yes" if path == "RR" else "no"
        if asked.key.options != (expected,):
            raise RecordError(
                "answer",
                block.called("answer"),
                f"is {shown(block.text('answer'))}, but {contour.called('no_deformation')} is "
                f"{str(path == 'RF').lower()}",
            )

    def _revision(self, contour: Fields) -> None:
        expansion, contraction = contour.fields(layout.EXPANSION), contour.fields(layout.CONTRACTION)
        self._show(POINTS, str(self._folder / layout.POINTS), layout.EXPANSION)
        context = contour.text("initial_context")
        self._ask_points(steps.EXPANSION, expansion, shows=(POINTS,), context=context)
        self._ask_points(steps.CONTRACTION, contraction, shows=(), context=None)
        self._ask_masks(contour.fields(layout.REVISION_RESULT))

    def _attributes(self, attributes: Fields, path: steps.Path) -> None:
        for kind in steps.ATTRIBUTES:
            block = attributes.fields(kind.block)
            texts = block.texts("answer_options")
            ids = option_ids.attribute(kind.block, texts)
            none = ids.index("none") + 1 if "none" in ids else 0
            asked = read_several(block, texts, none=none) if kind.multiple else read_single(block, texts)
            options = tuple(Option(id=name, text=text) for name, text in zip(ids, texts, strict=True))
            self._add(kind, asked, options, path=path, uses=(XRAY,))

    def _ask_yes_no(
        self, kind: steps.Kind, block: Fields, path: steps.Path, *, shows: tuple[str, ...]
    ) -> Step:
        texts = block.texts("answer_options")
        ids = option_ids.yes_no(texts)
        if ids is None:
            raise RecordError(
                "options",
                block.called("answer_options"),
                f"expected Yes and No, found {shown(', '.join(texts))}",
            )
        asked = read_single(block, texts)
        options = tuple(Option(id=name, text=text) for name, text in zip(ids, texts, strict=True))
        uses = tuple(dict.fromkeys((XRAY, *shows)))
        return self._add(kind, asked, options, path=path, shows=shows, uses=uses)

    def _ask_points(
        self, kind: steps.Kind, block: Fields, *, shows: tuple[str, ...], context: str | None
    ) -> None:
        picture = self._pictures[POINTS]
        options = []
        for number, option in enumerate(block.objects("answer_options"), start=1):
            point, colour = option.point("point"), option.text("color")
            if (point is None) != (colour == layout.NO_POINT):
                raise RecordError(
                    "point", option.called("point"), f"is {point}, but the color is {shown(colour)}"
                )
            if point is not None and not (0 <= point[0] < picture.width and 0 <= point[1] < picture.height):
                raise RecordError(
                    "point",
                    option.called("point"),
                    f"[{point[0]:g}, {point[1]:g}] lies outside its picture of {picture.width} x {picture.height}",
                )
            name = "none" if point is None else f"p{number}"
            options.append(Option(id=name, text=layout.point_text(colour)))
        none = next((n for n, option in enumerate(options, start=1) if option.id == "none"), 0)
        asked = read_several(block, [option.text for option in options], none=none)
        self._add(kind, asked, tuple(options), path="RR", shows=shows, uses=(XRAY, POINTS), context=context)

    def _ask_masks(self, block: Fields) -> None:
        options, kinds = [], []
        for number, option in enumerate(block.objects("answer_options"), start=1):
            view = f"v{FIRST_OPTION + number - 1}"
            field = option.called("relative_path")
            key = inside(self._folder / layout.OPTIONS_FROM, option.text("relative_path"), field)
            self._show(view, key, field)
            kind = option.text("type")
            if kind not in ("true", "fake"):
                raise RecordError(
                    "type", option.called("type"), f'expected "true" or "fake", found {shown(kind)}'
                )
            kinds.append("key" if kind == "true" else "fake")
            options.append(Option(id=f"o{number}", text=layout.mask_text(number), view=view))
        asked = read_single(block, [option.text for option in options])
        true = tuple(number for number, kind in enumerate(kinds, start=1) if kind == "key")
        if true != asked.right:
            raise RecordError(
                "answer",
                block.called("answer_index"),
                f'is {asked.right[0]}, but of type "true" are the options {list(true)}',
            )
        views = tuple(f"v{FIRST_OPTION + place}" for place in range(len(options)))
        self._add(
            steps.REVISION,
            asked,
            tuple(options),
            path="RR",
            shows=views,
            uses=(XRAY, POINTS, *views),
            kinds=tuple(kinds),
        )

    def _show(self, view: str, key: str, field: str) -> None:
        for other, picture in self._pictures.items():
            if picture.key == key:
                raise RecordError("path", field, f"{key} is shown already, as picture {other[1:]}")
        try:
            self._pictures[view] = self._probe(key)
        except ImageError as error:
            raise RecordError("image", field, str(error)) from error

    def _add(
        self,
        kind: steps.Kind,
        asked: Asked,
        options: tuple[Option, ...],
        *,
        path: steps.Path,
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
            question=asked.question,
            multiple=kind.multiple,
            context=context,
            options=options,
            shows=shows,
            uses=uses,
            score="set" if kind.multiple else "exact",
            reached_by=steps.reached_by(kind.id, path),
            depends_on=steps.depends_on(kind.id, path),
            origin=Origin(method="import"),
            key=Key(options=tuple(options[number - 1].id for number in asked.right), kinds=kinds),
        )
        self._steps.append(step)
        return step


def _written(record: Mapping[str, Any]) -> str:
    """The record as JSON text that can be stored anywhere."""
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise RecordError("json", "", f"holds half of a character at {error.start}") from error
    return text
