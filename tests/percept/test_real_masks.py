"""The pipeline on lesions as radiologists drew them: polygons of ChestX-Det, on the lungs of a phantom.

The set has no lung masks, so where a lesion lies is not what is tested, only that every drawn shape is either made into
a case that keeps the rules or refused with a reason.
"""

import json
from collections import Counter
from pathlib import Path

import cv2
import numpy as np
import pytest

from carina.percept import LesionAnalysis, Rules, analyse_lesion
from carina.phantom import PhantomOptions, make_studies
from carina.studies import Anatomy, Annotation, Finding, Image, Region, Study

DRAWN = Path(__file__).parents[3] / "shared" / "data" / "chestx-det" / "ChestX_Det_test.json"
NAMES = {
    "Cardiomegaly": ("cardiomegaly", "cardiomegaly"),
    "Consolidation": ("consolidation", "consolidation"),
    "Atelectasis": ("atelectasis", "atelectasis"),
    "Effusion": ("pleural effusion", "effusion"),
}
SIDE = 1024
PER_LESION = 10


@pytest.fixture(scope="module")
def lungs():
    study, _ = next(iter(make_studies(1, 4, PhantomOptions(size=256))))
    anatomy = study.anatomy_on(study.images[0].key)
    return {name: anatomy[name].resize(SIDE, SIDE) for name in ("right lung", "left lung")}


def drawn_studies(lungs):
    found = Counter()
    for entry in json.loads(DRAWN.read_text()):
        for symbol in dict.fromkeys(entry["syms"]):
            if symbol not in NAMES or found[symbol] == PER_LESION:
                continue
            found[symbol] += 1
            rings = [p for s, p in zip(entry["syms"], entry["polygons"], strict=True) if s == symbol]
            region = Region.from_polygons(rings, height=SIDE, width=SIDE)
            finding, target = NAMES[symbol]
            mark = Annotation(image="x.png", region=region, drawn="polygon", annotator="radiologist")
            yield (
                target,
                Study(
                    id=entry["file_name"],
                    patient=entry["file_name"],
                    source="chestx-det",
                    order=0,
                    images=(Image(key="x.png", view="PA", width=SIDE, height=SIDE),),
                    findings=(Finding(id="f1", name=finding, certainty="present", annotations=(mark,)),),
                    anatomy=tuple(
                        Anatomy(name=name, image="x.png", region=lung, annotator="phantom")
                        for name, lung in lungs.items()
                    ),
                ),
            )


@pytest.mark.skipif(not DRAWN.exists(), reason="needs the real annotations beside the clone")
def test_drawn_lesions_become_cases_that_keep_the_rules_or_have_a_reason(lungs):
    rules = Rules()
    accepted = Counter()
    for target, study in drawn_studies(lungs):
        outcome = analyse_lesion(study, target, seed=2, rules=rules)
        if not isinstance(outcome, LesionAnalysis):
            assert outcome.reason
            continue
        accepted[target] += 1
        truth, shown = outcome.truth, outcome.shown
        assert rules.revise_low <= shown.iou(truth) <= rules.revise_high
        assert outcome.revised.iou(truth) >= rules.good_iou
        changed = np.ascontiguousarray(shown.to_mask() ^ outcome.revised.to_mask())
        _, labels = cv2.connectedComponents(changed.view(np.uint8), connectivity=4)
        held = sorted(int(labels[int(edit.point[1]), int(edit.point[0])]) for edit in outcome.edits)
        assert held == list(range(1, int(labels.max()) + 1))
    assert accepted["cardiomegaly"] >= PER_LESION // 2
    assert accepted.total() >= PER_LESION
