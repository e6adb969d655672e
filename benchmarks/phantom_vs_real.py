"""How close do phantoms look to real radiographs? Grey histograms and contrasts beside each other, and a picture.

Real images are read in place and never copied: NIH ChestX-ray14 (histograms) and the COVID-19 Image Data
Collection with its human lung masks (contrasts). Histogram distances are printed beside the distance between a
tenth of the real images and the other nine tenths: nothing can be expected closer than real images are to each
other.

    python benchmarks/phantom_vs_real.py --data ../shared/data --picture side-by-side.png
"""

import argparse
import csv
import sys
from pathlib import Path

import cv2
import numpy as np
from scipy.stats import wasserstein_distance

from carina.phantom import Mix, PhantomOptions, make_studies
from carina.studies import read_pixels, to_display

SIZE = 512
# Limits stated in the documentation: a distance may be this many times that between real images.
HISTOGRAM_LIMIT = 2.0
# Medians of a contrast may differ by this many standard deviations of the real set.
CONTRAST_LIMIT = 1.0


def main() -> int:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    arguments.add_argument("--studies", type=int, default=80)
    arguments.add_argument("--picture", type=Path, help="write phantoms beside real images")
    chosen = arguments.parse_args()
    if not (chosen.data / "nih").is_dir():
        print(
            f"{chosen.data}: no real images here; give --data a folder with nih/ and covid/", file=sys.stderr
        )
        return 2
    real = real_frontals(chosen.data)
    phantom, masks = phantom_frontals(chosen.studies)
    failed = compare_histograms(real, phantom)
    failed += compare_contrasts(real_contrasts(chosen.data), [contrasts(i, m) for i, m in masks])
    if chosen.picture:
        side_by_side(real, phantom, chosen.picture)
    print(f"\n{'all within their limits' if not failed else f'{failed} outside their limits'}")
    return 1 if failed else 0


def loaded(path: Path) -> np.ndarray:
    pixels = read_pixels(path)
    shown = to_display(pixels, bits=8 if pixels.dtype == np.uint8 else 16)
    return cv2.resize(shown, (SIZE, SIZE), interpolation=cv2.INTER_AREA)


def real_frontals(data: Path) -> dict[str, list[np.ndarray]]:
    with (data / "nih" / "Data_Entry_2017_v2020.csv").open(newline="") as table:
        views = {row["Image Index"]: row["View Position"] for row in csv.DictReader(table)}
    images: dict[str, list[np.ndarray]] = {"PA": [], "AP": []}
    for path in sorted((data / "nih" / "images").glob("*.png")):
        images[views[path.name]].append(loaded(path))
    return images


def phantom_frontals(n: int) -> tuple[dict[str, list[np.ndarray]], list[tuple[np.ndarray, np.ndarray]]]:
    options = PhantomOptions(size=SIZE, mix=Mix(with_prior=0.0))
    images: dict[str, list[np.ndarray]] = {"PA": [], "AP": []}
    masks = []
    for study, pixels in make_studies(n, 2024, options):
        for image in study.images:
            if image.view in images:
                images[image.view].append(pixels[image.key])
                anatomy = study.anatomy_on(image.key)
                if "right lung" in anatomy and "left lung" in anatomy:
                    masks.append(
                        (pixels[image.key], anatomy["right lung"].union(anatomy["left lung"]).to_mask())
                    )
    return images, masks


def compare_histograms(real: dict[str, list[np.ndarray]], phantom: dict[str, list[np.ndarray]]) -> int:
    """Earth mover's distance between pooled grey histograms, in shares of the grey range."""
    print(f"{'grey histogram':<28}{'phantom-real':>14}{'real-real':>12}{'ratio':>8}{'limit':>8}")
    failed = 0
    for view in ("PA", "AP"):
        distance = histogram_distance(phantom[view], real[view])
        yardstick = real_distance(real[view])
        ratio = distance / yardstick
        failed += ratio > HISTOGRAM_LIMIT
        print(
            f"{f'{view} (n={len(phantom[view])}, {len(real[view])})':<28}{distance:>14.3f}{yardstick:>12.3f}"
            f"{ratio:>8.2f}{HISTOGRAM_LIMIT:>8.1f}"
        )
        for name, images in (("real", real[view]), ("phantom", phantom[view])):
            spread = np.mean([np.percentile(i, [1, 5, 25, 50, 75, 95, 99]) for i in images], axis=0)
            print(
                f"    {name:<10} mean percentiles 1 5 25 50 75 95 99: {' '.join(f'{v:4.0f}' for v in spread)}"
            )
    return failed


