"""Damage DICOM objects in thousands of ways, and see what `carina import dicom` makes of them.

Promised: no object ends the import in a traceback, makes it hang or take more than 2 GB, or opens or writes a file
outside of the given paths; every object is used or counted with a reason; `carina check` accepts what was written; and
a marker, which stands in every text of every object, is in no byte of it.

Objects are imported by the fifty, because starting an import takes longer than reading an object.
"""

import argparse
import json
import random
import shutil
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

# First: it lets the modules of the tests be found.
from common import LIMIT_BYTES, Tally, main  # isort: skip

from tests.sources.dicom.encoding import BIG_ENDIAN, DEFLATED, EXPLICIT, IMPLICIT, Items
from tests.sources.dicom.marked import MARKER, MARKER_DATE, MARKER_UID, scan, scan_again
from tests.sources.dicom.objects import code, compressed, encode, lut, radiograph, segmentation
from tests.sources.dicom.syntaxes import pack_everywhere

from carina.sources.dicom.attributes import Tag
from fuzz import Outcome, run_forked
from mutations import damage_bytes

OBJECTS: Final = 10_000
SHORT: Final = 250
BATCH: Final = 50
SIDE: Final = 32
PIXELS: Final = (np.add.outer(np.arange(SIDE), np.arange(SIDE)) * 60).astype(np.uint16)
MASK: Final = PIXELS > 2000
GREY: Final = (PIXELS // 16).astype(np.uint8)
PACKED: Final = pack_everywhere(GREY, bits=8)
"""The compressed image by transfer syntax."""
NATIVE: Final = (EXPLICIT, IMPLICIT, BIG_ENDIAN, DEFLATED)
FORMS: Final = (
    "AE",
    "AS",
    "CS",
    "DA",
    "DS",
    "IS",
    "LO",
    "LT",
    "PN",
    "SH",
    "ST",
    "TM",
    "UI",
    "UN",
    "OB",
    "OW",
    "UT",
    "US",
)
PLACES: Final = tuple(tag for tag in Tag if tag >> 16 not in (2, 4))
VALUES: Final = (
    "", " ", MARKER, MARKER_UID, MARKER_DATE, f"{MARKER}\\{MARKER}", "0", "-1", "1e308", "nan", "inf", "65535", "YES",
    "NO", "../../outside/x", "/etc/passwd", "\\", "x" * 5000, "99999999999999999999", "MONOCHROME1", "RGB", "DX", "CT",
    "9999Y", "00000000", "99991231", "R\\F", "LINEAR_EXACT", "SIGMOID", "INVERSE",
)  # fmt: skip
Objects = dict[int, tuple[str, Any]]


def make_object(number: int, draw: random.Random) -> tuple[Objects, str]:
    """A sound object with the marker in every text, and a transfer syntax."""
    ids = {
        "SOP_INSTANCE": ("UI", f"{MARKER_UID}.{number}"),
        "STUDY_INSTANCE": ("UI", f"{MARKER_UID}.1.{number // 3}"),
        "PATIENT_ID": ("LO", f"{MARKER}-{number // 9}"),
    }
    syntax = draw.choice((*NATIVE, *NATIVE, *PACKED))
    if draw.random() < 0.2:
        one = [(1, draw.choice(("nodule", MARKER)), draw.choice(("60046008", MARKER)), "MANUAL")]
        made = segmentation([(1, f"{MARKER_UID}.{number - 1}", MASK)], one)
        made |= {Tag[name]: value for name, value in ids.items()}
        syntax = draw.choice((EXPLICIT, IMPLICIT, DEFLATED))
    elif draw.random() < 0.1:
        made = make_report(draw) | {Tag[name]: value for name, value in ids.items()}
        syntax = draw.choice(NATIVE)
    elif syntax in PACKED:
        made = radiograph(GREY, bits=8, PIXEL_DATA=compressed(damage_packed(PACKED[syntax], draw)), **ids)
    else:
        more: dict[str, Any] = {}
        if draw.random() < 0.3:
            more = {draw.choice(("VOI_LUT", "MODALITY_LUT")): lut(0, 12, list(range(0, 4000, 10)))}
        made = radiograph(PIXELS, **ids, **more)
    for tag in (0x00080080, 0x00100010, 0x00104000, 0x00091001, 0x00204000, 0x00324000):
        made[tag] = ("LO", MARKER)
    made[0x00400555] = ("SQ", Items(({0x00100010: ("PN", MARKER)},)))
    return made, syntax


def make_report(draw: random.Random) -> Objects:
    """A structured report with a coded finding, its outline, and text."""
    line = np.array([[2, 2], [20, 2], [20, 20], [2, 2]], "<f4")
    picture = {
        int(Tag.VALUE_TYPE): ("CS", "IMAGE"),
        int(Tag.REFERENCED_SOPS): (
            "SQ",
            Items(({int(Tag.REFERENCED_SOP_INSTANCE): ("UI", f"{MARKER_UID}.1")},)),
        ),
    }
    outline = {
        int(Tag.VALUE_TYPE): ("CS", "SCOORD"),
        int(Tag.GRAPHIC_TYPE): ("CS", "POLYLINE"),
        int(Tag.GRAPHIC_DATA): ("FL", line.tobytes()),
        int(Tag.CONTENT): ("SQ", Items((picture,))),
    }
    finding = {
        int(Tag.VALUE_TYPE): ("CS", "CODE"),
        int(Tag.CONCEPT_NAME): code("121071", MARKER),
        int(Tag.CONCEPT_CODE): code(draw.choice(("60046008", MARKER)), MARKER),
    }
    text = {
        int(Tag.VALUE_TYPE): ("CS", "TEXT"),
        int(Tag.CONCEPT_NAME): code("121073", MARKER),
        int(Tag.TEXT_VALUE): ("UT", draw.choice((MARKER, f"On {MARKER_DATE}.", "An effusion."))),
    }
    return {
        int(Tag.SOP_CLASS): ("UI", "1.2.840.10008.5.1.4.1.1.88.33"),
        int(Tag.MODALITY): ("CS", "SR"),
        int(Tag.CONTENT): ("SQ", Items((finding, outline, text))),
    }


# ---- damage ----------------------------------------------------------------------------------------------------------


def damage_packed(packed: bytes, draw: random.Random) -> bytes:
    """Compressed pixel data, half of the time with a few other bytes, which only a decoder meets."""
    content = bytearray(packed)
    for _ in range(draw.choice((0, 0, 1, 2, 8))):
        content[draw.randrange(len(content))] = draw.randrange(256)
    return bytes(content[: draw.randrange(len(content))] if draw.random() < 0.1 else content)


def change_value(elements: Objects, draw: random.Random) -> str:
    """Another value or another form of one attribute that is read."""
    tag, form, value = draw.choice(PLACES), draw.choice(FORMS), draw.choice(VALUES)
    elements[tag] = ("US", draw.choice((0, 1, 2, 8, 16, 255, 65535))) if form == "US" else (form, value)
    return f"{tag.name} = {form} {value[:20]!r}"


def remove_value(elements: Objects, draw: random.Random) -> str:
    """One attribute is missing."""
    tag = draw.choice([tag for tag in elements if tag not in (Tag.SOP_CLASS, Tag.SOP_INSTANCE)])
    del elements[tag]
    return f"{tag:08x} removed"


def nest_values(elements: Objects, draw: random.Random) -> str:
    """Marked attributes in sequences within each other, below an attribute that is read or one that is not."""
    item: Objects = {int(tag): ("LO", MARKER) for tag in draw.sample(PLACES, 6)}
    depth = draw.choice((1, 2, 5, 40))
    for _ in range(depth):
        item = {int(draw.choice(PLACES)): ("SQ", Items((item,))), 0x00100010: ("PN", MARKER)}
    elements[int(draw.choice((*PLACES, 0x00081110, 0x00091010)))] = ("SQ", Items((item, item)))
    return f"nested {depth} deep"


def change_size(elements: Objects, draw: random.Random) -> str:
    """A size or a number of bits that the pixel data do not have."""
    tag = draw.choice(
        (Tag.ROWS, Tag.COLUMNS, Tag.BITS_ALLOCATED, Tag.BITS_STORED, Tag.HIGH_BIT, Tag.SAMPLES_PER_PIXEL)
    )
    value = draw.choice((0, 1, 3, 7, 8, 9, 15, 16, 17, 23, 25, 32, 4000, 65535))
    elements[tag] = ("US", value)
    return f"{tag.name} = {value}"


def repeat_frames(elements: Objects, draw: random.Random) -> str:
    """Numbers of frames that are not there."""
    value = draw.choice(("0", "-1", "2", "1000000", "99999999999", MARKER))
    elements[Tag.FRAMES] = ("IS", value)
    return f"FRAMES = {value}"


ELEMENTS: Final[tuple[Callable[[Objects, random.Random], str], ...]] = (
    change_value, change_value, change_value, remove_value, nest_values, change_size, repeat_frames,
)  # fmt: skip


def damage_lengths(path: Path, draw: random.Random) -> str:
    """A length somewhere in the file that is not true."""
    content = bytearray(path.read_bytes())
    at = draw.randrange(132, max(133, len(content) - 4))
    value = draw.choice((0xFFFFFFFF, 0xFFFFFFFE, 0x7FFFFFFF, 0, 1, 3, 0x10000, len(content)))
    content[at : at + 4] = struct.pack("<I", value)
    path.write_bytes(bytes(content))
    return f"length {value:x} at {at}"


def write_damaged(path: Path, number: int, draw: random.Random) -> tuple[str, bool]:
    """Write one damaged object; returns what was done to it, and whether it was an image."""
    elements, syntax = make_object(number, draw)
    is_image = elements[Tag.MODALITY] == ("CS", "DX")
    words = [draw.choice(ELEMENTS)(elements, draw) for _ in range(draw.choice((0, 1, 1, 2)))]
    if draw.random() < 0.1:
        syntax = draw.choice((*NATIVE, *PACKED, "1.2.3", ""))
        words.append(f"syntax {syntax}")
    path.write_bytes(encode(elements, syntax))
    if not words or draw.random() < 0.4:
        words.append(draw.choice((damage_bytes, damage_bytes, damage_lengths))(path, draw))
    return ", ".join(words), is_image


# ---- the drill -------------------------------------------------------------------------------------------------------


def judge(folder: Path, batch: str, outcome: Outcome, files: int, others: int, tally: Tally) -> None:
    """Compare what came of an import with what is promised."""
    if outcome.code not in (0, 1):
        tally.fail(f"{batch}: exit code {outcome.code}: {outcome.text[-1500:]}")
        return
    if "Traceback" in outcome.text or outcome.outside:
        tally.fail(f"{batch}: {outcome.outside or outcome.text[-1500:]}")
    if outcome.bytes > LIMIT_BYTES:
        tally.fail(f"{batch}: {outcome.bytes / 1e6:.0f} MB")
    tally.count("objects", files)
    if outcome.code == 1:
        return
    found = json.loads((folder / "out/import.json").read_text())
    images, skipped = found["images"], len(found["skipped"])
    tally.count("images used", images)
    tally.count("objects skipped", skipped)
    # A mask or a report that is used is neither.
    if not files - others <= images + skipped <= files:
        tally.fail(f"{batch}: {files} objects, {images} used, {skipped} skipped, {others} masks and reports")
    for name, look in (("first", scan), ("second", scan_again)):
        for place in look(folder / "out"):
            tally.fail(f"{batch}: the {name} scan finds the marker: {place}")
    checked = run_forked(["check", "out"], folder)
    if checked.code != 0:
        tally.fail(f"{batch}: carina check refuses what was written: {checked.text[-800:]}")


def drill(folder: Path, tally: Tally, given: argparse.Namespace) -> None:
    total = SHORT if given.short else given.objects
    for first in range(0, total, BATCH):
        draw = random.Random(f"{given.seed} {first}")  # noqa: S311 - nothing secret
        work = folder / "work"
        (work / "in").mkdir(parents=True)
        paths = {n: work / f"in/{MARKER}{n}.dcm" for n in range(1, BATCH + 1)}
        words, is_image = zip(
            *(write_damaged(path, first + n, draw) for n, path in paths.items()), strict=True
        )
        options = "--key-file key --workers 1 --unknown-body-part keep --burned-in keep --report-text"
        outcome = run_forked(["import", "dicom", "in", "-o", "out", *options.split()], work)
        if given.verbose:
            print(first, *words, sep="\n  ", flush=True)
        judge(work, f"objects from {first}", outcome, BATCH, is_image.count(False), tally)
        shutil.rmtree(work)
        if not given.short and not (first + BATCH) % 1000:
            print(f"{first + BATCH} of {total}", file=sys.stderr, flush=True)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--objects", type=int, default=OBJECTS, help="number of objects")
    parser.add_argument("--verbose", action="store_true", help="print what was done to every object")


if __name__ == "__main__":
    main("dicom", "Damage DICOM objects, and see what an import makes of them.", drill, _add_options)
