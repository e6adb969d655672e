"""How often do the checks of polarity, view and lungs find what is wrong, and how often do they raise a false alarm?

Real images are read in place and never copied: NIH ChestX-ray14 and the COVID-19 Image Data Collection, frontal images
with a stated view, and human lung masks. What is wrong is made here: images are inverted, lungs are swapped, doubled,
shrunk or left out. There are no real lateral images here: hits of the view are measured on phantoms alone.

The limits of `carina.studies.plausibility` were chosen on the development half and on phantoms of another seed; the
half "untouched" was first measured when they were fixed. An image belongs to a half by a hash of its name.

    python benchmarks/plausibility.py --data ../shared/data
"""

import argparse
import hashlib
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from carina import import_studies
from carina.phantom import PhantomOptions, make_studies
from carina.studies import Anatomy, Image, Region, Study
from carina.studies.pixels import Pixels, read_pixels
from carina.studies.plausibility import check_plausibility, read_for_plausibility

SEED = 2026
LIMITS = {"false alarms": 0.05, "hits": 0.85}
"""Largest share of false alarms and smallest share of hits that the documentation states."""


class Sample(NamedTuple):
    """A study with one image, and the pixels of the image."""

    group: str
    study: Study
    pixels: Pixels


class Trial(NamedTuple):
    """A change that a check should find, or that it should not mind."""

    check: str
    name: str
    counts: str
    """What it counts when the check raises a problem: "hits" or "false alarms"."""
    apply: Callable[[Sample], Sample | None]
    """None where the change does not fit the sample."""


def main() -> int:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    arguments.add_argument("--phantoms", type=int, default=200)
    chosen = arguments.parse_args()
    if not (chosen.data / "nih").is_dir():
        print(
            f"{chosen.data}: no real images here; give --data a folder with nih/ and covid/", file=sys.stderr
        )
        return 2
    samples = [*read_real(chosen.data), *make_phantom_samples(chosen.phantoms)]
    failed = print_rates(samples)
    print_times(chosen.data)
    print(f"\n{'all within their limits' if not failed else f'{failed} outside their limits'}")
    return 1 if failed else 0


# ---- samples --------------------------------------------------------------------------------------------------------


def read_real(data: Path) -> Iterator[Sample]:
    """The frontal images of both sets, each in its half."""
    with tempfile.TemporaryDirectory() as folder:
        for source in ("nih", "covid"):
            studies = import_studies(source, data / source, Path(folder) / source, implausible="ignore")
            for study in studies:
                name = study.images[0].key.rsplit("/", 1)[-1]
                is_untouched = hashlib.sha256(name.encode()).digest()[0] % 2
                half = "untouched" if is_untouched else "development"
                yield Sample(f"real, {half}", study, studies.pixels(study.images[0]))


def make_phantom_samples(n: int) -> Iterator[Sample]:
    for study, pixels in make_studies(n, SEED, PhantomOptions(size=512)):
        for image in study.images:
            anatomy = tuple(each for each in study.anatomy if each.image == image.key)
            one = msgspec.structs.replace(study, images=(image,), anatomy=anatomy)
            yield Sample("phantom", one, pixels[image.key])


# ---- trials ---------------------------------------------------------------------------------------------------------


def keep(sample: Sample) -> Sample:
    return sample


def invert(sample: Sample) -> Sample:
    return sample._replace(pixels=~sample.pixels)


def keep_frontal(sample: Sample) -> Sample | None:
    return sample if sample.study.images[0].view in ("PA", "AP") else None


def keep_lateral(sample: Sample) -> Sample | None:
    return sample if sample.study.images[0].view == "lateral" else None


def declare_lateral(sample: Sample) -> Sample | None:
    return None if keep_frontal(sample) is None else _with_view(sample, "lateral")


def declare_frontal(sample: Sample) -> Sample | None:
    return None if keep_lateral(sample) is None else _with_view(sample, "PA")


def _with_view(sample: Sample, view: str) -> Sample:
    image = msgspec.structs.replace(sample.study.images[0], view=view)
    return sample._replace(study=msgspec.structs.replace(sample.study, images=(image,), anatomy=()))


def keep_lungs(sample: Sample) -> Sample | None:
    return sample if keep_frontal(sample) is not None and len(find_lungs(sample)) == 2 else None


