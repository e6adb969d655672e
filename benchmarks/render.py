"""How fast are the pictures of a case made? Views per second of one core at 1024 x 1024, with PNG encoding and without.

The case is like those of percept that go all the way: the X-ray, a mask, the mask with six points, four masks to choose
from, each of them the true mask but for one or two bumps. Printed beside what cannot be avoided, measured in the same
run: encoding the same finished pictures by OpenCV, and one blend of a full frame for each picture as the usual drawing.

    python benchmarks/render.py
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import cv2
import numpy as np

from carina.cases.draw import MARKS
from carina.cases.model import Case, CaseImage, CaseRegion, CaseView, Key, Mark, Option, Overlay, Panel, Step
from carina.cases.render import Views
from carina.phantom.make import make_studies
from carina.phantom.options import PhantomOptions
from carina.studies import Region, read_pixels, to_display, write_png

SIZE = 1024
TARGET_VIEWS = 50.0
"""A second of one core, decoding and PNG encoding included."""
TARGET_CASE = 0.25
"""Seconds of one core for all views of a case."""
LESIONS = ("consolidation", "pleural effusion", "lung opacity", "pneumonia", "atelectasis")
BUMP = 55
"""Radius of an edit in pixels: the least thickness that percept asks for lies below, the usual near it."""


class Folder:
    """Images in a folder, as a benchmark hands them out."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def image_path(self, image: CaseImage) -> Path:
        return self.root / image.key

    def pixels(self, image: CaseImage) -> np.ndarray:
        stored = read_pixels(self.image_path(image))
        return to_display(stored, bits=image.bits, monochrome1=image.monochrome1)


class Row(NamedTuple):
    what: str
    seconds: float


def main() -> int:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--cases", type=int, default=12)
    arguments.add_argument("--rounds", type=int, default=3, help="the quickest round counts")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--pictures", type=Path, help="a folder to write the views of the first case to")
    chosen = arguments.parse_args()
    cv2.setNumThreads(1)  # per core
    with TemporaryDirectory() as directory:
        cases = made_cases(Path(directory), n=chosen.cases, seed=chosen.seed)
        if chosen.pictures:
            write_pictures(chosen.pictures, cases[0], Folder(Path(directory)))
        return report(cases, Folder(Path(directory)), rounds=chosen.rounds)


def report(cases: Sequence[Case], folder: Folder, *, rounds: int) -> int:
    views = [(case, view.id) for case in cases for view in case.views]
    warm = Views(folder)
    finished = [warm.array(case, view) for case, view in views]
    swapped = [
        picture[..., 0].copy() if view == "v1" else cv2.cvtColor(picture, cv2.COLOR_RGB2BGR)
        for (_, view), picture in zip(views, finished, strict=True)
    ]
    tints = [np.full_like(picture, 127) for picture in finished[:1]]

    def drawn() -> None:
        # Decoded before, as for every view of a case but the first.
        made = Views(folder)
        made._decoded = warm._decoded
        for case, view in views:
            made.array(case, view)

    def with_png() -> None:
        made = Views(folder)
        for case, view in views:
            made.png(case, view)

    def unshared() -> None:
        for case, view in views:
            Views(folder).png(case, view)

    def decoded() -> None:
        for case in cases:
            folder.pixels(case.images[0])

    settings = [cv2.IMWRITE_PNG_COMPRESSION, 1, cv2.IMWRITE_PNG_FILTER, cv2.IMWRITE_PNG_FILTER_SUB]
    bytes_ours = sum(len(warm.png(case, view)) for case, view in views) / len(views)
    bytes_cv2 = sum(cv2.imencode(".png", p, settings)[1].size for p in swapped) / len(swapped)
    warm._decoded._most = len(cases)
    for case in cases:
        warm.array(case, "v1")
    rows = [
        Row("all: decode, draw, PNG", best(with_png, rounds)),
        Row("the same, each view by itself", best(unshared, rounds)),
        Row("drawing alone", best(drawn, rounds)),
        Row(
            "bound: OpenCV's PNG alone",
            best(lambda: [cv2.imencode(".png", p, settings) for p in swapped], rounds),
        ),
        Row("bound: decode alone", best(decoded, rounds)),
        Row(
            "peer: one full-frame blend",
            best(lambda: [cv2.addWeighted(p, 0.5, tints[0], 0.5, 0) for p in finished], rounds),
        ),
    ]
    bound = rows[3].seconds + rows[4].seconds
    print(f"{len(cases)} cases, {len(views)} views of {SIZE} x {SIZE}; seconds are CPU time of one core\n")
    print(f"{'':<32}{'views/s':>9}{'ms/view':>9}{'s/case':>8}{'share of bound':>16}")
    for row in rows:
        each = row.seconds / len(views)
        share = "" if row.what.startswith(("bound", "peer", "drawing")) else f"{bound / row.seconds:.2f}"
        print(f"{row.what:<32}{1 / each:>9.1f}{each * 1e3:>9.2f}{row.seconds / len(cases):>8.3f}{share:>16}")
    print(f"\nbytes a view: {bytes_ours:,.0f}; by OpenCV: {bytes_cv2:,.0f}")
    print(f"bound = OpenCV's PNG + decode; drawing / blend = {rows[2].seconds / rows[5].seconds:.2f}")
    rate, per_case = len(views) / rows[0].seconds, rows[0].seconds / len(cases)
    reached = rate >= TARGET_VIEWS and per_case <= TARGET_CASE
    print(
        f"target: {TARGET_VIEWS:.0f} views/s and {TARGET_CASE} s a case: {'reached' if reached else 'MISSED'}"
    )
    return 0 if reached else 1


