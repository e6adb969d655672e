"""On straight-sided lesions, neither corners nor straight runs find the right mask: real polygons, and own ones."""

import json
from collections import Counter

import cv2
import numpy as np
import pytest
from tests.percept.test_real_masks import DRAWN, NAMES

from carina.audits.chance import at_least
from carina.percept import LesionAnalysis, Rules, analyse_lesion
from carina.percept.contour_features import FEATURES, measure_features
from carina.percept.select import choose_masks
from carina.store.seeding import rng
from carina.studies import Region

MOST = 80
SIDE = 512
"""Half as large as the images that the polygons were drawn on."""
LUNGS = DRAWN.parents[1] / "covid" / "semantic_masks_v7labs_lungs"
LEVEL = 0.01
"""Chance of a false alarm, over all rules together."""
RULES = [at for at, name in enumerate(FEATURES) if name.startswith("corners") or "straight run" in name]


def measure_rules(sets):
    """Right masks (the first of each set) found by the most or fewest corners, the longest or shortest straight run."""
    found = {}
    for at in RULES:
        for name, sign in (("most", 1), ("least", -1)):
            values = np.round(sign * sets[:, :, at], 9)
            best = values == values.max(axis=1, keepdims=True)
            found[name, FEATURES[at]] = float((best[:, 0] / best.sum(axis=1)).sum())
    return found


def measure_masks(masks, scale):
    return [measure_features(np.ascontiguousarray(mask), scale) for mask in masks]


def check_rules(lesions, least):
    """No rule finds more than chance explains, and all together find less than in sets that nobody chose."""
    assert len(lesions) >= least
    sets = np.array(
        [
            measure_masks([mask.region.to_mask() for mask in one.masks], one.scale)
            for one in choose_masks(lesions, seed=1)
        ]
    )
    found = measure_rules(sets)
    chance = Counter({0.25: len(sets)})
    assert all(at_least(hits, chance) > LEVEL / len(found) for hits in found.values()), (len(sets), found)
    first = []
    for one in lesions:
        square = one.squares[rng(1, one.subject.study, "any square").integers(len(one.squares))]
        right, wrong, other = (one.masks[n].region.to_mask() for n in (0, *square))
        first.append(measure_masks([right, wrong, other, right ^ wrong ^ other], one.scale))
    without = measure_rules(np.array(first))
    away, away_without = (
        sum(abs(hits / len(sets) - 0.25) for hits in rules.values()) for rules in (found, without)
    )
    assert away < 0.6 * away_without, (away, away_without)


def make_polygon(chance, centre, radii, corners):
    """A star-shaped polygon with straight sides, some of them long."""
    angles = np.sort(chance.uniform(0, 2 * np.pi, corners))
    reach = chance.uniform(0.65, 1.0, corners)
    return np.stack(
        [centre[0] + radii[0] * reach * np.cos(angles), centre[1] + radii[1] * reach * np.sin(angles)], axis=1
    ).tolist()


def test_straight_sides_of_own_polygons_do_not_find_the_right_mask(chest):
    lesions = []
    for n in range(MOST):
        chance = rng(n, "polygon")
        right = n % 2 == 0
        centre = (75 if right else 184, chance.uniform(115, 160))
        ring = make_polygon(
            chance, centre, (chance.uniform(28, 40), chance.uniform(40, 65)), int(chance.integers(6, 12))
        )
        region = Region.from_polygons([ring], height=chest.size, width=chest.size)
        mask = region.to_mask() & chest.anatomy().lungs
        study = chest.study(chest.finding("edema", mask, drawn="polygon"), name=f"polygon-{n}")
        outcome = analyse_lesion(study, "edema", seed=3, rules=Rules())
        if isinstance(outcome, LesionAnalysis):
            lesions.append(outcome)
    check_rules(lesions, least=40)


def read_lungs(most):
    """Both lungs of some masks with two large pieces."""
    made = []
    for path in sorted(LUNGS.iterdir()):
        grey = cv2.imdecode(np.fromfile(path, np.uint8), cv2.IMREAD_GRAYSCALE)
        mask = cv2.resize((grey == 255).astype(np.uint8), (SIDE, SIDE), interpolation=cv2.INTER_NEAREST)
        _, labels, stats, centres = cv2.connectedComponentsWithStats(mask, connectivity=4)
        largest = 1 + np.argsort(-stats[1:, cv2.CC_STAT_AREA], kind="stable")[:2]
        areas = stats[largest, cv2.CC_STAT_AREA]
        if len(areas) == 2 and areas.min() > 0.5 * areas.max() and areas.min() > 0.06 * SIDE**2:
            made.append([labels == label for label in sorted(largest, key=lambda label: centres[label][0])])
        if len(made) == most:
            break
    return made


@pytest.mark.skipif(
    not (DRAWN.exists() and LUNGS.exists()),
    reason="needs ChestX-Det and the COVID-19 lung masks in shared/data beside the clone",
)
def test_straight_sides_of_polygons_by_radiologists_do_not_find_the_right_mask(chest):
    lungs, lesions, tried = read_lungs(6), [], 0
    for entry in json.loads(DRAWN.read_text()):
        for symbol in dict.fromkeys(entry["syms"]):
            if symbol not in NAMES or tried == MOST:
                continue
            rings = [
                (np.array(ring) * (SIDE / 1024)).tolist()
                for named, ring in zip(entry["syms"], entry["polygons"], strict=True)
                if named == symbol
            ]
            finding, target = NAMES[symbol]
            region = Region.from_polygons(rings, height=SIDE, width=SIDE)
            study = chest.study(
                chest.finding(finding, region, drawn="polygon"),
                fields=lungs[tried % len(lungs)],
                name=f"{entry['file_name']}-{target}",
            )
            tried += 1
            outcome = analyse_lesion(study, target, seed=3, rules=Rules())
            if isinstance(outcome, LesionAnalysis):
                lesions.append(outcome)
    check_rules(lesions, least=40)
