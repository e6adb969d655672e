"""Import synthetic annotations of published sizes: time, processor time and memory, beside torchxrayvision.

    python benchmarks/import.py                    both parts
    python benchmarks/import.py boxes              a million boxes in the layout of VinBigData, without images
    python benchmarks/import.py mimic              377,110 images and 227,827 reports in the layout of MIMIC-CXR-JPG
    python benchmarks/import.py mimic --facts      also read findings from the reports, by rules
    python benchmarks/import.py --share 0.1        a tenth of the rows

Wanted on two cores: the boxes in 30 s; the tables of MIMIC in 3 minutes and 1.5 GB. No image files are written: sizes
come from tables. torchxrayvision reads the same files where it is installed; it keeps labels of images, and turns boxes
into masks when an image is asked for.
"""

import argparse
import gzip
import multiprocessing
import os
import random
import resource
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from carina.sources import import_source

ROWS = 1_000_000
ROWS_OF_AN_IMAGE = 9
CLASSES = (
    "Aortic enlargement", "Atelectasis", "Calcification", "Cardiomegaly", "Consolidation", "ILD", "Infiltration",
    "Lung Opacity", "Nodule/Mass", "Other lesion", "Pleural effusion", "Pleural thickening", "Pneumothorax",
    "Pulmonary fibrosis",
)  # fmt: skip
IMAGES = 377_110
STUDIES = 227_827
PATIENTS = 65_379
LABELS = (
    "Atelectasis", "Cardiomegaly", "Consolidation", "Edema", "Enlarged Cardiomediastinum", "Fracture", "Lung Lesion",
    "Lung Opacity", "No Finding", "Pleural Effusion", "Pleural Other", "Pneumonia", "Pneumothorax", "Support Devices",
)  # fmt: skip
COLUMNS = (
    "dicom_id,subject_id,study_id,PerformedProcedureStepDescription,ViewPosition,Rows,Columns,StudyDate,StudyTime,"
    "ProcedureCodeSequence_CodeMeaning,ViewCodeSequence_CodeMeaning,PatientOrientationCodeSequence_CodeMeaning\n"
)
SENTENCES = (
    "The lungs are clear.", "There is a small left pleural effusion.", "No pneumothorax is seen.",
    "The heart is mildly enlarged.", "Patchy opacity at the right base may reflect atelectasis or pneumonia.",
    "An endotracheal tube ends 4 cm above the carina.", "Bony structures are intact.",
    "Compared with the prior study, the opacity has increased.",
)  # fmt: skip


# ---- files ----------------------------------------------------------------------------------------------------------


