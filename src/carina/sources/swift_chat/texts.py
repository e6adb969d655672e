"""What the texts and labels of a conversation say: placeholders, slots, limits, options, boxes, sections, tasks."""

import re
from typing import Final, NamedTuple

from carina.cases import Constraints
from carina.cases.model import Format
from carina.studies.model import ReportSection
from carina.studies.vocabulary import Section

PLACEHOLDER: Final = "<image>"
_GAP: Final = re.compile(r"\s*<image>\s*")
_SLOT: Final = re.compile(r"\{([A-Za-z_]\w*)\}")
_DOUBLED: Final = re.compile(
    r"\b(the|a|an|of|in|is|are|to|and|on|with|for|this|there|image|please)\s+\1\b", re.IGNORECASE
)
_WORD: Final = re.compile(r"\S+")
_YES_NO: Final = re.compile(r"\W*(yes|no)\b", re.IGNORECASE)
_LABEL: Final = re.compile(r"\s*\(?([A-Z]|[1-9][0-9]?)(?:\)\.|[.):])(?:\s+(?=\S)|(?=[^\W\d]))")
"""A label and what parts it from the option; "4.5 cm" has none."""
_NUMBER: Final = r"\(?\s*(-?\d+(?:\.\d+)?)\s*,\s*(-?\d+(?:\.\d+)?)\s*\)?"
_REF: Final = re.compile(
    r"<\|ref\|>\s*(?P<name>.*?)\s*<\|/ref\|>\s*(?P<boxes>(?:<\|box\|>.*?<\|/box\|>[\s,;]*)+)", re.DOTALL
)
_BOX: Final = re.compile(rf"<\|box\|>\s*{_NUMBER}\s*,\s*{_NUMBER}\s*<\|/box\|>")
_MIN_WORDS: Final = re.compile(
    r"\b(?:at least|no fewer than|no less than|not less than|a minimum of)\s+(\d{1,4})\s+words", re.IGNORECASE
)
_MAX_WORDS: Final = re.compile(
    r"\b(?:at most|no more than|not more than|within|up to|a maximum of)\s+(\d{1,4})\s+words", re.IGNORECASE
)
_ANSWER_ONLY: Final = re.compile(
    r"\b(?:answer only|(?:answer|reply|respond|output|give|provide|return)(?: with)? (?:only|just|nothing but)|"
    r"only (?:answer|reply|respond|output|give|provide|return)|yes or no only|just (?:answer|the answer)|"
    r"without (?:any )?(?:explanation|explaination|explaining))\b",
    re.IGNORECASE,
)
_HEADING: Final = re.compile(r"(?im)^[\s*#]*(findings|impression)[\s*]*:[\s*]*")


def remove_placeholders(text: str) -> str:
    """The words of a message, without the placeholders of pictures and the space around them."""
    found = ""
    end = 0
    for gap in _GAP.finditer(text):
        end_of_words = text[gap.end() : gap.end() + 1] in tuple(".,;:!?)")
        found += text[end : gap.start()] + ("" if end_of_words else "\n" if "\n" in gap.group() else " ")
        end = gap.end()
    return (found + text[end:]).strip() if end else text


def fill_slots(text: str) -> tuple[str, int]:
    """The text with `{name}` written [name], and how many there were."""
    return _SLOT.subn(r"[\1]", text)


def count_doubled_words(text: str) -> int:
    return len(_DOUBLED.findall(text))


def make_comparable(text: str) -> str:
    """A text for comparison: words without case, space and final stop."""
    return " ".join(text.lower().split()).rstrip(".")


def read_yes_no(answer: str) -> str | None:
    """The "yes" or "no" that an answer begins with; None for other answers."""
    found = _YES_NO.match(answer)
    return found.group(1).lower() if found else None


