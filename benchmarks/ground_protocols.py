"""How much of a localisation score is due to the scoring rule: one set of maps by the rules of several projects.

Truths are the masks of ChestX-Det (one for each image and label); each gets one synthetic map such as an attention map:
a softmax over 14 x 14 cells of a bump near the lesion and noise. The maps are made up, so the levels mean nothing; that
rules which are all called pointing game, or IoU, are far apart on the same maps is the point. Fails if they are not.

    python benchmarks/ground_protocols.py ChestX_Det_train.json
    python benchmarks/ground_protocols.py ChestX_Det_train.json --maps 1000
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from carina.maps import Protocol, compare_protocols
from carina.models.frame import Frame
from carina.store.seeding import rng
from carina.studies import Region

SIDE = 1024
GRID = 14
SPREAD = 1.5
"""Smallest expected ratio of the highest to the lowest pointing game."""


def main() -> int:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("annotations", type=Path, help="ChestX-Det's ChestX_Det_train.json or _test.json")
    arguments.add_argument("--maps", type=int, default=300)
    arguments.add_argument("--seed", type=int, default=0)
    given = arguments.parse_args()
    start = time.process_time()
    rows = compare_protocols(pairs(given.annotations, most=given.maps, seed=given.seed))
    took = time.process_time() - start
    sizes = list(rows[0].by_size)
    print(f"{'protocol':<58} {'all':>7} " + " ".join(f"{size:>9}" for size in sizes))
    for row in rows:
        print(
            f"{row.protocol:<58} {figure(row.all):>7} "
            + " ".join(f"{figure(row.by_size[size]):>9}" for size in sizes)
        )
    n = rows[0].n
    print(f"{'n':<58} {n['all']:>7} " + " ".join(f"{n[size]:>9}" for size in sizes))
    hits, overlaps = (spread(rows, kind) for kind in ("hit", "IoU"))
    print(f"pointing games are up to {hits:.1f} times apart, IoUs {overlaps:.1f} times")
    print(f"{1e3 * took / n['all']:.0f} ms of one core for a map under {len(rows)} rules")
    return 0 if hits >= SPREAD and overlaps >= SPREAD else 1


def pairs(path: Path, *, most: int, seed: int) -> Iterator[tuple[np.ndarray, Region, Frame]]:
    """Masks in random order, each with its map."""
    records = json.loads(path.read_text())
    drawn = [(record, label) for record in records for label in sorted(set(record["syms"]))]
    order = rng(seed, "protocols", "order").permutation(len(drawn))
    frame = Frame.stretched(SIDE, SIDE, side=224)
    for at in order[:most]:
        record, label = drawn[at]
        rings = [ring for ring, sym in zip(record["polygons"], record["syms"], strict=True) if sym == label]
        truth = Region.from_polygons(rings, height=SIDE, width=SIDE)
        yield made_map(truth, seed, f"{record['file_name']} {label}"), truth, frame


def made_map(truth: Region, seed: int, name: str) -> np.ndarray:
    """A map like that of a softmax: noise, and a peak one or two cells from the centre of the lesion."""
    draw = rng(seed, "protocols", name)
    x, y, w, h = truth.bbox or (0, 0, SIDE, SIDE)
    cell = SIDE / GRID
    centre = np.array([y + h / 2, x + w / 2]) / cell - 0.5 + draw.normal(0, 1.5, 2)
    rows, columns = np.mgrid[:GRID, :GRID]
    width = draw.uniform(1.0, 2.5)
    away = (rows - centre[0]) ** 2 + (columns - centre[1]) ** 2
    logits = draw.uniform(1.5, 3.0) * np.exp(-away / (2 * width**2)) + draw.normal(0, 0.6, (GRID, GRID))
    weights = np.exp(logits - logits.max())
    return (weights / weights.sum()).astype(np.float32)


def spread(rows: list[Protocol], kind: str) -> float:
    """Ratio of the highest to the lowest mean among rules of one kind, without oracles."""
    means = [
        row.all for row in rows if row.protocol.startswith(kind) and "oracle" not in row.protocol and row.all
    ]
    return max(means) / min(means)


def figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


if __name__ == "__main__":
    sys.exit(main())
