"""How fast are the pixels of DICOM files decoded? Beside bare pydicom, where that is installed.

Files of a digital detector, 2,500 x 2,048 pixels of 12 bits, in every transfer syntax that can be written without
pydicom. Carina reads the file and decodes the stored values; pydicom does the same by `dcmread(...).pixel_array`. The
bound is a ratio of 1.3. A whole import, with the PNG files that it writes, is printed for comparison, without a bound.

    python benchmarks/import_dicom.py
"""

import argparse
import importlib.util
import io
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[1]))

from tests.sources.dicom.objects import compressed, encode_image, encode_rle, radiograph, save

from carina.phantom.dicom_objects import BIG_ENDIAN, DEFLATED, EXPLICIT, IMPLICIT
from carina.sources import import_source
from carina.sources.dicom.files import list_files, read_object
from carina.sources.dicom.stored_values import JPEG_2000_LOSSLESS, JPEG_BASELINE, RLE, decode_stored_values

ROWS, COLUMNS = 2500, 2048
LARGEST_RATIO = 1.3
ROUNDS = 3


def make_pixels() -> np.ndarray:
    """Smooth shadows and noise, which compress about as well as a radiograph."""
    draw = np.random.default_rng(1)
    y, x = np.mgrid[0:ROWS, 0:COLUMNS] / 400
    return (
        (2000 + 900 * np.sin(x) * np.cos(y) + draw.normal(0, 8, (ROWS, COLUMNS)))
        .clip(0, 4095)
        .astype(np.uint16)
    )


def write_files(folder: Path) -> dict[str, Path]:
    """One file for each transfer syntax."""
    pixels = make_pixels()
    grey = (pixels >> 4).astype(np.uint8)
    native = {"explicit": EXPLICIT, "implicit": IMPLICIT, "big-endian": BIG_ENDIAN, "deflated": DEFLATED}
    files = {name: save(folder / f"{name}.dcm", radiograph(pixels), uid) for name, uid in native.items()}
    packed = {
        "RLE": (RLE, pixels, 12, encode_rle(pixels)),
        "JPEG baseline": (JPEG_BASELINE, grey, 8, encode_image(grey, "JPEG", quality=95)),
        "JPEG 2000": (JPEG_2000_LOSSLESS, pixels, 16, encode_image(pixels, "JPEG2000", irreversible=False)),
    }
    for name, (uid, values, bits, data) in packed.items():
        elements = radiograph(values, bits=bits, PIXEL_DATA=compressed(data))
        files[name] = save(folder / f"{name}.dcm", elements, uid)
    return files


def best_of(function: Callable[[], object]) -> float:
    """Seconds of the fastest of several rounds."""
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        function()
        times.append(time.perf_counter() - started)
    return min(times)


def decode_by_pydicom(path: Path) -> np.ndarray:
    import pydicom  # noqa: PLC0415 - where it is installed

    return pydicom.dcmread(io.BytesIO(path.read_bytes())).pixel_array


def main() -> int:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    has_pydicom = importlib.util.find_spec("pydicom") is not None
    worst = 0.0
    with TemporaryDirectory() as name:
        folder = Path(name)
        print(f"{'':<14}{'Carina':>10}{'pydicom':>10}{'ratio':>8}   seconds an image, {ROWS} x {COLUMNS}")
        for kind, path in write_files(folder / "in").items():
            (file,) = list_files(path)
            ours = best_of(lambda file=file: decode_stored_values(read_object(file)))
            if not has_pydicom:
                print(f"{kind:<14}{ours:>10.4f}{'-':>10}{'-':>8}")
                continue
            theirs = best_of(lambda path=path: decode_by_pydicom(path))
            worst = max(worst, ours / theirs)
            print(f"{kind:<14}{ours:>10.4f}{theirs:>10.4f}{ours / theirs:>8.2f}")
        started = time.perf_counter()
        options = {"key_file": folder / "key"}
        import_source("dicom", folder / "in/explicit.dcm", folder / "out", options=options, workers=1)
        print(
            f"{'whole import':<14}{time.perf_counter() - started:>10.4f}   one image, PNG encoding included"
        )
    if not has_pydicom:
        print("pydicom is not installed: nothing was compared")
        return 0
    print(f"largest ratio {worst:.2f}, bound {LARGEST_RATIO}")
    return 0 if worst <= LARGEST_RATIO else 1


if __name__ == "__main__":
    raise SystemExit(main())
