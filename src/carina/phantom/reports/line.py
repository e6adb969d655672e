"""A finished sentence on its way into a section, and the layouts that turn such sentences into text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from carina.phantom.reports.grammar import polish
from carina.phantom.reports.template import Said
from carina.studies.model import ReportSection, Sentence, Statement
from carina.studies.vocabulary import Section

Organ = Literal["quality", "devices", "lungs", "pleura", "heart", "bones"]
Style = Literal["prose", "terse", "template"]


@dataclass(frozen=True, slots=True)
class Line:
    text: str
    states: tuple[Statement, ...]
    organ: Organ = "lungs"


def line(said: Said, organ: Organ = "lungs") -> Line:
    """The sentence, polished."""
    return Line(polish(said.text), said.states, organ)


class SectionText:
    """Text under construction: keeps the offsets of the sentences while it grows."""

    def __init__(self, name: Section) -> None:
        self.name: Section = name
        self._parts: list[str] = []
        self._length = 0
        self._sentences: list[Sentence] = []

    def write(self, text: str) -> None:
        """Text that is no sentence: headings, numbers, spaces."""
        self._parts.append(text)
        self._length += len(text)

    def sentence(self, line: Line) -> None:
        start = self._length
        self.write(line.text)
        self._sentences.append(Sentence(section=self.name, start=start, end=self._length, states=line.states))

    def done(self) -> tuple[ReportSection, list[Sentence]]:
        return ReportSection(name=self.name, text="".join(self._parts)), self._sentences


def paragraph(name: Section, lines: Iterable[Line], *, separator: str = " ") -> SectionText:
    section = SectionText(name)
    for index, each in enumerate(lines):
        if index:
            section.write(separator)
        section.sentence(each)
    return section


def numbered(name: Section, lines: Sequence[Line]) -> SectionText:
    section = SectionText(name)
    for number, each in enumerate(lines, start=1):
        section.write(f"{number}. " if number == 1 else f"\n{number}. ")
        section.sentence(each)
    return section


def headed(name: Section, blocks: Iterable[tuple[str, Sequence[Line]]]) -> SectionText:
    """One line of text for each heading: "Lungs: The lungs are clear."."""
    section = SectionText(name)
    for index, (heading, lines) in enumerate(blocks):
        section.write(f"\n{heading}:" if index else f"{heading}:")
        for each in lines:
            section.write(" ")
            section.sentence(each)
    return section
