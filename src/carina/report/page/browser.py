"""The case browser's content: pictures, conversation, answers of every run, and what was right and wrong."""

import base64
import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from PIL import Image

from carina.cases import Box, Case, Step
from carina.cases.render import Views
from carina.draw import Rgb, Size
from carina.report.draw import Series
from carina.report.exam import Exam
from carina.report.read import Run
from carina.report.words import PATH_MEANINGS, STATUSES, stage_name
from carina.run.records import StepRow
from carina.show import case_words
from carina.show.case_pictures import pixel_box, view_words
from carina.show.case_words import PATHS
from carina.show.pictures import shrunk

LARGEST: Final = Size(width=512, height=512)
_QUALITY: Final = 82
_LONGEST: Final = 3000
"""Characters of an answer that the page shows."""

Json = dict[str, Any]


@dataclass
class Pictures:
    """Every different picture once, by a short name."""

    held: dict[str, Json] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)

    def add(self, pixels: Rgb, alt: str) -> str:
        small = shrunk(pixels, LARGEST)
        written = io.BytesIO()
        # More effort would take three times as long for a tenth of the bytes.
        Image.fromarray(small).save(written, "WEBP", quality=_QUALITY, method=1)
        content = written.getvalue()
        digest = hashlib.sha256(content).hexdigest()
        if digest not in self._names:
            self._names[digest] = f"p{len(self._names)}"
            uri = "data:image/webp;base64," + base64.b64encode(content).decode("ascii")
            height, width = small.shape[:2]
            self.held[self._names[digest]] = {"uri": uri, "w": width, "h": height, "alt": alt}
        return self._names[digest]


def browser(
    exams: Sequence[Exam], series: Sequence[Mapping[str, Series]], chosen: Mapping[int, Sequence[str]]
) -> Json:
    """What the page's script is given; `series` says how each exam's runs are drawn."""
    pictures = Pictures()
    runs, cases = [], []
    for place, exam in enumerate(exams):
        several = len({run.history for run in exam.runs}) > 1
        runs += [
            {
                "id": run.id,
                "exam": place,
                "name": f"{run.model} · {run.history}" if several else run.model,
                "colour": series[place][run.id].colour,
            }
            for run in exam.runs
        ]
        wanted = list(chosen[place])
        rows = {run.id: _by_step(run, wanted, exam.protocol) for run in exam.runs}
        views = Views(exam.bench)
        for case in exam.bench.pick(wanted):
            drawn = {
                view: pictures.add(views.array(case, view), view_words(case, case.view(view)))
                for view in dict.fromkeys(view for step in case.steps for view in step.shows)
            }
            cases.append(_case(exam, case, rows, drawn) | {"exam": place})
    return {
        "exams": [exam.title for exam in exams],
        "paths": {code: {"name": name, "meaning": PATH_MEANINGS[code]} for code, name in PATHS.items()},
        "runs": runs,
        "cases": cases,
        "pictures": pictures.held,
    }


def _by_step(run: Run, cases: Sequence[str], protocol: str) -> dict[tuple[str, str], StepRow]:
    return {(row.case, row.step): row for row in run.rows(cases) if row.protocol == protocol}


def _case(
    exam: Exam,
    case: Case,
    rows: Mapping[str, Mapping[tuple[str, str], StepRow]],
    drawn: Mapping[str, str],
) -> Json:
    """A case with what every run made of it; `drawn` names the picture of each view."""
    steps = []
    for step in case.steps:
        answers = {
            run.id: _answer(case, step, row, drawn)
            for run in exam.runs
            if (row := rows[run.id].get((case.id, step.id))) is not None
        }
        steps.append(_step(exam, case, step, drawn) | {"answers": answers})
    outcomes = {}
    for run in exam.runs:
        told = [
            step["answers"][run.id] | {"stage": step["stage"]} for step in steps if run.id in step["answers"]
        ]
        if told:
            outcomes[run.id] = _outcome(told)
    return {
        "id": case.id,
        "target": case.target or "",
        "path": case.path or "",
        "pathName": case_words.path(case),
        "study": case.study,
        "patient": case.patient or "",
        "steps": steps,
        "outcomes": outcomes,
    }


def _step(exam: Exam, case: Case, step: Step, drawn: Mapping[str, str]) -> Json:
    """What is asked and what is right."""
    return {
        "id": step.id,
        "stage": step.stage,
        "stageName": stage_name(exam.protocol, step.stage),
        "task": step.task,
        "context": step.context or "",
        "question": case_words.stem(step),
        "options": [
            {
                "text": option.text,
                "right": option.id in step.key.options,
                "picture": drawn.get(option.view or "", ""),
            }
            for option in step.options
        ],
        "gold": case_words.answer(step),
        "boxes": _boxes(case, step.key.boxes, drawn),
        "pictures": [drawn[view] for view in step.shows],
    }


def _answer(case: Case, step: Step, row: StepRow, drawn: Mapping[str, str]) -> Json:
    """What a run said, how it was read, and whether that is right."""
    raw = row.raw or ""
    places = {option.id: number for number, option in enumerate(step.options, start=1)}
    said = ", ".join(f"({places[name]}) {step.option(name).text}" for name in row.answer if name in places)
    score = (
        None if row.score is None or (row.correct is not None and not row.boxes) else round(100 * row.score)
    )
    return {
        "state": row.state,
        "read": "" if row.status in (None, "ok") else STATUSES[row.status],
        "right": row.correct if row.state == "answered" else None,
        "score": score,
        "said": said or (row.label or ""),
        "chosen": [places[name] for name in row.answer if name in places],
        "raw": raw if len(raw) <= _LONGEST else raw[:_LONGEST] + " …",
        "hint": row.hint or "",
        "kinds": [case_words.kind(kind) for kind in row.kinds],
        "form": row.obeyed is False,
        "error": row.error or "",
        "boxes": _boxes(case, row.boxes, drawn),
    }


def _outcome(answers: Sequence[Json]) -> Json:
    """A run's case in brief."""
    wrong = sorted(
        {item["stage"] for item in answers if item["right"] is False or item["state"] == "not_reached"}
    )
    incomplete = any(item["state"] == "incomplete" for item in answers)
    judged = any(item["right"] is not None for item in answers)
    status = "incomplete" if incomplete else "wrong" if wrong else "right" if judged else "words"
    return {
        "status": status,
        "wrong": wrong,
        "unread": any(item["read"] for item in answers),
        "right": sum(item["right"] is True for item in answers),
        "of": sum(item["right"] is not None or item["state"] == "not_reached" for item in answers),
    }


def _boxes(case: Case, boxes: Sequence[Box], drawn: Mapping[str, str]) -> list[Json]:
    """Boxes as shares of the picture that shows their image whole."""
    made = []
    for box in boxes:
        for view, picture in drawn.items():
            panels = case.view(view).panels
            if len(panels) == 1 and panels[0].image == box.image and panels[0].crop is None:
                image = case.image(box.image)
                x0, y0, x1, y1 = pixel_box(box, Size(width=image.width, height=image.height))
                across, down = 100 / image.width, 100 / image.height
                corners = [x0 * across, y0 * down, (x1 - x0) * across, (y1 - y0) * down]
                made.append(
                    {"picture": picture, "box": [round(value, 2) for value in corners], "name": box.name}
                )
                break
    return made
