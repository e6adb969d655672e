"""How fast are the pixels of DICOM files decoded, beside bare pydicom?

Files of a digital detector, 2,500 x 2,048 pixels of 12 bits (8 where the compression has no more), in every transfer
syntax that can be written. Carina reads the file, checks its size and decodes the stored values; pydicom does
`dcmread(...).pixel_array`. The bound is a ratio of 1.3. A whole import, with the PNG files that it writes, is printed
for comparison, without a bound.

Each ratio is printed three times: by the processor; by the clock while as many processes as there are cores decode at
once, as an import does; and by the clock for one process alone. The bound holds for the first two. Alone, gdcm, which
pydicom prefers, decodes JPEG 2000 on two cores, and Carina's decoder on one. The clock needs a quiet machine.

    python benchmarks/import_dicom.py
"""

import argparse
import io
import multiprocessing
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import pydicom

sys.path.append(str(Path(__file__).resolve().parents[1]))

from tests.sources.dicom import syntaxes

from carina.sources import import_source
from carina.sources.dicom import isolated_decoder
from carina.sources.dicom.files import list_files, read_object
from carina.sources.dicom.stored_values import decode_stored_values

ROWS, COLUMNS = 2500, 2048
LARGEST_RATIO = 1.3
ROUNDS = 3
FEWEST_AT_ONCE = 4
SECONDS_AT_ONCE = 0.6
"""How long each process decodes at least: starting and ending processes must not count."""
EIGHT_BITS = ("jpeg-baseline", "jpeg-extended")


def make_pixels() -> np.ndarray:
    """Smooth shadows and noise, which compress about as well as a radiograph."""
    draw = np.random.default_rng(1)
    y, x = np.mgrid[0:ROWS, 0:COLUMNS] / 400
    values = 2000 + 900 * np.sin(x) * np.cos(y) + draw.normal(0, 8, (ROWS, COLUMNS))
    return values.clip(0, 4095).astype(np.uint16)


def write_files(folder: Path) -> dict[str, Path]:
    """One file for each transfer syntax."""
    folder.mkdir()
    pixels = make_pixels()
    grey = (pixels >> 4).astype(np.uint8)
    files = {}
    for name, syntax in {**syntaxes.NATIVE, **syntaxes.LOSSLESS, **syntaxes.LOSSY}.items():
        values, bits = (grey, 8) if name in EIGHT_BITS else (pixels, 12)
        content = syntaxes.encode(syntaxes.dataset(values, bits), syntax, folder.parent)
        files[name] = folder / f"{name}.dcm"
        files[name].write_bytes(content)
    return files


def processor_seconds() -> float:
    """Of this process, and of the one that decodes JPEG lossless."""
    seconds = time.process_time()
    for decoder in isolated_decoder._running:
        fields = Path(f"/proc/{decoder._process.pid}/stat").read_text().rpartition(")")[2].split()
        seconds += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return seconds


class Seconds(NamedTuple):
    """The fastest of several rounds, for one image."""

    processor: float
    all_cores: float
    """By the clock, with a process for each core."""
    alone: float
    """By the clock, with one process."""


def measure(ours: Callable[[], object], theirs: Callable[[], object]) -> tuple[Seconds, Seconds]:
    """Seconds of both, taken in turns, after one round that loads the decoders."""
    times: tuple[list[Seconds], list[Seconds]] = ([], [])
    for at in range(ROUNDS + 1):
        for function, kept in zip((ours, theirs), times, strict=True):
            processor, clock = processor_seconds(), time.perf_counter()
            function()
            processor, alone = processor_seconds() - processor, time.perf_counter() - clock
            if at:
                images = max(FEWEST_AT_ONCE, int(SECONDS_AT_ONCE / alone))
                kept.append(Seconds(processor, measure_on_all_cores(function, images), alone))
    mine, other = (Seconds(*map(min, zip(*kept, strict=True))) for kept in times)
    return mine, other


def measure_on_all_cores(function: Callable[[], object], images: int) -> float:
    """Seconds by the clock for one image, while every core has a process that decodes as many images."""
    context = multiprocessing.get_context("fork")
    ready = context.Barrier((os.cpu_count() or 1) + 1)

    def decode() -> None:
        function()
        ready.wait()
        for _ in range(images):
            function()

    processes = [context.Process(target=decode) for _ in range(ready.parties - 1)]
    for process in processes:
        process.start()
    ready.wait()
    start = time.perf_counter()
    for process in processes:
        process.join()
    return (time.perf_counter() - start) / (images * len(processes))


def decode_by_pydicom(path: Path) -> np.ndarray:
    return pydicom.dcmread(io.BytesIO(path.read_bytes())).pixel_array


def main() -> int:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    warnings.simplefilter("ignore")
    worst = 0.0
    with TemporaryDirectory() as name:
        folder = Path(name)
        print(f"Seconds for an image of {ROWS} x {COLUMNS} pixels")
        print(f"{'':<20}{'by the processor':^28}{'by the clock, all cores':^28}{'by the clock, alone':^28}")
        print(f"{'':<20}" + f"{'Carina':>10}{'pydicom':>10}{'ratio':>8}" * 3)
        for kind, path in write_files(folder / "in").items():
            (file,) = list_files(path)
            ours, theirs = measure(
                lambda file=file: decode_stored_values(read_object(file)),
                lambda path=path: decode_by_pydicom(path),
            )
            worst = max(worst, ours.processor / theirs.processor, ours.all_cores / theirs.all_cores)
            columns = (
                f"{mine:>10.4f}{other:>10.4f}{mine / other:>8.2f}"
                for mine, other in zip(ours, theirs, strict=True)
            )
            print(f"{kind:<20}{''.join(columns)}")
        started = time.process_time()
        options = {"key_file": folder / "key", "look_for_text": "never"}
        import_source("dicom", folder / "in/explicit.dcm", folder / "out", options=options, workers=1)
        seconds = time.process_time() - started
        print(f"{'whole import':<20}{seconds:>10.4f}   one image, PNG encoding included, text not looked for")
    print(f"largest ratio {worst:.2f}, bound {LARGEST_RATIO}; load of the machine {os.getloadavg()[0]:.1f}")
    return 0 if worst <= LARGEST_RATIO else 1


if __name__ == "__main__":
    raise SystemExit(main())