def write_boxes(folder: Path, share: float, seed: int) -> str:
    """Write boxes of three readers an image, and a table of sizes; returns what was written."""
    chance = random.Random(seed)  # noqa: S311 - synthetic data
    rows = max(1, int(ROWS * share))
    images = -(-rows // ROWS_OF_AN_IMAGE)
    with (folder / "train.csv").open("w") as table, (folder / "sizes.csv").open("w") as sizes:
        table.write("image_id,class_name,class_id,rad_id,x_min,y_min,x_max,y_max\n")
        sizes.write("image_id,dim0,dim1\n")
        for image in range(images):
            name, width, height = f"{chance.getrandbits(128):032x}", chance.randrange(1800, 3000), 2800
            sizes.write(f"{name},{height},{width}\n")
            for _ in range(min(ROWS_OF_AN_IMAGE, rows - image * ROWS_OF_AN_IMAGE)):
                number, reader = chance.randrange(len(CLASSES)), chance.randrange(8, 11)
                x, y = chance.randrange(width - 300), chance.randrange(height - 300)
                right, bottom = x + chance.randrange(20, 300), y + chance.randrange(20, 300)
                table.write(f"{name},{CLASSES[number]},{number},R{reader},{x},{y},{right},{bottom}\n")
    return f"{rows:,} boxes of {images:,} images"


def write_mimic(folder: Path, share: float, seed: int) -> str:
    """Write metadata, split, labels and reports; returns what was written."""
    chance = random.Random(seed)  # noqa: S311 - synthetic data
    images, studies, patients = (max(1, int(number * share)) for number in (IMAGES, STUDIES, PATIENTS))
    owner = [f"{19_000_000 + chance.randrange(patients)}" for _ in range(studies)]
    of_image = [*range(studies), *(chance.randrange(studies) for _ in range(images - studies))]
    when = [(21_000_101 + chance.randrange(80) * 10_000, chance.randrange(235_959)) for _ in range(studies)]
    with (
        gzip.open(folder / "mimic-cxr-2.0.0-metadata.csv.gz", "wt", compresslevel=1) as metadata,
        gzip.open(folder / "mimic-cxr-2.0.0-split.csv.gz", "wt", compresslevel=1) as split,
    ):
        metadata.write(COLUMNS)
        split.write("dicom_id,study_id,subject_id,split\n")
        for study in sorted(of_image):
            name = "-".join(f"{chance.getrandbits(32):08x}" for _ in range(5))
            view = chance.choice(("PA", "AP", "LATERAL", ""))
            day, second = when[study]
            number = 59_000_000 + study
            metadata.write(
                f"{name},{owner[study]},{number},CHEST (PA AND LAT),{view},3056,2544,{day},{second}.25,,,Erect\n"
            )
            split.write(f"{name},{number},{owner[study]},{chance.choice(('train', 'validate', 'test'))}\n")
    for table in ("chexpert", "negbio"):
        with gzip.open(folder / f"mimic-cxr-2.0.0-{table}.csv.gz", "wt", compresslevel=1) as file:
            file.write(f"subject_id,study_id,{','.join(LABELS)}\n")
            for study in range(studies):
                values = chance.choices(("", "1.0", "0.0", "-1.0"), (10, 3, 2, 1), k=len(LABELS))
                file.write(f"{owner[study]},{59_000_000 + study},{','.join(values)}\n")
    with zipfile.ZipFile(
        folder / "mimic-cxr-reports.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1
    ) as archive:
        for study in range(studies):
            text = " ".join(chance.choices(SENTENCES, k=8))
            report = f" FINAL REPORT\n INDICATION: ___ with cough.\n\n FINDINGS: {text}\n\n IMPRESSION: {text[:40]}\n"
            archive.writestr(f"files/p{owner[study][:2]}/p{owner[study]}/s{59_000_000 + study}.txt", report)
    return f"{images:,} images and {studies:,} reports"


# ---- measuring ------------------------------------------------------------------------------------------------------


def measure_boxes(path: Path, out: Path, given: argparse.Namespace) -> None:
    options = {"sizes": path / "sizes.csv", "missing_images": "keep"}
    import_source("vindr-cxr", path, out, options=options, workers=given.workers)


def measure_mimic(path: Path, out: Path, given: argparse.Namespace) -> None:
    import_source("mimic-cxr-jpg", path, out, options={"facts": given.facts}, workers=given.workers)


def load_boxes(datasets: Any, path: Path) -> str:
    loaded = datasets.VinBrain_Dataset(str(path), csvpath=str(path / "train.csv"))
    return f"VinBrain_Dataset: labels of {len(loaded):,} images"


def load_mimic(datasets: Any, path: Path) -> str:
    tables = (str(path / f"mimic-cxr-2.0.0-{name}.csv.gz") for name in ("chexpert", "metadata"))
    loaded = datasets.MIMIC_Dataset(str(path), *tables, views=["PA", "AP"], unique_patients=False)
    return f"MIMIC_Dataset: labels of {len(loaded):,} frontal images, no reports and no order of studies"


PARTS: dict[str, tuple[Callable[..., str], Callable[..., None], Callable[..., str]]] = {
    "boxes": (write_boxes, measure_boxes, load_boxes),
    "mimic": (write_mimic, measure_mimic, load_mimic),
}


def measure(part: str, given: argparse.Namespace) -> None:
    """One part, in a process of its own, whose memory is measured."""
    write, run, load = PARTS[part]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "set"
        path.mkdir()
        what = write(path, given.share, given.seed)
        before, start = time.process_time(), time.perf_counter()
        run(path, Path(folder) / "out", given)
        seconds = time.perf_counter() - start
        size = sum(file.stat().st_size for file in (Path(folder) / "out").rglob("*") if file.is_file())
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        processors = sum(one.ru_utime + one.ru_stime for one in used) - before
        own, largest = (one.ru_maxrss / 1024**2 for one in used)
        facts = ", facts of reports included" if part == "mimic" and given.facts else ""
        print(f"{part}: {what}{facts}: {seconds:.1f} s, {processors:.0f} s of processors")
        print(f"  study set of {size / 1e6:,.0f} MB; memory {own:.2f} GB, largest worker {largest:.2f} GB")
        print(f"  load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        datasets = open_torchxrayvision()
        if datasets is None:
            print("  torchxrayvision is not installed: left out")
            return
        start = time.perf_counter()
        loaded = load(datasets, path)
        print(f"  torchxrayvision, {loaded}: {time.perf_counter() - start:.1f} s")


def open_torchxrayvision() -> Any:
    """The loaders of torchxrayvision; None where it is not installed."""
    try:
        import torch  # noqa: PLC0415 - only where it is installed

        # A torchvision for another torch lacks two operators, which no loader uses.
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        import torchxrayvision  # noqa: PLC0415
    except ImportError:
        return None
    return torchxrayvision.datasets


def main() -> None:
    parser = argparse.ArgumentParser(description="Import synthetic annotations of published sizes.")
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="Parts to measure; both by default.")
    parser.add_argument("--share", type=float, default=1.0, help="Share of the published size.")
    parser.add_argument("--workers", type=int, help="Number of processes; one per core by default.")
    parser.add_argument("--facts", action="store_true", help="Also read findings from the reports of MIMIC.")
    parser.add_argument("--seed", type=int, default=0, help="Seed of the synthetic tables.")
    given = parser.parse_args()
    for part in given.parts or PARTS:
        process = multiprocessing.get_context("spawn").Process(target=measure, args=(part, given))
        process.start()
        process.join()


if __name__ == "__main__":
    main()
