"""The page of one study: its images with and without outlines, its report, and its findings in tables.

content = load_study(studies, study)
html = render_study(content)
"""

from dataclasses import dataclass, replace

from carina.cases.draw import Gray, Rgb, Size, colour_of
from carina.pages import words
from carina.pages.figures import LARGEST_OF_STUDY, Figure, PixelStore, make_figure
from carina.pages.frame import render_page
from carina.pages.marks import Kind, Marks, count_names, outlines_on, study_marks
from carina.pages.missing_images import draw_missing_image
from carina.pages.sets import StudySet
from carina.pages.study_text import report_sections, study_tables
from carina.store.errors import StudySetError
from carina.studies.faults import picture_faults
from carina.studies.model import Image, Study
from carina.studies.pixels import display_image

_GROUP_TITLES: dict[Kind, str] = {"finding": "Findings", "device": "Devices", "anatomy": "Anatomy"}


@dataclass(frozen=True, kw_only=True)
class StudyLinks:
    """File names of the pages around a study's page; None where there is no such page."""

    index: str | None = None
    prior: str | None = None
    follow_up: str | None = None


@dataclass(frozen=True, kw_only=True)
class StudyImage:
    """One image of a study and its figure."""

    image: Image
    figure: Figure
    is_missing: bool = False
    """Whether the image file is not there: the figure is an empty frame that says so."""

    @property
    def is_lateral(self) -> bool:
        return self.image.view == "lateral"


@dataclass(frozen=True, kw_only=True)
class StudyContent:
    """What the page of a study is made from."""

    study: Study
    marks: Marks
    images: tuple[StudyImage, ...]
    """Frontal views first."""
    prior: Study | None
    prior_images: tuple[StudyImage, ...]
    """For each kind of view of the study, the prior study's first image of that kind."""
    pixels: PixelStore

    @property
    def missing(self) -> int:
        """Number of the study's images whose files are not there."""
        return sum(view.is_missing for view in self.images)


@dataclass(frozen=True, kw_only=True)
class LayerGroup:
    """Layers of one kind that a reader can switch: name, colour, and number of findings."""

    kind: Kind
    title: str
    layers: tuple[tuple[str, str, int], ...]


def load_study(studies: StudySet, study: Study) -> StudyContent:
    """Read the pixels of a study and of its prior study; an image without a file becomes an empty frame.

    Args:
        studies: Study set that holds the study.
        study: The study.

    Returns:
        The content of the page, for `render_study`.

    Raises:
        StudySetError: The study's regions do not fit its images, or an image file is not the one that is described.

    Example:
        >>> from carina import open_studies
        >>> studies = open_studies("studies")
        >>> load_study(studies, studies["p000000-s2"]).prior.id
        'p000000-s1'
    """
    for fault in picture_faults(study):
        raise StudySetError(f"study {study.id!r} cannot be shown: {fault}")
    marks = study_marks(study)
    prior = studies.prior(study)
    pixels: PixelStore = {}
    images = sorted(study.images, key=lambda image: image.view == "lateral")
    return StudyContent(
        study=study,
        marks=marks,
        images=tuple(
            _load_image(studies, image, marks, pixels, id=f"image-{place}")
            for place, image in enumerate(images, start=1)
        ),
        prior=prior,
        prior_images=_prior_images(studies, study, prior, pixels) if prior else (),
        pixels=pixels,
    )


def render_study(content: StudyContent, links: StudyLinks | None = None) -> str:
    """Render the page of a study as HTML.

    Args:
        content: What `load_study` returned.
        links: Addresses of the index and of the pages of the prior and the follow-up study.

    Returns:
        A whole page.

    Example:
        >>> from carina import open_studies
        >>> studies = open_studies("studies")
        >>> html = render_study(load_study(studies, studies["p000000-s2"]))
        >>> "<title>p000000-s2 · Carina</title>" in html
        True
    """
    study = content.study
    values: dict[str, object] = {
        "study": study,
        "facts": describe_study(study),
        "assessed": words.describe_assessed(study.assessed),
        "links": links or StudyLinks(),
        "images": content.images,
        "missing": content.missing,
        "prior": content.prior,
        "prior_images": content.prior_images,
        "groups": _layer_groups(content.marks),
        "sections": report_sections(study, content.marks),
        "tables": study_tables(study, content.marks),
    }
    return render_page(
        "study.html.j2",
        values,
        title=study.id,
        styles=("outlines.css", "study.css"),
        scripts=("study.js",),
    )


def describe_study(study: Study) -> dict[str, str]:
    """Patient, date and source of a study: heading to value, without what is unknown."""
    known = {
        "Patient": study.patient,
        "Age and sex": words.describe_patient(study),
        "Study": "" if study.order is None else f"number {study.order + 1} of this patient",
        "Date": study.date.isoformat() if study.date else "",
        "Source": study.source,
        "Split": study.split or "",
        "Indication": study.indication or "",
    }
    return {heading: value for heading, value in known.items() if value}


def _load_image(
    studies: StudySet,
    image: Image,
    marks: Marks,
    store: PixelStore,
    *,
    id: str,  # noqa: A002 - the id of an HTML element
    prefix: str = "",
) -> StudyImage:
    """Read the pixels of one image, and place all its marks on it."""
    is_missing = not studies.image_path(image).exists()
    size = Size(width=image.width, height=image.height) if image.width else None
    # A frame without colour, as all images are on which outlines are drawn.
    pixels: Gray | Rgb = (
        draw_missing_image(image.key, size)[..., 0]
        if is_missing
        else display_image(studies.pixels(image), image)
    )
    outlines = outlines_on(image, marks.on(image.key)) if size else ()
    names = dict.fromkeys(outline.mark.name for outline in outlines if outline.mark.kind != "anatomy")
    title = prefix + words.view_name(image)
    kind = "Image file that is not here" if is_missing else "Chest radiograph"
    figure = make_figure(
        pixels,
        store,
        id=id,
        title=title,
        alt=f"{kind}, {title}. Outlined: {', '.join(names) or 'nothing'}.",
        size=size,
        largest=LARGEST_OF_STUDY,
        outlines=outlines,
    )
    return StudyImage(image=image, figure=figure, is_missing=is_missing)


def _prior_images(studies: StudySet, study: Study, prior: Study, store: PixelStore) -> tuple[StudyImage, ...]:
    """Images of the prior study without numbers and anatomy: numbers belong to the tables of one study."""
    marks = study_marks(prior, prefix="p")
    wanted = {image.view == "lateral" for image in study.images}
    first_by_kind = {image.view == "lateral": image for image in reversed(prior.images)}
    loaded = (
        _load_image(studies, image, marks, store, id=f"prior-{int(lateral)}", prefix="Prior ")
        for lateral, image in sorted(first_by_kind.items())
        if lateral in wanted
    )
    return tuple(replace(item, figure=_without_numbers(item.figure)) for item in loaded)


def _without_numbers(figure: Figure) -> Figure:
    kept = (outline for outline in figure.outlines if outline.mark.kind != "anatomy")
    return replace(figure, outlines=tuple(replace(outline, pin=None) for outline in kept))


def _layer_groups(marks: Marks) -> tuple[LayerGroup, ...]:
    groups = (
        LayerGroup(
            kind=kind,
            title=title,
            layers=tuple(
                (name, colour_of(name).hex, count) for name, count in count_names(marks.every, kind).items()
            ),
        )
        for kind, title in _GROUP_TITLES.items()
    )
    return tuple(group for group in groups if group.layers)
