import re

import numpy as np
from msgspec.structs import replace

from carina.cases.draw import HUES, Size
from carina.pages.marks import Mark, outlines_on, pin_radius, region_border, study_marks
from carina.studies import Image, Region, SalientPoint, Study


def rings(path: str) -> list[np.ndarray]:
    """Corners of an SVG path's rings."""
    found = []
    for start, steps in re.findall(r"M([^l]*)l([^z]*)z", path):
        values = np.array((start + " " + steps).split(), float).reshape(-1, 2)
        found.append(np.cumsum(values, axis=0))
    return found


def area(ring: np.ndarray) -> float:
    x, y = ring.T
    return float(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2


def test_path_follows_the_edges_of_the_region() -> None:
    mask = np.zeros((50, 60), bool)
    mask[10:30, 20:45] = True
    mask[15:20, 25:30] = False
    border = region_border(Region.from_mask(mask), tolerance=0)
    assert border is not None
    outer, hole = rings(border.path)
    assert (area(outer), area(hole)) == (500, -25)
    assert (outer.min(axis=0).tolist(), outer.max(axis=0).tolist()) == ([20, 10], [45, 30])
    assert border.top == (32.5, 10)


def test_straightened_path_stays_within_the_tolerance() -> None:
    rows, columns = np.mgrid[:200, :200]
    mask = (rows - 100) ** 2 + (columns - 100) ** 2 < 80**2
    exact = region_border(Region.from_mask(mask), tolerance=0)
    straight = region_border(Region.from_mask(mask), tolerance=1)
    assert exact is not None
    assert straight is not None
    assert len(straight.path) < len(exact.path) / 3
    assert abs(area(rings(straight.path)[0]) / mask.sum() - 1) < 0.02


def test_empty_region_has_no_border() -> None:
    assert region_border(Region.from_mask(np.zeros((5, 5), bool)), tolerance=1) is None


def test_anatomy_is_below_and_small_findings_are_above_large_ones(study: Study) -> None:
    marks = study_marks(study)
    order = [(mark.kind, mark.name) for mark in marks.on("s1/pa.png")]
    assert order == [
        ("anatomy", "left lung"),
        ("finding", "pleural effusion"),
        ("finding", "nodule"),
        ("device", "endotracheal tube"),
        ("device", "endotracheal tube"),
    ]
    assert marks.numbers == {"f1": 1, "f3": 2, "d1": 3}
    assert marks.keys == {"f1": "m0", "f2": "m1", "f3": "m2", "d1": "m3"}
    assert marks.on("s1/pa.png")[1].title == (
        "pleural effusion · present · moderate · left · conspicuity 3.42 · mask by reader A"
    )


def test_device_has_its_number_at_the_tip_only(study: Study) -> None:
    image = study.image("s1/pa.png")
    tube, tip = outlines_on(image, study_marks(study).on(image.key))[-2:]
    assert tube.path
    assert tube.pin is None
    assert tip.path is None
    assert tip.pin is not None


def test_what_was_drawn_for_comparison_and_salient_points_are_shown_as_such(study: Study) -> None:
    image = study.image("s1/pa.png")
    finding = study.findings[0]
    truth = finding.annotations[0]
    human = replace(truth, annotator="human benchmark")
    nothing = replace(human, annotator="reader B", region=Region.empty(image.height, image.width))
    point = SalientPoint(image=image.key, x=5, y=6, annotator="human benchmark")
    finding = replace(finding, comparisons=(human, nothing), points=(point,))
    marks = study_marks(replace(study, findings=(finding,), devices=(), anatomy=()))
    assert [(mark.title.rsplit(" · ", 1)[1], mark.boxed) for mark in marks.on(image.key)] == [
        ("mask by reader A", False),
        ("mask by human benchmark, for comparison", True),
        ("most salient point by human benchmark", False),
    ]
    assert [(o.mark.tip.x, o.mark.tip.y) for o in outlines_on(image, marks.every) if o.mark.tip] == [(5, 6)]


def test_numbers_stay_in_the_image_and_do_not_overlap() -> None:
    image = Image(key="a", view="PA", width=400, height=300)
    mask = np.zeros((300, 400), bool)
    mask[0:5, 390:400] = True
    corner = Region.from_mask(mask)
    marks = [
        Mark(
            key=f"m{number}",
            kind="finding",
            name="mass",
            title="mass",
            colour=HUES["blue"],
            image="a",
            number=number,
            region=corner,
        )
        for number in range(30)
    ]
    radius = pin_radius(Size(width=400, height=300))

    pins = np.array([outline.pin for outline in outlines_on(image, marks)])

    assert (pins >= radius).all()
    assert (pins <= np.array([400, 300]) - radius).all()
    apart = np.abs(pins[:, None] - pins[None]).max(axis=2)[~np.eye(30, dtype=bool)]
    assert apart.min() >= 2 * radius
