"""A case in words: what its path means, what a step asks and demands, and what the right answer is in brief."""

import datetime
import re
from collections.abc import Sequence
from typing import Final

from carina.cases.model import Case, Key, Origin, Step
from carina.draw import Colour, colour_of
from carina.show.words import SEXES, joined
from carina.studies import SourceInfo

PATHS: Final = {"LF": "lesion-free", "RF": "no revision needed", "RR": "revision required"}
"""Paths by their short names; a protocol's own name stands for any other."""
_FINDINGS: Final = {"effusion": "pleural effusion", "opacity": "lung opacity"}
"""Targets that go by a shorter name than their finding."""
_OPTIONS: Final = re.compile(r"\n\s*Options:\s*\n.*\Z", re.DOTALL)
CHRONOLOGY: Final = ("date", "order")
"""Facts of a case that the header tells."""
_SCORES: Final = {
    "exact": "scored right or wrong",
    "set": "scored by the exact set",
    "boxes": "scored by overlap",
    "text": "scored by its words",
    "map": "scored by where it points",
}
_FORMATS: Final = {
    "choice": "one option",
    "yes_no": "yes or no",
    "open": "free text",
    "boxes": "boxes",
    "report": "a report",
    "map": "a map or a point",
}


def colour(target: str) -> Colour:
    """The colour that its finding has on every page."""
    return colour_of(_FINDINGS.get(target, target))


def path(case: Case) -> str:
    return PATHS.get(case.path, case.path) if case.path else ""


def header(case: Case, sources: Sequence[SourceInfo]) -> dict[str, str]:
    """Who, what and on which terms: heading to value, without what is not known; nothing that tells a key."""
    terms = {source.name: source.licence for source in sources}
    told = case.context
    known = {
        "Protocol": case.protocol,
        "Study": joined([case.study, _date(case, "current")]),
        "Compared with": _neighbour(case, "reference"),
        "Later study, not shown": _neighbour(case, "later"),
        "Patient": case.patient or "not told",
        "Age and sex": joined(
            ["" if told.age is None else f"{told.age} years", SEXES[told.sex] if told.sex else ""]
        ),
        "Indication": told.indication or "",
        "Source": case.source,
        "Licence": terms.get(case.source, ""),
        "Split": case.split or "",
    }
    return {heading: value for heading, value in known.items() if value}


def _neighbour(case: Case, which: str) -> str:
    """An earlier or later study of the same patient, with how far it lies from the one that is asked about."""
    name = case.reference_study if which == "reference" else case.later_study
    if not name:
        return ""
    date, current = _date(case, which), _date(case, "current")
    apart = ""
    if date and current:
        try:
            days = (datetime.date.fromisoformat(date) - datetime.date.fromisoformat(current)).days
        except ValueError:
            days = 0
        count = f"{abs(days)} day{'s' if abs(days) != 1 else ''}"
        apart = f"{count} {'earlier' if days < 0 else 'later'}" if days else ""
    return joined([name, date, apart])


def _date(case: Case, which: str) -> str:
    dates = (fact.text for fact in case.facts if fact.name == "date" and fact.about == which)
    return next((date for date in dates if date), "")


def stem(step: Step) -> str:
    """The question without its list of options, which the page sets out by itself."""
    return (_OPTIONS.sub("", step.question) if step.options else step.question).strip()


def demands(step: Step) -> str:
    """How the answer is to be given and compared, in one line."""
    limits = step.constraints
    return joined(
        [
            "any number of options" if step.multiple else _FORMATS[step.format],
            "" if limits.min_words is None else f"at least {limits.min_words} words",
            "" if limits.max_words is None else f"at most {limits.max_words} words",
            "the answer alone" if limits.answer_only else "",
            _SCORES[step.score],
        ]
    )


def making(step: Step) -> str:
    """Who worded the step, from what, and who looked at it since."""
    return joined(
        [
            worded(step.origin),
            f"template {step.template}" if step.template else "",
            ", ".join(f"{slot.name} = {slot.value}" for slot in step.slots),
            "; ".join(f"{item.report} report, sentence {item.sentence + 1}" for item in step.evidence),
            "tells the answer of another step" if step.restates else "",
        ]
    )


def worded(origin: Origin) -> str:
    """Who worded a step, where it was not a rule, and what a reviewer said of it."""
    by = {
        "rule": "",
        "llm": "worded by a language model",
        "human": "worded by hand",
        "import": "read from its source",
    }
    parts = [
        by[origin.method] + (f" ({origin.model})" if origin.model else ""),
        "" if origin.review == "none" else f"review: {origin.review}",
        origin.note or "",
    ]
    return joined([part.strip() for part in parts])


def answer(step: Step) -> str:
    """The right answer in one line."""
    if step.options:
        right = [f"({place}) {step.options[place - 1].text}" for place in step.right]
        return ", ".join(right)
    return _free_answer(step.key)


def kind(text: str) -> str:
    """A kind of option without the underscores and joints of its code."""
    return " and ".join(part.replace("_", " ") for part in text.split("+"))


def _free_answer(key: Key) -> str:
    if key.label:
        return key.label.capitalize()
    if key.text is not None:
        return " ".join(key.text.split())
    if key.sections:
        return " ".join(" ".join(section.text.split()) for section in key.sections)
    places = len(key.boxes) or len(key.regions)
    return f"{places} place{'s' if places != 1 else ''}" if places else ""
