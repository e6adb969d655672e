"""Probes and maps so small that every figure can be worked out by hand.

Images and maps are 8 x 8, so a map's cell is a pixel. The truth of a mass is 2 x 4 pixels (12.5% of the image), that of
a nodule one (1.6%). The maps of "good", on the split test:

            patient  map                                     hit   IoU   score
mass        a        the truth                               1     1     0.9
mass        b        the truth                               1     1     0.8
mass        c        half of the truth, and as much beside   1     1/3   0.4     1/2 from a threshold of 0.5 on
                     it at half the height
mass        d        two pixels elsewhere                    0     0     0.3
nodule      a        the truth                               1     1     0.7
nodule      b        the truth and a pixel beside it         1/2   1/2   0.6
nodule      e        elsewhere                               0     0     0.2
mass absent e, f, g                                                      0.5, 0.2, 0.1
nodule absent c, d, g                                                    0.6, 0.1, 0.3

On the split val, where thresholds are tuned, v and w have a mass and the truth as map. "poor" shows the first pixel
whatever it is asked for, with scores turned round.
"""

from pathlib import Path

import numpy as np

from carina.cases import (
    Benchmark,
    Box,
    Branch,
    Case,
    CaseImage,
    CaseRegion,
    CaseView,
    Fact,
    Key,
    Option,
    Panel,
    Step,
    open_benchmark,
    write_benchmark,
)
from carina.cases import Provenance as CasesProvenance
from carina.explanations.maps import (
    LocalisationMap,
    Provenance,
    create_maps,
    open_maps,
    pack_grid,
    store_frame,
)
from carina.explanations.scoring import score_map_run
from carina.models.frame import Frame
from carina.store import SourceInfo
from carina.studies import Region, write_png

SIDE = 8
PRESENT = {"mass": "abcdvw", "nodule": "abe"}
ABSENT = {"mass": "efg", "nodule": "cdg"}
SIDES = {"a": "right", "b": "right"}
"""Of the truth, by patient; all others' lies on the left."""
SCORES = {
    "mass": {"a": 0.9, "b": 0.8, "c": 0.4, "d": 0.3, "e": 0.5, "f": 0.2, "g": 0.1, "v": 0.9, "w": 0.9},
    "nodule": {"a": 0.7, "b": 0.6, "e": 0.2, "c": 0.6, "d": 0.1, "g": 0.3},
}
HITS = {("mass", "a"): 1, ("mass", "b"): 1, ("mass", "c"): 1, ("mass", "d"): 0,
        ("nodule", "a"): 1, ("nodule", "b"): 1 / 2, ("nodule", "e"): 0}  # fmt: skip
IOUS = {("mass", "a"): 1, ("mass", "b"): 1, ("mass", "c"): 1 / 3, ("mass", "d"): 0,
        ("nodule", "a"): 1, ("nodule", "b"): 1 / 2, ("nodule", "e"): 0}  # fmt: skip

SOURCES = (SourceInfo(name="made", licence="CC0-1.0"),)
SCORED = {
    "tune_on": "val",
    "replicates": 200,
    "controls": ("centre", "lungs", "mean-region", "oracle"),
}
"""How the maps are scored: with few draws, which are slow."""


def truth(target: str) -> np.ndarray:
    mask = np.zeros((SIDE, SIDE), bool)
    if target == "mass":
        mask[2:4, 2:6] = True
    else:
        mask[5, 5] = True
    return mask


def shown(target: str, patient: str) -> np.ndarray:
    """The map of "good"."""
    grid = np.zeros((SIDE, SIDE), np.float32)
    if (target, patient) in (("mass", "a"), ("mass", "b"), ("mass", "v"), ("mass", "w"), ("nodule", "a")):
        return truth(target).astype(np.float32)
    if (target, patient) == ("mass", "c"):
        grid[2:4, 2:4], grid[4:6, 2:4] = 1.0, 0.5
    elif (target, patient) == ("nodule", "b"):
        grid[5, 5] = grid[5, 6] = 1.0
    elif target == "mass":
        grid[0, 6:8] = 1.0
    else:
        grid[0, 4] = 1.0
    return grid


def name(target: str, patient: str) -> str:
    return f"g-{target}-{patient}"


