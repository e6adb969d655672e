"""No attribute leaves an object but those that `Study` names: a marker in all of them reaches no byte of any output."""

import io
import struct
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image, PngImagePlugin
from pydicom import dcmread
from tests.sources.dicom import marked, test_structured_report
from tests.sources.dicom.encoding import BIG_ENDIAN, DEFLATED, EXPLICIT, IMPLICIT, Items
from tests.sources.dicom.marked import MARKER, MARKER_DATE, MARKER_UID
from tests.sources.dicom.objects import encode, radiograph, segmentation

import carina
from carina.sources import import_source
from carina.sources.dicom.attributes import Tag

SIDE = 96
PIXELS = (np.add.outer(np.arange(SIDE), np.arange(SIDE)) * 20).astype(np.uint16)
NODULE = np.hypot(*np.meshgrid(np.arange(SIDE) - 30, np.arange(SIDE) - 40)) < 9
SEQUENCES = ("VIEW_CODE", "ANATOMIC_REGION", "VOI_LUT", "MODALITY_LUT", "DERIVATION_IMAGES", "SEGMENTS")


def image(number: int, **changes: object) -> dict[int, tuple[str, object]]:
    """A radiograph whose ids and dates are marks."""
    ids = {
        "SOP_INSTANCE": ("UI", f"{MARKER_UID}.{number}"),
        "STUDY_INSTANCE": ("UI", f"{MARKER_UID}.{number}.1"),
        "PATIENT_ID": ("LO", f"{MARKER}{number // 2}"),
        "PATIENT_ID_ISSUER": ("LO", MARKER),
        "STUDY_DATE": ("DA", MARKER_DATE),
        "STUDY_TIME": ("TM", f"{number % 24:02d}0000"),
        "BIRTH_DATE": ("DA", MARKER_DATE),
    }
    return radiograph(PIXELS, **{**ids, **changes})


def write_marked(folder: Path) -> None:
    """Objects with every attribute of Annex E, in sequences, in private groups, and in what is read."""
    folder.mkdir()
    number = 1

    def write(content: bytes) -> None:
        assert MARKER.encode() in content or MARKER_UID.encode() in content
        (folder / f"{MARKER}-{number:04d}.dcm").write_bytes(content)

    write(encode(image(number)))  # which masks and reports refer to
    rows = marked.list_annex_e()
    for tags in rows:  # each alone, so that one that makes an object useless does not hide the others
        number += 1
        write(encode({**image(number), **marked.mark_everywhere(tags)}))
    # And all at once, but for groups 0 and 2, which belong to messages and to the head of a file.
    unread = [tag for tags in rows for tag in tags if tag not in marked.ALLOWED and tag >> 16 > 2]
    for syntax in (EXPLICIT, IMPLICIT, BIG_ENDIAN, DEFLATED):
        number += 1
        content = encode({**image(number), **marked.mark_everywhere(unread)}, syntax)
        assert set(unread) <= {int(tag) for tag in dcmread(io.BytesIO(content))._dict}
        (folder / f"{MARKER}-{number:04d}.dcm").write_bytes(content)
    for tag in Tag:
        if tag >> 16 in (2, 4) or tag == Tag.PIXEL_DATA:
            continue
        for form, value in (("LO", MARKER), ("UI", MARKER_UID), ("DA", MARKER_DATE)):
            number += 1
            write(encode(image(number, **{tag.name: (form, value)})))
    for name in SEQUENCES:
        number += 1
        write(encode(image(number, **{name: ("SQ", marked.marked_item())})))
    for label in (MARKER, "nodule"):
        number += 1
        mask = segmentation([(1, f"{MARKER_UID}.1", NODULE)], [(1, label, MARKER, MARKER)])
        mask[0x00081140] = ("SQ", Items(({0x00081155: ("UI", MARKER_UID), 0x00104000: ("LT", MARKER)},)))
        mask[Tag.SOP_INSTANCE] = ("UI", f"{MARKER_UID}.{number}")
        write(encode(mask))
    for text in (f"Seen by {MARKER}.", f"On {MARKER_DATE}.", "An effusion."):
        number += 1
        write(report(number, text))
    (folder / f"{MARKER}.txt").write_text(MARKER)
    (folder / "cut.dcm").write_bytes(encode(image(number + 1))[:900] + MARKER.encode())


