"""The case browser of the page: which cases it holds, with their images, questions and the answers of every run."""

import base64
import hashlib
import io
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import polars as pl
from PIL import Image

from carina.cases import Box, Case, Step
from carina.cases.boxes import pixel_box
from carina.cases.draw import Rgb, Size
from carina.cases.protocol import stage_title
from carina.cases.render import Views
from carina.pages import case_text
from carina.pages.case_figures import describe_view
from carina.pages.case_text import PATH_TITLES
from carina.pages.charts import SeriesStyle
from carina.pages.figures import shrink
from carina.pages.run_comparison.labels import PATH_MEANINGS, STATUSES
from carina.runs.analysis.read import ComparedRun
from carina.runs.analysis.run_groups import RunGroup
from carina.runs.records import StepRow
from carina.store.errors import CarinaError

LARGEST: Final = Size(width=512, height=512)
_QUALITY: Final = 82
_LONGEST: Final = 3000
"""Characters of an answer that the page holds."""

Json = dict[str, Any]


# ---- which cases ----------------------------------------------------------------------------------------------------


def select_cases(groups: Sequence[RunGroup], limit: int) -> list[list[str]]:
    """Ids of cases for each group, in order of its benchmark; the limit is shared among the groups."""
    left = limit
    selected: list[list[str]] = []
    for place, group in enumerate(groups):
        share = -(-left // (len(groups) - place))
        selected.append(_select_from_group(group, share))
        left -= len(selected[-1])
    return selected


def _select_from_group(group: RunGroup, limit: int) -> list[str]:
    """One case of each stratum (target and path) in turn, within a stratum the most informative first."""
    strata: dict[tuple[str, str], list[tuple[float, int, str]]] = defaultdict(list)
    rated = _rate_cases(group)
    for place, case in enumerate(group.cases):
        stratum, score = rated[case]
        strata[stratum].append((-score, place, case))
    # Strata with the most informative first case come first.
    queues = sorted(sorted(stratum) for stratum in strata.values())
    taken: list[str] = []
    depth = 0
    while len(taken) < min(limit, len(group.cases)):
        taken += [queue[depth][2] for queue in queues if depth < len(queue)][: limit - len(taken)]
        depth += 1
    wanted = set(taken)
    return [case for case in group.cases if case in wanted]


def _rate_cases(group: RunGroup) -> dict[str, tuple[tuple[str, str], float]]:
    """The stratum of every case, and how informative it is: disagreement of the runs first, then errors."""
    rivals = [run for run in group.runs if not run.is_oracle] or list(group.runs)
    steps = pl.concat(
        [group.outcomes[run.id].steps.select("case", "step", "target", "path", "value") for run in rivals]
    )
    by_step = steps.group_by("case", "step").agg(
        pl.col("target", "path").first(), spread=pl.col("value").std(ddof=0), wrong=1 - pl.col("value").mean()
    )
    by_case = by_step.group_by("case").agg(
        pl.col("target", "path").first(), score=pl.col("spread").sum() + 0.1 * pl.col("wrong").sum()
    )
    rated: dict[str, tuple[tuple[str, str], float]] = dict.fromkeys(group.cases, (("", ""), 0.0))
    for case, target, path, score in by_case.select("case", "target", "path", "score").iter_rows():
        # Rounded, so that the order of a sum cannot change the order of cases.
        rated[case] = ((target or "", path or ""), round(score, 6))
    return rated


# ---- what the page's script reads -----------------------------------------------------------------------------------


@dataclass
class ImageStore:
    """Every distinct image once, by a short name."""

    held: dict[str, Json] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)

    def add(self, pixels: Rgb, alt: str) -> str:
        """Keep an image and return its name."""
        small = shrink(pixels, LARGEST)
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


def browser_data(
    groups: Sequence[RunGroup],
    styles: Sequence[Mapping[str, SeriesStyle]],
    selected: Sequence[Sequence[str]],
    notify: Callable[[str], object] = lambda _sentence: None,
    case_pages: Mapping[str, str] | None = None,
) -> Json:
    """Runs, cases and images for the page's script.

    Args:
        groups: Groups of runs.
        styles: Styles of the runs of each group.
        selected: Ids of the cases to show, of each group.
        notify: Called with a sentence about a case that is left out, because an image of it cannot be shown.
        case_pages: Addresses of the pages of cases; none by default.

    Raises:
        CarinaError: No case of a group can be shown: the directory of the images is wrong.
    """
    images = ImageStore()
    runs, cases, all_left_out = [], [], []
    for place, (group, style, wanted) in enumerate(zip(groups, styles, selected, strict=True)):
        has_settings = len({run.setting for run in group.runs}) > 1
        runs += [
            {
                "id": run.id,
                "group": place,
                "name": f"{run.name} · {run.setting}" if has_settings else run.name,
                "colour": style[run.id].colour,
            }
            for run in group.runs
        ]
        rows = {run.id: _rows_by_step(run, wanted, group.protocol) for run in group.runs}
        views = Views(group.bench)
        problems: list[CarinaError] = []
        for case in group.bench.pick(list(wanted)):
            try:
                rendered = {
                    view: images.add(views.array(case, view), describe_view(case, case.view(view)))
                    for view in dict.fromkeys(view for step in case.steps for view in step.shows)
                }
            except CarinaError as problem:
                problems.append(problem)
                continue
            page = (case_pages or {}).get(case.id, "")
            cases.append(_case(group, case, rows, rendered) | {"group": place, "page": page})
        if problems and len(problems) == len(wanted):
            raise CarinaError(
                f"{problems[0]}; give the images with --images DIR, or --cases 0 for a report without cases"
            )
        for left_out in problems:
            notify(f"a case is left out of the case browser: {left_out}")
        all_left_out += [str(left_out) for left_out in problems]
    return {
        "groups": [group.title for group in groups],
        "paths": {code: {"name": name, "meaning": PATH_MEANINGS[code]} for code, name in PATH_TITLES.items()},
        "runs": runs,
        "cases": cases,
        "left_out": all_left_out,
        "images": images.held,
    }


