import importlib.util
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carina.phantom import PhantomOptions, make_studies
from carina.store.errors import ImageError
from carina.studies import Anatomy, Image, Region, Study, write_png
from carina.studies.average_radiographs import SIDE, rank_thumbnail, read_average_radiographs
from carina.studies.plausibility import (
    CANNOT_TELL,
    check_plausibility,
    correct_study,
    measure_appearance,
    read_for_plausibility,
)

IMAGE = Image(key="a.png", view="PA", width=100, height=100)


@pytest.fixture(scope="module")
def phantoms() -> list[tuple[Study, dict]]:
    return list(make_studies(6, 3, PhantomOptions(size=128)))


def lung(name: str, x: int, *, width: int = 25, annotator: str = "reader") -> Anatomy:
    """A lung of 40 rows, from column `x`."""
    region = Region.from_box(x, 30, width, 40, height=100, width=100)
    return Anatomy(name=name, image="a.png", region=region, annotator=annotator)


def study_with(*anatomy: Anatomy, image: Image = IMAGE) -> Study:
    return Study(id="s1", patient="p1", source="mine", images=(image,), anatomy=anatomy)


# ---- thumbnails -----------------------------------------------------------------------------------------------------


def test_ranks_of_equal_pixels_are_equal_and_run_from_dark_to_bright() -> None:
    pixels = np.zeros((SIDE, SIDE), np.uint8)
    pixels[:, SIDE // 2 :] = 200
    ranks = rank_thumbnail(pixels)
    # Half of the pixels are dark: their mean rank is a quarter; that of the others three quarters.
    assert np.unique(ranks).tolist() == [0.25, 0.75]
    assert ranks[0, 0] == 0.25


def test_ranks_do_not_depend_on_the_bit_depth() -> None:
    grey = np.random.default_rng(0).integers(0, 256, (SIDE, SIDE), np.uint8)
    assert np.array_equal(rank_thumbnail(grey), rank_thumbnail(grey.astype(np.uint16) * 16))


@given(st.integers(0, 2**32 - 1))
def test_inverting_an_image_changes_the_sign_of_its_polarity(seed: int) -> None:
    pixels = np.random.default_rng(seed).integers(0, 256, (SIDE, SIDE), np.uint8)
    assert measure_appearance(~pixels).polarity == pytest.approx(
        -measure_appearance(pixels).polarity, abs=1e-5
    )


def test_an_average_radiograph_looks_like_itself() -> None:
    frontal, lateral = read_average_radiographs()
    for average, view in ((frontal, "frontal"), (lateral, "lateral")):
        appearance = measure_appearance(np.rint(average * 255).astype(np.uint8))
        assert (appearance.shows_polarity, appearance.shows_view) == ("normal", view)


def test_nothing_is_said_about_tiny_empty_and_two_coloured_images() -> None:
    stripes = np.zeros((128, 128), np.uint8)
    stripes[:, ::2] = 255
    for pixels in (np.eye(32, dtype=np.uint8), np.full((128, 128), 7, np.uint8), stripes):
        assert measure_appearance(pixels) == CANNOT_TELL
    assert (CANNOT_TELL.shows_polarity, CANNOT_TELL.shows_view) == ("cannot tell", "cannot tell")


def test_the_averages_are_those_of_the_recipe() -> None:
    file = Path(__file__).parents[2] / "tools" / "average_radiographs.py"
    spec = importlib.util.spec_from_file_location("average_radiographs", file)
    assert spec is not None
    assert spec.loader is not None
    recipe = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(recipe)
    frontal, lateral = recipe.average_phantoms(12)  # the whole recipe makes 300
    kept = read_average_radiographs()
    for few, many in ((frontal, kept.frontal), (lateral, kept.lateral)):
        assert np.corrcoef(few.ravel(), many.ravel())[0, 1] > 0.97


# ---- polarity and view ----------------------------------------------------------------------------------------------


def test_phantoms_are_plausible_and_their_inverses_are_not(phantoms: list[tuple[Study, dict]]) -> None:
    for study, pixels in phantoms:
        assert check_plausibility(study, lambda image, own=pixels: own[image.key]).problems == ()
        inverted = check_plausibility(study, lambda image, own=pixels: ~own[image.key]).problems
        assert [problem.check for problem in inverted] == ["polarity"] * len(study.images)


def test_a_view_that_does_not_fit_the_image_is_found(phantoms: list[tuple[Study, dict]]) -> None:
    study, pixels = next(made for made in phantoms if len(made[0].images) == 2)
    swapped = {"PA": "lateral", "AP": "lateral", "lateral": "PA"}
    images = tuple(msgspec.structs.replace(image, view=swapped[image.view]) for image in study.images)
    declared = msgspec.structs.replace(study, images=images, anatomy=())
    problems = check_plausibility(declared, lambda image: pixels[image.key]).problems
    assert [(problem.check, problem.expected) for problem in problems] == [
        ("view", "the view lateral"),
        ("view", "the view PA"),
    ]
    corrected = correct_study(declared, problems)
    # Whether a frontal image is PA or AP cannot be seen.
    assert [image.view for image in corrected.images] == ["unknown", "lateral"]


def test_the_record_of_an_image_says_which_values_are_dark(
    tmp_path: Path, phantoms: list[tuple[Study, dict]]
) -> None:
    study, pixels = phantoms[0]
    key = study.images[0].key
    write_png(tmp_path / "a.png", ~pixels[key])
    image = msgspec.structs.replace(study.images[0], key="a.png", monochrome1=False)
    one = msgspec.structs.replace(study, images=(image,), anatomy=())

    def read(of: Image) -> np.ndarray:
        return read_for_plausibility(tmp_path / of.key, of)

    problems = check_plausibility(one, read).problems
    assert [problem.check for problem in problems] == ["polarity"]
    corrected = correct_study(one, problems)
    assert corrected.images[0].monochrome1
    assert check_plausibility(corrected, read).problems == ()
    # A negative slope turns the values round as well.
    sloped = msgspec.structs.replace(image, rescale=(-1.0, 255.0))
    assert check_plausibility(study_with(image=sloped), read).problems == ()


def test_a_file_that_cannot_be_decoded_is_a_problem_and_an_image_without_size_is_not_opened() -> None:
    def read(_image: Image) -> np.ndarray:
        raise ImageError("a.png: damaged")

    (problem,) = check_plausibility(study_with(), read).problems
    assert (problem.check, problem.correction) == ("pixels", "")
    assert "a.png: damaged" in problem.message
    assert correct_study(study_with(), [problem]) == study_with()
    without_file = msgspec.structs.replace(IMAGE, width=0, height=0)
    assert check_plausibility(study_with(image=without_file), read).images == 0


# ---- lungs ----------------------------------------------------------------------------------------------------------


def find_lung_problems(*anatomy: Anatomy) -> list[str]:
    return [problem.seen for problem in check_plausibility(study_with(*anatomy), None).problems]


def test_two_lungs_on_their_sides_are_plausible_and_so_are_none() -> None:
    assert find_lung_problems(lung("right lung", 15), lung("left lung", 60)) == []
    assert find_lung_problems() == []


def test_each_annotator_has_lungs_of_their_own() -> None:
    drawn = [
        lung("right lung", 15, annotator="one"),
        lung("left lung", 60, annotator="one"),
        lung("left lung", 15, annotator="two"),
        lung("right lung", 60, annotator="two"),
    ]
    (problem,) = check_plausibility(study_with(*drawn), None).problems
    assert problem.annotator == "two"
    assert "by 'two'" in problem.message
    corrected = correct_study(study_with(*drawn), [problem])
    assert [each.name for each in corrected.anatomy] == ["right lung", "left lung", "right lung", "left lung"]
    assert find_lung_problems(*corrected.anatomy) == []


@pytest.mark.parametrize(
    ("lungs", "seen"),
    [
        pytest.param([lung("right lung", 15)], "1 x right lung", id="one"),
        pytest.param(
            [lung("right lung", 15), lung("right lung", 60)], "2 x right lung", id="two-right"
        ),
        pytest.param(
            [lung("right lung", 15), lung("left lung", 15)], "one region twice (IoU 1.00)", id="same"
        ),
        # A column of 40 pixels is 0.4% of 100 x 100.
        pytest.param(
            [lung("right lung", 15, width=1), lung("left lung", 60)], "a right lung of 0.4% of the image",
            id="tiny",
        ),
        # 4 of 25 columns.
        pytest.param(
            [lung("right lung", 15, width=4), lung("left lung", 60)],
            "one lung with 16% of the area of the other", id="uneven",
        ),
        # Columns 60 to 84 have their centre at 72.5, columns 15 to 39 at 27.5.
        pytest.param(
            [lung("right lung", 60), lung("left lung", 15)],
            "the right lung at column 72.5, right of the left lung at column 27.5", id="swapped",
        ),
    ],
)  # fmt: skip
def test_lungs_that_cannot_be_right_are_found(lungs: list[Anatomy], seen: str) -> None:
    assert find_lung_problems(*lungs) == [seen]


def test_lungs_that_cannot_be_right_are_left_out_by_a_correction() -> None:
    heart = lung("heart", 40)
    study = study_with(lung("right lung", 15), lung("left lung", 15), heart)
    corrected = correct_study(study, check_plausibility(study, None).problems)
    assert corrected.anatomy == (heart,)


def test_lungs_on_a_lateral_image_are_not_judged() -> None:
    lateral = msgspec.structs.replace(IMAGE, view="lateral")
    assert check_plausibility(study_with(lung("right lung", 15), image=lateral), None).problems == ()
