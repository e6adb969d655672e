"""Do contours of percept reveal the answers on lesions as radiologists drew them?

Polygons of ChestX-Det on the lung masks of the COVID-19 collection (both read in place, beside the checkout) become a
study set, percept is built from it, and every rule about the shape of a contour is scored without the radiograph: the
share of option sets in which it finds the right mask, beside chance, and how well it separates the paths. Classifiers
over all features are scored by cross-validation over images: the audit's linear one and its boosted trees, and, where
scikit-learn is installed, its histogram gradient boosting as an independent check. For comparison, the same for
phantoms. How many lesions became cases is printed as well, and why the others did not.

The images are divided into two halves by a hash of their names. Constants of percept are tuned on the first half only.
Within one benchmark what is balanced is balanced over all cases, so that cross-validation may find less than chance;
`--fit-on` therefore scores classifiers that were fitted on another benchmark, such as that of the other half.

    python benchmarks/percept_shapes.py --half tuning --save tuning.npz
    python benchmarks/percept_shapes.py --half held-out --fit-on tuning.npz
"""

import argparse
import hashlib
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.audits import AuditOptions, audit_benchmark
from carina.audits.boosted_trees import fit_trees, sort_into_bins
from carina.audits.percept.contour_classifier import FOLDS, find_right_options_by_trees, view_options
from carina.audits.percept.contour_shortcuts import OPTIONS
from carina.cases import Benchmark, open_benchmark
from carina.percept import build_percept
from carina.percept.contour_features import FEATURES, measure_features
from carina.phantom import Mix, PhantomOptions
from carina.phantom.make import write_phantom
from carina.studies import Anatomy, Annotation, Finding, Image, Provenance, Region, Study, write_studies
from carina.studies.region import Mask

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
SIDE = 1024
NAMES = {
    "Cardiomegaly": "cardiomegaly",
    "Consolidation": "consolidation",
    "Atelectasis": "atelectasis",
    "Effusion": "pleural effusion",
}
"""Classes of ChestX-Det that percept asks about."""
GATE = "contour-shortcuts"
FRAME = 1024
FEATURE_SETS = (
    ("features of the audit", len(FEATURES) + 4),
    ("without what a mask adds and removes", len(FEATURES) + 2),
    ("contour features only", len(FEATURES)),
)
"""Sets of features, and how many of the first ones they have."""
HALVES = ("tuning", "held-out", "all")


def main() -> int:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--data", type=Path, default=DATA, help="Folder with chestx-det and covid.")
    arguments.add_argument("--half", choices=HALVES, default="all", help="Images to use.")
    arguments.add_argument("--lesions", type=int, default=1200, help="Most drawn lesions to use; 0 for none.")
    arguments.add_argument("--phantoms", type=int, default=0, help="Phantom studies to compare with.")
    arguments.add_argument("--seed", type=int, default=1, help="Seed of the build.")
    arguments.add_argument("--workers", type=int, default=2, help="Processes of the build.")
    arguments.add_argument("--save", type=Path, help="File to write the features of drawn options to (.npz).")
    arguments.add_argument("--fit-on", type=Path, help="File of another call, to fit classifiers on.")
    chosen = arguments.parse_args()
    failed = False
    with TemporaryDirectory() as directory:
        root = Path(directory)
        if chosen.phantoms:
            mix = Mix(normal=0, pa_with_lateral=0, pa_alone=1, with_prior=0, hedged=0)
            options = PhantomOptions(size=512, mix=mix)
            write_phantom(
                root / "phantoms",
                n=chosen.phantoms,
                seed=chosen.seed,
                options=options,
                workers=chosen.workers,
            )
            failed |= report("phantoms", root / "phantoms", root / "phantom bench", chosen)
        if chosen.lesions:
            drawn = drawn_studies(chosen.data, chosen.lesions, chosen.half)
            write_studies(root / "drawn", drawn, Provenance(command="drawn"))
            name = f"drawn by radiologists, {chosen.half}"
            failed |= report(name, root / "drawn", root / "drawn bench", chosen)
            sets = read_option_sets(open_benchmark(root / "drawn bench"))
            if chosen.save:
                np.savez(chosen.save, features=sets.features, right=sets.right, folds=sets.folds)
            if chosen.fit_on:
                with np.load(chosen.fit_on) as kept:
                    other = OptionSets(kept["features"], kept["right"], kept["folds"])
                print_transfer(other, sets)
    return int(failed)


