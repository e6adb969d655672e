"""A study in the making: what most readers do with images, labels and drawn regions, done once."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec
from numpy.typing import ArrayLike

from carina.sources._defects import DefectCounts, RecordPlace
from carina.sources._draft_images import DraftImages
from carina.sources._draft_statements import DraftStatements, DraftThing
from carina.sources._labels import classify_label
from carina.sources._record import RecordError
from carina.sources._source import Item, Repaired, Skipped
from carina.store.errors import RegionError
from carina.studies.model import Anatomy, Annotation, Assessed, Device, Finding, Image, SalientPoint, Study
from carina.studies.region import Region
from carina.studies.vocabulary import Certainty, Drawn

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


_IMPOSSIBLE: Final = Region.empty(1, 1)
"""Stands for a region whose numbers are impossible."""


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


class Drawing(NamedTuple):
    """What is known about a region beside its pixels."""

    label: str
    image: str
    drawn: Drawn
    annotator: str
    certainty: Certainty = "present"
    automatic: bool = False


class StudyDraft(DraftImages, DraftStatements):
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
        DraftImages.__init__(self)
        DraftStatements.__init__(self, DefectCounts(RecordPlace(file, number)), names or {})
        self.id, self.patient, self.source, self.number, self.file = study_id, patient, source, number, file
        self.facts: dict[str, Any] = {}
        """Other fields of the study: age, sex, split, report and so on."""
        self.unmapped: tuple[str, ...] = ()
        """Fields of the record that have no place in Carina."""
        self._anatomy: list[Anatomy] = []

    # ---- regions -----------------------------------------------------------------------------------------------------

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

    def _find_present(self, label: str, *, is_conflict: bool) -> DraftThing | None:
        """What the truth calls present under a label; None where it does not, which may count as a conflict."""
        thing = self._things.get(self._interpret(label.strip(), "present", "")[0])
        if thing is not None and thing.certainty == "present":
            return thing
        self.defects["conflict"] += is_conflict
        return None

    def _says_nothing(self, drawing: Drawing) -> bool:
        """Whether the label of a region says that what it names is not there."""
        return classify_label(self.names.get(drawing.label, drawing.label), drawing.certainty)[2] in (
            None,
            "absent",
        )

    # ---- the study ---------------------------------------------------------------------------------------------------

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
        self._drop_normal()
        for name in self._disputed:
            self._things.pop(name, None)
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


def _number(kind: Any, letter: str, things: Iterable[DraftThing]) -> Iterable[Any]:  # noqa: ANN401 - Finding or Device
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
