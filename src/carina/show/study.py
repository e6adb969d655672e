"""The page of one study: its images raw and marked, its report, and its truth in tables."""

from dataclasses import dataclass
from pathlib import Path

from carina.draw import colour_of
from carina.errors import StudySetError
from carina.files import write_bytes
from carina.show import words
from carina.show.marks import Kind, Marks, layers, marks_of
from carina.show.panes import panes_of, prior_panes
from carina.show.pictures import png_bytes
from carina.show.prose import paragraphs
from carina.show.source import StudySet
from carina.show.study_sheet import study_sheet
from carina.show.tables import tables
from carina.show.template import fill
from carina.studies.faults import picture_faults
from carina.studies.model import Study


@dataclass(frozen=True, kw_only=True)
class StudyPage:
    """The files of one study's page."""

    id: str
    html: Path
    png: Path


@dataclass(frozen=True, kw_only=True)
class Links:
    """File names of the pages around this one; None where there is no such page."""

    index: str | None = None
    prior: str | None = None
    later: str | None = None


@dataclass(frozen=True, kw_only=True)
class LayerGroup:
    """The layers of one kind that can be switched: name, colour, and how many things it holds."""

    kind: Kind
    title: str
    layers: tuple[tuple[str, str, int], ...]


def study_page(studies: StudySet, study: Study, out_dir: Path) -> StudyPage:
    """Write `<id>.html` and `<id>.png`; pages of neighbours that are already in `out_dir` are linked."""

    def existing(name: str) -> str | None:
        return name if (out_dir / name).is_file() else None

    links = Links(
        index=existing("index.html"),
        prior=existing(f"{words.page_name(study.prior)}.html") if study.prior else None,
        later=existing(f"{words.page_name(study.later)}.html") if study.later else None,
    )
    return write_study(studies, study, out_dir, links)


def write_study(studies: StudySet, study: Study, out_dir: Path, links: Links) -> StudyPage:
    """Write a study's page with the given links."""
    for fault in picture_faults(study):
        raise StudySetError(f"study {study.id!r} cannot be shown: {fault}")
    marks = marks_of(study)
    panes = panes_of(studies, study, marks)
    prior = studies.prior(study)
    before = prior_panes(studies, study, prior) if prior else ()
    truth = tables(study, marks)
    report = paragraphs(study, marks)
    html = fill(
        "study.html.j2",
        {
            "study": study,
            "facts": facts(study),
            "links": links,
            "panes": panes,
            "prior": prior,
            "prior_panes": before,
            "groups": _groups(marks),
            "paragraphs": report,
            "tables": truth,
        },
    )
    name = words.page_name(study.id)
    page = StudyPage(id=study.id, html=out_dir / f"{name}.html", png=out_dir / f"{name}.png")
    write_bytes(page.png, png_bytes(study_sheet(study, marks, panes, before)))
    write_bytes(page.html, html.encode())
    return page


def facts(study: Study) -> dict[str, str]:
    """Who, when, and from where: heading to value, without what is not known."""
    known = {
        "Patient": study.patient,
        "Age and sex": words.patient(study),
        "Study": f"number {study.order + 1} of this patient",
        "Date": study.date.isoformat() if study.date else "",
        "Source": study.source,
        "Split": study.split or "",
        "Indication": study.indication or "",
    }
    return {heading: value for heading, value in known.items() if value}


def _groups(marks: Marks) -> tuple[LayerGroup, ...]:
    titles: dict[Kind, str] = {"finding": "Findings", "device": "Devices", "anatomy": "Anatomy"}
    groups = (
        LayerGroup(
            kind=kind,
            title=title,
            layers=tuple(
                (name, colour_of(name).hex, count) for name, count in layers(marks.every, kind).items()
            ),
        )
        for kind, title in titles.items()
    )
    return tuple(group for group in groups if group.layers)