def change_lungs(change: Callable[[Region, Region], dict[str, Region]]) -> Callable[[Sample], Sample | None]:
    """A trial in which right and left lung are replaced."""

    def apply(sample: Sample) -> Sample | None:
        if keep_lungs(sample) is None:
            return None
        lungs = find_lungs(sample)
        changed = change(lungs["right lung"].region, lungs["left lung"].region)
        anatomy = tuple(
            msgspec.structs.replace(lungs["right lung"], name=name, region=region)
            for name, region in changed.items()
        )
        return sample._replace(study=msgspec.structs.replace(sample.study, anatomy=anatomy))

    return apply


def find_lungs(sample: Sample) -> dict[str, Anatomy]:
    """The lungs of the first annotator who drew one."""
    lungs = [each for each in sample.study.anatomy if each.name in ("right lung", "left lung")]
    return {each.name: each for each in lungs if each.annotator == lungs[0].annotator}


def shrink(region: Region) -> Region:
    """The region at a tenth of its size, in the corner of the image."""
    small = region.resize(max(1, region.height // 10), max(1, region.width // 10))
    return small.paste(0, 0, height=region.height, width=region.width)


TRIALS = (
    Trial("polarity", "as it is", "false alarms", keep),
    Trial("polarity", "inverted", "hits", invert),
    Trial("view", "frontal, as it is", "false alarms", keep_frontal),
    Trial("view", "lateral, as it is", "false alarms", keep_lateral),
    Trial("view", "frontal, called lateral", "hits", declare_lateral),
    Trial("view", "lateral, called PA", "hits", declare_frontal),
    Trial("lungs", "as they are", "false alarms", keep_lungs),
    Trial("lungs", "swapped", "hits", change_lungs(lambda r, left: {"right lung": left, "left lung": r})),
    Trial("lungs", "one region twice", "hits", change_lungs(lambda r, _: {"right lung": r, "left lung": r})),
    Trial("lungs", "one lung missing", "hits", change_lungs(lambda r, _: {"right lung": r})),
    Trial(
        "lungs", "one lung a tenth as wide", "hits",
        change_lungs(lambda r, left: {"right lung": shrink(r), "left lung": left}),
    ),
)  # fmt: skip


def print_rates(samples: list[Sample]) -> int:
    """Print a line for each trial and group; returns the number of rates outside their limits."""
    print(f"{'check':<10}{'image':<27}{'group':<19}{'n':>5}{'raised':>8}{'cannot tell':>13}{'rate':>8}  kind")
    failed = 0
    for trial in TRIALS:
        for group in dict.fromkeys(sample.group for sample in samples):
            outcomes = Counter(try_samples(trial, (each for each in samples if each.group == group)))
            n = outcomes.total()
            if not n:
                continue
            rate = outcomes["raised"] / n
            limit = LIMITS[trial.counts]
            is_outside = rate < limit if trial.counts == "hits" else rate > limit
            failed += is_outside
            print(
                f"{trial.check:<10}{trial.name:<27}{group:<19}{n:>5}{outcomes['raised']:>8}"
                f"{outcomes['cannot tell']:>13}{rate:>8.3f}  {trial.counts}{' (outside)' if is_outside else ''}"
            )
    return failed


def try_samples(trial: Trial, samples: Iterable[Sample]) -> Iterator[str]:
    for sample in samples:
        changed = trial.apply(sample)
        if changed is None:
            continue

        def read(image: Image, pixels: Pixels = changed.pixels) -> Pixels:
            return ~pixels if image.monochrome1 else pixels

        result = check_plausibility(changed.study, read)
        if any(problem.check == trial.check for problem in result.problems):
            yield "raised"
        else:
            yield "cannot tell" if trial.check in result.undecided else "silent"


def print_times(data: Path) -> None:
    """Time an image, beside reading it at full size, which nothing that opens a PNG can avoid."""
    for source in ("nih", "covid"):
        paths = sorted((data / source / "images").iterdir())
        decoded = measure(read_pixels, paths)
        images = {path: Image(key=path.name, view="PA", width=1, height=1) for path in paths}
        checked = measure(lambda path, own=images: look(path, own[path]), paths)
        print(
            f"\n{source}: {1000 * checked:.1f} ms an image, of which reading it at full size takes "
            f"{1000 * decoded:.1f} ms; ratio {checked / decoded:.2f}",
            end="",
        )
    print()


def look(path: Path, image: Image) -> None:
    study = Study(id="s", patient="p", source="benchmark", images=(image,))
    check_plausibility(study, lambda _image: read_for_plausibility(path, image))


def measure(work: Callable[[Path], object], paths: list[Path]) -> float:
    """Seconds of processor time for one path."""
    for path in paths[:3]:
        work(path)
    start = time.process_time()
    for path in paths:
        work(path)
    return (time.process_time() - start) / len(paths)


if __name__ == "__main__":
    sys.exit(main())
