"""DICOM objects for the tests: a chest radiograph and a segmentation, with any element changed."""

import io
import re
import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from PIL import Image
from tests.sources.dicom.encoding import EXPLICIT, Fragments, Items, encode_object

from carina.sources.dicom.attributes import Tag

CR = "1.2.840.10008.5.1.4.1.1.1"
DX = "1.2.840.10008.5.1.4.1.1.1.1"
SEGMENTATION = "1.2.840.10008.5.1.4.1.1.66.4"
RAMP = np.arange(12, dtype=np.uint16).reshape(3, 4) * 300
"""3 rows, 4 columns, 12 bits."""


def radiograph(
    pixels: np.ndarray = RAMP, *, bits: int = 12, **changes: object
) -> dict[int, tuple[str, object]]:
    """The elements of a DX object; changes are `TAG_NAME=(vr, value)`, or None to leave one out."""
    signed = pixels.dtype.kind == "i"
    elements: dict[int, tuple[str, object]] = {
        Tag.SOP_CLASS: ("UI", DX),
        Tag.SOP_INSTANCE: ("UI", "1.2.3.1"),
        Tag.STUDY_DATE: ("DA", "20200310"),
        Tag.STUDY_TIME: ("TM", "101500"),
        Tag.MODALITY: ("CS", "DX"),
        0x00100010: ("PN", "Example^Erika"),
        Tag.PATIENT_ID: ("LO", "4711"),
        Tag.SEX: ("CS", "F"),
        Tag.AGE: ("AS", "061Y"),
        Tag.BODY_PART: ("CS", "CHEST"),
        Tag.IMAGER_PIXEL_SPACING: ("DS", "0.2\\0.2"),
        Tag.VIEW_POSITION: ("CS", "PA"),
        Tag.STUDY_INSTANCE: ("UI", "1.2.3"),
        Tag.SERIES_NUMBER: ("IS", "1"),
        Tag.INSTANCE_NUMBER: ("IS", "1"),
        Tag.PATIENT_ORIENTATION: ("CS", "L\\F"),
        Tag.SAMPLES_PER_PIXEL: ("US", 1),
        Tag.PHOTOMETRIC: ("CS", "MONOCHROME2"),
        Tag.ROWS: ("US", pixels.shape[0]),
        Tag.COLUMNS: ("US", pixels.shape[1]),
        Tag.BITS_ALLOCATED: ("US", 8 * pixels.dtype.itemsize),
        Tag.BITS_STORED: ("US", bits),
        Tag.HIGH_BIT: ("US", bits - 1),
        Tag.PIXEL_REPRESENTATION: ("US", int(signed)),
        Tag.BURNED_IN: ("CS", "NO"),
        Tag.WINDOW_CENTRE: ("DS", "2048"),
        Tag.WINDOW_WIDTH: ("DS", "4096"),
        Tag.PIXEL_DATA: ("OW" if pixels.dtype.itemsize == 2 else "OB", pixels.tobytes()),
    }
    for name, value in changes.items():
        if value is None:
            del elements[Tag[name]]
        else:
            elements[Tag[name]] = value
    return elements


def encode(elements: Mapping[int, tuple[str, object]], syntax: str = EXPLICIT) -> bytes:
    """The file, with pixel data in the byte order of the syntax."""
    form, data = elements.get(Tag.PIXEL_DATA, ("", b""))
    if syntax.endswith(".1.2.2") and form == "OW" and isinstance(data, bytes):
        elements = {**elements, Tag.PIXEL_DATA: (form, np.frombuffer(data, "<u2").astype(">u2").tobytes())}
    return encode_object(elements, syntax=syntax)


def save(path: Path, elements: Mapping[int, tuple[str, object]], syntax: str = EXPLICIT) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode(elements, syntax))
    return path


def code(value: str, meaning: str = "") -> tuple[str, Items]:
    item = {Tag.CODE_VALUE: ("SH", value), 0x00080102: ("SH", "SCT"), 0x00080104: ("LO", meaning)}
    return ("SQ", Items((item,)))


def lut(first: int, bits: int, entries: list[int]) -> tuple[str, Items]:
    item = {Tag.LUT_DESCRIPTOR: ("US", [len(entries), first, bits]), Tag.LUT_DATA: ("US", entries)}
    return ("SQ", Items((item,)))


