"""Answers to the questions of a trek conversation, by what they ask for."""

import re
from collections.abc import Callable, Sequence
from typing import Final

from carina.cases import Step
from carina.runs.builtin.reader import boxes, questions, report
from carina.runs.builtin.reader.attributes import region
from carina.runs.builtin.reader.reading import Reading
from carina.runs.builtin.reader.signs import margin
from carina.runs.parse.choices import says_none

_GRADES: Final = ("mild", "moderate", "severe")
_SPREADS: Final = ("multifocal", "focal", "diffuse")
_SOUND: Final = re.compile(
    r"\b(no|not|neither|free|well|adequate|satisfactory|properly|straight|full|whole|complete|good|normal|sufficient|"
    r"correct)\b"
)
"""Words of a description in which nothing is wrong or different: what is said of most images."""
_PROJECTIONS: Final = {
    "lateral": re.compile(r"\b(lateral|side)\b"),
    "AP": re.compile(r"\b(ap|antero-?posterior)\b"),
    "PA": re.compile(r"\b(pa|postero-?anterior)\b"),
}
_COURSES: Final = {
    "new": re.compile(r"\b(new|newly|appeared|developed)\b"),
    "resolved": re.compile(r"\b(resolved|gone|disappeared|resolution|cleared)\b"),
    "worse": re.compile(r"\b(worse|worsened|worsening|progressed|increased|larger)\b|more pronounced"),
    "improved": re.compile(r"\b(better|improved|improving|decreased|smaller)\b|less pronounced"),
    "unchanged": re.compile(r"\b(unchanged|stable|same|constant)\b"),
}
_SIDES: Final = {
    "bilateral": re.compile(r"\b(both|bilateral)\b"),
    "right": re.compile(r"\bon the (patient's )?right\b|\bright[- ]sided\b"),
    "left": re.compile(r"\bon the (patient's )?left\b|\bleft[- ]sided\b"),
}
_ADEQUATE: Final = (
    "The image is not rotated, inspiration and exposure are adequate and both lungs are shown in full."
)
_STABLE: Final = "The appearance is unchanged and likely to stay so."
_ADVICE: Final = "Clinical correlation and a follow-up radiograph are recommended."
_ABNORMAL_ZONE: Final = 0.12
"""Mean excess brightness of a zone from which on something is in it."""
_LOOKS: Final = 0.5
"""What an option is worth that says nothing which this reader can judge."""