def split_labels(options: list[str]) -> tuple[list[str], list[str]]:
    """Labels and texts of options; letters by place, where options bring no labels that count them."""
    found = [_LABEL.match(option) for option in options]
    labels = [match.group(1) for match in found if match]
    letters = [option_letter(place) for place in range(len(options))]
    if labels in (letters, [str(place + 1) for place in range(len(options))]):
        texts = [option[match.end() :].strip() for option, match in zip(options, found, strict=True) if match]
        return labels, texts
    return letters, [option.strip() for option in options]


def option_letter(place: int) -> str:
    """Letters, then numbers where there are more options than letters."""
    return chr(ord("A") + place) if place < 26 else str(place + 1)


def remove_label(text: str) -> str:
    return _LABEL.sub("", text, count=1).strip()


class NamedBox(NamedTuple):
    """A box as an answer gives it, in percent."""

    name: str
    xyxy: tuple[float, float, float, float]


def read_boxes(answer: str) -> list[NamedBox] | None:
    """Boxes of an answer in the published dialect; None where it holds none, or one that cannot be read."""
    found: list[NamedBox] = []
    for ref in _REF.finditer(answer):
        corners = _BOX.findall(ref["boxes"])
        if len(corners) != ref["boxes"].count("<|box|>"):
            return None
        found.extend(
            NamedBox(ref["name"], (float(x1), float(y1), float(x2), float(y2))) for x1, y1, x2, y2 in corners
        )
    return found if found and len(found) == answer.count("<|box|>") else None


def read_constraints(question: str, answer: str) -> tuple[Constraints, bool]:
    """What a question demands of its answer, and whether the answer breaks a demanded number of words."""
    least, most = _MIN_WORDS.search(question), _MAX_WORDS.search(question)
    words = len(_WORD.findall(answer))
    low = int(least.group(1)) if least else None
    high = int(most.group(1)) if most else None
    broken = (low is not None and words < low) or (high is not None and words > high)
    return Constraints(
        min_words=None if broken else low,
        max_words=None if broken else high,
        answer_only=_ANSWER_ONLY.search(question) is not None,
    ), broken


def read_sections(task: str, answer: str) -> tuple[ReportSection, ...]:
    """Sections of a report: of one where the task names it, of several where the answer has headings."""
    one: dict[str, Section] = {
        "findings section": "findings",
        "impression": "impression",
        "impression from findings": "impression",
    }
    if task in one:
        return (ReportSection(name=one[task], text=_HEADING.sub("", answer, count=1).strip()),)
    headings = list(_HEADING.finditer(answer))
    if not headings or answer[: headings[0].start()].strip():
        return ()
    ends = [*(heading.start() for heading in headings[1:]), len(answer)]
    found = [
        ReportSection(
            name="findings" if heading.group(1).lower() == "findings" else "impression",
            text=answer[heading.end() : end].strip(),
        )
        for heading, end in zip(headings, ends, strict=True)
    ]
    return tuple(found) if len({section.name for section in found}) == len(found) else ()


# ---- labels of tasks and targets ------------------------------------------------------------------------------------

TASK_STAGES: Final[dict[str, int]] = {
    task: stage
    for stage, tasks in {
        1: ("view", "quality"),
        2: (
            "any abnormality",
            "any device",
            "presence",
            "device presence",
            "abnormalities",
            "devices",
            "abnormalities and devices",
            "others",
        ),
        3: (
            "location",
            "severity",
            "appearance",
            "distribution",
            "position",
            "side",
            "measure",
            "description",
            "statement",
            "region box",
            "finding box",
            "box content",
            "region content",
            "vignette",
        ),
        4: ("relations", "relation"),
        5: ("comparison", "trend", "change"),
        6: ("outlook", "finding outlook", "prognosis"),
        7: ("advice",),
        8: ("full report", "findings section", "impression", "impression from findings"),
    }.items()
    for task in tasks
}
"""Tasks by the names that Carina's own files give them, and their stage."""

