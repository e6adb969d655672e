"""Reading a study set: what can be asked of studies beyond what any set answers (`carina.store.view`)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, get_args

from carina.store import Choice, Column, Distinct, OpenSet
from carina.store.arguments import check_arguments
from carina.store.results import Location, as_path
from carina.studies.image_files import ImageView
from carina.studies.model import Image, Study
from carina.studies.pixels import Pixels, read_pixels
from carina.studies.store import STUDIES, Manifest
from carina.studies.terms import Kind, UnknownName, list_unknown_names
from carina.studies.vocabulary import Certainty, Split, View

if TYPE_CHECKING:
    import polars as pl

_COLUMNS: Final = {
    "patient": Column("patient"),
    "split": Column("split", get_args(Split)),
    "finding": Column("findings.list.element.name"),
    "certainty": Column("findings.list.element.certainty", get_args(Certainty)),
    "view": Column("images.list.element.view", get_args(View)),
}


_FRAME: Final = (
    "id",
    "patient",
    "source",
    "order",
    "date",
    "split",
    "age",
    "sex",
    "images.list.element.view",
    "findings.list.element.name",
    "findings.list.element.certainty",
    "devices.list.element.name",
    "devices.list.element.certainty",
)
_NAMES: Final = (
    "findings.list.element.name",
    "devices.list.element.name",
    "anatomy.list.element.name",
    "assessed.listed.list.element",
)


@dataclass(frozen=True)
class PatientInSplits:
    """A patient of whom studies are in different splits, so that a model may have been trained on its test cases."""

    patient: str
    studies: Mapping[str, str]
    """By split, the id of one study of the patient."""

    @property
    def message(self) -> str:
        """The patient and the splits, with a study of each."""
        splits = " and ".join(f"{split!r} with study {study!r}" for split, study in self.studies.items())
        return f"patient {self.patient!r} is in {splits}: put all studies of a patient into one split"


@check_arguments
def open_studies(
    location: Location, images: Location | None = None, *, verify: bool = True, verify_images: bool = True
) -> "Studies":
    """Open a study set; only its manifest is read.

    Args:
        location: Directory of the set, or its `studies.json`. Opened studies are returned as they are.
        images: Directory of the images, if they have moved.
        verify: Whether to compare each part with its checksum when it is first read; False for a set that was
            verified before.
        verify_images: Whether to compare each image file with the SHA-256 that its study states, when it is first
            opened.

    Returns:
        The study set; studies are read when they are asked for.

    Raises:
        StudySetError: There is no study set, or a newer Carina wrote it.

    Example:
        >>> studies = open_studies("studies")
        >>> [study.id for study in studies.where(finding="edema")]
        ['p000013-s1', 'p000016-s4']
    """
    if isinstance(location, Studies) and images is None:
        return location
    root = None if images is None else as_path(images)
    opened = OpenSet(STUDIES, as_path(location), verify=verify, image_root=root, verify_images=verify_images)
    return Studies(opened)


@dataclass(frozen=True, eq=False, repr=False)
class Studies(ImageView[Study, Manifest]):
    """A study set, or the part of it that meets the conditions given to `where`.

    Iterate over it to get `Study` records, or look one up by id.

    Example:
        >>> studies = open_studies("studies")
        >>> studies
        Studies('studies', studies=40, patients=18, images=53)
        >>> studies["p000013-s1"].patient
        'p000013'
    """

    def to_frame(self) -> "pl.DataFrame":
        """One row a study: ids, date, split, age and sex, the number of images, and names of what is there.

        The columns `present`, `uncertain` and `absent` list findings by name, `devices` the devices that are present;
        `views` lists the view of each image.
        """
        import polars as pl  # noqa: PLC0415 - slow to import

        def named(things: str, certainty: str) -> pl.Expr:
            element = pl.element()
            matching = element.struct.field("certainty") == certainty
            names = pl.col(things).list.eval(element.filter(matching).struct.field("name"))
            return names.list.unique(maintain_order=True)

        return self._frame(_FRAME).select(
            "id",
            "patient",
            "source",
            "order",
            "date",
            "split",
            "age",
            "sex",
            pl.col("images").list.len().alias("images"),
            pl.col("images").list.eval(pl.element().struct.field("view")).alias("views"),
            *(named("findings", certainty).alias(certainty) for certainty in get_args(Certainty)),
            named("devices", "present").alias("devices"),
        )

    def _counts(self) -> dict[str, object]:
        counts = self.manifest.counts
        return {"studies": counts.studies, "patients": counts.patients, "images": counts.images}

    def where(
        self,
        *,
        patient: Choice | None = None,
        split: Choice | None = None,
        finding: Choice | None = None,
        certainty: Choice | None = None,
        view: Choice | None = None,
    ) -> "Studies":
        """Studies that meet all conditions; each is one value, or a list of values of which any may match.

        A `finding` is meant to be present unless `certainty` says otherwise.
        """
        if finding is not None and certainty is None:
            certainty = "present"
        given = {
            "patient": patient,
            "split": split,
            "finding": finding,
            "certainty": certainty,
            "view": view,
        }
        return self._with_filter(_COLUMNS, given)

    def prior(self, study: Study) -> Study | None:
        """The study before this one; None where there is none, or the set does not hold it.

        Looked up in the whole set: a prior need not meet the conditions of this view.
        """
        return self._neighbour(study.prior)

    def later(self, study: Study) -> Study | None:
        """The study after this one, in the same way as `prior`."""
        return self._neighbour(study.later)

    def pixels(self, image: Image) -> Pixels:
        """The stored grey values of an image, of shape (height, width)."""
        return self._read_image(image, read_pixels)

    def unknown_names(self) -> tuple[UnknownName, ...]:
        """Names of findings, devices and anatomy that are not known, in alphabetical order; see `carina.list_terms`."""
        counts: Counter[tuple[Kind, str]] = Counter()
        for _, _, row in self._scan(_NAMES):
            findings, devices, anatomy = (
                _texts(named.get("name") for named in row.get(field) or () if named)
                for field in ("findings", "devices", "anatomy")
            )
            listed = _texts((row.get("assessed") or {}).get("listed") or ())  # older sets do not have it
            counts.update(
                list_unknown_names(findings, devices, anatomy, listed)
            )  # what is only looked for adds 0
        return tuple(UnknownName(kind, name, int(times)) for (kind, name), times in sorted(counts.items()))

    def patients_in_several_splits(self) -> tuple[PatientInSplits, ...]:
        """Patients of whom studies are in different splits; studies without a split do not count.

        Sixteen bytes a patient are kept in memory; only patients who may be in several splits are looked at again.
        """
        pairs, patients, suspects = Distinct(), Distinct(), set[int]()
        for part in self.by_part():
            placed = {(patient, split) for _, patient, split in part._list_splits()}
            texts = {f"{split} {patient}": patient for patient, split in placed}
            known = pairs.add(texts)
            suspects |= patients.add([patient for text, patient in texts.items() if hash(text) not in known])
        found: dict[str, dict[str, str]] = {}
        for part in self.by_part() if suspects else ():
            for study, patient, split in part._list_splits():
                if hash(patient) in suspects:
                    found.setdefault(patient, {}).setdefault(split, study)
        return tuple(
            PatientInSplits(patient, studies)
            for patient, studies in sorted(found.items())
            if len(studies) > 1
        )

    def _list_splits(self) -> Iterator[tuple[str, str, str]]:
        """Id, patient and split of the studies that have a split."""
        for _, _, row in self._scan(("id", "patient", "split")):
            study, patient, split = row.get("id"), row.get("patient"), row.get("split")
            if isinstance(study, str) and isinstance(patient, str) and isinstance(split, str):
                yield study, patient, split

    def _neighbour(self, study_id: str | None) -> Study | None:
        return None if study_id is None else self._whole()._find(study_id)


def _texts(values: Iterable[object]) -> list[str]:
    """The values that are text: what else stands there is a problem that `check` reports."""
    return [value for value in values if isinstance(value, str)]