def _rows_by_step(run: ComparedRun, cases: Sequence[str], protocol: str) -> dict[tuple[str, str], StepRow]:
    return {(row.case, row.step): row for row in run.rows(cases) if row.protocol == protocol}


def _case(
    group: RunGroup,
    case: Case,
    rows: Mapping[str, Mapping[tuple[str, str], StepRow]],
    rendered: Mapping[str, str],
) -> Json:
    """A case with the answers of every run; `rendered` names the image of each view."""
    steps = []
    for step in case.steps:
        answers = {
            run.id: _answer(case, step, row, rendered)
            for run in group.runs
            if (row := rows[run.id].get((case.id, step.id))) is not None
        }
        steps.append(_step(group, case, step, rendered) | {"answers": answers})
    outcomes = {}
    for run in group.runs:
        own = [
            step["answers"][run.id] | {"stage": step["stage"]} for step in steps if run.id in step["answers"]
        ]
        if own:
            outcomes[run.id] = _outcome(own)
    return {
        "id": case.id,
        "target": case.target or "",
        "path": case.path or "",
        "pathName": case_text.path_title(case),
        "study": case.study,
        "patient": case.patient or "",
        "steps": steps,
        "outcomes": outcomes,
    }


def _step(group: RunGroup, case: Case, step: Step, rendered: Mapping[str, str]) -> Json:
    """The question and its right answer."""
    return {
        "id": step.id,
        "stage": step.stage,
        "stageName": stage_title(group.protocol, step.stage),
        "task": step.task,
        "context": step.context or "",
        "question": case_text.split_question(step).stem,
        "options": [
            {
                "text": option.text,
                "right": option.id in step.key.options,
                "image": rendered.get(option.view or "", ""),
            }
            for option in step.options
        ],
        "gold": case_text.answer_text(step),
        "boxes": _boxes(case, step.key.boxes, rendered),
        "images": [rendered[view] for view in step.shows],
    }


def _answer(case: Case, step: Step, row: StepRow, rendered: Mapping[str, str]) -> Json:
    """The answer of a run, how it was parsed, and whether it is right."""
    raw = row.raw or ""
    places = {option.id: number for number, option in enumerate(step.options, start=1)}
    parsed = ", ".join(f"({places[name]}) {step.option(name).text}" for name in row.answer if name in places)
    has_score = row.score is not None and (row.correct is None or bool(row.boxes))
    return {
        "state": row.state,
        "failure": "" if row.status in (None, "ok") else STATUSES[row.status],
        "right": row.correct if row.state == "answered" else None,
        "score": round(100 * row.score) if has_score and row.score is not None else None,
        "parsed": parsed or (row.label or ""),
        "raw": raw if len(raw) <= _LONGEST else raw[:_LONGEST] + " …",
        "hint": row.hint or "",
        "kinds": [case_text.option_kind_title(kind) for kind in row.kinds],
        "wrongForm": row.obeyed is False,
        "error": row.error or "",
        "boxes": _boxes(case, row.boxes, rendered),
    }


def _outcome(answers: Sequence[Json]) -> Json:
    """A run's answers to a case in brief."""
    wrong = sorted(
        {item["stage"] for item in answers if item["right"] is False or item["state"] == "not_reached"}
    )
    is_incomplete = any(item["state"] == "incomplete" for item in answers)
    is_judged = any(item["right"] is not None for item in answers)
    status = "incomplete" if is_incomplete else "wrong" if wrong else "right" if is_judged else "text"
    return {
        "status": status,
        "wrong": wrong,
        "unparsed": any(item["failure"] for item in answers),
        "right": sum(item["right"] is True for item in answers),
        "of": sum(item["right"] is not None or item["state"] == "not_reached" for item in answers),
    }


def _boxes(case: Case, boxes: Sequence[Box], rendered: Mapping[str, str]) -> list[Json]:
    """Boxes in percent of the view that shows their whole image."""
    placed = []
    for box in boxes:
        for view, image_name in rendered.items():
            panels = case.view(view).panels
            if len(panels) == 1 and panels[0].image == box.image and panels[0].crop is None:
                image = case.image(box.image)
                x0, y0, x1, y1 = pixel_box(box, Size(width=image.width, height=image.height))
                across, down = 100 / image.width, 100 / image.height
                corners = [x0 * across, y0 * down, (x1 - x0) * across, (y1 - y0) * down]
                rounded = [round(value, 2) for value in corners]
                placed.append({"image": image_name, "box": rounded, "name": box.name})
                break
    return placed