_LABEL_STAGES: Final = {
    "quality_assessment": 1,
    "view_information": 1,
    "findings_identification": 2,
    "attributes_description": 3,
    "findings_detection": 3,
    "phrase_grounding": 3,
    "relationships_analysis": 4,
    "differences_comparison": 5,
    "future_trend_analysis": 6,
    "diagnosis_advice": 7,
    "report_generation": 8,
}
"""Published labels, without what they have in brackets, and their stage."""
_ALWAYS: Final = {
    "quality_assessment": "quality",
    "view_information": "view",
    "findings_detection": "region box",
    "phrase_grounding": "finding box",
    "relationships_analysis": "relations",
    "future_trend_analysis": "outlook",
    "diagnosis_advice": "advice",
}
_REPORTS: Final = {
    "": "full report",
    "all": "full report",
    "findings": "findings section",
    "impression": "impression",
    "impression_without_findings": "impression",
    "impression_with_findings": "impression from findings",
}
_OURS: Final = re.compile(r"[a-z]+(?: [a-z]+)*")
"""Carina's own tasks are words in lower case; published labels are not."""
_TARGET: Final = re.compile(r"(abnormality|foreign_body|location|severity)_\[(.*)\]", re.DOTALL)
_IDENTIFIED: Final = {
    "yes_no_abnormality": "any abnormality",
    "yes_no_foreign_body": "any device",
    "other_abnormalities": "others",
}


class Target(NamedTuple):
    """What a question is about."""

    kind: str
    """As in the facts of a step; "study" where the field says nothing."""
    name: str | None = None
    attribute: str = ""
    """Which attribute of it is asked, where the field says so."""


class TaskLabel(NamedTuple):
    """The task of a question by its label."""

    task: str
    known: bool
    home: int | None
    """The stage that it belongs to."""


def read_target(text: str | None, *, task: str) -> Target:
    """The field `target`: "abnormality_[x]", a word for a whole question, or the name of a region."""
    by_task = {"view": "view", "quality": "quality", "relations": "relation", "relation": "relation"}
    if text is None or text in _IDENTIFIED:
        return Target(by_task.get(task, "study"))
    found = _TARGET.fullmatch(text)
    if found is None:
        kind = "finding" if TASK_STAGES.get(task) != 3 or task == "finding box" else "region"
        return Target(by_task.get(task, kind), text)
    kind, name = found.groups()
    if kind in ("location", "severity"):
        return Target("finding", name, kind)
    return Target("device" if kind == "foreign_body" else "finding", name)


def read_label(label: str, *, stage: int, form: Format, target: str | None) -> TaskLabel:
    """The task of a question by its published label, or by one of Carina's own."""
    if _OURS.fullmatch(label):
        return TaskLabel(label, known=True, home=TASK_STAGES.get(label))
    base, _, bracket = label.strip().lower().partition("[")
    variant = bracket.rstrip("]")
    home = _LABEL_STAGES.get(base)
    if home is None:
        return TaskLabel(label.strip().lower().replace("_", " ") or "unknown", known=False, home=None)
    return TaskLabel(
        _find_task(base, variant, stage=stage, form=form, target=target or ""), known=True, home=home
    )


def _find_task(base: str, variant: str, *, stage: int, form: Format, target: str) -> str:
    if base in _ALWAYS:
        return _ALWAYS[base]
    if base == "report_generation":
        return _REPORTS.get(variant, "full report")
    if base == "differences_comparison":
        return "change" if form == "choice" else "comparison"
    if base == "findings_identification":
        return _find_listing_task(stage, target)
    for word in ("location", "severity"):
        if target.startswith(f"{word}_["):
            return word
    return "statement" if form in ("yes_no", "choice") else "description"


def _find_listing_task(stage: int, target: str) -> str:
    if stage == 3:
        return "box content"
    if target in _IDENTIFIED:
        return _IDENTIFIED[target]
    if target.startswith("abnormality_["):
        return "presence"
    if target.startswith("foreign_body_["):
        return "device presence"
    return (
        "findings identification"  # a listing of one kind, of the other or of both: the label does not tell
    )
