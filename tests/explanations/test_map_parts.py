"""Maps without torch: controls and built-in explainers over a benchmark, on disk, resumed and shared."""

import csv
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from carina.cases import (
    Case,
    CaseImage,
    CaseRegion,
    CaseView,
    Fact,
    Key,
    Option,
    Panel,
    Provenance,
    Step,
    open_benchmark,
    write_benchmark,
)
from carina.explanations import map_parts
from carina.explanations.builtin import Asymmetry, Untrained
from carina.explanations.controls import FOLDS, collect_mean_regions, control_map
from carina.explanations.explainer import Probe
from carina.explanations.map_parts import MapOptions, make_maps, select_probes
from carina.explanations.maps import LocalisationMap, open_maps, pack_grid, store_frame
from carina.models.frame import Frame
from carina.store.errors import CarinaError, MapsError
from carina.studies import Region, write_png

HEIGHT, WIDTH = 56, 84


def box(x, y, w, h, *, height=HEIGHT, width=WIDTH):
    return Region.from_box(x, y, w, h, height=height, width=width)


def probe(number, target, *, present):
    """A bright square on a dark image, where it is present."""
    key, truth = f"i{number}.png", box(7 * (number % 8), 7, 14, 14)
    regions = [("r2", "lungs", box(0, 0, WIDTH, 28))] + ([("r1", "truth", truth)] if present else [])
    options = (Option(id="yes", text="Yes"), Option(id="no", text="No"))
    step = Step(
        id="1",
        stage=1,
        task="recognition",
        format="choice",
        question="?\n(1) Yes\n(2) No",
        options=options,
        shows=("v",),
        uses=("v",),
        key=Key(options=("yes" if present else "no",)),
    )
    case = Case(
        id=f"g{number:02}",
        protocol="ground",
        study=f"s{number}",
        patient=f"p{number // 2}",
        source="made",
        target=target,
        path="present" if present else "absent",
        images=(CaseImage(key=key, width=WIDTH, height=HEIGHT),),
        regions=tuple(CaseRegion(name=name, image=key, region=region) for name, _, region in regions),
        views=(CaseView(id="v", panels=(Panel(image=key),)),),
        steps=(step,),
        facts=tuple(Fact(name="role", about=name, text=role) for name, role, _ in regions),
    )
    pixels = np.full((HEIGHT, WIDTH), 40, np.uint8)
    if present:
        pixels[truth.to_mask()] = 200
    return case, pixels


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    directory = tmp_path_factory.mktemp("explain") / "bench"
    cases = []
    for number in range(24):
        case, pixels = probe(number, ("mass", "nodule")[number % 2], present=number % 4 < 2)
        write_png(directory / case.images[0].key, pixels)
        cases.append(case)
    write_benchmark(directory, cases, Provenance(command="test"))
    return open_benchmark(directory)


def asked(*, truth=None, lungs=None, patient="p", case="c", target="mass", image=None):
    image = np.zeros((HEIGHT, WIDTH), np.uint8) if image is None else image
    return Probe(
        case=case, patient=patient, target=target, phrase=target, image=image, truth=truth, lungs=lungs
    )


# ---- controls -------------------------------------------------------------------------------------------------------

STRETCHED = Frame.stretched(HEIGHT, WIDTH, side=14)
NOTHING = collect_mean_regions([])


def shown(name, probe, frame=STRETCHED, shape=(14, 14), mean_regions=NOTHING):
    return control_map(name, probe, frame, shape, mean_regions=mean_regions, seed=0)


def test_oracle_and_lungs_are_the_covered_share_of_a_cell():
    # Cells of 4 rows and 6 columns: the box covers half of the second cell of the first row.
    region = box(6, 0, 3, 4)
    for name, one in (("oracle", asked(truth=region)), ("lungs", asked(lungs=region))):
        expected = np.zeros((14, 14))
        expected[0, 1] = 0.5
        np.testing.assert_allclose(shown(name, one), expected)
    assert not shown("oracle", asked()).any()
    # Two rows of three cells, 28 x 28 pixels each.
    np.testing.assert_allclose(
        shown("oracle", asked(truth=box(0, 0, 42, 28)), shape=(2, 3)), [[1, 0.5, 0], [0] * 3]
    )