def report(name: str, studies: Path, directory: Path, chosen: argparse.Namespace) -> bool:
    """Build, print what was built and what the contours reveal; returns whether they reveal too much."""
    before = time.monotonic()
    bench = build_percept(studies, directory, per_cell=1000, seed=chosen.seed, workers=chosen.workers)
    print(f"== {name}: {len(bench)} cases in {time.monotonic() - before:.0f} s")
    print_yield(bench)
    found = audit_benchmark(directory, AuditOptions(files=False), workers=1)
    for gate in found.gates:
        if gate.name == GATE:
            for row in gate.rows:
                print(f"  {row.name:<62}{row.n:>5} {row.value:.3f} (chance {row.chance:.2f})  {row.status}")
        elif gate.status not in ("pass", "not applicable"):
            print(f"  gate {gate.name}: {gate.status}: {[worst.what for worst in gate.worst[:3]]}")
    sets = read_option_sets(bench)
    contour = sets.keep(len(FEATURES))
    print_share("boosted trees, contour features only", by_trees(contour))
    print_share("boosted trees, with what a mask adds and removes", by_trees(sets))
    print_share("scikit-learn, with what a mask adds and removes", by_scikit_learn(sets))
    print_share("scikit-learn, contour features only", by_scikit_learn(contour))
    return found.gate(GATE).status == "fail"


# ---- classifiers ----


@dataclass(frozen=True)
class OptionSets:
    """Features of the four masks of every revision question."""

    features: NDArray[np.float64]
    """(questions, options, features): those of contours, how typical a mask is, its overlap with the shown contour, and
    what it adds to the shown contour and removes from it."""
    right: NDArray[np.int64]
    folds: NDArray[np.int64]

    def keep(self, count: int) -> "OptionSets":
        """The same with the first features only."""
        return OptionSets(self.features[:, :, :count], self.right, self.folds)


def read_option_sets(bench: Benchmark) -> OptionSets:
    """The option sets of a benchmark, measured on its masks."""
    rows, right, folds = [], [], []
    for case in bench:
        if case.path != "RR":
            continue
        step = case.step("3c")
        names = [case.view(option.view or "").panels[0].overlays[0].region for option in step.options]
        masks = [case.region(name).region.to_mask() for name in names]
        name = next(fact.about for fact in case.facts if fact.name == "role" and fact.text == "shown")
        shown = case.region(name or "").region.to_mask()
        pixel = max(case.images[0].width, case.images[0].height) / FRAME
        overlaps = np.array([[iou(one, other) for other in masks] for one in masks])
        related = [
            overlaps.mean(axis=1),
            [iou(mask, shown) for mask in masks],
            [np.count_nonzero(mask & ~shown) / np.count_nonzero(shown) for mask in masks],
            [np.count_nonzero(shown & ~mask) / np.count_nonzero(shown) for mask in masks],
        ]
        contour = np.array([measure_features(mask, pixel) for mask in masks])
        rows.append(np.concatenate([contour, np.array(related).T], axis=1))
        right.append([option.id for option in step.options].index(step.key.options[0]))
        folds.append(hash_name(case.patient or case.id) % FOLDS)
    return OptionSets(np.array(rows), np.array(right), np.array(folds))


def iou(one: Mask, other: Mask) -> float:
    return float(np.count_nonzero(one & other) / np.count_nonzero(one | other))


