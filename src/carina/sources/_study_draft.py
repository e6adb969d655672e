"""A study in the making: what most readers do with images, labels and drawn regions, done once."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta
from numpy.typing import ArrayLike

from carina.sources._defects import DefectCounts, RecordPlace
from carina.sources._record import RecordError
from carina.sources._source import Item, Repaired, Skipped
from carina.store.errors import CarinaError, RegionError
from carina.studies.image_files import find_key_problem, inside
from carina.studies.model import (
    Anatomy,
    Annotation,
    Assessed,
    Device,
    Finding,
    Image,
    SalientPoint,
    Study,
)
from carina.studies.pixels import read_header
from carina.studies.region import Region
from carina.studies.terms import (
    Term,
    ancestors,
    find_term,
    is_kind_of,
    is_no_finding,
    list_nearest_terms,
    read_label,
)
from carina.studies.vocabulary import ABNORMALITY, Certainty, Drawn, View

MissingImages: TypeAlias = Annotated[
    Literal["skip", "keep"],
    Meta(description="A study without its image file: skip it, or keep what was annotated."),
]
"""An option of readers that know the size of an image without opening it."""
ImageFolder: TypeAlias = Annotated[
    Path | None, Meta(description="Folder of the image files, where that is not the path of the source.")
]
"""An option of readers whose images may lie elsewhere."""
DEFECTS: Final[Mapping[str, str]] = {
    "region": "a box, polygon, mask or point with impossible numbers, without area or outside its image is left out",
    "mask size": "a mask of another size than its image is left out",
    "cut": "a box or polygon that reaches over the border of its image is cut off there",
    "conflict": "a statement that contradicts another is left out; where one says present and the other absent, and "
    "none is trusted more, the finding is left out as a whole and not asked about",
    "wording": "a label that says itself that something is possible or absent, such as 'mass?' or 'no mass', is "
    "recorded as uncertain or absent",
    "nothing": "a region whose label says that there is nothing, such as 'No finding' or 'no mass', is left out",
    "nameless": "a label that says whether something is there, but not what, is left out",
    "duplicate": "a region that its annotator drew twice, exactly alike, is used once",
    "near name": "a name that is not known is kept; the known name that it is close to, and what that is a kind of, do "
    "not count as absent in the study",
}
"""Defects that a draft counts, for the decorator of a source."""
SECOND_RECORD: Final = "second record"
REPEATS: Final[Mapping[str, str]] = {
    SECOND_RECORD: "a study that comes twice: the id of the second gets a number"
}
"""The defect of sources whose ids may repeat, which state `second_id=SECOND_RECORD`."""
_BORDER: Final = 0.5
"""Pixels by which a drawn border may lie outside of its image before that is counted."""
_COMBINED: Final[Mapping[tuple[Certainty, Certainty], Certainty | None]] = {
    ("present", "present"): "present",
    ("present", "uncertain"): "uncertain",
    ("present", "absent"): "absent",
    ("uncertain", "present"): "uncertain",
    ("uncertain", "uncertain"): "uncertain",
    ("uncertain", "absent"): "absent",
    ("absent", "present"): "absent",
    ("absent", "uncertain"): "uncertain",
    ("absent", "absent"): None,
}
"""By the certainty that a label states of itself, and that which its source states of the label, what this comes to.
Nothing where the source denies a denial: nobody knows what "no mass: no" means."""


_IMPOSSIBLE: Final = Region.empty(1, 1)
"""Stands for a region whose numbers are impossible."""


def name_of(label: str) -> str:
    """The name under which a label is recorded: that of the vocabulary, else the label itself in lower case.

    Words that say whether it is present are left out; a label that names nothing, such as "No finding", has none.
    """
    words = read_label(label).words
    term = find_term(words)
    return term.name if term is not None else " ".join(words.replace("_", " ").lower().split())


def combine_certainty(label: str, certainty: Certainty) -> Certainty | None:
    """What the words of a label and the certainty that its source states come to; None for nothing."""
    return _COMBINED[read_label(label).certainty, certainty]


@lru_cache(maxsize=4096)
def _classify(words: str, certainty: Certainty) -> tuple[str, bool, Certainty | None]:
    """The name under which a label is recorded, whether it is a device, and its certainty."""
    term = find_term(read_label(words).words)
    return name_of(words), term is not None and term.kind == "device", combine_certainty(words, certainty)


def name_listed(labels: Iterable[str]) -> dict[str, Term | None]:
    """Names of a closed list of labels, each with its term; without labels that say that nothing was found."""
    named = {
        name_of(label): find_term(read_label(label).words) for label in labels if not is_no_finding(label)
    }
    named.pop("", None)
    return named


def assess_labels(labels: Iterable[str], *, text: bool = False, readers: Iterable[str] = ()) -> Assessed:
    """What was looked for, where that is a closed list of labels.

    Args:
        labels: The list, in the words of the source.
        text: Whether the labels come from the report.
        readers: Who looked, each alone, where the source says so.
    """
    assessed = _assess_labels(tuple(labels), text)
    named = tuple(readers)
    return msgspec.structs.replace(assessed, readers=named) if named else assessed


@lru_cache(maxsize=64)
def _assess_labels(labels: tuple[str, ...], text: bool) -> Assessed:  # noqa: FBT001 - of `assess_labels`
    terms = name_listed(labels)
    devices = [name for name, term in terms.items() if term is not None and term.kind == "device"]
    return Assessed(
        findings="listed" if len(devices) < len(terms) else "unknown",
        devices="listed" if devices else "unknown",
        listed=tuple(sorted(terms)),
        text=text,
    )


def make_or_skip(make: Callable[..., Item], place: str, study: str, *arguments: Any) -> list[Item]:  # noqa: ANN401
    """Call `make` with the arguments; where the record cannot be used, say why.

    Readers yield `functools.partial` calls of it, so that workers make the studies.

    Args:
        make: Makes one study.
        place: The file and the record in it.
        study: Id of the study, for the list of skipped records.
        *arguments: Arguments of `make`.
    """
    try:
        return [make(*arguments)]
    except RecordError as error:
        return [Skipped.from_error(error, place, study=study)]


def find_image(root: Path, keys: Iterable[str]) -> str | None:
    """The first of several keys that names a file below a root; None where none does."""
    for key in keys:
        # Not by `Path`, which takes many times as long: most keys name no file, and sets have millions of them.
        with suppress(ValueError, OSError):
            if os.path.isfile(f"{root}/{key}"):  # noqa: PTH113
                inside(root.resolve(), key)
                return key
    return None


@dataclass
class _Thing:
    """A finding or a device in the making."""

    name: str
    label: str
    certainty: Certainty
    is_device: bool
    annotations: list[Annotation] = field(default_factory=list)
    comparisons: list[Annotation] = field(default_factory=list)
    points: list[SalientPoint] = field(default_factory=list)
    stated_by: list[str] = field(default_factory=list)
    """Readers who state it."""
    is_decided: bool = False
    """Whether its certainty is what several readers come to."""
    rank: int = 0
    """Rank of the statement that counts."""
    is_by_program: bool = False
    """Whether only programs state it."""


class Drawing(NamedTuple):
    """What is known about a region beside its pixels."""

    label: str
    image: str
    drawn: Drawn
    annotator: str
    certainty: Certainty = "present"
    automatic: bool = False


class StudyDraft:
    """Collects what a source says about one study.

    Several statements about one finding become one `Finding`, with an annotation for every region that anybody drew.
    Where one says present and another absent, nothing is known of the finding: it is left out, and named in
    `Assessed.disputed`. Statements that are trusted less have a higher `rank`: where they contradict others, the others
    count. Of statements that differ in being uncertain, the first counts. What cannot be used is counted as a defect
    and left out, so that the rest of the study is kept.

    Args:
        study_id: Id of the study.
        patient: Id of the patient.
        source: Name of the source.
        number: Number of the record as its file counts them: the header of a table is row 1.
        file: Path of the file; may be left out where that is the path of the source.
        names: Our names for labels that the user has mapped; the vocabulary decides about all others.

    Example:
        >>> draft = StudyDraft("s1", patient="p1", source="mine", number=1)
        >>> draft.images.append(Image(key="a.png", view="PA", width=100, height=80))
        >>> draft.add_box("Effusion", "a.png", (10, 20, 30, 40), annotator="R1")
        >>> finding = draft.finish().findings[0]
        >>> finding.name, finding.label, finding.annotations[0].region.area
        ('pleural effusion', 'Effusion', 1200)
    """

    def __init__(
        self,
        study_id: str,
        *,
        patient: str,
        source: str,
        number: int,
        file: str = "",
        names: Mapping[str, str] | None = None,
    ) -> None:
        self.id, self.patient, self.source, self.number, self.file = study_id, patient, source, number, file
        self.names = names or {}
        self.images: list[Image] = []
        self.facts: dict[str, Any] = {}
        """Other fields of the study: age, sex, split, report and so on."""
        self.defects = DefectCounts(RecordPlace(file, number))
        """What is wrong in the record, or in one of its rows: say which with `read_row`."""
        self.unmapped: tuple[str, ...] = ()
        """Fields of the record that have no place in Carina."""
        self.rank = 0
        """Rank of the statements that are read now: begin with those that are trusted most, and count upwards."""
        self.is_by_program = False
        """Whether a program states what is read now, such as labels that were mined from the report."""
        self._things: dict[str, _Thing] = {}
        self._disputed: dict[str, None] = {}
        self._anatomy: list[Anatomy] = []
        self._normal: dict[RecordPlace, None] = {}
        """Where the record says that nothing is there."""
        self._covered: list[str] = []
        """Labels that are absent because it says so."""
        self._mined: set[str] = set()
        """Names that are absent because a program does not state them."""
        self._first_places: dict[str, RecordPlace] = {}
        """By name, where it is first said to be present or uncertain."""

    # ---- images ------------------------------------------------------------------------------------------------------

    def add_image(
        self,
        root: Path,
        key: str,
        view: View,
        *,
        size: tuple[int, int] | None = None,
        missing: Literal["skip", "keep"] = "skip",
        spacing_mm: tuple[float, float] | None = None,
    ) -> Image:
        """Add an image file; its size and depth are read from it.

        Args:
            root: Folder in which image keys start.
            key: Path below it.
            view: The view.
            size: Width and height, where the source knows them.
            missing: Whether a file that is not there is an error, or the image is described by `size` alone; of 0 x 0
                pixels where the size is unknown.
            spacing_mm: Size of a pixel at the detector: between rows, between columns.

        Raises:
            RecordError: The file is missing or cannot be read, or is not of the size that the source states.
        """
        try:
            path = inside(root.resolve(), key)
        except ValueError as error:
            raise RecordError("image", f"{key!r} {error}", kind="image") from error
        if size is not None and missing == "keep" and not path.exists():
            image = Image(key=key, view=view, width=size[0], height=size[1], spacing_mm=spacing_mm)
        else:
            image = _describe_file(path, key, view, spacing_mm)
            if size is not None and (image.width, image.height) != size:
                raise RecordError(
                    "image",
                    f"{key!r} is {image.width} x {image.height}, the source states {size[0]} x {size[1]}",
                    kind="image",
                )
        self.images.append(image)
        return image

    def describe_image(self, key: str, view: View, size: tuple[int, int]) -> Image:
        """Add an image whose file is not there, by what the source says of it; no file is looked for.

        Raises:
            RecordError: The key cannot be that of a file below a root.
        """
        wrong = find_key_problem(key)
        if wrong:
            raise RecordError("image", f"{key!r} {wrong}", kind="image")
        image = Image(key=key, view=view, width=size[0], height=size[1])
        self.images.append(image)
        return image

    def find_image(self, root: Path, keys: Sequence[str], view: View, missing: MissingImages) -> Image:
        """Add the first of several image files that is there.

        Args:
            root: Folder in which image keys start.
            keys: Where the file may be, the usual place first.
            view: The view.
            missing: Whether a file that is not there is an error, or the image is described without its size.

        Raises:
            RecordError: The file is missing or cannot be read.
        """
        key = find_image(root, keys)
        if key is None and missing == "keep":
            return self.describe_image(keys[0], view, (0, 0))
        return self.add_image(root, key or keys[0], view)

    def image(self, key: str) -> Image:
        """The image with this key."""
        for image in self.images:
            if image.key == key:
                return image
        raise KeyError(key)

    # ---- statements --------------------------------------------------------------------------------------------------

    def state(self, label: str, certainty: Certainty = "present", *, words: str = "") -> _Thing:
        """State that something is present, absent or uncertain.

        Args:
            label: As the source writes it.
            certainty: Whether it is present.
            words: What to look up in the vocabulary, where that is not the label.

        Returns:
            The finding or device; one that is not part of the study where the label names none, such as "No finding".
        """
        label = label.strip()
        name, is_device, stated = self._interpret(label, certainty, words)
        thing = self._things.get(name)
        if thing is not None and thing.is_decided:
            return thing
        self._count_wording(label, certainty, words, stated)
        if not name or stated is None:
            if stated == "absent" and is_no_finding(self.names.get(label, words or label)):
                self._normal[self.defects.place] = None
            return _Thing(name, label, "absent", is_device)
        if thing is None:
            thing = self._things[name] = _Thing(
                name, label, stated, is_device, rank=self.rank, is_by_program=self.is_by_program
            )
        thing.is_by_program &= self.is_by_program or thing.certainty != stated
        if thing.certainty != stated:
            self.defects["conflict"] += 1
            if thing.rank == self.rank and "uncertain" not in (thing.certainty, stated):
                self.dispute(name)
        elif name == ABNORMALITY and stated == "absent":
            self._normal[self.defects.place] = None
        return thing

    def read_statement(
        self, label: str, certainty: Certainty, *, words: str = ""
    ) -> tuple[str, Certainty | None]:
        """The name and the certainty that a statement comes to, without stating it; counts defects as `state` does."""
        name, _, stated = self._interpret(label.strip(), certainty, words)
        self._count_wording(label.strip(), certainty, words, stated)
        return name, stated

    def decide(self, name: str, label: str, certainty: Certainty, *, stated_by: Iterable[str]) -> None:
        """Record what several readers come to about a finding; no later statement changes it or contradicts it.

        Args:
            name: A name of `read_statement`.
            label: As the source writes it.
            certainty: What it comes to.
            stated_by: Readers who state that it is present.
        """
        is_device = _classify(name, certainty)[1]
        self._things[name] = _Thing(
            name, label, certainty, is_device, stated_by=list(stated_by), is_decided=True
        )

    def dispute(self, name: str) -> None:
        """Record that nothing is known of a name of `read_statement`, since equally trusted statements contradict."""
        self._disputed[name] = None

    def _interpret(self, label: str, certainty: Certainty, words: str) -> tuple[str, bool, Certainty | None]:
        if not label:
            raise RecordError("label", "is empty", kind="label")
        name, is_device, stated = _classify(self.names.get(label, words or label), certainty)
        if stated in ("present", "uncertain"):
            self._first_places.setdefault(name, self.defects.place)
        return name, is_device, stated

    def _count_wording(self, label: str, certainty: Certainty, words: str, stated: Certainty | None) -> None:
        """Count a label whose own words say something else than its source does, or that name nothing."""
        if stated == certainty:
            return
        words = self.names.get(label, words or label)
        if not is_no_finding(words):
            self.defects["wording" if stated is not None and name_of(words) else "nameless"] += 1

    def state_normal(self, label: str) -> None:
        """State that the source calls the images normal; "No finding" means that in some sources, and not in others."""
        self.state(label, "absent", words=ABNORMALITY)

    def state_no_finding(self, covered: Iterable[str] = ()) -> None:
        """State that the record says "No Finding" of a closed list of labels.

        What it covers was looked for, and is absent, unless the record says of any finding that it is or may be there:
        then "No Finding" contradicts it, is counted as a conflict, and says nothing. Devices do not contradict it.

        Args:
            covered: The labels that it covers; none where it is not trusted to say what was looked for.
        """
        self._normal[self.defects.place] = None
        labels = list(covered)
        self._covered += labels
        if self.is_by_program:
            self._mined |= name_listed(labels).keys()

    def add_box(
        self,
        label: str,
        image: str,
        box: Sequence[float],
        *,
        annotator: str,
        certainty: Certainty = "present",
        automatic: bool = False,
    ) -> None:
        """Add a box: x and y of its corner at the top left, width and height, in pixels of the image."""
        on = self.image(image)
        x, y, width, height = box
        is_used = self.draw_finding(
            Drawing(label, image, "box", annotator, certainty, automatic),
            lambda: Region.from_box(x, y, width, height, height=on.height, width=on.width),
        )
        if is_used and (is_outside((x, y), on) or is_outside((x + width, y + height), on)):
            self.defects["cut"] += 1

    def add_polygons(
        self,
        label: str,
        image: str,
        rings: Sequence[ArrayLike],
        *,
        annotator: str,
        certainty: Certainty = "present",
        automatic: bool = False,
    ) -> None:
        """Add the union of closed rings of points, in pixels of the image."""
        on = self.image(image)
        self.draw_finding(
            Drawing(label, image, "polygon", annotator, certainty, automatic),
            lambda: Region.from_polygons(rings, height=on.height, width=on.width),
        )

    def add_region(
        self,
        label: str,
        image: str,
        region: Region,
        *,
        annotator: str,
        drawn: Drawn = "mask",
        certainty: Certainty = "present",
        automatic: bool = False,
    ) -> None:
        """Add a region that the reader has made itself, such as a mask."""
        self.draw_finding(Drawing(label, image, drawn, annotator, certainty, automatic), lambda: region)

    def add_anatomy(
        self,
        name: str,
        image: str,
        region: Region,
        *,
        annotator: str,
        automatic: bool = False,
        quality: float | None = None,
    ) -> None:
        """Add a structure of the body, such as "right lung"; `quality` is its source's estimate, 0 to 1."""
        drawing = Drawing(name, image, "mask", annotator, automatic=automatic)
        self.draw_anatomy(name, drawing, lambda: region, quality=quality)

    def draw_anatomy(
        self,
        name: str,
        drawing: Drawing,
        make_region: Callable[[], Region],
        *,
        quality: float | None = None,
    ) -> bool:
        """Add a structure of the body under a name of the vocabulary, with the region that a function makes.

        Returns:
            Whether the region is used.
        """
        region = make_or_empty(make_region)
        is_usable = self._is_usable(drawing.image, region)
        if is_usable:
            self._anatomy.append(
                Anatomy(
                    name=name,
                    image=drawing.image,
                    region=region,
                    annotator=drawing.annotator,
                    automatic=drawing.automatic,
                    drawn=drawing.drawn,
                    quality=quality,
                )
            )
        return is_usable

    def _is_usable(self, image: str, region: Region) -> bool:
        """Whether a region has pixels and the size of its image; counts a defect where not."""
        on = self.image(image)
        if (region.width, region.height) != (on.width, on.height):
            is_of_other_size = region is not _IMPOSSIBLE and min(on.width, on.height) > 0
            self.defects["mask size" if is_of_other_size else "region"] += 1
            return False
        if region == _empty_region(on.height, on.width):
            self.defects["region"] += 1
            return False
        return True

    def draw_finding(self, drawing: Drawing, make_region: Callable[[], Region]) -> bool:
        """Add a finding or device with the region that a function makes; returns whether the region is used."""
        thing = self.state(drawing.label, drawing.certainty)
        if thing.certainty == "absent":
            # Where what is trusted more says so, `state` has counted a conflict.
            self.defects["nothing"] += self._says_nothing(drawing)
            return False
        region = make_or_empty(make_region)
        if not self._is_usable(drawing.image, region):
            return False  # What was drawn is lost; that the source names the finding is not.
        drawn = Annotation(
            image=drawing.image,
            region=region,
            drawn=drawing.drawn,
            annotator=drawing.annotator,
            automatic=drawing.automatic,
        )
        if drawn in thing.annotations:
            self.defects["duplicate"] += 1
            return False
        thing.annotations.append(drawn)
        thing.is_by_program &= drawing.automatic
        return True

    # ---- readers whom the source compares with its truth -------------------------------------------------------------

    def compare_region(self, drawing: Drawing, region: Region | None) -> bool:
        """Add what a reader drew for comparison with the truth, which must be stated before.

        A drawing of what the truth does not call present says nothing about the study, and is counted as a conflict.

        Args:
            drawing: What was drawn, where and by whom.
            region: The region; None where the reader looked and drew nothing.

        Returns:
            Whether it is used.
        """
        thing = self._find_present(drawing.label, is_conflict=region is not None)
        if thing is None or (region is not None and not self._is_usable(drawing.image, region)):
            return False
        on = self.image(drawing.image)
        thing.comparisons.append(
            Annotation(
                image=drawing.image,
                region=region or _empty_region(on.height, on.width),
                drawn=drawing.drawn,
                annotator=drawing.annotator,
                automatic=drawing.automatic,
            )
        )
        return True

    def list_present(self) -> list[str]:
        """Names of the findings that the truth calls present."""
        return [
            thing.name
            for thing in self._things.values()
            if thing.certainty == "present" and not thing.is_device
        ]

    def compare_point(self, label: str, point: SalientPoint) -> None:
        """Add a point that a reader marked for comparison with the truth, by the rule of `compare_region`."""
        on = self.image(point.image)
        thing = self._find_present(label, is_conflict=True)
        if thing is not None and 0 <= point.x <= on.width and 0 <= point.y <= on.height:
            thing.points.append(point)
        elif thing is not None:
            self.defects["region"] += 1

    def _find_present(self, label: str, *, is_conflict: bool) -> _Thing | None:
        """What the truth calls present under a label; None where it does not, which may count as a conflict."""
        thing = self._things.get(self._interpret(label.strip(), "present", "")[0])
        if thing is not None and thing.certainty == "present":
            return thing
        self.defects["conflict"] += is_conflict
        return None

    def _says_nothing(self, drawing: Drawing) -> bool:
        """Whether the label of a region says that what it names is not there."""
        return _classify(self.names.get(drawing.label, drawing.label), drawing.certainty)[2] in (
            None,
            "absent",
        )

    # ---- the study ---------------------------------------------------------------------------------------------------

    def _add_disputed(self, assessed: Assessed) -> Assessed:
        if not self._disputed:
            return assessed
        names = tuple(sorted({*assessed.disputed, *self._disputed}))
        return msgspec.structs.replace(assessed, disputed=names)

    def _add_covered(self, assessed: Assessed) -> Assessed:
        """What was looked for, with what "No Finding" covers."""
        if not self._covered:
            return assessed
        covered = assess_labels(self._covered)
        return msgspec.structs.replace(
            assessed,
            findings="listed" if assessed.findings == "unknown" else assessed.findings,
            devices=covered.devices if assessed.devices == "unknown" else assessed.devices,
            listed=tuple(sorted({*assessed.listed, *covered.listed})),
        )

    def _dispute_near_names(self, assessed: Assessed) -> Assessed:
        recorded = {thing.name for thing in self._things.values() if thing.certainty != "absent"}
        confirmed = {name_of(ours) for ours in self.names.values()}
        meant: set[str] = set()
        for name in sorted(recorded - confirmed):
            nearest = list_nearest_terms(name)
            meant.update(*((near, *ancestors(near)) for near in nearest))
            if nearest:
                self.defects.place = self._first_places.get(name, self.defects.place)
                self.defects["near name"] += 1
        meant |= {
            name
            for name in set(assessed.listed) - confirmed
            for near in list_nearest_terms(name)
            if near in recorded or any(is_kind_of(other, near) for other in recorded)
        }
        is_open = "every" in (assessed.findings, assessed.devices)
        disputed = {name for name in meant - set(self._things) if is_open or name in assessed.listed}
        if not disputed:
            return assessed
        disputed |= set(assessed.disputed)
        return msgspec.structs.replace(assessed, disputed=tuple(sorted(disputed)))

    def _drop_normal(self) -> None:
        """Leave out that nothing is there, where the record says of a finding that it is or may be."""
        if all(thing.certainty == "absent" or thing.is_device for thing in self._things.values()):
            return
        for place in self._normal:
            self.defects.place = place
            self.defects["conflict"] += 1
        self._normal.clear()
        self._covered.clear()
        self._mined.clear()
        general = self._things.get(ABNORMALITY)
        if general is not None and general.certainty == "absent":
            del self._things[ABNORMALITY]

    def _name_by_program(self, listed: Iterable[str]) -> tuple[str, ...]:
        """Names of which only a program says whether they are present."""
        names = {*self._mined, *name_listed(listed)} - self._things.keys()
        names |= {thing.name for thing in self._things.values() if thing.is_by_program}
        return tuple(sorted(names))

    def finish(self, *, assessed: Assessed | None = None, mined: Iterable[str] = ()) -> Study | Repaired:
        """The study, with its defects where there are any.

        Args:
            assessed: What was looked for.
            mined: Labels of it for which a program looked, and no person.

        A label that says that nothing is there, such as "Normal" or "No finding", is left out and counted as a conflict
        where a finding is present or uncertain. Devices do not contradict it.

        A known name that an unknown one is close to does not count as absent: "pneumona" may be a misspelt pneumonia,
        so that nobody knows of pneumonia in that study, nor of "pneumona" in a study with pneumonia. A name that the
        user has mapped is meant as it is written.
        """
        for name in self._disputed:
            self._things.pop(name, None)
        self._drop_normal()
        known = self._dispute_near_names(self._add_covered(assessed or Assessed()))
        findings, devices = (
            tuple(_number(kind, letter, things))
            for kind, letter, things in (
                (Finding, "f", [thing for thing in self._things.values() if not thing.is_device]),
                (Device, "d", [thing for thing in self._things.values() if thing.is_device]),
            )
        )
        study = Study(
            id=self.id,
            patient=self.patient,
            source=self.source,
            images=tuple(self.images),
            assessed=msgspec.structs.replace(
                self._add_disputed(known), by_program=self._name_by_program(mined)
            ),
            findings=findings,
            devices=devices,
            anatomy=tuple(self._anatomy),
            **self.facts,
        )
        if not self.defects.total() and not self.unmapped:
            return study
        return Repaired(
            record=study,
            number=self.number,
            file=self.file,
            defects=dict(+self.defects),
            unmapped=self.unmapped,
            places=self.defects.places,
        )