def test_the_centre_is_that_of_the_image_not_of_the_square():
    frame = Frame.letterboxed(HEIGHT, WIDTH, longest=84)
    values = shown("centre", asked(), frame, (42, 42))
    assert np.unravel_index(values.argmax(), values.shape) == (20, 20)
    np.testing.assert_allclose(values, values[::-1, ::-1], rtol=1e-6)
    # A quarter of the width from the middle is one standard deviation: columns 10.5 of 42 cells away.
    x = np.abs(np.arange(42) + 0.5 - 21) / 42
    np.testing.assert_allclose(
        values[20] / values[20].max(), np.exp(-(x**2 - x.min() ** 2) / 0.125), rtol=1e-5
    )


def test_random_maps_differ_between_probes_but_not_between_calls():
    one, other = shown("random", asked(case="a")), shown("random", asked(case="b"))
    assert np.array_equal(one, shown("random", asked(case="a")))
    assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 0.3
    assert len(np.unique(shown("uniform", asked()))) == 1


def test_a_mean_region_is_made_of_other_patients():
    names = [f"p{number}" for number in range(40)]
    drawn = [(("mass", "nodule")[n % 2], name, box(2 * n, 0, 4, 56)) for n, name in enumerate(names)]
    for number in (0, 1, 17):
        target, name, _ = drawn[number]
        fold = _fold_by_hand(name)
        others = [r for t, p, r in drawn if t == target and _fold_by_hand(p) != fold]
        mean = np.mean([STRETCHED32.cover(r.to_mask(), 32) for r in others], axis=0)
        probe = asked(patient=name, target=target)
        got = shown("mean-region", probe, STRETCHED32, (32, 32), collect_mean_regions(drawn))
        np.testing.assert_allclose(got, mean, atol=1e-6)
    # A finding that nobody else has: the mean of all others.
    alone = collect_mean_regions([*drawn, ("hernia", "p0", box(0, 0, 84, 56))])
    got = shown("mean-region", asked(patient="p0", target="hernia"), STRETCHED32, (32, 32), alone)
    others = [r for _, p, r in drawn if _fold_by_hand(p) != _fold_by_hand("p0")]
    np.testing.assert_allclose(
        got, np.mean([STRETCHED32.cover(r.to_mask(), 32) for r in others], axis=0), atol=1e-6
    )
    assert not shown("mean-region", asked()).any()


STRETCHED32 = Frame.stretched(HEIGHT, WIDTH, side=32)


def _fold_by_hand(patient):
    import hashlib

    return int(hashlib.sha256(patient.encode()).hexdigest()[:2], 16) % FOLDS


# ---- built in -------------------------------------------------------------------------------------------------------


def test_untrained_maps_add_up_to_the_score():
    """Its occlusion map is the fall of the score when a patch is flat, one patch after the other."""
    chance = np.random.default_rng(0)
    image = chance.integers(0, 255, (224, 224), np.uint8)
    (whole,) = Untrained("occlusion").explain([asked(image=image)])
    square = (image.astype(np.float32) - image.mean(dtype=np.float32)) / image.std(dtype=np.float32)
    model = Untrained("similarity")
    first, second = model._weights
    text = model._embed_text("mass")

    def score(pixels):
        patches = [
            pixels[y : y + 16, x : x + 16].ravel() for y in range(0, 224, 16) for x in range(0, 224, 16)
        ]
        pooled = np.mean([np.maximum(patch @ first, 0) @ second for patch in patches], axis=0)
        return pooled @ text / np.linalg.norm(pooled)

    assert whole.score == pytest.approx(score(square), abs=1e-4)
    for row, column in ((0, 0), (3, 11), (13, 13)):
        hidden = square.copy()
        hidden[16 * row : 16 * row + 16, 16 * column : 16 * column + 16] = 0
        assert whole.values[row, column] == pytest.approx(score(square) - score(hidden), abs=1e-4)


def test_asymmetry_is_high_where_the_sides_differ():
    image = np.full((HEIGHT, WIDTH), 60, np.uint8)
    image[20:36, 10:24] = 180
    for target, row, columns in (("mass", 28, (10, 24)), ("pneumothorax", 28, (60, 74))):
        (seen,) = Asymmetry().explain([asked(image=image, target=target)])
        on_image = seen.frame.to_image(seen.values)
        y, x = np.unravel_index(on_image.argmax(), on_image.shape)
        assert columns[0] <= x < columns[1]
        assert abs(y - row) <= 6
    (nothing,) = Asymmetry().explain([asked()])
    assert not nothing.values.any()


