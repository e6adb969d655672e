"""The page of a case in a real browser: hidden answers, a test by keyboard, the filters of the index."""

import numpy as np
import pytest
from tests.pages import percept_cases as like

from carina.cases import Provenance, open_benchmark, write_benchmark
from carina.pages import write_case_pages
from carina.phantom import PhantomOptions, make_studies
from carina.studies import write_png
from carina.studies.pixels import to_display


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """Pages of two cases about a phantom's radiograph, through a benchmark on disk."""
    directory = tmp_path_factory.mktemp("bench")
    study, pixels = next(make_studies(1, 5, PhantomOptions(size=192)))
    image = next(image for image in study.images if image.view != "lateral")
    shown = to_display(pixels[image.key], bits=image.bits, monochrome1=image.monochrome1)
    square = np.zeros((192, 192), np.uint8)
    square[: shown.shape[0], : shown.shape[1]] = shown[:192, :192]
    write_png(directory / like.KEY, square)
    write_benchmark(directory, [like.rr_case(192), like.lf_case(192)], Provenance(command="test"))
    return write_case_pages(open_benchmark(directory), tmp_path_factory.mktemp("pages"))


@pytest.fixture
def case(page, index):
    page.goto(index.pages[0].html.as_uri())
    return page


def visible_steps(page) -> list[str]:
    return [step.get_attribute("data-step") for step in page.locator(".step:visible").all()]


def test_answers_are_visible_at_first(case):
    assert len(visible_steps(case)) == 9
    assert case.locator(".verdict:visible", has_text="right").count() == 10
    assert case.get_by_role("heading", name="How the contour was changed").is_visible()
    assert case.locator("input:visible").count() == 0
    assert case.locator(".bar:visible").count() > 10


def test_hidden_answers_leave_no_hint(case):
    case.get_by_role("button", name="Hide answers").click()
    assert case.get_by_role("button", name="Hide answers").get_attribute("aria-pressed") == "true"
    assert case.locator(".key:visible").count() == 0
    assert visible_steps(case) == ["1"]
    text = case.locator("body").inner_text()
    for word in ("✓", "revision required", "RR", "How the contour was changed", "Margins", "IoU", "Steps"):
        assert word not in text
    boxes = [case.locator(".step:visible .choice").nth(place) for place in range(2)]
    looks = [
        box.evaluate("e => getComputedStyle(e).border + getComputedStyle(e).backgroundColor") for box in boxes
    ]
    assert looks[0] == looks[1]
    weights = [box.locator(".text").evaluate("e => getComputedStyle(e).fontWeight") for box in boxes]
    assert weights[0] == weights[1]


def test_reader_can_answer_by_keyboard(case):
    case.keyboard.press("k")
    first = case.locator('.step[data-step="1"]')
    first.get_by_role("radio", name="Yes").focus()
    case.keyboard.press("Space")
    case.keyboard.press("Tab")
    case.keyboard.press("Enter")
    assert first.locator(".outcome").inner_text() == "Your answer is right."
    assert first.locator(".verdict:visible", has_text="right").count() == 1
    assert visible_steps(case) == ["1", "2"]
    # The next step has the focus: its first option, "No", which is wrong.
    case.keyboard.press("Space")
    case.keyboard.press("Tab")
    case.keyboard.press("Enter")
    assert case.locator('.step[data-step="2"] .outcome').inner_text() == "Your answer is wrong."
    assert visible_steps(case) == ["1", "2", "3a"]


@pytest.mark.parametrize(
    ("chosen", "outcome"),
    [
        (("right lateral lung", "right costophrenic angle"), "Your answer is right."),
        (("right lateral lung",), "Your answer is wrong."),
        (("right lateral lung", "right costophrenic angle", "left medial lung"), "Your answer is wrong."),
    ],
)
def test_answer_with_several_options_is_right_only_as_a_whole(case, chosen, outcome):
    case.get_by_role("button", name="Hide answers").click()
    while "4b" not in visible_steps(case):
        case.locator(".show-key:visible").click()
    step = case.locator('.step[data-step="4b"]')
    for name in chosen:
        step.get_by_role("checkbox", name=name).check()
    step.get_by_role("button", name="Show the answer to 4b").click()
    assert step.locator(".outcome").inner_text() == outcome
    assert case.locator('.step[data-step="3a"] .outcome').inner_text() == ""


def test_path_and_contour_edits_appear_after_the_last_answer(case):
    case.get_by_role("button", name="Hide answers").click()
    done = case.get_by_role("heading", name="How the contour was changed")
    for _ in range(9):
        assert not done.is_visible()
        case.locator(".show-key:visible").click()
    assert done.is_visible()
    assert "revision required" in case.locator("header.top").inner_text()


def test_showing_answers_again_clears_the_choices(case):
    toggle = case.get_by_role("button", name="Hide answers")
    toggle.click()
    case.get_by_role("radio", name="No").check()
    case.locator(".show-key:visible").click()
    toggle.click()
    assert len(visible_steps(case)) == 9
    assert case.locator(".outcome:visible").count() == 0
    toggle.click()
    assert case.locator("input:checked").count() == 0
    assert visible_steps(case) == ["1"]


def test_views_have_pixels_at_every_step_that_uses_them(case):
    """A view is stored once; it has pixels at its first step and at later steps."""
    import cv2

    spreads = []
    for step in ("3a", "3b", "4c"):
        shot = case.locator(f'.step[data-step="{step}"] .images svg').first.screenshot()
        spreads.append(cv2.imdecode(np.frombuffer(shot, np.uint8), cv2.IMREAD_COLOR).std())
    assert min(spreads) > 20


def test_path_links_to_its_steps(case):
    case.get_by_role("link", name="3c revision").click()
    assert case.url.endswith("#step-5")


def test_pages_fit_a_phone(page, index):
    page.set_viewport_size({"width": 390, "height": 800})
    for html in (index.html, *(written.html for written in index.pages)):
        page.goto(html.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_index_filter_keeps_cases_of_one_target_and_path(page, index):
    page.goto(index.html.as_uri())
    assert page.locator(".study:visible").count() == 2
    page.get_by_role("button", name="edema lesion-free").click()
    assert page.locator(".study:visible h2").all_inner_texts() == ["c-fedcba9876543210"]
    page.get_by_role("button", name="all cases").click()
    assert page.locator(".study:visible").count() == 2
    page.get_by_role("link", name="c-0123456789abcdef").click()
    assert page.locator("h1").inner_text() == "c-0123456789abcdef"
