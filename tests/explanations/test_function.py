"""Python functions as explainers."""

import numpy as np
import pytest
from tests.explanations.test_map_parts import HEIGHT, WIDTH, probe

import carina
from carina.cases import Provenance, write_benchmark
from carina.store.errors import CarinaError, MapsError
from carina.studies import write_png

NUMBER = 6


@pytest.fixture(scope="module")
def probes(tmp_path_factory):
    """Probes of two findings; every other one is present, as a bright square on a dark image."""
    folder = tmp_path_factory.mktemp("function") / "bench"
    cases = []
    for number in range(NUMBER):
        case, pixels = probe(number, ("mass", "edema")[number % 2], present=number < NUMBER - 2)
        write_png(folder / case.images[0].key, pixels)
        cases.append(case)
    write_benchmark(folder, cases, Provenance(command="test"))
    return folder


def brightness(image, phrase):
    assert (image.dtype, image.shape) == (np.uint8, (HEIGHT, WIDTH))
    assert phrase in ("mass", "edema")
    return image.astype(float), float(image.max())


def test_a_map_function_is_scored_like_a_model(probes, tmp_path):
    run = carina.explain(probes, brightness, tmp_path / "maps")
    assert (run.scoring.model, run.scoring.method, run.skipped) == ("brightness", "function", ())
    assert len(run.maps) == NUMBER
    one = next(found for found in run.maps if found.present)
    assert (one.rows, one.columns, one.highest, one.score) == (HEIGHT, WIDTH, 200.0, 200.0)
    # The brightest pixel lies in the region, and the score tells present from absent.
    hits = run.summary().filter(
        source="model",
        variant="hit.bilinear_full.full_image.expected.positives.per_image",
        level="all",
        average="micro",
    )
    assert hits["value"].to_list() == [1.0]
    assert {item.finding: item.auroc.value for item in run.scoring.recognition} == {"edema": 1.0, "mass": 1.0}


def test_a_map_of_any_size_without_a_score_covers_the_whole_image(probes, tmp_path):
    def left_half(_image, _phrase):
        return [[1, 0]]

    run = carina.explain(probes, left_half, tmp_path / "maps", label="left", controls=False)
    one = next(iter(run.maps))
    whole = one.frame.to_image(one.values, "nearest")
    assert whole.shape == (HEIGHT, WIDTH)
    assert (whole[:, : WIDTH // 2] == 1).all()
    assert (whole[:, WIDTH // 2 :] == 0).all()
    assert (run.scoring.model, one.score, run.scoring.recognition) == ("left", None, ())


def test_a_finished_run_is_not_computed_again_and_belongs_to_its_function(probes, tmp_path):
    asked = []

    def one(image, phrase):
        asked.append(phrase)
        return brightness(image, phrase)

    carina.explain(probes, one, tmp_path / "maps", controls=False)
    assert len(asked) == NUMBER
    carina.explain(probes, one, tmp_path / "maps", controls=False)
    assert len(asked) == NUMBER
    with pytest.raises(CarinaError, match="maps"):
        carina.explain(probes, brightness, tmp_path / "maps", controls=False)


def test_an_error_skips_its_probe_with_the_reason(probes, tmp_path):
    def only_masses(image, phrase):
        if phrase == "edema":
            raise LookupError("no prompt")
        return brightness(image, phrase)

    run = carina.explain(probes, only_masses, tmp_path / "maps", controls=False)
    assert {reason for _, reason in run.skipped} == {"only_masses: LookupError: no prompt"}
    assert len(run.skipped) == NUMBER // 2
    with pytest.raises(MapsError, match="no prompt"):
        carina.explain(probes, only_masses, tmp_path / "stopped", controls=False, on_error="stop")


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (np.zeros((2, 2, 3)), r"expected a 2-D array .* an array of shape \(2, 2, 3\)"),
        (np.zeros((0, 2)), r"an array of shape \(0, 2\)"),
        ("map", "expected a 2-D array"),
        (None, "expected a 2-D array"),
        ((np.zeros((2, 2)), "high"), "expected a finite number as the score, found 'high'"),
        ((np.zeros((2, 2)), float("nan")), "expected a finite number as the score"),
    ],
)
def test_a_result_that_is_no_map_is_refused(probes, tmp_path, result, message):
    with pytest.raises(MapsError, match=message):
        carina.explain(probes, lambda _image, _phrase: result, tmp_path / "maps", label="wrong")


def test_a_map_function_runs_in_one_process_without_a_method(probes, tmp_path):
    for options in ({"workers": 2}, {"engine": "ray"}):
        with pytest.raises(CarinaError, match="runs in this process alone"):
            carina.explain(probes, brightness, tmp_path / "maps", **options)
    with pytest.raises(CarinaError, match="expected the method function"):
        carina.explain(probes, brightness, tmp_path / "maps", method="gem")
    with pytest.raises(CarinaError, match="checks need a CLIP-style model"):
        carina.explain(probes, brightness, tmp_path / "maps", checks=1)
