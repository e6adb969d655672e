"""Which maps are shown, with which other pictures, and how they are drawn."""

import base64
import io
import shutil

import numpy as np
import pytest
from PIL import Image

from carina.cases import open_benchmark
from carina.explanations.analysis.maps_groups import MapsGroup, group_maps_runs
from carina.explanations.analysis.read import read_maps_runs
from carina.models.frame import Frame
from carina.pages.figures import jpeg_uri
from carina.pages.map_comparison.gallery import make_galleries, select_maps
from carina.pages.map_comparison.overlays import QUALITY, find_peak, render_image, render_map
from carina.studies import Region


def test_best_middle_and_worst_by_peak_then_overlap(ground):
    good = ground.group.runs[0]
    # Hits: mass a and b and nodule a with an overlap of 1, mass c with 1/3; then nodule b, half a hit; then the misses,
    # whose pixels rank alike but for the size of the truth: 54 of 56 against 62 of 63 other pixels are as low.
    assert select_maps(good, ground.group.measures, 2) == [
        ("Best", "g-mass-a"),
        ("Best", "g-mass-b"),
        ("Middle", "g-nodule-a"),
        ("Middle", "g-mass-c"),
        ("Worst", "g-nodule-e"),
        ("Worst", "g-mass-d"),
    ]
    every = select_maps(good, ground.group.measures, 50)
    # Seven maps: two of each kind, none twice.
    assert len(every) == len({case for _, case in every}) == 6


def test_the_map_of_an_absent_finding_stands_beside(ground):
    shown = {one.case: one for one in make_galleries(ground.group)[0].items}
    # Patient d has a mass and no nodule; a has both, so another patient's image shows that there is no mass.
    assert [picture.caption for picture in shown["g-mass-d"].pictures] == [
        "mass, outlined",
        "map of mass; from 0 to 1, score 0.3",
        "map of nodule, absent, on the same study; from 0 to 1, score 0.1",
    ]
    assert shown["g-mass-a"].pictures[2].caption == (
        "map of mass, absent, on a study without it; from 0 to 1, score 0.5"
    )
    assert "Pointing game 100.0" in shown["g-mass-a"].facts
    assert "truth 12.5% of the image" in shown["g-mass-a"].facts


def test_without_images_or_benchmark_nothing_is_shown(explained, probes, ground, tmp_path):
    assert make_galleries(MapsGroup(ground.group.runs, None, ground.group.measures)) == []
    shutil.copytree(probes.directory, tmp_path / "bench")
    shutil.rmtree(tmp_path / "bench" / "images")
    moved = open_benchmark(tmp_path / "bench")
    (group,) = group_maps_runs(read_maps_runs(explained[:1]), {moved.manifest.fingerprint: moved})
    (made,) = make_galleries(group)
    assert made.items == ()
    assert made.missing == 6


def test_a_map_is_laid_where_the_model_saw_it():
    image = np.full((40, 60), 100, np.uint8)
    # The middle 40 x 40 of 40 x 60 pixels: ten columns on either side are unseen.
    frame = Frame.cropped(40, 60, shortest=40, side=40)
    values = np.zeros((4, 4), np.float32)
    values[0, 3] = 1.0
    picture = render_map(image, values, frame, None)
    assert picture.shape == (192, 288, 3)
    scale = 288 / 60
    yellow = picture[round(2 * scale), round(49 * scale)].astype(int)
    dark = picture[round(35 * scale), round(15 * scale)].astype(int)
    assert yellow[0] > 150
    assert yellow[1] > 150
    assert yellow[2] < 100
    assert dark.max() < yellow.max()
    # Unseen: 45% of the light, and grey.
    assert picture[100, 5].tolist() == [45, 45, 45]
    assert find_peak(frame.to_image(values), frame.seen()) == (45.5, 0.5)


def test_a_map_without_a_peak_has_no_dot_and_no_colours():
    image = np.full((30, 30), 80, np.uint8)
    flat = render_map(image, np.ones((3, 3), np.float32), Frame.stretched(30, 30, side=3), None)
    assert len(np.unique(flat.reshape(-1, 3), axis=0)) == 1


def test_the_truth_is_outlined_however_small():
    image = np.zeros((1024, 1024), np.uint8)
    mask = np.zeros((1024, 1024), bool)
    mask[500, 500] = True
    picture = render_image(image, Region.from_mask(mask))
    assert (picture == 255).all(axis=2).sum() >= 1
    read = Image.open(io.BytesIO(base64.b64decode(jpeg_uri(picture, quality=QUALITY).partition(",")[2])))
    assert read.size == (288, 288)


@pytest.mark.parametrize("count", [1, 5, 20])
def test_pictures_are_bounded_whatever_the_runs(ground, count):
    runs = ground.group.runs[:1] * count
    made = make_galleries(MapsGroup(runs, ground.group.bench, ground.group.measures))
    assert sum(len(shown.pictures) for one in made for shown in one.items) <= 108
