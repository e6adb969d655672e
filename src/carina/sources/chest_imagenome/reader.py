"""The source `chest-imagenome`: its tables of images, its studies, and how it is joined to those of MIMIC-CXR-JPG."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

from msgspec import Meta

from carina.sources._added import ADDED_DEFECTS, Addition, add_to_study, unwrap, wrap
from carina.sources._archives import Archive
from carina.sources._defects import RecordPlace
from carina.sources._draft_images import ImageFolder, MissingImages
from carina.sources._joining import Join
from carina.sources._mimic_images import read_mimic_id
from carina.sources._record import RecordError, SourceError
from carina.sources._source import Inputs, Item, Skipped, Stream, source
from carina.sources._study_draft import DEFECTS, StudyDraft, make_or_skip
from carina.sources._tables import RowPlace, read_rows
from carina.sources._values import read_view
from carina.sources.chest_imagenome import gold, silver
from carina.sources.chest_imagenome.graph import DEFECTS as GRAPH_DEFECTS
from carina.sources.chest_imagenome.graph import Graph, describe_image
from carina.studies.model import Assessed, Image
from carina.studies.vocabulary import Split, View

NAME: Final = "chest-imagenome"
TABLES: Final[Mapping[str, Split | None]] = {
    "silver_dataset/splits/train.csv": "train",
    "silver_dataset/splits/valid.csv": "val",
    "silver_dataset/splits/test.csv": "test",
    "silver_dataset/splits/images_to_avoid.csv": None,
    "utils/cxr-record-list_view.csv": None,
}
"""Tables of images; images of the gold set are in no split."""
DataSet = Literal["silver", "gold"]
_ANNOTATORS: Final[Mapping[DataSet, str]] = {
    "silver": "Chest ImaGenome, by program",
    "gold": "readers of Chest ImaGenome",
}


class _Listed(NamedTuple):
    """An image as the tables list it."""

    patient: str
    study: str
    view: View
    split: Split | None


class _Picture(NamedTuple):
    """An image of a study, and its graph or where that is."""

    name: str
    view: View
    graph: Graph | str
    previous: dict[str, str | None]
    """Studies of the images that a graph of the gold set compares with."""


class _Folders(NamedTuple):
    """Where files are, and what to do where an image is not there."""

    images: Path
    graphs: Archive | None
    missing: MissingImages


def _inputs(path: Path) -> Inputs:
    files = {name: path / name for name in (silver.ARCHIVE, *TABLES)}
    tables = {name: path / gold.FOLDER / name for name in (gold.BOXES, gold.ATTRIBUTES, gold.COMPARISONS)}
    return {name: file for name, file in {**files, **tables}.items() if file.is_file()}


@lru_cache(maxsize=2)
def _list_members(path: Path) -> tuple[str, ...]:
    return tuple(silver.list_graphs(silver.find_archive(path)).values())


def _index(path: Path) -> Iterator[tuple[str, RowPlace] | str]:
    for number, image in enumerate(silver.list_graphs(silver.find_archive(path))):
        yield image, RowPlace(number, 0, 0)


def _make_addition(path: Path, places: Sequence[RowPlace], image: Image) -> Addition:
    archive, member = silver.find_archive(path), _list_members(path)[places[0].number]
    graph = silver.read_graph(archive, member)
    previous = silver.find_previous_studies(archive, member, graph)
    addition = describe_image(graph, image, previous, annotator=_ANNOTATORS["silver"], automatic=True)
    return replace(addition, place=RecordPlace(f"{archive.path}: {member}"))


@source(
    name=NAME,
    title="Chest ImaGenome: scene graphs of MIMIC-CXR-JPG",
    needs=f"a folder with {silver.ARCHIVE} and silver_dataset/splits/*.csv (with --dataset gold: the three tables of "
    f"{gold.FOLDER}/ and one of images), and the folder of MIMIC-CXR-JPG by --images; with --missing-images keep, "
    "boxes of images that are not there are left out.",
    tree=f"""
    silver_dataset/
      scene_graph.zip    or the folder scene_graph/
      splits/
        train.csv
        valid.csv
        test.csv
        images_to_avoid.csv
    gold_dataset/        with --dataset gold
      {gold.BOXES}
      {gold.ATTRIBUTES}
      {gold.COMPARISONS}
    files/               or --images with the folder of MIMIC-CXR-JPG
    """,
    licence="PhysioNet Credentialed Health Data License 1.5.0",
    truth=("automatic anatomy boxes", "automatic attributes", "automatic comparisons", "gold by readers"),
    url="https://physionet.org/content/chest-imagenome/1.0.0/",
    citation="Wu JT, Agu NN, Lourentzou I, et al. Chest ImaGenome Dataset for Clinical Reasoning. NeurIPS Datasets and "
    "Benchmarks 2021.",
    inputs=_inputs,
    defects={**DEFECTS, **ADDED_DEFECTS, **GRAPH_DEFECTS},
    unit="studies",
    join=Join(key="dicom_id", index=_index, make=_make_addition),
)
def read_chest_imagenome(
    path: Path,
    *,
    dataset: Annotated[
        DataSet,
        Meta(description="silver: all frontal images, by programs; gold: some images, checked by readers."),
    ] = "silver",
    missing_images: MissingImages = "skip",
    images: ImageFolder = None,
) -> Stream:
    """Read one study of MIMIC a study, with the images that have graphs."""
    listed: dict[str, _Listed] = {}
    pictures: dict[str, list[_Picture]] = {}
    yield from _read_tables(path, listed)
    if dataset == "gold":
        folders = _Folders(images or path, None, missing_images)
        graphs: dict[str, Graph] = {}
        yield from gold.read_gold(path, graphs)
        yield from _skip_unlisted(graphs, listed, path / gold.FOLDER)
        pictures = _group_gold(graphs, listed)
    else:
        archive = silver.find_archive(path)
        folders = _Folders(images or path, archive, missing_images)
        members = silver.list_graphs(archive)
        yield from _skip_unlisted(members, listed, archive.path)
        yield from _skip_missing(members, listed, archive.path)
        for name, found in listed.items():
            if name in members:
                pictures.setdefault(found.study, []).append(_Picture(name, found.view, members[name], {}))
    for number, (study, own) in enumerate(pictures.items(), start=1):
        first = listed[own[0].name]
        yield partial(make_or_skip, _make_study, f"{path}: {study}", study, folders, number, first, own)


# ---- tables ---------------------------------------------------------------------------------------------------------


def _read_tables(path: Path, listed: dict[str, _Listed]) -> Iterator[Skipped]:
    """Fill in the images; yield the rows that cannot be used."""
    tables = {path / name: split for name, split in TABLES.items() if (path / name).is_file()}
    if not tables:
        raise SourceError(
            f"{path / next(iter(TABLES))}: missing; put the tables of splits of Chest ImaGenome there"
        )
    for table, split in tables.items():
        for row in read_rows(table, ("dicom_id", "subject_id", "study_id")):
            try:
                found = _Listed(
                    patient=f"p{read_mimic_id(row.required('subject_id'), 'subject_id')}",
                    study=f"s{read_mimic_id(row.required('study_id'), 'study_id')}",
                    view=read_view(row.values.get("ViewPosition", "")),
                    split=split,
                )
                listed.setdefault(row.required("dicom_id").removesuffix(".dcm"), found)
            except RecordError as error:
                yield Skipped.from_error(error, row.place)


def _skip_unlisted(
    names: Mapping[str, object], listed: Mapping[str, _Listed], place: Path
) -> Iterator[Skipped]:
    unknown = sum(name not in listed for name in names)
    if unknown:
        reason = f"{unknown:,} of {len(names):,} images are in no table of images: their studies are unknown"
        yield Skipped(place=str(place), field="image_id", reason=reason, kind="not joined")


def _skip_missing(
    members: Mapping[str, str], listed: Mapping[str, _Listed], place: Path
) -> Iterator[Skipped]:
    for name, found in listed.items():
        if name not in members and found.split is not None:
            reason = f"there is no {name}{silver.ENDING}"
            yield Skipped(
                place=str(place), field="image_id", reason=reason, kind="no graph", study=found.study
            )


def _group_gold(graphs: Mapping[str, Graph], listed: Mapping[str, _Listed]) -> dict[str, list[_Picture]]:
    pictures: dict[str, list[_Picture]] = {}
    for name, graph in graphs.items():
        if name not in listed:
            continue
        view, study = listed[name].view, listed[name].study
        previous: dict[str, str | None] = {}
        for one in {comparison.previous for comparison in graph.comparisons}:
            other = listed[one].study if one in listed else study
            previous[one] = None if other == study else other
        pictures.setdefault(study, []).append(_Picture(name, view, graph, previous))
    return pictures


# ---- studies --------------------------------------------------------------------------------------------------------


def _make_study(folders: _Folders, number: int, listed: _Listed, pictures: Sequence[_Picture]) -> Item:
    draft = StudyDraft(listed.study, patient=listed.patient, source=NAME, number=number)
    draft.facts = {"split": listed.split}
    additions = [_add_picture(draft, folders, listed, picture) for picture in pictures]
    draft.facts["prior"] = next((one.prior for one in additions if one.prior is not None), None)
    item = draft.finish(assessed=Assessed(text=True))
    made, defects = unwrap(item)
    for addition in additions:
        made = add_to_study(made, addition, defects)
    return wrap(item, made, defects, RecordPlace(number=number))


def _add_picture(draft: StudyDraft, folders: _Folders, listed: _Listed, picture: _Picture) -> Addition:
    """Add an image to a study; returns what its graph says."""
    graph, view, previous = picture.graph, picture.view, picture.previous
    if not isinstance(graph, Graph):
        assert folders.graphs is not None  # noqa: S101 - of the silver set
        member, graph = graph, silver.read_graph(folders.graphs, graph)
        ids = tuple(graph.facts[name] for name in ("patient", "study", "image"))
        if ids != (listed.patient, listed.study, picture.name):
            raise RecordError("image_id", f"{member} is of {', '.join(ids)}, unlike the tables", kind="id")
        previous = silver.find_previous_studies(folders.graphs, member, graph)
        draft.facts |= {name: graph.facts[name] for name in ("sex", "indication", "order", "date")}
        view = graph.facts["view"]
    draft.unmapped = tuple(dict.fromkeys([*draft.unmapped, *graph.unmapped]))
    key = f"files/{listed.patient[:3]}/{listed.patient}/{listed.study}/{picture.name}.jpg"
    image = draft.find_image(folders.images, (key,), view, folders.missing)
    is_silver = folders.graphs is not None
    annotator = _ANNOTATORS["silver" if is_silver else "gold"]
    return describe_image(graph, image, previous, annotator=annotator, automatic=is_silver)
