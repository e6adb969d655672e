"""Radiographs in every transfer syntax, encoded by pydicom, pyjpegls, openjpeg, gdcm and OpenCV."""

import io
import struct
from pathlib import Path
from tempfile import TemporaryDirectory

import cv2
import gdcm
import numpy as np
import pydicom
from pydicom import uid
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.encaps import encapsulate, generate_frames

NATIVE = {
    "implicit": uid.ImplicitVRLittleEndian,
    "explicit": uid.ExplicitVRLittleEndian,
    "deflated": uid.DeflatedExplicitVRLittleEndian,
    "big-endian": uid.ExplicitVRBigEndian,
}
LOSSLESS = {
    "rle": uid.RLELossless,
    "jpeg-lossless": uid.JPEGLossless,
    "jpeg-lossless-sv1": uid.JPEGLosslessSV1,
    "jpeg-ls": uid.JPEGLSLossless,
    "jpeg-2000-lossless": uid.JPEG2000Lossless,
}
LOSSY = {
    "jpeg-baseline": uid.JPEGBaseline8Bit,
    "jpeg-extended": uid.JPEGExtended12Bit,
    "jpeg-ls-near": uid.JPEGLSNearLossless,
    "jpeg-2000": uid.JPEG2000,
}
HTJ2K = {"htj2k-lossless": uid.HTJ2KLossless, "htj2k-rpcl": uid.HTJ2KLosslessRPCL, "htj2k": uid.HTJ2K}
DX = "1.2.840.10008.5.1.4.1.1.1.1"


def dataset(values: np.ndarray, bits: int, **attributes: object) -> Dataset:
    """A DX object with native values; attributes by keyword."""
    made = Dataset()
    made.SOPClassUID, made.SOPInstanceUID = DX, "1.2.3.1"
    made.StudyInstanceUID, made.PatientID, made.Modality, made.BodyPartExamined = (
        "1.2.3",
        "4711",
        "DX",
        "CHEST",
    )
    made.SeriesInstanceUID, made.ViewPosition, made.BurnedInAnnotation = "1.2.3.7", "PA", "NO"
    made.PatientOrientation = ["L", "F"]
    made.SamplesPerPixel, made.PhotometricInterpretation = 1, "MONOCHROME2"
    made.Rows, made.Columns = values.shape
    made.BitsAllocated, made.BitsStored, made.HighBit = 8 * values.itemsize, bits, bits - 1
    made.PixelRepresentation = int(values.dtype.kind == "i")
    for keyword, value in attributes.items():
        setattr(made, keyword, value)
    data = values.tobytes()
    made.add_new("PixelData", "OW", data + b"\0" * (len(data) % 2))
    made.file_meta = FileMetaDataset()
    made.file_meta.TransferSyntaxUID = uid.ExplicitVRLittleEndian
    return made


def encode(made: Dataset, syntax: str, folder: Path) -> bytes:
    """The file in a transfer syntax."""
    if syntax == uid.ExplicitVRBigEndian:
        data = np.frombuffer(made.PixelData, "<u2").byteswap().tobytes()
        made.add_new("PixelData", "OW", data)
        made.file_meta.TransferSyntaxUID = syntax
    elif syntax in NATIVE.values():
        made.file_meta.TransferSyntaxUID = syntax
    elif syntax in (uid.JPEGLossless, uid.JPEGLosslessSV1, uid.JPEGExtended12Bit):
        return _encode_with_gdcm(made, syntax, folder)
    elif syntax == uid.JPEGBaseline8Bit:
        grey = np.frombuffer(made.PixelData, np.uint8)[: made.Rows * made.Columns]
        packed = cv2.imencode(".jpg", grey.reshape(made.Rows, made.Columns), [cv2.IMWRITE_JPEG_QUALITY, 95])[
            1
        ]
        return encode_compressed(made, syntax, packed.tobytes())
    elif syntax in HTJ2K.values():
        return encode_compressed(made, syntax, make_htj2k(made.Rows, made.Columns, made.BitsStored))
    else:
        options = {uid.JPEGLSNearLossless: {"jls_error": 3}, uid.JPEG2000: {"j2k_psnr": [60]}}.get(syntax, {})
        made.compress(syntax, generate_instance_uid=False, **options)
    return save(made)


def encode_compressed(made: Dataset, syntax: str, packed: bytes) -> bytes:
    """The file with pixel data that are compressed already."""
    made.file_meta.TransferSyntaxUID = syntax
    made.PixelData = encapsulate([packed])
    made["PixelData"].is_undefined_length = True
    return save(made)


def pack_everywhere(values: np.ndarray, bits: int) -> dict[str, bytes]:
    """The compressed image by transfer syntax, for all that compress."""
    packed = {}
    with TemporaryDirectory() as folder:
        for syntax in (*LOSSLESS.values(), *LOSSY.values(), *HTJ2K.values()):
            if bits > 8 and syntax in (uid.JPEGBaseline8Bit, uid.JPEGExtended12Bit):
                continue
            content = encode(dataset(values, bits), syntax, Path(folder))
            data = pydicom.dcmread(io.BytesIO(content)).PixelData
            packed[str(syntax)] = next(generate_frames(data, number_of_frames=1))
    return packed


def save(made: Dataset) -> bytes:
    file = io.BytesIO()
    pydicom.dcmwrite(file, made, enforce_file_format=True)
    return file.getvalue()


def _encode_with_gdcm(made: Dataset, syntax: str, folder: Path) -> bytes:
    before, after = folder / "before.dcm", folder / "after.dcm"
    before.write_bytes(save(made))
    reader = gdcm.ImageReader()
    reader.SetFileName(str(before))
    assert reader.Read()
    change = gdcm.ImageChangeTransferSyntax()
    change.SetTransferSyntax(gdcm.TransferSyntax(gdcm.TransferSyntax.GetTSType(str(syntax))))
    change.SetInput(reader.GetImage())
    if syntax == uid.JPEGExtended12Bit:
        codec = gdcm.JPEGCodec()
        codec.SetLossless(False)
        codec.SetQuality(95)
        change.SetUserCodec(codec)
    assert change.Change()
    writer = gdcm.ImageWriter()
    writer.SetFileName(str(after))
    writer.SetFile(reader.GetFile())
    writer.SetImage(change.GetOutput())
    assert writer.Write()
    return after.read_bytes()


def make_htj2k(rows: int, columns: int, bits: int) -> bytes:
    """A high-throughput JPEG 2000 image without coefficients: the grey in the middle. No encoder for it is at hand."""

    def segment(marker: int, content: bytes) -> bytes:
        return struct.pack(">HH", marker, len(content) + 2) + content

    size = struct.pack(">H8IH3B", 0x4000, columns, rows, 0, 0, columns, rows, 0, 0, 1, bits - 1, 1, 1)
    header = (
        b"\xff\x4f"
        + segment(0xFF51, size)
        + segment(0xFF50, struct.pack(">IH", 0x00020000, 0))  # CAP: part 15
        # COD: one layer, LRCP, no decomposition, code blocks of 64 x 64, high throughput, reversible 5-3
        + segment(0xFF52, struct.pack(">BBHB5B", 0, 0, 1, 0, 0, 4, 4, 0x40, 1))
        + segment(0xFF5C, bytes((0x40, (bits + 1) << 3)))  # QCD: no quantisation
    )
    packet = b"\0"  # empty
    tile = struct.pack(">HHHIBB", 0xFF90, 10, 0, 12 + 2 + len(packet), 0, 1) + b"\xff\x93" + packet
    return header + tile + b"\xff\xd9"