def best(run: Callable[[], object], rounds: int) -> float:
    seconds = []
    for _ in range(rounds):
        before = time.process_time()
        run()
        seconds.append(time.process_time() - before)
    return min(seconds)


def made_cases(directory: Path, *, n: int, seed: int) -> list[Case]:
    cases: list[Case] = []
    for study, images in make_studies(10 * n, seed, PhantomOptions(size=SIZE)):
        if len(cases) == n:
            break
        image = study.images[0]
        lesions = [
            region.region
            for finding in study.findings
            if finding.name in LESIONS
            for region in finding.annotations
            if region.image == image.key
        ]
        if not lesions or lesions[0].union(*lesions[1:]).area < 8_000:
            continue
        write_png(directory / image.key, images[image.key])
        shown = CaseImage(
            key=image.key,
            width=image.width,
            height=image.height,
            bits=image.bits,
            monochrome1=image.monochrome1,
        )
        cases.append(case_of(shown, lesions[0].union(*lesions[1:]), seed=seed + len(cases)))
    return cases


def case_of(image: CaseImage, truth: Region, *, seed: int) -> Case:
    rng = np.random.default_rng(seed)
    places = spread(truth, rng, n=6)
    grown = [truth.union(disc(place)) for place in places]
    cut = [truth.difference(disc(place)) for place in places]
    deformed = grown[0].difference(disc(places[1]))
    options = [truth, grown[0], deformed.union(disc(places[2])), cut[3]]
    regions = {f"r{n}": region for n, region in enumerate([deformed, *options], start=1)}
    marks = tuple(
        Mark(x=x + 0.5, y=y + 0.5, colour=colour, text=str(n))
        for n, ((x, y), colour) in enumerate(zip(places, MARKS, strict=False), start=1)
    )

    def view(n: int, region: str | None = None, points: tuple[Mark, ...] = ()) -> CaseView:
        overlays = (Overlay(region=region),) if region else ()
        return CaseView(id=f"v{n}", panels=(Panel(image=image.key, overlays=overlays, marks=points),))

    return Case(
        id=f"c-{seed:016x}", protocol="percept", study="s", patient=None, source="phantom", images=(image,),
        regions=tuple(CaseRegion(name=name, image=image.key, region=region) for name, region in regions.items()),
        views=(view(1), view(2, "r1"), view(3, "r1", marks), *(view(n, f"r{n - 2}") for n in range(4, 8))),
        steps=(
            Step(
                id="1", stage=1, task="detection", format="choice", question="?",
                options=(Option(id="yes", text="Yes"),), key=Key(options=("yes",)),
            ),
        ),
    )  # fmt: skip


def spread(region: Region, rng: np.random.Generator, *, n: int) -> list[tuple[int, int]]:
    """Corners of its outline, far from each other."""
    ring = np.concatenate(region.contours())
    picked = [ring[rng.integers(len(ring))]]
    while len(picked) < n:
        nearest = np.min([np.hypot(*(ring - at).T) for at in picked], axis=0)
        picked.append(ring[int(nearest.argmax())])
    return [(int(x), int(y)) for x, y in picked]


def disc(place: tuple[int, int]) -> Region:
    mask = np.zeros((SIZE, SIZE), np.uint8)
    cv2.circle(mask, place, BUMP, 1, cv2.FILLED)
    return Region.from_mask(mask.astype(bool))


def write_pictures(folder: Path, case: Case, images: Folder) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    views = Views(images)
    for view in case.views:
        (folder / f"{view.id}.png").write_bytes(views.png(case, view.id))


if __name__ == "__main__":
    sys.exit(main())