class Visit:
    """One question with the pictures that it is about."""

    def __init__(self, step: Step, readings: Sequence[Reading]) -> None:
        self._step = step
        self._readings = readings
        self._main = next((reading for reading in readings if reading.frontal), readings[0])
        self._about = questions.asked(step)

    # ---- yes or no ----------------------------------------------------------------------------------------------

    def yes(self) -> bool:
        """Whether a statement or question of yes and no holds."""
        main, about = self._main, self._about
        if self._step.task == "any abnormality":
            return bool(main.findings)
        if self._step.task == "any device" or (
            self._step.task == "device presence" and questions.devices(about)
        ):
            return main.portable
        found = questions.findings(about)
        if not found:
            part = None if main.blank else region(about, main.thorax)
            return part is not None and main.look.mean(main.look.excess, part) > _ABNORMAL_ZONE
        return self._holds(found[0], about)

    def _holds(self, finding: str, words: str) -> bool:
        """Whether what is said of a finding agrees with the image; its presence where nothing more is said."""
        main, said = self._main, words.lower()
        if main.blank:
            return False
        if self._step.task == "presence" and not main.shows(finding):
            return False
        grades = [word for word in _GRADES if re.search(rf"\b{word}\b", said)]
        if grades:
            return report.grade(main, finding) in grades
        spread = next((word for word in _SPREADS if re.search(rf"\b{word}\b", said)), None)
        if spread:
            return report.spread(main, finding) == spread
        place = report.located(main, finding)
        if _zones(said):
            return _agreement(_zones(said), place.zones) > 0
        side = _side(said)
        return side is None or side == place.side

    # ---- choices ------------------------------------------------------------------------------------------------

    def chosen(self) -> list[int]:
        """Numbers of the options that fit best."""
        texts = [option.text for option in self._step.options]
        plain = [text.strip().strip(".").lower() for text in texts]
        if {"yes", "no"} <= set(plain):
            return [plain.index("yes" if self.yes() else "no") + 1]
        worth = [self._worth(text) for text in texts]
        if self._step.multiple:
            several = [
                n for n, value in enumerate(worth, start=1) if value > 0 and not says_none(texts[n - 1])
            ]
            if several:
                return several
        return [worth.index(max(worth)) + 1] if worth else []

    def _worth(self, text: str) -> float:
        """How well an option agrees with the image; above 0 where it does."""
        main, said = self._main, text.lower()
        if says_none(text):
            return 0.0
        if self._step.task == "view":
            return 1.0 if self._projection() in _projections(text) else -1.0
        about = questions.findings(self._about)
        found = questions.findings(text)
        if found and self._step.task == "presence":
            return -1.0 if main.blank else min(margin(main.signs, finding) for finding in found)
        if questions.devices(text):
            return 0.1 if main.portable else -0.1
        finding = next(iter(found or about), None)
        worth = 0.0
        if finding is not None and not main.blank:
            worth += float(report.grade(main, finding) in said)
            worth += float(re.search(rf"\b{report.spread(main, finding)}\b", said) is not None)
            place = report.located(main, finding)
            worth += 2.0 * _agreement(_zones(said), place.zones)
            worth += float(_side(said) is not None and _side(said) == place.side)
            worth += float(_COURSES[self._course(finding)].search(said) is not None)
        return worth + (_LOOKS if _SOUND.search(said) else 0.0)

    def _course(self, finding: str) -> str:
        """How a finding has changed since the earlier image, which comes last; unchanged where there is none."""
        frontal = [reading for reading in self._readings if reading.frontal and not reading.blank]
        return report.course(frontal[0], frontal[-1], finding) if len(frontal) > 1 else "unchanged"

    def _projection(self) -> str:
        main = self._readings[0]
        return "lateral" if not main.frontal else "AP" if main.portable else "PA"

    # ---- boxes --------------------------------------------------------------------------------------------------

    def boxes(self) -> str:
        """The box that is asked for."""
        about, units = self._step.question, questions.frame(self._step.question)
        finding = next(iter(questions.findings(self._about)), None)
        name = questions.structure(self._about) or next(iter(questions.devices(self._about)), None)
        reading = self._main
        corners = None
        if name is not None and finding is None:
            sideways = name in boxes.ONLY_LATERAL or re.search(
                r"\blateral (radiograph|view|image|film|x-ray)", about
            )
            if sideways or not self._readings[0].frontal:
                reading = next((other for other in self._readings if not other.frontal), self._readings[0])
                corners = boxes.lateral(name)
            else:
                corners = boxes.frontal(name, reading.thorax.frame, reading.thorax.heart, reading.shape)
        elif finding == "cardiomegaly":
            corners = boxes.shares(reading.thorax.heart, reading.shape)
        elif finding is not None and not reading.blank:
            corners = boxes.around(reading.lesion(finding).mask)
        label = finding or name or "region"
        return boxes.box_text(
            label, corners or boxes.MIDDLE, units, reading.picture.width, reading.picture.height
        )

    # ---- words --------------------------------------------------------------------------------------------------

    def words(self) -> str:
        """A sentence or two."""
        says: dict[str, Callable[[], str]] = {
            "view": self._view_words,
            "quality": lambda: _ADEQUATE,
            "devices": self._device_words,
            "position": self._device_words,
            "findings section": lambda: f"Findings: {report.section(self._main)}",
            "full report": lambda: (
                f"Findings: {report.section(self._main)}\nImpression: {report.impression(self._main)}"
            ),
            "impression": lambda: report.impression(self._main),
            "impression from findings": lambda: report.impression(self._main),
            "comparison": self._course_words,
            "trend": self._course_words,
            "outlook": lambda: _STABLE,
            "finding outlook": lambda: _STABLE,
            "prognosis": lambda: _STABLE,
            "advice": lambda: _ADVICE,
            "relation": self._relation_words,
            "relations": self._relation_words,
            "region content": self._content,
            "box content": self._content,
            "others": lambda: "No other abnormality is seen.",
        }
        return says.get(self._step.task, self._found_words)()

    def _view_words(self) -> str:
        return f"The projection is {' and '.join(dict.fromkeys(_name_of(reading) for reading in self._readings))}."

    def _course_words(self) -> str:
        named = questions.findings(self._about)[:1] or self._main.findings
        return " ".join(f"The {report.named(name)} is {self._course(name)}." for name in named) or _STABLE

    def _relation_words(self) -> str:
        names = [report.named(finding) for finding in questions.findings(self._about)]
        return f"The {names[0]} may accompany the {names[1]}." if len(names) > 1 else "No relation is seen."

    def _found_words(self) -> str:
        named = questions.findings(self._about)
        if named:
            return self._about_one(named[0])
        found = self._main.findings
        return f"There is {report.listed(found)}." if found else "No abnormality is seen."

    def _device_words(self) -> str:
        named = questions.devices(self._about)
        if named:
            return f"The {named[0]} is in an acceptable position."
        return "There may be a central venous line." if self._main.portable else "There is no device."

    def _content(self) -> str:
        main = self._main
        here = _zones(self._about.lower())
        found = [name for name in main.findings if here and set(report.located(main, name).zones) & here]
        return f"There is {report.described(main, found[0])}." if found else "Nothing abnormal is seen there."

    def _about_one(self, finding: str) -> str:
        main, name = self._main, report.named(finding)
        if main.blank:
            return f"The {name} cannot be described further."
        side, where = report.located(main, finding).side, report.place(main, finding)
        told = {
            "severity": f"is {report.grade(main, finding)}",
            "distribution": f"is {report.spread(main, finding)}",
            "side": ""
            if side is None
            else f"lies on {'both sides' if side == 'bilateral' else f'the {side}'}",
            "location": f"is seen {where}" if where else "",
        }.get(self._step.task)
        if told:
            return f"The {name} {told}."
        if self._step.task == "measure" and finding == "cardiomegaly":
            return f"The cardiothoracic ratio is {main.signs.heart:.2f}."
        return f"There is {report.described(main, finding)}."


def _name_of(reading: Reading) -> str:
    return "a lateral view" if not reading.frontal else f"a frontal {'AP' if reading.portable else 'PA'} view"


def _side(said: str) -> str | None:
    return next((side for side, words in _SIDES.items() if words.search(said)), None)


def _projections(text: str) -> list[str]:
    return [name for name, words in _PROJECTIONS.items() if words.search(text.lower())]


def _zones(said: str) -> set[str]:
    """Zones that are named, also in "the right mid and lower zones"."""
    found = set()
    for side, levels in re.findall(r"\b(right|left) ((?:(?:upper|mid|lower|,|and) ?)+)zones?\b", said):
        found |= {f"{side} {level} zone" for level in re.findall(r"upper|mid|lower", levels)}
    return found


def _agreement(named: set[str], seen: Sequence[str]) -> float:
    """Jaccard index of zones that are named and zones that are seen."""
    both = named | set(seen)
    return len(named & set(seen)) / len(both) if both else 0.0
