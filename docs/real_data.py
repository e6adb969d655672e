"""Real radiographs through every protocol: the images of docs/how-to/real-data.md, and pages to look at.

    python docs/real_data.py --data ../shared/data --out build/real-data

Reads NIH ChestX-ray14 and the COVID-19 Image Data Collection in place. Imports both, builds ground, trek and percept
from the NIH images, writes pages of a few studies and cases to --out, and with --assets the images of the page.
Only images whose licence allows it are drawn there; the page names their sources.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np

import carina
from carina.cases import Benchmark, Case, open_benchmark
from carina.cases.draw import Layer, colour_of, overlay, to_rgb
from carina.pages import write_case_page, write_study_page
from carina.studies import Studies, Study, display_image

ASSETS = Path(__file__).parent / "assets"
WIDTH = 900
QUALITY = 80
NIH_STUDY = "00000211_010"
"""A follow-up study with a box by a radiologist and a prior study."""
COVID_LICENCES = ("CC BY 3.0", "CC BY 4.0")
"""Licences of images; the table of the set may not be shown here, so its picture has no text."""


def main() -> int:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    arguments.add_argument("--out", type=Path, default=Path("build/real-data"))
    arguments.add_argument("--assets", action="store_true", help="write the images of the documentation anew")
    chosen = arguments.parse_args()
    if not (chosen.data / "nih").is_dir():
        print(
            f"{chosen.data}: no real images here; give --data a folder with nih/ and covid/", file=sys.stderr
        )
        return 2
    pictures = make_pages(chosen.data, chosen.out)
    for name, picture in pictures.items():
        print(f"{name}: {picture}")
        if chosen.assets:
            write_asset(picture, ASSETS / f"{name}.jpg")
    return 0


def make_pages(data: Path, out: Path) -> dict[str, Path]:
    """The summary image of each page, by the name of its asset."""
    nih = carina.import_studies("nih", data / "nih", out / "nih")
    licences = {"licence": COVID_LICENCES}
    covid = carina.import_studies("covid", data / "covid", out / "covid", options=licences)
    with_lungs = next(study for study in covid if study.anatomy)
    ground = carina.build_ground(nih, out / "ground")
    trek = carina.build_trek(nih, out / "trek")
    percept = carina.build_percept(nih, out / "percept", per_cell=4)
    pages = out / "pages"
    write_study_page(covid, with_lungs, pages)
    boxed = find_case(ground, lambda case: case.study == NIH_STUDY and case.path == "present")
    compared = find_case(trek, lambda case: case.study == NIH_STUDY and case.reference_study is not None)
    negative = next(iter(percept))
    return {
        "real-nih-study": write_study_page(nih, nih[NIH_STUDY], pages).png,
        "real-covid-lungs": draw_lungs(covid, with_lungs, pages / "covid-lungs.png"),
        "real-ground-case": write_case_page(ground, boxed, pages).png,
        "real-trek-case": write_case_page(trek, compared, pages).png,
        "real-percept-case": write_case_page(percept, negative, pages).png,
    }


def draw_lungs(studies: Studies, study: Study, path: Path) -> Path:
    """The image beside itself with its lungs outlined, and nothing else of the study."""
    image = study.images[0]
    pixels = display_image(studies.pixels(image), image)
    layers = [
        Layer(region=each.region, colour=colour_of(each.name), outline=max(2, image.width // 250))
        for each in study.anatomy
        if each.name in ("right lung", "left lung")
    ]
    both = np.hstack([to_rgb(pixels), overlay(pixels, layers)])
    cv2.imwrite(str(path), both[..., ::-1])
    return path


def find_case(bench: Benchmark, is_wanted: Callable[[Case], bool]) -> Case:
    return next(case for case in open_benchmark(bench.directory) if is_wanted(case))


def write_asset(picture: Path, asset: Path) -> None:
    """The picture as a JPEG of at most `WIDTH` columns, and as many rows."""
    image = cv2.imread(str(picture))
    scale = min(1.0, WIDTH / image.shape[1])
    small = cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)[:WIDTH]
    written, content = cv2.imencode(".jpg", np.ascontiguousarray(small), [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
    if not written:
        raise RuntimeError(f"{asset}: cannot be written")
    asset.write_bytes(content.tobytes())


if __name__ == "__main__":
    sys.exit(main())