def hash_name(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little")


def by_trees(sets: OptionSets) -> NDArray[np.float64]:
    return find_right_options_by_trees(sets.features, sets.right, sets.folds)


def by_scikit_learn(sets: OptionSets) -> NDArray[np.float64] | None:
    """Cross-validated hits of scikit-learn's boosting, None where it is not installed."""
    hits = np.zeros(len(sets.right))
    for fold in range(FOLDS):
        is_tested = sets.folds == fold
        one, other = (
            OptionSets(sets.features[rows], sets.right[rows], sets.folds[rows])
            for rows in (~is_tested, is_tested)
        )
        found = fit_scikit_learn(one, other)
        if found is None:
            return None
        hits[is_tested] = found
    return hits


def fit_scikit_learn(one: OptionSets, other: OptionSets) -> NDArray[np.float64] | None:
    """Hits on `other` of scikit-learn's boosting fitted on `one`; None where it is not installed."""
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415 - optional
    except ImportError:
        return None
    rows, tested = (view_options(sets.features) for sets in (one, other))
    model = HistGradientBoostingClassifier(
        max_iter=150,
        learning_rate=0.06,
        max_leaf_nodes=8,
        min_samples_leaf=15,
        l2_regularization=1.0,
        max_features=0.4,
        random_state=0,
    )
    model.fit(rows.reshape(-1, rows.shape[2]), np.eye(OPTIONS)[one.right].ravel())
    scores = model.decision_function(tested.reshape(-1, tested.shape[2])).reshape(-1, OPTIONS).round(9)
    best = scores == scores.max(axis=1, keepdims=True)
    return np.asarray(best[np.arange(len(best)), other.right] / best.sum(axis=1), np.float64)


def print_transfer(one: OptionSets, other: OptionSets) -> None:
    """What classifiers find that were fitted on another benchmark."""
    print(f"  fitted on {len(one.right)} option sets of the other file:")
    for name, count in FEATURE_SETS:
        first, second = (sets.keep(count) for sets in (one, other))
        bins = sort_into_bins(np.concatenate([view_options(first.features), view_options(second.features)]))
        scores = fit_trees(bins[: len(first.right)], first.right).score(bins[len(first.right) :]).round(9)
        best = scores == scores.max(axis=1, keepdims=True)
        found = best[np.arange(len(best)), second.right] / best.sum(axis=1)
        print_share(f"boosted trees, {name}", found)
        print_share(f"scikit-learn, {name}", fit_scikit_learn(first, second))


def print_share(name: str, hits: NDArray[np.float64] | None) -> None:
    if hits is not None:
        print(f"  {name:<62}{len(hits):>5} {hits.mean():.3f} (chance {1 / OPTIONS:.2f})")


def print_yield(bench: Benchmark) -> None:
    reasons: Counter[str] = Counter()
    for cell in bench.build_report.cells:
        if cell.path == "RR":
            reasons.update(cell.reasons)
            print(f"  {cell.target}: {cell.candidates} candidates")
    steps = Counter(step.id for case in bench for step in case.steps if case.path != "LF")
    print(f"  questions by step: {dict(sorted(steps.items()))}")
    print(f"  left out: {', '.join(f'{reason} {n}' for reason, n in reasons.most_common())}")


# ---- real shapes ----


def drawn_studies(data: Path, most: int, half: str = "all") -> Iterator[Study]:
    """Studies with the polygons of one class each, on lungs that people drew too."""
    lungs = list(drawn_lungs(data / "covid"))
    made = 0
    for part in ("test", "train"):
        for entry in json.loads((data / "chestx-det" / f"ChestX_Det_{part}.json").read_text("utf-8")):
            if half not in ("all", HALVES[hash_name(entry["file_name"]) % 2]):
                continue
            for symbol in dict.fromkeys(entry["syms"]):
                if symbol not in NAMES:
                    continue
                if made == most:
                    return
                drawn = zip(entry["syms"], entry["polygons"], strict=True)
                rings = [polygon for named, polygon in drawn if named == symbol]
                name = f"{part}-{entry['file_name']}-{symbol.lower()}"
                patient = f"{part}-{entry['file_name']}"
                yield make_study(name, NAMES[symbol], rings, lungs[made % len(lungs)], patient)
                made += 1


def make_study(
    name: str,
    finding: str,
    rings: list[list[list[float]]],
    lungs: dict[str, Region],
    patient: str | None = None,
) -> Study:
    key = f"{name}.png"
    region = Region.from_polygons(rings, height=SIDE, width=SIDE)
    mark = Annotation(image=key, region=region, drawn="polygon", annotator="radiologist")
    return Study(
        id=name,
        patient=patient or name,
        source="chestx-det",
        order=0,
        images=(Image(key=key, view="PA", width=SIDE, height=SIDE),),
        findings=(Finding(id="f1", name=finding, certainty="present", annotations=(mark,)),),
        anatomy=tuple(
            Anatomy(name=side, image=key, region=lung, annotator="V7 Labs") for side, lung in lungs.items()
        ),
    )


def drawn_lungs(covid: Path) -> Iterator[dict[str, Region]]:
    """Both lungs of every mask with two large pieces side by side, in the frame of the polygons."""
    for path in sorted((covid / "semantic_masks_v7labs_lungs").iterdir()):
        grey = cv2.imdecode(np.fromfile(path, np.uint8), cv2.IMREAD_GRAYSCALE)
        mask = cv2.resize((grey == 255).astype(np.uint8), (SIDE, SIDE), interpolation=cv2.INTER_NEAREST)
        _, labels, stats, centres = cv2.connectedComponentsWithStats(mask, connectivity=4)
        largest = 1 + np.argsort(-stats[1:, cv2.CC_STAT_AREA], kind="stable")[:2]
        areas = stats[largest, cv2.CC_STAT_AREA]
        if len(areas) == 2 and areas.min() > 0.25 * areas.max() and areas.min() > 0.03 * SIDE**2:
            right, left = sorted(largest, key=lambda label: centres[label][0])
            yield {
                "right lung": Region.from_mask(labels == right),
                "left lung": Region.from_mask(labels == left),
            }


if __name__ == "__main__":
    sys.exit(main())
