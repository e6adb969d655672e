"""Damage small data sets of every source, in thousands of ways, and import them.

General layouts (COCO, VOC, a table) and NIH are made here; other published data sets are those of the tests of their
readers. DICOM has a drill of its own, and so have the two formats that Carina writes itself (`fuzz.py`).

Promised: what `drills/fuzz.py` promises. A damaged data set is refused with a sentence, or it is imported and
`carina check` accepts the study set: no traceback, no hang, no file opened outside of the given paths.
"""

import argparse
import json
import multiprocessing
import random
import sys
import zipfile
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from typer.testing import CliRunner

import fuzz
import mutations
from carina.cli import app
from carina.studies import Region, write_png
from carina.studies.terms import find_term
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
_LINES: Final = (mutations.damage_lines,) * 4 + (mutations.damage_bytes, mutations.replace_by_oddity)
_BYTES: Final = (mutations.damage_bytes, mutations.replace_by_oddity)


def _damage_member(path: Path, chance: random.Random) -> str:
    """Damage one JSON or text file within a zip file."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = chance.choice(sorted(members))
    member = path.with_suffix(".member")
    member.write_bytes(members[name].removeprefix(b"\xef\xbb\xbf"))
    damage = chance.choice(_JSON if name.endswith(".json") else _WORDS)
    what = damage(member, chance)
    members[name] = member.read_bytes() if member.is_file() else b""
    if member.is_dir():
        member.rmdir()
    else:
        member.unlink(missing_ok=True)
    path.unlink()  # it is a hard link
    with zipfile.ZipFile(path, "w") as archive:
        for other, content in members.items():
            archive.writestr(other, content)
    return f"{name}: {what}"


_ZIP: Final = (_damage_member,) * 5 + _BYTES


def _target(
    name: str, files: str, damages: tuple[fuzz.Damage, ...], *commands: str, weight: int = 4
) -> Target:
    imports = tuple(f"import {command} -o out --workers 1" for command in commands)
    paths = [
        files,
        *(word.rpartition("=")[2] for command in commands for word in command.split() if "/" in word),
    ]
    roots = {path.partition("/")[0] for path in paths} | {
        path for command in commands for path in command.split()[1:2]
    }
    folders = ("tmp", *sorted(root.partition("/")[0] for root in roots))
    return Target(
        name, files, damages, imports, checks="out", weight=weight, folders=tuple(dict.fromkeys(folders))
    )


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


class Sample(NamedTuple):
    """A published data set as the test of its reader makes it."""

    source: str
    makers: tuple[str, ...]
    """Functions of the test that write it below a folder."""
    command: str
    """Path below that folder, and options; {0} stands for the folder."""


SAMPLES: Final = (
    Sample("chest-imagenome", ("make_folder", "make_images"), "{0}/imagenome --images {0}/mimic"),
    Sample("chestx-det", ("make_folder",), "{0}/set"),
    Sample("chexlocalize", ("make_folder",), "{0}/chexlocalize"),
    Sample("chexmask", ("make_table",), "{0}/in/MIMIC-CXR-JPG.csv"),
    Sample("chexpert", ("make_folder",), "{0}/chexpert"),
    Sample("covid", ("make_folder",), "{0}/covid"),
    Sample("covid-rural", ("make_folder",), "{0}/rural"),
    Sample("cxr-qba", ("make_folder",), "{0}/qba --images {0}/mimic"),
    Sample(
        "cxreasonbench", ("make_folder",), "{0}/data/CXReasonBench --images {0}/data --mimic {0}/data/mimic"
    ),
    Sample("medical-diff-vqa", ("make_folder",), "{0}/diff --images {0}/mimic"),
    Sample("mi-cxr", ("make_folder",), "{0}/mi --images {0}/mimic"),
    Sample("mimic-cxr-vqa", ("make_folder",), "{0}/vqa --images {0}/mimic"),
    Sample("mimic-ils", ("make_folder",), "{0}/ils --missing-images keep"),
    Sample("ms-cxr", ("make_folder",), "{0}/ms-cxr --missing-images keep"),
    Sample("ms-cxr-t", ("make_folder",), "{0}/ms-cxr-t --missing-images keep"),
    Sample("object-cxr", ("make_folder",), "{0}/objects"),
    Sample("openi", ("make_folder",), "{0}/openi"),
    Sample("padchest", ("make_folder",), "{0}/padchest"),
    Sample("padchest-gr", ("make_folder",), "{0}/gr"),
    Sample("rexgradient", ("make_folder",), "{0}/rex"),
    Sample("rexvqa", ("make_folder",), "{0}/rex"),
    Sample("rsna", ("make_kaggle",), "{0}/kaggle"),
    Sample("siim", ("make_folder",), "{0}/siim"),
    Sample("slake", ("make_folder",), "{0}/Slake1.0"),
    Sample("tbx11k", ("make_coco",), "{0}/tbx"),
    Sample("vindr-cxr", ("make_physionet",), "{0}/vindr"),
    Sample("vqa-rad", ("make_folder",), "{0}/rad"),
)
_JOINED: Final = (
    "mimic-cxr-jpg joined/mimic",
    "mimic-cxr-jpg joined/mimic --facts --labels both",
    "mimic-cxr-jpg joined/mimic --with ms-cxr=joined/MS_CXR_Local_Alignment_v1.1.0.csv",
    "mimic-cxr-jpg joined/mimic --with chest-imagenome=chest-imagenome/imagenome --with ms-cxr-t=ms-cxr-t/ms-cxr-t",
)
_BY_ENDING: Final = {
    "csv": (_CSV, 6), "json": (_JSON, 6), "jsonl": (_LINES, 6), "zip": (_ZIP, 4), "parquet": (_PARQUET, 3),
    "tgz": (_BYTES, 2), "png": (_IMAGE, 1), "jpg": (_IMAGE, 1),
}  # fmt: skip
"""Ways to damage a file, and how often, by the ending of its name."""


def sample_targets(base: Path) -> list[Target]:
    """The files of the samples that can be damaged."""
    targets = []
    for sample in SAMPLES:
        command = f"{sample.source} {sample.command.format(sample.source)}"
        for ending, (damages, weight) in _BY_ENDING.items():
            pattern = f"{sample.source}/**/*.{ending}"
            if any(base.glob(pattern)):
                targets.append(
                    _target(f"{sample.source}: {ending}", pattern, damages, command, weight=weight)
                )
    return targets


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
    _target("mimic-cxr-jpg: tables", "joined/mimic/*.csv", _CSV, *_JOINED, weight=8),
    _target("mimic-cxr-jpg: reports", "joined/mimic/*.zip", _ZIP, *_JOINED, weight=4),
    _target("joined: phrases", "joined/*.csv", _CSV, _JOINED[2], weight=4),
    _target("joined: graphs", "chest-imagenome/**/*.zip", _ZIP, _JOINED[3], weight=3),
    _target("joined: trends", "ms-cxr-t/**/*image_classification*.csv", _CSV, _JOINED[3], weight=3),
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
    # The tests of the readers know the layouts.
    sys.path.insert(0, str(Path(__file__).parent.parent))
    for sample in SAMPLES:
        module = import_module(f"tests.sources.test_{sample.source.replace('-', '_')}")
        (root / sample.source).mkdir()
        for maker in sample.makers:
            getattr(module, maker)(root / sample.source)
    (root / "joined").mkdir()
    joining = import_module("tests.sources.test_joining")
    joining.make_mimic(root / "joined")
    joining.make_phrases(root / "joined")


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
    # What a command loads when it runs, so that forked processes need not.
    find_term("mass")
    CliRunner().invoke(app, ["import", "nih", str(folder / "nothing"), "-o", str(folder / "nothing")])
    base = folder / "base"
    base.mkdir()
    # In another process: a library that has started threads cannot be used in the forked processes.
    making = multiprocessing.get_context("spawn").Process(target=make_inputs, args=(base,))
    making.start()
    making.join()
    if making.exitcode:
        raise RuntimeError("the data sets could not be made")
    targets = (*TARGETS, *sample_targets(base))
    _check_undamaged(folder, base, targets, tally)
    fuzz.damage_inputs(folder, base, targets, tally, given, total=SHORT if given.short else INPUTS)


def _check_undamaged(folder: Path, base: Path, targets: Sequence[Target], tally: Tally) -> None:
    """Every command works on what is not damaged, so that a refusal comes from the damage."""
    commands = sorted({command for target in targets for command in target.commands})
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
