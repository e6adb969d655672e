"""How much computing does a percept case take? CPU seconds a case at 1024 x 1024, for lesions of lungs and heart.

Phantom lesions are analysed (contour, edits, points, mask options, attributes) and assembled into cases that require a
revision, with every fact that the audit reads, and nothing is drawn; then all views of these cases are drawn and
encoded. What looking at lesions costs that turn out not to be fit is printed as well, and where the time goes. Beside
it stand a lower bound measured in the same run (reading the regions that a case is made from, and encoding those that
it stores) and what the protocol's reference approach takes, as its specification states it.

    python benchmarks/percept_build.py
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import cv2

from carina.cases import Case, Provenance, Views, open_benchmark, write_benchmark
from carina.percept import LESIONS, LesionAnalysis, Rules, analyse_lesion
from carina.percept.assemble import make_lesion_case
from carina.percept.select import assign_key_positions, choose_masks
from carina.phantom import Mix, PhantomOptions
from carina.phantom.make import write_phantom
from carina.studies import Region, Studies, open_studies

SIZE = 1024
TARGET = 0.25
"""CPU seconds: for a lung case that requires a revision, and for drawing all views of one."""
REFERENCE = {
    "lung": "4.0-14.8 for edits and distractors, 34-49 in its slow case",
    "heart": "not stated",
    "views": "2.9-3.2",
}
STAGES = {
    "anatomy": "read_anatomy",
    "lesion and field": "make_geometry",
    "reader's contour": "draw_outline",
    "attributes": "_record_attributes",
    "edits and points": "_find_layout",
    "mask options": "make_mask_pool",
}


class Looked(NamedTuple):
    """Lesions of one kind that were looked at."""

    cases: list[Case]
    seconds: float
    """For those that became cases."""
    left_out: int
    seconds_left_out: float


def main() -> int:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--studies", type=int, default=60)
    arguments.add_argument("--seed", type=int, default=1)
    chosen = arguments.parse_args()
    cv2.setNumThreads(1)  # per core
    with TemporaryDirectory() as directory:
        studies = made_studies(Path(directory) / "studies", chosen.studies, chosen.seed)
        return report(studies, Path(directory) / "bench")


def made_studies(directory: Path, n: int, seed: int) -> Studies:
    mix = Mix(normal=0, pa_with_lateral=0, pa_alone=1, with_prior=0, hedged=0)
    write_phantom(directory, n=n, seed=seed, options=PhantomOptions(size=SIZE, mix=mix), workers=2)
    return open_studies(directory)


def report(studies: Studies, directory: Path) -> int:
    spent: Counter[str] = Counter()
    with measured(spent):
        looked = {
            "lung": look(studies, [name for name, lesion in LESIONS.items() if lesion.in_lungs]),
            "heart": look(studies, [name for name, lesion in LESIONS.items() if not lesion.in_lungs]),
        }
    print(f"{SIZE} x {SIZE} pixels; CPU seconds of one core\n")
    print(
        f"{'revision-required cases':<26}{'n':>5}{'s/case':>9}{'cases/s':>9}{'bound s':>9}{'ratio':>7}"
        "   reference, s/case"
    )
    for what, there in looked.items():
        each, bound = there.seconds / len(there.cases), bound_of(there.cases)
        print(
            f"{what:<26}{len(there.cases):>5}{each:>9.3f}{1 / each:>9.1f}{bound:>9.4f}{each / bound:>7.0f}"
            f"   {REFERENCE[what]}"
        )
    views, drawing = drawn(studies, [case for there in looked.values() for case in there.cases], directory)
    print(
        f"{'drawing all views':<26}{views:>5}{drawing:>9.3f}{1 / drawing:>9.1f}{'':>16}   {REFERENCE['views']}"
    )
    for what, there in looked.items():
        if there.left_out:
            print(
                f"\n{there.left_out} {what} lesions were not fit: {there.seconds_left_out / there.left_out:.3f} s each",
                end="",
            )
    total = sum(there.seconds + there.seconds_left_out for there in looked.values())
    print("\n\nwhere the time goes (all lesions that were looked at):")
    for stage in STAGES:
        print(f"  {stage:<20}{spent[stage] / total:>6.0%}")
    print(f"  {'all else':<20}{1 - sum(spent.values()) / total:>6.0%}  (regions, facts, words)")
    lung = looked["lung"].seconds / len(looked["lung"].cases)
    reached = lung <= TARGET and drawing <= TARGET
    print(
        f"\ntarget: {TARGET} s a lung case, {TARGET} s to draw its views: {'reached' if reached else 'MISSED'}"
    )
    return 0 if reached else 1


def look(studies: Studies, targets: list[str]) -> Looked:
    """Analyse every lesion of these kinds, and make revision-required cases of those that are fit."""
    rules, cases, seconds, left_out, wasted = Rules(), [], 0.0, 0, 0.0
    for study in studies:
        present = {finding.name for finding in study.findings if finding.certainty == "present"}
        for target in targets:
            if LESIONS[target].finding not in present:
                continue
            before = time.process_time()
            outcome = analyse_lesion(study, target, seed=1, rules=rules)
            if isinstance(outcome, LesionAnalysis):
                cases.append(as_case(outcome, rules, index=len(cases)))
                seconds += time.process_time() - before
            else:
                left_out += 1
                wasted += time.process_time() - before
    return Looked(cases, seconds, left_out, wasted)


def as_case(analysis: LesionAnalysis, rules: Rules, *, index: int) -> Case:
    regions = min(analysis.attributes.locations, default=0) if analysis.attributes else 0
    (analysis,) = choose_masks([analysis], seed=1)
    position = assign_key_positions(analysis.target, "RR", index, seed=1)
    return make_lesion_case(analysis, "RR", right_regions=regions, seed=1, rules=rules, key_position=position)


def bound_of(cases: list[Case]) -> float:
    """Seconds a case for what no way of making it can leave out: its regions to pixels and back."""
    before = time.process_time()
    for case in cases:
        for region in case.regions:
            Region.from_mask(region.region.to_mask())
    return (time.process_time() - before) / len(cases)


def drawn(studies: Studies, cases: list[Case], directory: Path) -> tuple[int, float]:
    """How many cases were drawn, and the seconds that one took with decoding and PNG."""
    root = str((studies.directory / studies.manifest.image_root).resolve())
    write_benchmark(directory, cases, Provenance(command="benchmark", image_root=root))
    bench = open_benchmark(directory)
    views = Views(bench)
    before = time.process_time()
    for case in cases:
        for view in case.views:
            views.png(case, view.id)
    return len(cases), (time.process_time() - before) / len(cases)


@contextmanager
def measured(spent: Counter[str]) -> Iterator[None]:
    """Within the block, the steps of an analysis are timed."""
    module = sys.modules["carina.percept.analysis"]
    plain: dict[str, Callable[..., object]] = {name: getattr(module, name) for name in STAGES.values()}

    def timed(stage: str, function: Callable[..., object]) -> Callable[..., object]:
        def run(*args: object, **named: object) -> object:
            before = time.process_time()
            try:
                return function(*args, **named)
            finally:
                spent[stage] += time.process_time() - before

        return run

    for stage, name in STAGES.items():
        setattr(module, name, timed(stage, plain[name]))
    try:
        yield
    finally:
        for name, function in plain.items():
            setattr(module, name, function)


if __name__ == "__main__":
    sys.exit(main())
