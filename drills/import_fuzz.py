"""Damage small data sets of every source of studies, in thousands of ways, and import them.

Promised: what `drills/fuzz.py` promises. A damaged data set is refused with a sentence, or it is imported and
`carina check` accepts the study set: no traceback, no hang, no file opened outside of the given paths.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fuzz
import mutations
from carina.studies import Region, write_png
from common import Tally, main
from fuzz import Target

INPUTS: Final = 20_000
SHORT: Final = 60
WIDTH, HEIGHT = 40, 32
NIH_SIDE: Final = 1024
_MASK: Final = Region.from_box(10, 8, 12, 10, height=HEIGHT, width=WIDTH)
_JSON: Final = (mutations.damage_json,) * 4 + (mutations.damage_bytes, mutations.replace_by_oddity)
_CSV: Final = (mutations.damage_csv,) * 4 + (mutations.damage_words, mutations.replace_by_oddity)
_WORDS: Final = (mutations.damage_words,) * 4 + (mutations.damage_bytes, mutations.replace_by_oddity)
_YAML: Final = (mutations.damage_yaml, mutations.damage_words, mutations.replace_by_oddity)
_PARQUET: Final = (mutations.damage_table, mutations.damage_columns, mutations.damage_bytes)
_IMAGE: Final = (mutations.damage_image,)


def _target(
    name: str, files: str, damages: tuple[fuzz.Damage, ...], *commands: str, weight: int = 4
) -> Target:
    imports = tuple(f"import {command} -o out --workers 1" for command in commands)
    return Target(name, files, damages, imports, checks="out", weight=weight)


_TABLE: Final = (
    "table table/labels.csv --images table/images --masks table/masks",
    "table table/labels.csv --images table/images --masks table/masks --columns table/columns.yaml",
    "table table/labels.csv --images table/images --label-column label --box-column box --looked-for listed",
)
_COCO: Final = (
    "coco coco/instances.json --images coco/images --categories coco/map.yaml --looked-for listed",
)
_LABELME: Final = ("labelme labelme", "labelme labelme --looked-for listed --patient-pattern ^(.)")
_YOLO: Final = ("yolo yolo", "yolo yolo --looked-for listed")
_VOC: Final = ("voc voc", "voc voc --corners points --looked-for listed")
_NIH: Final = ("nih nih", "nih nih --missing-images keep", "nih nih --google nih/google.csv")

TARGETS: Final = (
    _target("table: rows", "table/labels.csv", _CSV, *_TABLE, weight=8),
    _target("table: map of columns", "table/columns.yaml", _YAML, _TABLE[1]),
    _target(
        "table: Parquet", "table/labels.parquet", _PARQUET, "table table/labels.parquet --images table/images"
    ),
    _target("table: images", "table/*/*.png", _IMAGE, *_TABLE, weight=2),
    _target("coco: instances", "coco/instances.json", _JSON, *_COCO, weight=8),
    _target("coco: categories", "coco/map.yaml", _YAML, *_COCO, weight=2),
    _target("coco: images", "coco/images/*.png", _IMAGE, *_COCO, weight=2),
    _target("labelme: files", "labelme/*.json", _JSON, *_LABELME, weight=6),
    _target("labelme: images", "labelme/*.png", _IMAGE, *_LABELME, weight=2),
    _target("yolo: labels", "yolo/labels/train/*.txt", _WORDS, *_YOLO, weight=6),
    _target("yolo: names", "yolo/data.yaml", _YAML, *_YOLO, weight=2),
    _target("yolo: images", "yolo/images/train/*.png", _IMAGE, *_YOLO, weight=2),
    _target("voc: files", "voc/Annotations/*.xml", _WORDS, *_VOC, weight=6),
    _target("voc: images", "voc/JPEGImages/*.png", _IMAGE, *_VOC, weight=2),
    _target("nih: tables", "nih/*.csv", _CSV, *_NIH, weight=8),
    _target("nih: images", "nih/images/*.png", _IMAGE, *_NIH, weight=2),
)


# ---- small data sets -----------------------------------------------------------------------------------------------


def make_inputs(root: Path) -> None:
    """A small data set of every source below `root`, in its published layout."""
    (root / "tmp").mkdir()
    makers: tuple[Callable[[Path], None], ...] = (
        _make_table, _make_coco, _make_labelme, _make_yolo, _make_voc, _make_nih,
    )  # fmt: skip
    for make in makers:
        make(root)


def _make_images(folder: Path, *names: str, side: int | None = None) -> None:
    for name in names:
        write_png(folder / f"{name}.png", np.full((side or HEIGHT, side or WIDTH), 90, np.uint8))


def _make_table(root: Path) -> None:
    folder = root / "table"
    _make_images(folder / "images", "a", "b", "c")
    write_png(folder / "masks" / "a.png", _MASK.to_mask().astype(np.uint8))
    rows = [
        {"file": "a.png", "patient": "p1", "date": "2020-01-02", "view": "PA", "age": "61", "sex": "F",
         "split": "train", "reader": "R1", "label": "Mass", "Effusion": "1", "box": "[10, 8, 12, 10]",
         "mask": "a.png", "polygon": "", "report": "FINDINGS: A mass. IMPRESSION: Mass."},
        {"file": "b.png", "patient": "p1", "date": "2020-02-02", "view": "AP", "age": "61", "sex": "F",
         "split": "train", "reader": "R2", "label": "Nodule|Edema", "Effusion": "0", "box": "", "mask": "",
         "polygon": "", "report": ""},
        {"file": "c.png", "patient": "p2", "date": "2020-03-02", "view": "lateral", "age": "7", "sex": "M",
         "split": "test", "reader": "R1", "label": "Pneumothorax", "Effusion": "-1", "box": "", "mask": "",
         "polygon": "[[10, 8], [22, 8], [22, 18]]", "report": "Clear lungs."},
    ]  # fmt: skip
    lines = [list(rows[0]), *(list(row.values()) for row in rows)]
    quoted = (",".join('"' + cell.replace('"', '""') + '"' for cell in line) for line in lines)
    (folder / "labels.csv").write_text("\n".join(quoted) + "\n")
    pq.write_table(pa.Table.from_pylist(rows), folder / "labels.parquet")
    (folder / "columns.yaml").write_text(
        "image: file\nimage_by: path\npatient: patient\ndate: date\nview: view\nage: age\nsex: sex\nsplit: split\n"
        "annotator: reader\nlabel: label\nfindings:\n  Effusion: pleural effusion\n"
        "box: {columns: [box], form: xywh, frame: 40x32}\nmask: {column: mask, dialect: path}\n"
        "polygon: {column: polygon}\nreport: {text: report}\nlooked_for: listed\nignored: []\n"
    )


def _make_coco(root: Path) -> None:
    folder = root / "coco"
    _make_images(folder / "images", "a", "b")
    shapes = (
        {"bbox": [10, 8, 12, 10]},
        {"segmentation": [[10, 8, 22, 8, 22, 18, 10, 18]]},
        {"segmentation": _MASK.to_coco(), "iscrowd": 1},
        {"segmentation": {"size": [HEIGHT, WIDTH], "counts": [300, 40, HEIGHT * WIDTH - 340]}},
    )
    document = {
        "info": {"version": "1"},
        "images": [{"id": n, "file_name": f"{name}.png", "width": WIDTH, "height": HEIGHT}
                   for n, name in enumerate("ab", start=1)],
        "annotations": [{"id": n, "image_id": n % 2 + 1, "category_id": n % 2 + 1, **shape}
                        for n, shape in enumerate(shapes)],
        "categories": [{"id": 1, "name": "Effusion"}, {"id": 2, "name": "Odd thing"}],
    }  # fmt: skip
    (folder / "instances.json").write_text(json.dumps(document))
    (folder / "map.yaml").write_text("Effusion: pleural effusion\nOdd thing: mass\n")


def _make_labelme(root: Path) -> None:
    folder = root / "labelme"
    _make_images(folder, "a", "b")
    shapes = [
        {
            "label": "Mass",
            "points": [[10, 8], [22, 18]],
            "shape_type": "rectangle",
            "flags": {},
            "group_id": None,
        },
        {"label": "Nodule", "points": [[20, 16], [20, 20]], "shape_type": "circle", "flags": {}},
        {"label": "Edema", "points": [[10.5, 8], [22, 8], [22, 18]], "shape_type": "polygon", "flags": {}},
    ]
    for name in "ab":
        document = {"version": "5.4.1", "flags": {"Effusion": True}, "shapes": shapes, "imagePath": f"{name}.png",
                    "imageData": "aGVsbG8=", "imageHeight": HEIGHT, "imageWidth": WIDTH}  # fmt: skip
        (folder / f"{name}.json").write_text(json.dumps(document))


def _make_yolo(root: Path) -> None:
    folder = root / "yolo"
    _make_images(folder / "images" / "train", "a", "b")
    (folder / "labels" / "train").mkdir(parents=True)
    (folder / "data.yaml").write_text("train: images/train\nnc: 2\nnames:\n  0: Effusion\n  1: Mass\n")
    for name in "ab":
        lines = "0 0.5 0.5 0.25 0.5\n1 0.25 0.25 0.5 0.25 0.5 0.75 0.25 0.75\n"
        (folder / "labels" / "train" / f"{name}.txt").write_text(lines)


def _make_voc(root: Path) -> None:
    folder = root / "voc"
    _make_images(folder / "JPEGImages", "a", "b")
    (folder / "Annotations").mkdir()
    for name in "ab":
        (folder / "Annotations" / f"{name}.xml").write_text(
            f"<annotation>\n<folder>VOC</folder>\n<filename>{name}.png</filename>\n"
            f"<size><width>{WIDTH}</width><height>{HEIGHT}</height><depth>1</depth></size>\n"
            "<object>\n<name>Mass</name>\n<difficult>0</difficult>\n"
            "<bndbox><xmin>11</xmin><ymin>9</ymin><xmax>22</xmax><ymax>18</ymax></bndbox>\n</object>\n</annotation>\n"
        )


def _make_nih(root: Path) -> None:
    folder = root / "nih"
    _make_images(folder / "images", "00000001_000", "00000001_001", side=NIH_SIDE)
    (folder / "Data_Entry_2017_v2020.csv").write_text(
        "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View Position,"
        "OriginalImage[Width,Height],OriginalImagePixelSpacing[x,y]\n"
        "00000001_000.png,Mass|Effusion,0,1,58,M,PA,2682,2749,0.143,0.143\n"
        "00000001_001.png,No Finding,1,1,58,M,AP,2894,2729,0.143,0.143\n"
    )
    (folder / "BBox_List_2017.csv").write_text(
        "Image Index,Finding Label,Bbox [x,y,w,h],,,\n00000001_000.png,Mass,100.5,200.25,50,60\n"
    )
    (folder / "google.csv").write_text(
        "Image Index,Fracture,Pneumothorax,Airspace opacity,Nodule or mass\n00000001_000.png,NO,NO,YES,YES\n"
    )


def drill(folder: Path, tally: Tally, given: argparse.Namespace) -> None:
    """Damage one file at a time, and import its data set."""
    fuzz.import_everything(with_models=False)
    base = folder / "base"
    base.mkdir()
    make_inputs(base)
    _check_undamaged(folder, base, tally)
    fuzz.damage_inputs(folder, base, TARGETS, tally, given, total=SHORT if given.short else INPUTS)


def _check_undamaged(folder: Path, base: Path, tally: Tally) -> None:
    """Every command works on what is not damaged, so that a refusal comes from the damage."""
    commands = sorted({command for target in TARGETS for command in target.commands})
    for number, command in enumerate(commands):
        words = command.replace("-o out", f"-o {folder / f'sound-{number}'}").split()
        outcome = fuzz.run_forked(words, base)
        if outcome.code != 0:
            tally.fail(f"undamaged: carina {command} exits with {outcome.code}: {outcome.text[-500:]}")


if __name__ == "__main__":
    main(
        "import_fuzz",
        "Damage small data sets of every source, and import them.",
        drill,
        fuzz.add_options,
    )
