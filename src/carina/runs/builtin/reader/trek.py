"""Answer the questions of a trek conversation, by task and format."""

import re
from collections.abc import Callable, Sequence
from typing import Final

from carina.cases import Step
from carina.runs.builtin.reader import boxes, questions, report
from carina.runs.builtin.reader.attributes import find_lung_part
from carina.runs.builtin.reader.reading import Reading
from carina.runs.builtin.reader.signs import measure_margin
from carina.runs.parse.choices import says_none

_GRADES: Final = ("mild", "moderate", "severe")
_DISTRIBUTIONS: Final = ("multifocal", "focal", "diffuse")
_NORMAL_WORDS: Final = re.compile(
    r"\b(no|not|neither|free|well|adequate|satisfactory|properly|straight|full|whole|complete|good|normal|sufficient|"
    r"correct)\b"
)
"""Words of descriptions of a normal state, which is true of most images."""
_PROJECTIONS: Final = {
    "lateral": re.compile(r"\b(lateral|side)\b"),
    "AP": re.compile(r"\b(ap|antero-?posterior)\b"),
    "PA": re.compile(r"\b(pa|postero-?anterior)\b"),
}
_CHANGES: Final = {
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
"""Mean excess brightness from which a zone counts as abnormal."""
_NEUTRAL_SCORE: Final = 0.5
"""Score of an option that describes a normal state, which this model cannot judge."""


class TrekReader:
    """One trek question with the readings of its images."""

    def __init__(self, step: Step, readings: Sequence[Reading]) -> None:
        self._step = step
        self._readings = readings
        self._main = next((reading for reading in readings if reading.is_frontal), readings[0])
        self._about = questions.remove_options(step)

    # ---- yes or no ----------------------------------------------------------------------------------------------

    def holds(self) -> bool:
        """Whether the answer to a yes/no question is yes."""
        main, about = self._main, self._about
        if self._step.task == "any abnormality":
            return bool(main.findings)
        if self._step.task == "any device" or (
            self._step.task == "device presence" and questions.find_devices(about)
        ):
            return main.is_portable
        found = questions.find_findings(about)
        if not found:
            part = None if main.is_blank else find_lung_part(about, main.thorax)
            return part is not None and main.appearance.mean(main.appearance.excess, part) > _ABNORMAL_ZONE
        return self._finding_agrees(found[0], about)

    def _finding_agrees(self, finding: str, words: str) -> bool:
        """Whether a statement about a finding agrees with the image; without attributes, whether it is present."""
        main, said = self._main, words.lower()
        if main.is_blank:
            return False
        if self._step.task == "presence" and not main.has_finding(finding):
            return False
        grades = [word for word in _GRADES if re.search(rf"\b{word}\b", said)]
        if grades:
            return report.grade_severity(main, finding) in grades
        spread = next((word for word in _DISTRIBUTIONS if re.search(rf"\b{word}\b", said)), None)
        if spread:
            return report.classify_distribution(main, finding) == spread
        place = report.locate_finding(main, finding)
        if _find_zones(said):
            return _zone_overlap(_find_zones(said), place.zones) > 0
        side = _find_side(said)
        return side is None or side == place.side

    # ---- choices ------------------------------------------------------------------------------------------------

    def choose(self) -> list[int]:
        """Numbers of the options that agree best with the images."""
        texts = [option.text for option in self._step.options]
        plain = [text.strip().strip(".").lower() for text in texts]
        if {"yes", "no"} <= set(plain):
            return [plain.index("yes" if self.holds() else "no") + 1]
        worth = [self._score_option(text) for text in texts]
        if self._step.multiple:
            several = [
                n for n, value in enumerate(worth, start=1) if value > 0 and not says_none(texts[n - 1])
            ]
            if several:
                return several
        return [worth.index(max(worth)) + 1] if worth else []

    def _score_option(self, text: str) -> float:
        """Agreement of an option with the image; above 0 if it agrees."""
        main, said = self._main, text.lower()
        if says_none(text):
            return 0.0
        if self._step.task == "view":
            return 1.0 if self._name_projection() in _find_projections(text) else -1.0
        about = questions.find_findings(self._about)
        found = questions.find_findings(text)
        if found and self._step.task == "presence":
            return -1.0 if main.is_blank else min(measure_margin(main.signs, finding) for finding in found)
        if questions.find_devices(text):
            return 0.1 if main.is_portable else -0.1
        finding = next(iter(found or about), None)
        worth = 0.0
        if finding is not None and not main.is_blank:
            worth += float(report.grade_severity(main, finding) in said)
            worth += float(re.search(rf"\b{report.classify_distribution(main, finding)}\b", said) is not None)
            place = report.locate_finding(main, finding)
            worth += 2.0 * _zone_overlap(_find_zones(said), place.zones)
            worth += float(_find_side(said) is not None and _find_side(said) == place.side)
            worth += float(_CHANGES[self._classify_change(finding)].search(said) is not None)
        return worth + (_NEUTRAL_SCORE if _NORMAL_WORDS.search(said) else 0.0)

    def _classify_change(self, finding: str) -> str:
        """Change of a finding since the prior image, which comes last; unchanged without a prior image."""
        frontal = [reading for reading in self._readings if reading.is_frontal and not reading.is_blank]
        return report.classify_change(frontal[0], frontal[-1], finding) if len(frontal) > 1 else "unchanged"

    def _name_projection(self) -> str:
        main = self._readings[0]
        return "lateral" if not main.is_frontal else "AP" if main.is_portable else "PA"

    # ---- boxes --------------------------------------------------------------------------------------------------

    def write_box(self) -> str:
        """The box of the structure, device or finding that the question names."""
        about, units = self._step.question, questions.find_box_frame(self._step.question)
        finding = next(iter(questions.find_findings(self._about)), None)
        name = questions.find_structure(self._about) or next(iter(questions.find_devices(self._about)), None)
        reading = self._main
        corners = None
        if name is not None and finding is None:
            sideways = name in boxes.ONLY_LATERAL or re.search(
                r"\blateral (radiograph|view|image|film|x-ray)", about
            )
            if sideways or not self._readings[0].is_frontal:
                reading = next((other for other in self._readings if not other.is_frontal), self._readings[0])
                corners = boxes.lateral_box(name)
            else:
                corners = boxes.frontal_box(name, reading.thorax.frame, reading.thorax.heart, reading.shape)
        elif finding == "cardiomegaly":
            corners = boxes.to_shares(reading.thorax.heart, reading.shape)
        elif finding is not None and not reading.is_blank:
            corners = boxes.enclosing_box(reading.estimate_lesion(finding).mask)
        label = finding or name or "region"
        return boxes.write_box(
            label, corners or boxes.MIDDLE, units, reading.image.width, reading.image.height
        )

    # ---- words --------------------------------------------------------------------------------------------------

    def write_text(self) -> str:
        """A free-text answer of one or two sentences."""
        says: dict[str, Callable[[], str]] = {
            "view": self._write_projection,
            "quality": lambda: _ADEQUATE,
            "devices": self._write_devices,
            "position": self._write_devices,
            "findings section": lambda: f"Findings: {report.write_findings_section(self._main)}",
            "full report": self._write_report,
            "impression": lambda: report.write_impression(self._main),
            "impression from findings": lambda: report.write_impression(self._main),
            "comparison": self._write_change,
            "trend": self._write_change,
            "outlook": lambda: _STABLE,
            "finding outlook": lambda: _STABLE,
            "prognosis": lambda: _STABLE,
            "advice": lambda: _ADVICE,
            "relation": self._write_relation,
            "relations": self._write_relation,
            "region content": self._write_content,
            "box content": self._write_content,
            "others": lambda: "No other abnormality is seen.",
        }
        return says.get(self._step.task, self._write_findings)()

    def _write_projection(self) -> str:
        projections = dict.fromkeys(_describe_projection(reading) for reading in self._readings)
        return f"The projection is {' and '.join(projections)}."

    def _write_report(self) -> str:
        findings, impression = report.write_findings_section(self._main), report.write_impression(self._main)
        return f"Findings: {findings}\nImpression: {impression}"

    def _write_change(self) -> str:
        named = questions.find_findings(self._about)[:1] or self._main.findings
        return (
            " ".join(f"The {report.name_finding(name)} is {self._classify_change(name)}." for name in named)
            or _STABLE
        )

    def _write_relation(self) -> str:
        names = [report.name_finding(finding) for finding in questions.find_findings(self._about)]
        return f"The {names[0]} may accompany the {names[1]}." if len(names) > 1 else "No relation is seen."

    def _write_findings(self) -> str:
        named = questions.find_findings(self._about)
        if named:
            return self._write_finding(named[0])
        found = self._main.findings
        return f"There is {report.list_findings(found)}." if found else "No abnormality is seen."

    def _write_devices(self) -> str:
        named = questions.find_devices(self._about)
        if named:
            return f"The {named[0]} is in an acceptable position."
        return "There may be a central venous line." if self._main.is_portable else "There is no device."

    def _write_content(self) -> str:
        main = self._main
        here = _find_zones(self._about.lower())
        found = [
            name for name in main.findings if here and set(report.locate_finding(main, name).zones) & here
        ]
        return (
            f"There is {report.describe_finding(main, found[0])}."
            if found
            else "Nothing abnormal is seen there."
        )

    def _write_finding(self, finding: str) -> str:
        main, name = self._main, report.name_finding(finding)
        if main.is_blank:
            return f"The {name} cannot be described further."
        side, where = report.locate_finding(main, finding).side, report.describe_location(main, finding)
        phrase = {
            "severity": f"is {report.grade_severity(main, finding)}",
            "distribution": f"is {report.classify_distribution(main, finding)}",
            "side": ""
            if side is None
            else f"lies on {'both sides' if side == 'bilateral' else f'the {side}'}",
            "location": f"is seen {where}" if where else "",
        }.get(self._step.task)
        if phrase:
            return f"The {name} {phrase}."
        if self._step.task == "measure" and finding == "cardiomegaly":
            return f"The cardiothoracic ratio is {main.signs.heart:.2f}."
        return f"There is {report.describe_finding(main, finding)}."


def _describe_projection(reading: Reading) -> str:
    return (
        "a lateral view"
        if not reading.is_frontal
        else f"a frontal {'AP' if reading.is_portable else 'PA'} view"
    )


def _find_side(said: str) -> str | None:
    return next((side for side, words in _SIDES.items() if words.search(said)), None)


def _find_projections(text: str) -> list[str]:
    return [name for name, words in _PROJECTIONS.items() if words.search(text.lower())]


def _find_zones(said: str) -> set[str]:
    """Zones that a text names, also in "the right mid and lower zones"."""
    found = set()
    for side, levels in re.findall(r"\b(right|left) ((?:(?:upper|mid|lower|,|and) ?)+)zones?\b", said):
        found |= {f"{side} {level} zone" for level in re.findall(r"upper|mid|lower", levels)}
    return found


def _zone_overlap(named: set[str], seen: Sequence[str]) -> float:
    """Jaccard index of named and observed zones."""
    both = named | set(seen)
    return len(named & set(seen)) / len(both) if both else 0.0