# ---- on disk --------------------------------------------------------------------------------------------------------


def kept(values):
    frame = Frame.letterboxed(HEIGHT, WIDTH, longest=256, side=224)
    rows, columns = values.shape
    return LocalisationMap(
        id="c", study="s", patient=None, split=None, target="mass", present=True, positive=("mass",),
        placed=store_frame(frame), rows=rows, columns=columns, score=0.5, against=0.75, **pack_grid(values)._asdict(),
    )  # fmt: skip


def test_a_stored_map_is_read_unchanged():
    frame = Frame.letterboxed(HEIGHT, WIDTH, longest=256, side=224)
    one = kept(np.zeros((3, 5), np.float32))
    assert one.frame == frame
    assert one.recognised == -0.25
    assert not one.values.any()
    with_gap = np.array([[1.0, np.nan], [3.0, np.inf]], np.float32)
    np.testing.assert_array_equal(kept(with_gap).values, [[1, np.nan], [3, np.nan]])


@given(
    low=st.floats(-1e3, 1e3),
    extent=st.sampled_from([1e-6, 1e-3, 1.0, 1e4]),
    seed=st.integers(0, 99),
)
def test_small_and_large_maps_keep_their_shape_and_their_peak(low, extent, seed):
    """To a thousandth of their range everywhere, and far better near the highest value."""
    values = (low + extent * np.random.default_rng(seed).random((6, 7))).astype(np.float32)
    assume(np.ptp(values) > 100 * np.spacing(np.abs(values).max()))
    back = kept(values).values
    spacing = np.spacing(np.abs(values).max())
    assert np.abs(back - values).max() <= 5e-4 * np.ptp(values) + spacing
    assert back.max() == values.max()
    assert (
        np.abs(back - values)[back >= back.max() - np.ptp(values) / 100].max()
        <= 5e-6 * np.ptp(values) + spacing
    )


def test_all_probes_have_a_map_whatever_the_workers(bench, tmp_path, monkeypatch):
    monkeypatch.setattr(map_parts, "PART_SIZE", 10)
    make_maps(bench, "builtin/untrained", tmp_path / "one", MapOptions())
    make_maps(bench, "builtin/untrained", tmp_path / "two", MapOptions(), workers=2)
    for path in sorted((tmp_path / "one").rglob("*.*")):
        assert path.read_bytes() == (tmp_path / "two" / path.relative_to(tmp_path / "one")).read_bytes(), path
    maps = list(open_maps(tmp_path / "one"))
    assert {one.id for one in maps} == {case.id for case in bench}
    # By finding, then by id: neighbours share their prompts.
    assert [one.id for one in maps] == [f"g{n:02}" for n in (*range(0, 24, 2), *range(1, 24, 2))]
    assert {one.positive for one in maps if one.target == "mass"} == {("mass",)}


def test_a_limit_selects_from_each_finding_in_turn(bench):
    assert select_probes(bench, 4) == ["g00", "g02", "g01", "g03"]
    # Half of them present, half absent, of each finding.
    assert sorted(select_probes(bench, 8)) == [f"g{n:02}" for n in range(8)]
    assert len(select_probes(bench, 1000)) == 24


def test_a_directory_of_maps_with_other_settings_is_refused(bench, tmp_path):
    make_maps(bench, "control/centre", tmp_path, MapOptions())
    with pytest.raises(MapsError, match="made in another way"):
        make_maps(bench, "control/lungs", tmp_path, MapOptions())
    with pytest.raises(MapsError, match="limit"):
        make_maps(bench, "control/centre", tmp_path, MapOptions(limit=3))