def case(target: str, patient: str) -> Case:
    present = patient in PRESENT[target]
    key = f"images/{patient}.png"
    regions = [("r1", "lungs", Region.from_box(1, 1, 6, 6, height=SIDE, width=SIDE))]
    if present:
        regions.append(("r2", "truth", Region.from_mask(truth(target))))
    steps = [
        Step(id="1", stage=1, task="recognition", format="choice", question="Is there one?\n(1) Yes\n(2) No",
             options=(Option(id="yes", text="Yes"), Option(id="no", text="No")), shows=("v",), uses=("v",),
             key=Key(options=("yes" if present else "no",)))
    ]  # fmt: skip
    if present:
        rows, columns = np.nonzero(truth(target))
        corners = (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
        box = Box(
            image=key, xyxy=tuple(float(1000 * at / SIDE) for at in corners), frame="thousand", name=target
        )
        steps.append(
            Step(id="2", stage=2, task="localisation", format="boxes", score="boxes", question="Where?",
                 uses=("v",), reached_by=(Branch(step="1", options=("yes",)),), depends_on=("1",), restates=True,
                 key=Key(boxes=(box,), regions=("r2",)))
        )  # fmt: skip
    return Case(
        id=name(target, patient),
        protocol="ground",
        study=f"s-{patient}",
        patient=patient,
        source="made",
        split="val" if patient in "vw" else "test",
        target=target,
        path="present" if present else "absent",
        images=(CaseImage(key=key, width=SIDE, height=SIDE),),
        regions=tuple(CaseRegion(name=name, image=key, region=region) for name, _, region in regions),
        views=(CaseView(id="v", panels=(Panel(image=key),)),),
        steps=tuple(steps),
        facts=(
            *(Fact(name="role", about=name, text=role) for name, role, _ in regions),
            *(
                (
                    Fact(name="side", text=SIDES.get(patient, "left")),
                    Fact(name="pieces", value=2.0 if target == "nodule" else 1.0),
                    Fact(name="conspicuity", value=float(ord(patient))),
                )
                if present
                else ()
            ),
        ),
    )


def asked() -> list[tuple[str, str]]:
    """(finding, patient) of every probe."""
    return [(target, patient) for target in PRESENT for patient in PRESENT[target] + ABSENT[target]]


def bench(directory: Path) -> Benchmark:
    for patient in "abcdefgvw":
        pixels = np.random.default_rng(ord(patient)).integers(0, 255, (SIDE, SIDE), np.uint8)
        write_png(directory / "images" / f"{patient}.png", pixels)
    cases = sorted((case(*one) for one in asked()), key=lambda case: case.id)
    write_benchmark(directory, cases, CasesProvenance(command="carina build ground studies", sources=SOURCES))
    return open_benchmark(directory)


def explained(
    directory: Path,
    bench: Benchmark,
    model: str = "lab/good",
    *,
    good: bool = True,
    scored: bool = True,
    pretraining: str | None = None,
    **options: object,
) -> Path:
    """An explain run, written by hand and scored."""
    frame = Frame.stretched(SIDE, SIDE, side=SIDE)
    records = []
    for target, patient in asked():
        grid = (
            shown(target, patient) if good else np.eye(1, SIDE * SIDE, dtype=np.float32).reshape(SIDE, SIDE)
        )
        score = SCORES[target][patient]
        records.append(
            LocalisationMap(
                id=name(target, patient),
                study=f"s-{patient}",
                patient=patient,
                split="val" if patient in "vw" else "test",
                target=target,
                present=patient in PRESENT[target],
                positive=(target,),
                placed=store_frame(frame),
                rows=SIDE,
                columns=SIDE,
                **pack_grid(grid)._asdict(),
                score=(score if good else 1 - score) if scored else None,
            )
        )
    provenance = Provenance(
        command=f"carina explain bench --model {model} --method similarity",
        seed=0,
        sources=bench.manifest.sources,
        options={
            "benchmark": bench.manifest.fingerprint,
            "model": model,
            "method": "similarity",
            "settings": {} if pretraining is None else {"pretraining": pretraining},
        },
    )
    with create_maps(directory, provenance) as build:
        build.close([build.write_part(0, records)])
    score_map_run(bench, open_maps(directory), **(SCORED | options))
    return directory
