"""Texts of a case as readers see them: header, question, expected form of the answer, and the answer key in brief.

The texts that are sent to models stay in the case; nothing here is sent or scored.
"""

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from carina.cases.draw import Colour, colour_of
from carina.cases.model import Case, Key, Step
from carina.pages.case_facts import StudyRole, study_date
from carina.pages.words import SEXES, join_parts
from carina.store.counts import format_count
from carina.studies import SourceInfo
from carina.studies.model import Origin

PATH_TITLES: Final = {"LF": "lesion-free", "RF": "no revision needed", "RR": "revision required"}
"""Paths by their short names; any other path is shown by its own name."""
_FULL_NAMES: Final = {"effusion": "pleural effusion", "opacity": "lung opacity"}
"""Targets whose name is shorter than that of their finding."""
_SCORES: Final = {
    "exact": "scored right or wrong",
    "set": "scored by the exact set",
    "boxes": "scored by overlap",
    "text": "scored by its text",
    "map": "scored by location",
}
_FORMATS: Final = {
    "choice": "one option",
    "yes_no": "yes or no",
    "open": "free text",
    "boxes": "boxes",
    "report": "a report",
    "map": "a map or a point",
}
_ORIGINS: Final = {
    "rule": "",
    "llm": "worded by a language model",
    "human": "worded by hand",
    "import": "read from its source",
}

_MARKUP: Final = re.compile(
    r"<\|ref\|>\s*(?P<name>.*?)\s*<\|/ref\|>|<\|box\|>\s*(?P<box>.*?)\s*<\|/box\|>", re.DOTALL
)
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?")
_PAIR: Final = r"\(\s*(-?\d+(?:\.\d+)?)\s*,\s*(-?\d+(?:\.\d+)?)\s*\)"
_CORNERS: Final = re.compile(_PAIR + r"\s*,?\s*" + _PAIR)
_LABEL: Final = r"(?:[A-Za-z]|\d{1,2})"
_LABEL_STYLES: Final = (
    rf"\({_LABEL}\)",
    rf"{_LABEL}\)\.",
    rf"{_LABEL}\.",
    rf"{_LABEL}\)",
    rf"{_LABEL}:",
    "",
)
"""Styles of option labels, from "(1)" to none. All options of a list have the same style."""
_BETWEEN_OPTIONS: Final = r"[\s;,.]*(?:\b(?:or|and)\b\s*)?"


@dataclass(frozen=True, kw_only=True)
class AnswerPiece:
    """A part of an answer: text, the name of a location, or its corners."""

    text: str
    kind: Literal["text", "name", "box"] = "text"


@dataclass(frozen=True, kw_only=True)
class QuestionText:
    """A question without its list of options, and the label that each option has in that list."""

    stem: str
    labels: tuple[str, ...]
    """As sent, "B." or "(2)"; empty where an option has none."""


def target_colour(target: str) -> Colour:
    """The colour that the target's finding has on every page."""
    return colour_of(_FULL_NAMES.get(target, target))


def path_title(case: Case) -> str:
    """The path of a case in words; empty where it has none."""
    return PATH_TITLES.get(case.path, case.path) if case.path else ""


def describe_case(case: Case, sources: Sequence[SourceInfo]) -> dict[str, str]:
    """Study, patient, source and licence: heading to value, without what is unknown. Reveals no answer key."""
    licences = {source.name: source.licence for source in sources}
    context = case.context
    known = {
        "Protocol": case.protocol,
        "Study": join_parts([case.study, study_date(case, "current")]),
        "Prior study": _neighbour(case, "reference"),
        "Follow-up study (not shown)": _neighbour(case, "later"),
        "Patient": case.patient or "unknown",
        "Age and sex": join_parts(
            ["" if context.age is None else f"{context.age} years", SEXES[context.sex] if context.sex else ""]
        ),
        "Indication": context.indication or "",
        "Source": case.source,
        "Licence": licences.get(case.source, ""),
        "Split": case.split or "",
    }
    return {heading: value for heading, value in known.items() if value}


def _neighbour(case: Case, role: StudyRole) -> str:
    """A prior or follow-up study of the same patient, with its distance in days from the current study."""
    name = case.reference_study if role == "reference" else case.later_study
    if not name:
        return ""
    date, current = study_date(case, role), study_date(case, "current")
    distance = ""
    if date and current:
        try:
            days = (datetime.date.fromisoformat(date) - datetime.date.fromisoformat(current)).days
        except ValueError:
            days = 0
        if days:
            distance = f"{format_count(abs(days), 'day')} {'earlier' if days < 0 else 'later'}"
    return join_parts([name, date, distance])