def make_or_empty(make_region: Callable[[], Region]) -> Region:
    """A region; an empty one, which is counted, where its numbers are impossible."""
    try:
        return make_region()
    except RegionError:
        return _IMPOSSIBLE


def is_outside(point: Sequence[float], on: Image) -> bool:
    """Whether a point lies outside of an image, by more than a rounding error."""
    x, y = point
    return not (-_BORDER <= x <= on.width + _BORDER and -_BORDER <= y <= on.height + _BORDER)


@lru_cache(maxsize=64)
def _empty_region(height: int, width: int) -> Region:
    """No pixel of an image; comparing regions is cheaper than decoding them."""
    return Region.empty(height, width)


def _number(kind: Any, letter: str, things: Iterable[_Thing]) -> Iterable[Any]:  # noqa: ANN401 - Finding or Device
    for place, thing in enumerate(things, start=1):
        votes = (
            {"stated_by": tuple(dict.fromkeys(thing.stated_by))}
            if thing.stated_by and kind is Finding
            else {}
        )
        yield kind(
            id=f"{letter}{place}",
            name=thing.name,
            certainty=thing.certainty,
            label=thing.label if thing.label != thing.name else None,
            annotations=tuple(thing.annotations),
            comparisons=tuple(thing.comparisons),
            points=tuple(thing.points),
            **votes,
        )


def _describe_file(path: Path, key: str, view: View, spacing_mm: tuple[float, float] | None) -> Image:
    if not path.exists():
        raise RecordError("image", f"{key!r} is missing", kind="image missing")
    try:
        header = read_header(path)
    except CarinaError as error:
        raise RecordError("image", str(error), kind="image") from error
    return Image(
        key=key, view=view, width=header.width, height=header.height, bits=header.bits, spacing_mm=spacing_mm
    )
