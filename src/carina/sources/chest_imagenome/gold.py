"""The gold set: boxes, attributes and comparisons of some images, checked by readers, in tables."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from carina.sources._record import RecordError, SourceError
from carina.sources._source import Skipped
from carina.sources._tables import Row, read_rows
from carina.sources.chest_imagenome.graph import TRENDS, Box, Comparison, Graph

FOLDER: Final = "gold_dataset"
BOXES: Final = "gold_bbox_coordinate_annotations_1000images.csv"
ATTRIBUTES: Final = "gold_object_attribute_with_coordinates.txt"
COMPARISONS: Final = "gold_object_comparison_with_coordinates.txt"
_CORNERS: Final = ("original_x1", "original_y1", "original_x2", "original_y2")
_CONTEXTS: Final = {"yes": "yes", "no": "no"}
_SEVERAL: Final = ";;"
"""Between several values of a field."""


def find_tables(path: Path) -> dict[str, Path]:
    """The tables by name.

    Raises:
        SourceError: One is missing.
    """
    found = {name: path / FOLDER / name for name in (BOXES, ATTRIBUTES, COMPARISONS)}
    for file in found.values():
        if not file.is_file():
            raise SourceError(f"{file}: missing; put the tables of the gold set of Chest ImaGenome there")
    return found


def read_gold(path: Path, graphs: dict[str, Graph]) -> Iterator[Skipped]:
    """Fill in the graphs of all images, by id; yield the rows that cannot be used."""
    tables = find_tables(path)
    columns: Mapping[str, tuple[str, tuple[str, ...]]] = {
        BOXES: (",", ("image_id", "bbox_name", *_CORNERS)),
        ATTRIBUTES: ("\t", ("image_id", "bbox", "attribute", "context", "categoryID")),
        COMPARISONS: ("\t", ("bbox", "comparison", "attribute", "current_image_id", "previous_image_id")),
    }
    add = {BOXES: _add_box, ATTRIBUTES: _add_attribute, COMPARISONS: _add_comparison}
    for name, (delimiter, needed) in columns.items():
        for row in read_rows(tables[name], needed, delimiter=delimiter):
            try:
                add[name](row, graphs)
            except RecordError as error:
                yield Skipped.from_error(error, row.place)


def _find_graph(row: Row, column: str, graphs: dict[str, Graph]) -> Graph:
    """The graph of an image, whose id some tables write with .dcm."""
    return graphs.setdefault(row.required(column).removesuffix(".dcm"), Graph())


def _add_box(row: Row, graphs: dict[str, Graph]) -> None:
    box = Box(row.required("bbox_name"), [row.optional_number(corner) for corner in _CORNERS])
    _find_graph(row, "image_id", graphs).boxes.append(box)


def _add_attribute(row: Row, graphs: dict[str, Graph]) -> None:
    text = "|".join((row.required("categoryID"), row.choice("context", _CONTEXTS), row.required("attribute")))
    _find_graph(row, "image_id", graphs).add_attribute(row.required("bbox"), text)


def _add_comparison(row: Row, graphs: dict[str, Graph]) -> None:
    words = [word.strip() for word in row.required("comparison").split(_SEVERAL)]
    known = {TRENDS[word] for word in words if word in TRENDS}
    graph = _find_graph(row, "current_image_id", graphs)
    if len(known) != 1:
        graph.defects["second trend"] += 1
        return
    labels = tuple(label for one in row.required("attribute").split(_SEVERAL) if (label := one.strip()))
    previous = row.required("previous_image_id").removesuffix(".dcm")
    graph.comparisons.append(Comparison(labels, known.pop(), previous))