def reference(uid: str) -> dict[int, tuple[str, object]]:
    source = {Tag.REFERENCED_SOP_INSTANCE: ("UI", uid)}
    return {Tag.DERIVATION_IMAGES: ("SQ", Items(({Tag.SOURCE_IMAGES: ("SQ", Items((source,)))},)))}


def segmentation(
    masks: list[tuple[int, str, np.ndarray]], segments: list[tuple[int, str, str, str]], **changes: object
) -> dict[int, tuple[str, object]]:
    """A SEG object: frames (segment, SOP instance of the image, mask), segments (number, label, code, algorithm)."""
    bits = np.concatenate([mask.ravel() for _, _, mask in masks])
    elements: dict[int, tuple[str, object]] = {
        Tag.SOP_CLASS: ("UI", SEGMENTATION),
        Tag.SOP_INSTANCE: ("UI", "1.2.3.9"),
        Tag.MODALITY: ("CS", "SEG"),
        Tag.PATIENT_ID: ("LO", "4711"),
        Tag.STUDY_INSTANCE: ("UI", "1.2.3"),
        Tag.SAMPLES_PER_PIXEL: ("US", 1),
        Tag.PHOTOMETRIC: ("CS", "MONOCHROME2"),
        Tag.FRAMES: ("IS", str(len(masks))),
        Tag.ROWS: ("US", masks[0][2].shape[0]),
        Tag.COLUMNS: ("US", masks[0][2].shape[1]),
        Tag.BITS_ALLOCATED: ("US", 1),
        Tag.BITS_STORED: ("US", 1),
        Tag.HIGH_BIT: ("US", 0),
        Tag.PIXEL_REPRESENTATION: ("US", 0),
        Tag.SEGMENTATION_TYPE: ("CS", "BINARY"),
        Tag.SEGMENTS: (
            "SQ",
            Items(
                tuple(
                    {
                        Tag.SEGMENT_NUMBER: ("US", number),
                        Tag.SEGMENT_LABEL: ("LO", label),
                        Tag.SEGMENT_ALGORITHM: ("CS", algorithm),
                        Tag.SEGMENT_PROPERTY: code(value),
                    }
                    for number, label, value, algorithm in segments
                )
            ),
        ),
        Tag.FRAME_GROUPS: (
            "SQ",
            Items(
                tuple(
                    {
                        **reference(uid),
                        Tag.SEGMENT_IDENTIFICATION: (
                            "SQ",
                            Items(({Tag.REFERENCED_SEGMENT: ("US", number)},)),
                        ),
                    }
                    for number, uid, _ in masks
                )
            ),
        ),
        Tag.PIXEL_DATA: ("OB", np.packbits(bits.astype(bool), bitorder="little").tobytes()),
    }
    for name, value in changes.items():
        elements[Tag[name]] = value
    return elements


def compressed(data: bytes, *rest: bytes) -> tuple[str, Fragments]:
    return ("OB", Fragments((data, *rest)))


# ---- compressed pixel data -------------------------------------------------------------------------------------------


def pack_bits(plane: bytes) -> bytes:
    """One RLE segment: runs of three and more, and between them literal bytes, up to 128 at once."""
    packed, start = bytearray(), 0

    def add_literals(end: int) -> None:
        for at in range(start, end, 128):
            part = plane[at : min(at + 128, end)]
            packed.append(len(part) - 1)
            packed.extend(part)

    for match in re.finditer(rb"(.)\1{2,127}", plane, re.DOTALL):
        add_literals(match.start())
        packed += bytes((257 - len(match[0]), match[0][0]))
        start = match.end()
    add_literals(len(plane))
    return bytes(packed) + b"\0" * (len(packed) % 2)


def encode_rle(pixels: np.ndarray) -> bytes:
    planes = pixels.astype(f">u{pixels.dtype.itemsize}").view(np.uint8).reshape(-1, pixels.dtype.itemsize).T
    segments = [pack_bits(plane.tobytes()) for plane in planes]
    offsets = np.cumsum([64, *map(len, segments)])[: len(segments)].tolist()
    return struct.pack("<16I", len(segments), *offsets, *[0] * (15 - len(segments))) + b"".join(segments)


def encode_image(pixels: np.ndarray, kind: str, **options) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind, **options)
    return file.getvalue()