def report(number: int, text: str) -> bytes:
    """A structured report of the first study, with the marker in codes and names, and a text."""
    item = test_structured_report.item
    content = [
        item("TEXT", "121071", TextValue=text),
        item("TEXT", MARKER, TextValue=MARKER),
        item("PNAME", "121008", PersonName=MARKER),
        item("CODE", "121071", ConceptCodeSequence=[test_structured_report.coded(MARKER, MARKER)]),
        item("CODE", "121071", ConceptCodeSequence=[test_structured_report.coded("60046008", MARKER)]),
        item("UIDREF", "112040", UID=MARKER_UID),
    ]
    ids = {"StudyInstanceUID": f"{MARKER_UID}.1.1", "PatientID": MARKER, "PatientName": MARKER}
    return test_structured_report.plain_report(*content, number=number, **ids)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory) -> tuple[Path, object]:
    """Everything that the commands write about the marked objects."""
    base = tmp_path_factory.mktemp("proof")
    write_marked(base / MARKER)
    made = base / "made"
    imported = import_source(
        "dicom",
        base / MARKER,
        made / "studies",
        options={"key_file": base / "key", "burned_in": "keep", "report_text": True},
        workers=1,
    )
    studies = made / "studies"
    carina.show(studies, made / "pages", limit=3)
    bench = carina.build_ground(studies, made / "bench", absent=0, workers=1)
    maps = carina.explain(bench, "builtin/asymmetry", made / "maps", workers=1, controls=False)
    carina.report([maps], made / "report", cases=2)
    carina.export(bench, made / "hf", to="hf", workers=1)
    return made, imported


def test_the_objects_were_used(outputs):
    _, imported = outputs
    assert imported.counts.kept > 800
    assert {item.kind for item in imported.skipped} >= {"not DICOM", "other modality", "body part"}
    names = [finding.name for study in imported.opened() for finding in study.findings]
    assert sorted(names) == ["nodule", "pleural effusion"]
    texts = [section.text for study in imported.opened() if study.report for section in study.report.sections]
    assert texts == ["An effusion."]
    assert imported.counts.defects["names or dates in report text"].times == 2


def test_the_table_is_that_of_the_standard():
    rows = marked.list_annex_e()
    assert len(rows) == 655
    assert sum(len(row) == 1 for row in rows) == 652


def test_no_mark_is_in_any_output(outputs):
    made, _ = outputs
    kinds = {path.suffix for path in made.rglob("*") if path.is_file()}
    assert {".parquet", ".png", ".json", ".csv", ".html"} <= kinds
    assert marked.scan(made) == []


def test_a_second_scan_agrees(outputs):
    made, _ = outputs
    assert marked.scan_again(made) == []


def test_what_is_drawn_over_the_image_is_in_no_pixel(import_objects):
    """Overlays with a drawing, beside the pixels and in their unused bits, and the text beside them: the image is the
    same as without."""
    drawn = np.zeros((SIDE, SIDE), bool)
    drawn[10:20, 10:80] = True
    plane = np.packbits(drawn, bitorder="little").tobytes()
    overlays: dict[int, tuple[str, object]] = {}
    for group in range(0x6000, 0x6020, 2):
        overlays |= {
            group << 16 | 0x0010: ("US", SIDE),
            group << 16 | 0x0011: ("US", SIDE),
            group << 16 | 0x0022: ("LO", MARKER),
            group << 16 | 0x0040: ("CS", "G"),
            group << 16 | 0x0050: ("SS", [1, 1]),
            group << 16 | 0x0100: ("US", 1 if group < 0x6010 else 16),
            group << 16 | 0x0102: ("US", 0 if group < 0x6010 else 12 + group % 4),
            group << 16 | 0x1500: ("LO", MARKER),
            group << 16 | 0x4000: ("LT", MARKER),
        }
        if group < 0x6010:
            overlays[group << 16 | 0x3000] = ("OW", plane + MARKER.encode() + b"\0")
    embedded = PIXELS | (drawn.astype(np.uint16) * 0xF000)
    made = []
    for out, elements in (("plain", image(1)), ("drawn", {**image(1), **overlays})):
        if out == "drawn":
            elements[Tag.PIXEL_DATA] = ("OW", embedded.tobytes())
        content = encode(elements)
        assert (plane in content) == (out == "drawn")
        imported = import_objects([content], out=out, burned_in="keep")
        assert marked.scan(imported.path) == marked.scan_again(imported.path) == []
        (found,) = imported.opened()
        made.append((imported.path / "images" / found.images[0].key).read_bytes())
    assert made[0] == made[1]


def test_no_date_is_the_date_of_the_object(outputs):
    _, imported = outputs
    dates = {study.date for study in imported.opened() if study.date is not None}
    assert dates
    assert not {date.isoformat() for date in dates} & {"1873-04-05", "2020-03-10"}


def test_the_scans_find_what_is_there(tmp_path):
    """Both scans, on everything in which a marker could hide."""
    pl.DataFrame({"a": [MARKER.lower()]}).write_parquet(tmp_path / "a.parquet", compression="zstd")
    text = PngImagePlugin.PngInfo()
    text.add_text("Comment", MARKER, zip=True)
    Image.new("L", (4, 4)).save(tmp_path / "b.png", pnginfo=text)
    (tmp_path / "c.bin").write_bytes(struct.pack("4s", b"xxxx") + MARKER_UID.encode("utf-16-le"))
    (tmp_path / f"{MARKER_DATE}.txt").write_text("")
    for scan in (marked.scan, marked.scan_again):
        assert len(scan(tmp_path)) >= 4, scan


def test_without_the_allow_list_the_scan_would_find_it(import_objects):
    imported = import_objects([encode(image(1))], keep_identifiers=True)
    assert marked.scan(imported.path)
    assert marked.scan_again(imported.path)