def histogram_distance(first: list[np.ndarray], second: list[np.ndarray]) -> float:
    levels = np.arange(256) / 255
    pooled = [
        sum(np.bincount(i.ravel(), minlength=256) / i.size for i in images) for images in (first, second)
    ]
    return float(wasserstein_distance(levels, levels, pooled[0], pooled[1]))


def real_distance(images: list[np.ndarray], *, draws: int = 200) -> float:
    """Mean distance between a tenth of the real images and the rest."""
    chance = np.random.default_rng(0)
    distances = []
    for _ in range(draws):
        order = chance.permutation(len(images))
        few = max(len(images) // 10, 1)
        distances.append(
            histogram_distance([images[k] for k in order[:few]], [images[k] for k in order[few:]])
        )
    return float(np.mean(distances))


def real_contrasts(data: Path) -> list[dict[str, float]]:
    found = []
    for path in sorted((data / "covid" / "semantic_masks_v7labs_lungs").iterdir()):
        # Mask files carry the image's name, whatever their content; the image may be missing.
        image = data / "covid" / "images" / path.name
        if image.exists():
            mask = cv2.imread(str(path), cv2.IMREAD_GRAYSCALE) > 200
            mask = cv2.resize(mask.astype(np.uint8), (SIZE, SIZE), interpolation=cv2.INTER_NEAREST) > 0
            found.append(contrasts(loaded(image), mask))
    return found


def contrasts(image: np.ndarray, lungs: np.ndarray) -> dict[str, float]:
    """Contrasts that need only a picture and where its lungs are."""
    values = image.astype(np.float32) / 255
    rows, cols = np.flatnonzero(lungs.any(axis=1)), np.flatnonzero(lungs.any(axis=0))
    top, height, middle = rows[0], rows[-1] - rows[0], (cols[0] + cols[-1]) // 2
    half = (cols[-1] - cols[0]) / 2
    across = np.abs(np.arange(SIZE) - middle)[None, :]
    band = np.zeros_like(lungs)
    band[top + height // 4 : top + (3 * height) // 4] = True
    # The outer part of the lungs, clear of the heart, and a strip along the midline.
    outer = lungs & band & (across > 0.5 * half)
    strip = band & (across < 0.08 * half)
    lung, mediastinum = float(np.median(values[outer])), float(np.median(values[strip]))
    detail = values - cv2.GaussianBlur(values, (0, 0), 0.03 * SIZE)
    fine = values - cv2.GaussianBlur(values, (0, 0), 0.004 * SIZE)
    outside = ~cv2.dilate(
        lungs.view(np.uint8), np.ones((3, 3), np.uint8), iterations=int(0.06 * SIZE)
    ).astype(bool)
    margin = outside & band & (across > half)
    return {
        "lung level": lung,
        "mediastinum level": mediastinum,
        "lung / mediastinum": lung / max(mediastinum, 1e-3),
        "ribs and vessels in lung": float(detail[outer].std()),
        "fine texture in lung": float(fine[outer].std()),
        "beside the chest / lung": float(np.median(values[margin])) / max(lung, 1e-3)
        if margin.any()
        else np.nan,
    }


def compare_contrasts(real: list[dict[str, float]], phantom: list[dict[str, float]]) -> int:
    print(
        f"\n{f'contrast (n={len(phantom)}, {len(real)})':<28}"
        f"{'phantom':>10}{'real':>10}{'sd real':>10}{'off by':>11}{'limit':>8}"
    )
    failed = 0
    for name in real[0]:
        ours, theirs = (np.array([c[name] for c in side]) for side in (phantom, real))
        spread = float(np.nanstd(theirs))
        off = abs(float(np.nanmedian(ours)) - float(np.nanmedian(theirs))) / spread
        failed += off > CONTRAST_LIMIT
        print(
            f"{name:<28}{np.nanmedian(ours):>10.3f}{np.nanmedian(theirs):>10.3f}{spread:>10.3f}"
            f"{off:>8.2f} sd{CONTRAST_LIMIT:>8.1f}"
        )
    return failed


def side_by_side(real: dict[str, list[np.ndarray]], phantom: dict[str, list[np.ndarray]], path: Path) -> None:
    rows = []
    for view in ("PA", "AP"):
        for images in (real[view], phantom[view]):
            rows.append(
                np.hstack([cv2.resize(i, (320, 320), interpolation=cv2.INTER_AREA) for i in images[3:9]])
            )
    cv2.imwrite(str(path), np.vstack(rows))
    print(f"\n{path}: rows are real PA, phantom PA, real AP, phantom AP")


if __name__ == "__main__":
    sys.exit(main())
