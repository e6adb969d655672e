"""Small files in the layouts of published data sets, and what the import makes of them."""

import csv
import json
from pathlib import Path

import numpy as np

from carina.sources import import_source
from carina.studies import open_studies, write_png

REAL = Path(__file__).parents[3] / "shared" / "data"
"""Real data beside the clone; never copied into it."""


def write_text(path, *lines, end="\n"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(f"{line}{end}" for line in lines).encode())
    return path


def write_json(path, value):
    return write_text(path, json.dumps(value))


def write_image(path, width, height):
    path.parent.mkdir(parents=True, exist_ok=True)
    write_png(path, np.zeros((height, width), np.uint8))
    return path


def read_studies(name, path, out, *, images=None, **options):
    """Import a source; its studies by id, and the result of the import."""
    imported = import_source(name, path, out, options=options, images=images, workers=1)
    studies = {} if imported.is_empty else {study.id: study for study in open_studies(out)}
    return studies, imported


def skips(imported):
    """What was skipped: study, kind, message without the folder."""
    return [(item.study, item.kind, item.message.rsplit("/", 1)[-1]) for item in imported.skipped]


def defects(imported):
    return {name: count.times for name, count, _ in imported.defects}


def boxes(finding):
    """Annotator and box of every region of a finding."""
    return [(drawn.annotator, drawn.drawn, drawn.region.bbox) for drawn in finding.annotations]


def defect_rows(imported):
    """What `defects.csv` lists: defect, record, file and row."""
    with (imported.path / "defects.csv").open(newline="") as table:
        return [(row["defect"], row["record"], row["file"], row["row"]) for row in csv.DictReader(table)]
