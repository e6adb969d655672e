"""A report as runs of text: each sentence with its number, its certainties, and the keys of its subjects.

Every character of every section is kept, whatever the sentences' spans are.
"""

from dataclasses import dataclass

from carina.show.marks import Marks
from carina.studies.model import Device, Finding, Recommendation, Relation, Sentence, Study
from carina.studies.vocabulary import Certainty

CERTAINTIES: tuple[Certainty, ...] = ("present", "uncertain", "absent")
"""In the order in which they decide how a sentence that states several is underlined."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """A stretch of text: a sentence with its number, or what lies between sentences."""

    text: str
    number: int | None = None
    certainties: tuple[Certainty, ...] = ()
    keys: tuple[str, ...] = ()

    @property
    def look(self) -> str:
        """The certainty that decides the underline; "plain" for a sentence that states none."""
        return self.certainties[0] if self.certainties else "plain"


@dataclass(frozen=True, kw_only=True)
class Paragraph:
    """One section of the report."""

    name: str
    runs: tuple[Run, ...]


def paragraphs(study: Study, marks: Marks) -> tuple[Paragraph, ...]:
    """The report's sections, cut into runs."""
    if study.report is None:
        return ()
    subjects = _subjects(study)
    numbered = list(enumerate(study.report.sentences))
    return tuple(
        Paragraph(
            name=section.name,
            runs=_runs(
                section.text,
                [(index, sentence) for index, sentence in numbered if sentence.section == section.name],
                subjects,
                marks,
            ),
        )
        for section in study.report.sections
    )


def _runs(
    text: str, sentences: list[tuple[int, Sentence]], subjects: dict[int, set[str]], marks: Marks
) -> tuple[Run, ...]:
    runs: list[Run] = []
    done = 0
    for index, sentence in sorted(sentences, key=lambda item: item[1].start):
        start, end = max(done, sentence.start), min(len(text), sentence.end)
        if end <= start:
            continue
        if start > done:
            runs.append(Run(text=text[done:start]))
        said = {state.certainty for state in sentence.states}
        runs.append(
            Run(
                text=text[start:end],
                number=index + 1,
                certainties=tuple(certainty for certainty in CERTAINTIES if certainty in said),
                keys=tuple(key for thing, key in marks.keys.items() if thing in subjects.get(index, ())),
            )
        )
        done = end
    if done < len(text):
        runs.append(Run(text=text[done:]))
    return tuple(runs)


def _subjects(study: Study) -> dict[int, set[str]]:
    """Sentence index to the ids of the findings and devices it speaks of, directly or through a relation."""
    through: dict[str, tuple[str, ...]] = {
        **{relation.id: (relation.subject, relation.object) for relation in study.relations},
        **{item.id: item.about for item in study.recommendations},
    }
    found: dict[int, set[str]] = {}
    things: list[Finding | Device | Relation | Recommendation] = [
        *study.findings,
        *study.devices,
        *study.relations,
        *study.recommendations,
    ]
    for thing in things:
        for index in thing.evidence:
            found.setdefault(index, set()).update(through.get(thing.id, (thing.id,)))
    for index, sentence in enumerate(study.report.sentences if study.report else ()):
        for state in sentence.states:
            found.setdefault(index, set()).update(through.get(state.about, (state.about,)))
    return found
