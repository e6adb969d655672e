"""Import synthetic tables of the size of MIMIC-CXR-JPG: time, and peak memory of the process and of its workers.

    python benchmarks/import_tables.py                 377,110 images, 227,827 studies with reports
    python benchmarks/import_tables.py --share 0.1     a tenth of it
    python benchmarks/import_tables.py --facts         also read findings from the reports

Wanted: under 3 minutes and 1.5 GB. No image files are written: the sizes come from the table.
"""

import argparse
import gzip
import random
import resource
import tempfile
import time
import zipfile
from pathlib import Path

from carina.sources import import_source

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


def write_tables(folder: Path, share: float, seed: int) -> tuple[int, int]:
    """Write metadata, split, labels and reports; returns the numbers of images and studies."""
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
    return images, studies


def main() -> None:
    parser = argparse.ArgumentParser(description="Import synthetic tables of the size of MIMIC-CXR-JPG.")
    parser.add_argument("--share", type=float, default=1.0, help="Share of the size of MIMIC-CXR-JPG.")
    parser.add_argument("--workers", type=int, help="Number of processes; one per core by default.")
    parser.add_argument("--facts", action="store_true", help="Also read findings from the reports.")
    parser.add_argument("--seed", type=int, default=0, help="Seed of the synthetic tables.")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mimic"
        path.mkdir()
        images, studies = write_tables(path, given.share, given.seed)
        start = time.perf_counter()
        imported = import_source(
            "mimic-cxr-jpg", path, Path(folder) / "out", options={"facts": given.facts}, workers=given.workers
        )
        seconds = time.perf_counter() - start
        size = sum(file.stat().st_size for file in (Path(folder) / "out").rglob("*") if file.is_file())
    own, workers = (
        resource.getrusage(who).ru_maxrss / 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    print(f"{images:,} images, {studies:,} studies, {imported.counts.kept:,} imported in {seconds:.1f} s")
    print(f"peak memory: {own:,.0f} MB, largest worker {workers:,.0f} MB; study set of {size / 1e6:,.0f} MB")


if __name__ == "__main__":
    main()
