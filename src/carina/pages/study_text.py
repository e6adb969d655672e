"""The text of a study's page: its report sentence by sentence, and its findings, devices and relations as tables."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from carina.pages import words
from carina.pages.marks import Marks
from carina.studies.model import Device, Finding, Recommendation, Relation, Sentence, Study
from carina.studies.vocabulary import Certainty

CERTAINTIES: Final[tuple[Certainty, ...]] = ("present", "uncertain", "absent")
"""The first of them that a sentence states decides how it is underlined."""


@dataclass(frozen=True, kw_only=True)
class TextSpan:
    """A sentence with its number, or the text between two sentences."""

    text: str
    number: int | None = None
    certainties: tuple[Certainty, ...] = ()
    keys: tuple[str, ...] = ()

    @property
    def look(self) -> str:
        """The certainty that decides the underline; "plain" for a sentence that states none."""
        return self.certainties[0] if self.certainties else "plain"


@dataclass(frozen=True, kw_only=True)
class ReportText:
    """One section of the report."""

    name: str
    spans: tuple[TextSpan, ...]


def report_sections(study: Study, marks: Marks) -> tuple[ReportText, ...]:
    """The report's sections, cut into sentences. Every character is kept, whatever the sentences' spans are."""
    if study.report is None:
        return ()
    subjects = _sentence_subjects(study)
    numbered = list(enumerate(study.report.sentences))
    return tuple(
        ReportText(
            name=section.name,
            spans=_text_spans(
                section.text,
                [(index, sentence) for index, sentence in numbered if sentence.section == section.name],
                subjects,
                marks,
            ),
        )
        for section in study.report.sections
    )


def _text_spans(
    text: str, sentences: list[tuple[int, Sentence]], subjects: dict[int, set[str]], marks: Marks
) -> tuple[TextSpan, ...]:
    spans: list[TextSpan] = []
    position = 0
    for index, sentence in sorted(sentences, key=lambda item: item[1].start):
        start, end = max(position, sentence.start), min(len(text), sentence.end)
        if end <= start:
            continue
        if start > position:
            spans.append(TextSpan(text=text[position:start]))
        stated = {state.certainty for state in sentence.states}
        spans.append(
            TextSpan(
                text=text[start:end],
                number=index + 1,
                certainties=tuple(certainty for certainty in CERTAINTIES if certainty in stated),
                keys=tuple(key for thing, key in marks.keys.items() if thing in subjects.get(index, ())),
            )
        )
        position = end
    if position < len(text):
        spans.append(TextSpan(text=text[position:]))
    return tuple(spans)


def _sentence_subjects(study: Study) -> dict[int, set[str]]:
    """Sentence index to the ids of the findings and devices it mentions, directly or through a relation."""
    through: dict[str, tuple[str, ...]] = {
        **{relation.id: (relation.subject, relation.object) for relation in study.relations},
        **{item.id: item.about for item in study.recommendations},
    }
    subjects: dict[int, set[str]] = {}
    things: list[Finding | Device | Relation | Recommendation] = [
        *study.findings,
        *study.devices,
        *study.relations,
        *study.recommendations,
    ]
    for thing in things:
        for index in thing.evidence:
            subjects.setdefault(index, set()).update(through.get(thing.id, (thing.id,)))
    for index, sentence in enumerate(study.report.sentences if study.report else ()):
        for state in sentence.states:
            subjects.setdefault(index, set()).update(through.get(state.about, (state.about,)))
    return subjects


@dataclass(frozen=True, kw_only=True)
class Row:
    """Cells below a table's headings; the first names the row."""

    cells: tuple[str, ...]
    keys: tuple[str, ...] = ()
    number: int | None = None
    certainty: Certainty | None = None
    colour: str | None = None
    ink: str | None = None
    """Colours of the number and of its digits, as CSS writes them."""
    sentences: tuple[int, ...] = ()
    """Numbers of the sentences that state it, from 1."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows below headings, with the columns that all tables may have."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[Row, ...]
    has_numbers: bool = False
    has_certainty: bool = False
    has_sentences: bool = True


def study_tables(study: Study, marks: Marks) -> tuple[Table, ...]:
    """Every table that has a row: findings, devices, relations, recommendations, images."""
    things: list[Finding | Device] = [*study.findings, *study.devices]
    names = {thing.id: thing.name for thing in things}
    every = (
        _findings(study, marks),
        _devices(study, marks),
        _relations(study, marks, names),
        _recommendations(study, marks, names),
        _images(study),
    )
    return tuple(table for table in every if table.rows)


def _findings(study: Study, marks: Marks) -> Table:
    columns: Sequence[tuple[str, Callable[[Finding], str]]] = (
        ("Finding", lambda finding: finding.name),
        ("Location", lambda finding: words.describe_location(finding.location)),
        ("Severity", lambda finding: finding.severity or ""),
        ("Distribution", lambda finding: finding.distribution or ""),
        ("Trend", lambda finding: finding.trend or ""),
        ("Appearance", lambda finding: ", ".join(finding.appearance)),
        ("Measures", lambda finding: words.format_measures(finding.measures)),
        ("Conspicuity", words.format_conspicuity),
    )
    order = {"present": 0, "uncertain": 1, "absent": 2}
    return Table(
        title="Findings",
        headings=tuple(heading for heading, _ in columns),
        rows=tuple(
            _thing_row(finding, marks, tuple(cell(finding) for _, cell in columns))
            for finding in sorted(study.findings, key=lambda finding: order[finding.certainty])
        ),
        has_numbers=True,
        has_certainty=True,
    )


def _devices(study: Study, marks: Marks) -> Table:
    columns: Sequence[tuple[str, Callable[[Device], str]]] = (
        ("Device", lambda device: device.name),
        ("Side", lambda device: device.side or ""),
        ("Position", lambda device: device.position or ""),
        ("Tip", lambda device: device.site or ""),
        ("Trend", lambda device: device.trend or ""),
        ("Measures", lambda device: words.format_measures(device.measures)),
    )
    return Table(
        title="Devices",
        headings=tuple(heading for heading, _ in columns),
        rows=tuple(
            _thing_row(device, marks, tuple(cell(device) for _, cell in columns)) for device in study.devices
        ),
        has_numbers=True,
        has_certainty=True,
    )


def _thing_row(thing: Finding | Device, marks: Marks, cells: tuple[str, ...]) -> Row:
    drawn = [mark for mark in marks.every if mark.key == marks.keys[thing.id]]
    return Row(
        cells=cells,
        keys=(marks.keys[thing.id],),
        number=marks.numbers.get(thing.id),
        certainty=thing.certainty,
        colour=drawn[0].colour.hex if drawn else None,
        ink=drawn[0].ink.hex if drawn else None,
        sentences=words.sentence_numbers(thing.evidence),
    )


def _relations(study: Study, marks: Marks, names: dict[str, str]) -> Table:
    return Table(
        title="Relations",
        headings=("Subject", "Relation", "Object"),
        rows=tuple(
            Row(
                cells=(_name_of(item.subject, names), item.kind, _name_of(item.object, names)),
                keys=_keys_of((item.subject, item.object), marks),
                sentences=words.sentence_numbers(item.evidence),
            )
            for item in study.relations
        ),
    )


def _recommendations(study: Study, marks: Marks, names: dict[str, str]) -> Table:
    return Table(
        title="Recommendations",
        headings=("Action", "Because of"),
        rows=tuple(
            Row(
                cells=(item.action, ", ".join(_name_of(about, names) for about in item.about)),
                keys=_keys_of(item.about, marks),
                sentences=words.sentence_numbers(item.evidence),
            )
            for item in study.recommendations
        ),
    )


def _images(study: Study) -> Table:
    return Table(
        title="Images",
        headings=("View", "Size", "Pixel", "Rotation", "Inspiration", "Exposure", "Cut off"),
        rows=tuple(
            Row(
                cells=(
                    words.view_name(image),
                    f"{image.width} × {image.height}, {image.bits} bit",
                    "" if image.spacing_mm is None else f"{words.format_number(image.spacing_mm[0])} mm",
                    words.describe_rotation(image.quality) if image.quality else "",
                    words.describe_inspiration(image.quality) if image.quality else "",
                    (image.quality.exposure or "") if image.quality else "",
                    words.describe_cut_off(image.quality) if image.quality else "",
                )
            )
            for image in study.images
        ),
        has_sentences=False,
    )


def _name_of(thing: str, names: dict[str, str]) -> str:
    # A relation may refer to a finding that the source does not describe; then its id stands for it.
    return names.get(thing, thing)


def _keys_of(things: Iterable[str], marks: Marks) -> tuple[str, ...]:
    return tuple(marks.keys[thing] for thing in things if thing in marks.keys)
