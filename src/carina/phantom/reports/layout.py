"""Sentences of a section, and the layouts that turn them into text: paragraph, numbered list, headings."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from carina.phantom.reports.grammar import polish_sentence
from carina.phantom.reports.template import Phrase
from carina.studies.model import ReportSection, Sentence, Statement
from carina.studies.vocabulary import Section

Organ = Literal["quality", "devices", "lungs", "pleura", "heart", "bones"]
Style = Literal["prose", "terse", "structured"]


@dataclass(frozen=True, slots=True)
class DraftSentence:
    """A sentence that has no offsets in a section yet."""

    text: str
    statements: tuple[Statement, ...]
    organ: Organ = "lungs"


def make_sentence(phrase: Phrase, organ: Organ = "lungs") -> DraftSentence:
    """Make a polished sentence from a phrase."""
    return DraftSentence(polish_sentence(phrase.text), phrase.statements, organ)


class SectionBuilder:
    """Builds the text of a section and keeps the offsets of its sentences."""

    def __init__(self, name: Section) -> None:
        self.name: Section = name
        self._parts: list[str] = []
        self._length = 0
        self._sentences: list[Sentence] = []

    def add_text(self, text: str) -> None:
        """Add text that is not a sentence: headings, numbers, spaces."""
        self._parts.append(text)
        self._length += len(text)

    def add_sentence(self, sentence: DraftSentence) -> None:
        start = self._length
        self.add_text(sentence.text)
        self._sentences.append(
            Sentence(section=self.name, start=start, end=self._length, states=sentence.statements)
        )

    def build(self) -> tuple[ReportSection, list[Sentence]]:
        return ReportSection(name=self.name, text="".join(self._parts)), self._sentences


def lay_out_paragraph(
    name: Section, sentences: Iterable[DraftSentence], *, separator: str = " "
) -> SectionBuilder:
    section = SectionBuilder(name)
    for index, each in enumerate(sentences):
        if index:
            section.add_text(separator)
        section.add_sentence(each)
    return section


def lay_out_numbered_list(name: Section, sentences: Sequence[DraftSentence]) -> SectionBuilder:
    section = SectionBuilder(name)
    for number, each in enumerate(sentences, start=1):
        section.add_text(f"{number}. " if number == 1 else f"\n{number}. ")
        section.add_sentence(each)
    return section


def lay_out_with_headings(
    name: Section, blocks: Iterable[tuple[str, Sequence[DraftSentence]]]
) -> SectionBuilder:
    """One line of text per heading: "Lungs: The lungs are clear."."""
    section = SectionBuilder(name)
    for index, (heading, sentences) in enumerate(blocks):
        section.add_text(f"\n{heading}:" if index else f"{heading}:")
        for each in sentences:
            section.add_text(" ")
            section.add_sentence(each)
    return section
