"""Scene graphs of the silver set: boxes by a detector, attributes and comparisons by a program that read reports."""

import ast
import datetime
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from carina.sources._archives import Archive
from carina.sources._json import decode_as, decode_with_nan
from carina.sources._mimic_images import read_mimic_id
from carina.sources._record import RecordError, SourceError, printable
from carina.sources._values import read_sex, read_view
from carina.sources.chest_imagenome.graph import TRENDS, Box, Comparison, Graph
from carina.studies.vocabulary import Severity

ARCHIVE: Final = "silver_dataset/scene_graph.zip"
ENDING: Final = "_SceneGraph.json"
MAX_GRAPH: Final = 1 << 24
"""Bytes of one graph: a hundred times the usual."""
_SEVERITIES: Final[dict[str, Severity]] = {
    "severity|yes|mild": "mild", "severity|yes|moderate": "moderate", "severity|yes|severe": "severe",
}  # fmt: skip
_DATE: Final = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)")
_CORNERS: Final = ("original_x1", "original_y1", "original_x2", "original_y2")
_Texts = list[str] | str
T = TypeVar("T")


class _Object(msgspec.Struct):
    bbox_name: str
    original_x1: float | None = None
    original_y1: float | None = None
    original_x2: float | None = None
    original_y2: float | None = None


class _Attribute(msgspec.Struct):
    """Attributes of one structure; the lists are aligned by sentence."""

    bbox_name: str
    attributes: list[list[str]] = []
    severity_cues: list[list[str]] = []


class _Relationship(msgspec.Struct):
    object_id: str
    relationship_names: _Texts = []
    attributes: _Texts = []


class _SceneGraph(msgspec.Struct):
    image_id: str
    patient_id: int | float | str
    study_id: int | float | str
    viewpoint: str | None = None
    gender: str | None = None
    age_decile: object = None
    reason_for_exam: str | None = None
    StudyOrder: int | float | None = None
    StudyDateTime: str | int | float | None = None
    objects: list[_Object] = []
    attributes: list[_Attribute] = []
    relationships: list[_Relationship] = []


class _Header(msgspec.Struct):
    study_id: int | float | str


def find_archive(path: Path) -> Archive:
    """The scene graphs below the folder of the data set: the zip file, or the folder that it was unpacked into.

    Raises:
        SourceError: There are none.
    """
    zipped = path / ARCHIVE
    for found in (path, zipped, zipped.with_suffix("")):
        if found.suffix == ".zip" and found.is_file():
            return Archive(found)
        if found.name == zipped.stem and found.is_dir():
            return Archive(found)
    raise SourceError(f"{zipped}: missing; put scene_graph.zip of Chest ImaGenome there, or unpack it there")


def list_graphs(archive: Archive) -> dict[str, str]:
    """Members of the archive by the id of their image."""
    names = (name for name in archive.names() if name.endswith(ENDING))
    return {name.rsplit("/", 1)[-1].removesuffix(ENDING): name for name in names}


def read_graph(archive: Archive, member: str) -> Graph:
    """The graph of one image.

    Raises:
        RecordError: It is not there, or is not a scene graph.
    """
    scene = _decode(archive.read(member, max_bytes=MAX_GRAPH), _SceneGraph)
    graph = Graph(facts=_read_facts(scene))
    if scene.age_decile is not None:
        graph.unmapped["age_decile"] = None
    graph.boxes = [
        Box(found.bbox_name, [getattr(found, corner) for corner in _CORNERS]) for found in scene.objects
    ]
    for structure in scene.attributes:
        _add_attributes(graph, structure)
    for relationship in scene.relationships:
        graph.comparisons.extend(_compare(graph, relationship))
    return graph


def find_previous_studies(archive: Archive, member: str, graph: Graph) -> dict[str, str | None]:
    """Studies of the images that a graph compares with, from their own graphs; None for those without."""
    folder = member.rpartition("/")[0]
    own = graph.facts["study"]
    studies: dict[str, str | None] = {}
    for previous in dict.fromkeys(comparison.previous for comparison in graph.comparisons):
        name = f"{folder}/{previous}{ENDING}" if folder else f"{previous}{ENDING}"
        try:
            header = _decode(archive.read(name, max_bytes=MAX_GRAPH), _Header)
            study = f"s{read_mimic_id(header.study_id, 'study_id')}"
        except RecordError:
            study = own
        studies[previous] = None if study == own else study
    return studies


def _decode(content: bytes, kind: type[T]) -> T:
    """A record; some were written with a byte order mark, and some with NaN."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    try:
        return decode_as(content, kind)
    except RecordError:
        value = decode_with_nan(content)
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        reason, _, place = str(error).partition(" - at `$")
        raise RecordError(place.strip("`."), printable(reason, longest=200), kind="json") from error


def _read_facts(scene: _SceneGraph) -> dict[str, Any]:
    order = scene.StudyOrder
    return {
        "image": scene.image_id.removesuffix(".dcm"),
        "patient": f"p{read_mimic_id(scene.patient_id, 'patient_id')}",
        "study": f"s{read_mimic_id(scene.study_id, 'study_id')}",
        "view": read_view(scene.viewpoint or ""),
        "sex": read_sex(scene.gender or ""),
        "indication": (scene.reason_for_exam or "").strip() or None,
        "order": int(order) - 1 if order is not None and order >= 1 and order == int(order) else None,
        "date": _read_date(scene.StudyDateTime),
    }


def _read_date(text: object) -> datetime.date | None:
    match = _DATE.match(str(text))
    try:
        return datetime.date(*map(int, match.groups())) if match else None
    except ValueError:
        return None


def _add_attributes(graph: Graph, structure: _Attribute) -> None:
    for number, sentence in enumerate(structure.attributes):
        cues = structure.severity_cues[number] if number < len(structure.severity_cues) else []
        grades = {_SEVERITIES[cue] for cue in cues if cue in _SEVERITIES}
        # Which of several findings a sentence grades is not known.
        findings = [text for text in sentence if text.startswith(("anatomicalfinding|yes", "disease|yes"))]
        grade = grades.pop() if len(grades) == 1 and len(findings) == 1 else None
        for text in sentence:
            graph.add_attribute(structure.bbox_name, text, grade if text in findings else None)


def _compare(graph: Graph, relationship: _Relationship) -> Iterator[Comparison]:
    """The trend that a relationship states, where it is one; of the findings that are present."""
    words = [text.split("|") for text in _read_list(relationship.relationship_names)]
    trends = {word[2] for word in words if word[:2] == ["comparison", "yes"] and len(word) == 3}
    known = {TRENDS[trend] for trend in trends if trend in TRENDS}
    previous = relationship.object_id.partition("_")[0]
    labels = []
    for text in _read_list(relationship.attributes):
        parts = [part.strip() for part in text.split("|")]
        if len(parts) == 3 and parts[0] in ("anatomicalfinding", "disease") and parts[1] == "yes":
            labels.append(parts[2])
    if labels and len(known) > 1:
        graph.defects["second trend"] += 1
    elif labels and known:
        yield Comparison(tuple(labels), known.pop(), previous)


def _read_list(texts: _Texts) -> Sequence[str]:
    """A list, or a text that holds one."""
    if not isinstance(texts, str):
        return texts
    try:
        found = ast.literal_eval(texts)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return [texts]
    return [str(one) for one in found] if isinstance(found, list | tuple) else [texts]