def describe_answer_format(step: Step) -> str:
    """Form of the answer and how it is scored, in one line."""
    return join_parts(
        [
            "any number of options" if step.multiple else _FORMATS[step.format],
            *answer_limits(step),
            _SCORES[step.score],
        ]
    )


def answer_limits(step: Step) -> tuple[str, ...]:
    """Limits on the form of the answer, each in a few words."""
    limits = step.constraints
    texts = (
        "" if limits.min_words is None else f"at least {limits.min_words} words",
        "" if limits.max_words is None else f"at most {limits.max_words} words",
        "answer only" if limits.answer_only else "",
    )
    return tuple(text for text in texts if text)


def describe_step_origin(step: Step) -> str:
    """Wording, template, evidence and review of a step, in one line."""
    return join_parts(
        [
            describe_wording(step.origin),
            f"template {step.template}" if step.template else "",
            ", ".join(f"{slot.name} = {slot.value}" for slot in step.slots),
            "; ".join(f"{item.report} report, sentence {item.sentence + 1}" for item in step.evidence),
            "reveals the answer to another step" if step.restates else "",
        ]
    )


def describe_wording(origin: Origin) -> str:
    """Who worded a step, where it was not a rule, and the verdict of a reviewer."""
    parts = [
        _ORIGINS[origin.method] + (f" ({origin.model})" if origin.model else ""),
        "" if origin.review == "none" else f"review: {origin.review}",
        origin.note or "",
    ]
    return join_parts([part.strip() for part in parts])


def answer_text(step: Step) -> str:
    """The right answer in one line."""
    if step.options:
        return ", ".join(f"({place}) {step.options[place - 1].text}" for place in step.right)
    return _free_answer(step.key)


def _free_answer(key: Key) -> str:
    if key.label:
        return key.label.capitalize()
    if key.text is not None:
        return " ".join(key.text.split())
    if key.sections:
        return " ".join(" ".join(section.text.split()) for section in key.sections)
    places = len(key.boxes) or len(key.regions)
    return format_count(places, "location") if places else ""


def option_kind_title(kind: str) -> str:
    """A kind of option without the underscores and plus signs of its code."""
    return " and ".join(part.replace("_", " ") for part in kind.split("+"))


def split_answer(text: str) -> tuple[AnswerPiece, ...]:
    """An answer with the markup of names and boxes parsed, and every other character kept."""
    found: list[AnswerPiece] = []
    position = 0
    for match in _MARKUP.finditer(text):
        found.append(AnswerPiece(text=text[position : match.start()]))
        name, box = match["name"], match["box"]
        found.append(
            AnswerPiece(text=name, kind="name")
            if name is not None
            else AnswerPiece(text=_corners_text(box), kind="box")
        )
        position = match.end()
    found.append(AnswerPiece(text=text[position:]))
    return tuple(piece for piece in found if piece.text)


def plain_answer(text: str) -> str:
    """An answer without markup, corners in brackets."""
    return "".join(f"[{piece.text}]" if piece.kind == "box" else piece.text for piece in split_answer(text))


def split_question(step: Step) -> QuestionText:
    """The question without its list of options; the whole question where no list is found."""
    if not step.options:
        return QuestionText(stem=step.question.strip(), labels=())
    for style in _LABEL_STYLES:
        # The last such list: words like "yes or no" may stand in the question too.
        for match in reversed(list(_option_list(step, style).finditer(step.question))):
            before, after = step.question[: match.start()].rstrip(), step.question[match.end() :].strip()
            if before:
                return QuestionText(stem=f"{before} {after}".strip(), labels=tuple(match.groups()))
    return QuestionText(stem=step.question.strip(), labels=("",) * len(step.options))


def find_corners(text: str) -> tuple[float, float, float, float] | None:
    """The two corners of the only box that a text gives in numbers; None where it gives none, or several."""
    found = _CORNERS.findall(text)
    if len(found) != 1:
        return None
    x0, y0, x1, y1 = map(float, found[0])
    return x0, y0, x1, y1


def _option_list(step: Step, style: str) -> re.Pattern[str]:
    """The list of a step's options with labels of one style; one group per label."""
    texts = (option.text.strip().rstrip(".").split() for option in step.options)
    entries = (rf"(?<!\w)({style})\s*" + r"\s+".join(map(re.escape, words)) + r"(?!\w)" for words in texts)
    return re.compile(
        r"\s*(?:\bOptions:\s*)?[\[(]?\s*" + _BETWEEN_OPTIONS.join(entries) + r"\s*[.;]?\s*[\])]?[.;]?",
        re.IGNORECASE,
    )


def _corners_text(inside: str) -> str:
    numbers = _NUMBER.findall(inside)
    if len(numbers) != 4:
        return inside
    x0, y0, x1, y1 = numbers
    return f"{x0}, {y0} to {x1}, {y1}"