@pytest.mark.parametrize(
    ("model", "options", "said"),
    [
        ("control/nothing", {}, r"model 'control/nothing': unknown.*control/centre, .*control/uniform"),
        ("control/centre", {"method": "lungs"}, "expected the method centre"),
        ("control/centre", {"method_options": {"grid": 0}}, "expected a whole number from 1 to 256"),
        ("control/centre", {"method_options": {"grid": "many"}}, "controls, options: Expected `int`"),
        ("control/centre", {"method_options": {"colour": 1}}, "unknown option 'colour'"),
        ("builtin/untrained", {"method": "gem"}, "unknown method 'gem'. Known: similarity, occlusion"),
        ("builtin/untrained", {"method_options": {"sigma": 1}}, "has no options, found 'sigma'"),
        ("foo", {}, r"model 'foo': unknown.*builtin/untrained.*clip:PATH.*control/oracle.*hf:PATH"),
        ("builtin/nothing", {}, r"model 'builtin/nothing': unknown.*builtin/asymmetry, builtin/untrained"),
    ],
)
def test_names_and_options_are_checked(bench, tmp_path, model, options, said):
    with pytest.raises(CarinaError, match=said):
        make_maps(bench, model, tmp_path, MapOptions(**options))
    assert not any(tmp_path.iterdir())


def test_a_probe_without_image_is_skipped_or_raises_and_is_tried_again(bench, tmp_path, monkeypatch):
    monkeypatch.setattr(map_parts, "PART_SIZE", 10)
    images = shutil.copytree(bench.directory, tmp_path / "images")
    gone = next(case for case in bench if case.id == "g03")
    (images / gone.images[0].key).rename(tmp_path / "kept")
    probes = open_benchmark(bench.directory, images)
    out, order = tmp_path / "run", MapOptions()
    with pytest.raises(CarinaError, match=gone.images[0].key):
        make_maps(probes, "builtin/untrained", out, order, images=images, on_error="stop")
    made = make_maps(probes, "builtin/untrained", out, order, images=images, workers=2)
    ((case, reason),) = made.skipped
    assert case == "g03"
    assert gone.images[0].key in reason
    with (out / "skipped.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [["case", "reason"], ["g03", reason]]
    assert made.manifest.counts.maps == 23
    assert "g03" not in open_maps(out).ids()
    (tmp_path / "kept").rename(images / gone.images[0].key)
    assert make_maps(probes, "builtin/untrained", out, order, images=images).skipped == ()
    make_maps(bench, "builtin/untrained", tmp_path / "whole", order)
    for path in sorted((tmp_path / "whole").rglob("*.*")):
        assert path.read_bytes() == (out / path.relative_to(tmp_path / "whole")).read_bytes(), path


def test_a_control_takes_its_grid_as_the_command_line_gives_it(bench, tmp_path):
    make_maps(bench, "control/uniform", tmp_path, MapOptions(method_options={"grid": "7"}, limit=2))
    assert all((one.values == np.ones((7, 7))).all() for one in open_maps(tmp_path))


def test_no_image_at_all_is_an_error(bench, tmp_path):
    (tmp_path / "empty").mkdir()
    probes = open_benchmark(bench.directory, tmp_path / "empty")
    with pytest.raises(MapsError, match="none of 24 probes has a map"):
        make_maps(probes, "builtin/untrained", tmp_path / "run", MapOptions(), images=tmp_path / "empty")


KILLED = """
import sys, time
from pathlib import Path
from carina.cases import open_benchmark
from carina.explanations import map_parts
from carina.explanations.map_parts import MapOptions, make_maps

map_parts.PART_SIZE = 4
def slowly(_):
    print("part", flush=True)
    time.sleep(30)
make_maps(open_benchmark(sys.argv[1]), "builtin/untrained", Path(sys.argv[2]), MapOptions(), progress=slowly)
"""


def test_a_killed_call_resumes_and_gives_the_same_bytes(bench, tmp_path, monkeypatch):
    monkeypatch.setattr(map_parts, "PART_SIZE", 4)
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(bench.directory), str(tmp_path / "killed")],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "part\n"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    there = {path: path.stat().st_mtime_ns for path in (tmp_path / "killed").rglob("*.parquet")}
    assert there
    time.sleep(0.01)
    make_maps(bench, "builtin/untrained", tmp_path / "killed", MapOptions())
    assert all(path.stat().st_mtime_ns == when for path, when in there.items())
    make_maps(bench, "builtin/untrained", tmp_path / "whole", MapOptions())
    for path in sorted((tmp_path / "whole").rglob("*.*")):
        assert path.read_bytes() == (tmp_path / "killed" / path.relative_to(tmp_path / "whole")).read_bytes()
