"""The page of a conversation in a real browser: keys hidden and shown, jumps, films enlarged, the index narrowed."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from carina.cases import Provenance, open_benchmark, write_benchmark
from carina.show import bench_index
from carina.studies import write_png

spec = importlib.util.spec_from_file_location(
    "talk_like", Path(__file__).parents[1] / "show" / "talk_like.py"
)
like = importlib.util.module_from_spec(spec)
spec.loader.exec_module(like)


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    directory = tmp_path_factory.mktemp("bench")
    for key in like.KEYS:
        write_png(directory / key, like.film())
    whole = like.talk()
    short = like.talk(
        id="trek-p9-s1", study="p9-s1", patient="p9", reference_study=None, later_study=None, facts=(),
        images=whole.images[:2], views=whole.views[:2], steps=whole.steps[:3],
    )  # fmt: skip
    write_benchmark(directory, [whole, short], Provenance(command="test"))
    return bench_index(open_benchmark(directory), tmp_path_factory.mktemp("pages"))


@pytest.fixture
def talk(page, index):
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.goto(index.pages[0].html.as_uri())
    yield page
    assert said == []


def visible_turns(page) -> list[str]:
    return [turn.get_attribute("data-step") for turn in page.locator(".turn:visible").all()]


def test_everything_is_shown_at_first(talk):
    assert visible_turns(talk) == [f"t{number}" for number in range(1, 10)]
    assert talk.get_by_role("navigation", name="Stages").is_visible()
    assert talk.get_by_role("heading", level=2).count() == 5
    assert talk.get_by_role("heading", level=3).count() == 9
    assert talk.locator(".verdict:visible").count() == 2
    assert talk.locator(".badge:visible").all_inner_texts() == ["● yes", "◐ uncertain", "○ no"]
    assert talk.locator("input:visible").count() == 0
    assert talk.locator(".made[open]").count() == 0


@pytest.mark.parametrize("how", ["click", "keyboard"])
def test_hidden_keys_leave_the_first_question_and_its_films(talk, how):
    toggle = talk.get_by_role("button", name="Hide keys")
    if how == "click":
        toggle.click()
    else:
        talk.keyboard.press("k")
    assert toggle.get_attribute("aria-pressed") == "true"
    assert talk.locator(".key:visible").count() == 0
    assert visible_turns(talk) == ["t1"]
    assert talk.locator("figure.current:visible").count() == 2
    assert talk.locator("figure.reference:visible").count() == 0
    text = talk.locator("body").inner_text()
    # Neither the projections, which are asked for, nor what comes later.
    for word in ("PA", "lateral", "Findings and devices", "Report", "turns", "How it was made"):
        assert word not in text
    if how == "click":
        toggle.click()
    else:
        talk.keyboard.press("k")
    assert len(visible_turns(talk)) == 9


def test_an_examination_by_keyboard(talk):
    talk.keyboard.press("k")
    talk.locator("#step-1 .show-key").focus()
    talk.keyboard.press("Enter")
    assert talk.locator("#step-1 .answer").inner_text().endswith("PA and lateral.")
    assert visible_turns(talk) == ["t1", "t2"]
    # The next question has the focus at its first answer.
    talk.keyboard.press("Space")
    talk.keyboard.press("Tab")
    talk.keyboard.press("Enter")
    assert talk.locator("#step-2 .outcome").inner_text() == "Your answer is right."
    talk.get_by_role("radio", name="no", exact=True).last.check()
    talk.locator("#step-3 .show-key").click()
    assert talk.locator("#step-3 .outcome").inner_text() == "Your answer is wrong."
    assert visible_turns(talk) == ["t1", "t2", "t3", "t4"]


def test_films_and_boxes_come_with_their_turns(talk):
    talk.keyboard.press("k")
    boxes = talk.locator("#step-6 .frame")
    for _ in range(5):
        talk.locator(".show-key:visible").click()
    assert visible_turns(talk)[-1] == "t6"
    assert boxes.locator("visible=true").count() == 0
    talk.locator(".show-key:visible").click()
    assert boxes.locator("visible=true").count() == 1
    assert talk.locator("#step-7 .given:visible").count() == 1
    assert talk.locator("figure.reference:visible").count() == 0
    talk.locator(".show-key:visible").click()
    assert talk.locator("figure.reference:visible").count() == 1
    for _ in range(2):
        talk.locator(".show-key:visible").click()
    # At the end everything is told.
    assert talk.get_by_role("navigation", name="Stages").is_visible()


def test_a_box_lies_where_it_should_on_the_screen(talk):
    """Of the film: from a tenth to three tenths across, from a tenth to a half down."""
    film = talk.locator("#step-6 svg").bounding_box()
    box = talk.locator("#step-6 .frame .line").bounding_box()
    # A browser counts the width of the line in, half of it on each side.
    edges = [
        (box["x"] - film["x"]) / film["width"],
        (box["y"] - film["y"]) / film["height"],
        (box["x"] + box["width"] - film["x"]) / film["width"],
        (box["y"] + box["height"] - film["y"]) / film["height"],
    ]
    assert edges == pytest.approx([0.1, 0.1, 0.3, 0.5], abs=0.04)


def test_links_lead_to_turns_and_stages(talk):
    talk.locator("#step-8").get_by_role("link", name="t5").click()
    assert talk.url.endswith("#step-5")
    bar = talk.get_by_role("navigation", name="Stages").bounding_box()
    assert talk.locator("#step-5 .question").bounding_box()["y"] >= bar["y"] + bar["height"]
    talk.get_by_role("navigation", name="Stages").get_by_role("link", name="Comparison").click()
    assert talk.url.endswith("#stage-5")
    bar = talk.get_by_role("navigation", name="Stages").bounding_box()
    assert talk.locator("#stage-5").bounding_box()["y"] >= bar["y"] + bar["height"]


def test_a_film_is_enlarged_and_closed_by_keyboard(talk):
    button = talk.locator("#step-6 .enlarge")
    small = button.bounding_box()["width"]
    button.focus()
    talk.keyboard.press("Enter")
    large = talk.get_by_role("dialog", name="Enlarged film")
    assert large.locator("svg").bounding_box()["width"] > 3 * small
    assert large.locator(".frame").count() == 1
    talk.keyboard.press("Escape")
    assert not large.is_visible()
    assert button.evaluate("e => e === document.activeElement")


def test_films_have_their_pixels_wherever_they_are_shown(talk):
    import cv2

    for svg in (
        talk.locator(".films svg").first,
        talk.locator(".films svg").last,
        talk.locator("#step-6 svg"),
    ):
        shot = cv2.imdecode(np.frombuffer(svg.screenshot(), np.uint8), cv2.IMREAD_GRAYSCALE)
        assert shot.std() > 20


def test_a_fold_out_holds_the_words_as_sent(talk):
    made = talk.locator("#step-6 .made")
    assert not made.locator("pre").first.is_visible()
    made.locator("summary").press("Enter")
    assert made.locator("pre").last.inner_text() == like.steps()[5].key.text


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_can_be_read_in_light_and_dark(talk, scheme):
    talk.emulate_media(color_scheme=scheme)
    contrast = """(selector) => {
      const light = (css) => {
        const parts = css.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255);
        const [r, g, b] = parts.map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const ground = (e) => {
        const css = getComputedStyle(e).backgroundColor;
        return css === "rgba(0, 0, 0, 0)" ? ground(e.parentElement) : css;
      };
      return [...document.querySelectorAll(selector)].map((e) => {
        const [a, b] = [light(getComputedStyle(e).color), light(ground(e))].sort((x, y) => y - x);
        return (a + 0.05) / (b + 0.05);
      });
    }"""
    for selector in (".question", ".answer .prose", ".badge", ".chips li", ".chips a", ".made summary", ".task",
                     ".verdict", "figcaption", ".corners", ".stage", ".unit"):  # fmt: skip
        ratios = talk.evaluate(contrast, selector)
        assert ratios, selector
        assert min(ratios) >= 4.5, selector


def test_a_print_holds_questions_and_answers_without_the_controls(talk):
    talk.emulate_media(media="print")
    assert talk.locator(".answer:visible").count() == 8
    assert talk.locator(".films svg:visible").count() == 5
    for hidden in ("nav:visible", "#keys:visible", ".made:visible"):
        assert talk.locator(hidden).count() == 0


def test_nothing_is_wider_than_a_phone(page, index):
    page.set_viewport_size({"width": 390, "height": 800})
    for html in (index.html, *(written.html for written in index.pages)):
        page.goto(html.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_index_is_narrowed_by_filters_that_all_hold(page, index):
    page.goto(index.html.as_uri())
    ids = page.locator("tbody tr:visible th")
    assert ids.all_inner_texts() == ["trek-p1-s2", "trek-p9-s1"]
    page.get_by_role("button", name="nodule 2").click()
    assert page.get_by_role("status").inner_text() == "2 of 2 left"
    page.get_by_role("button", name="5 Comparison 1").click()
    assert ids.all_inner_texts() == ["trek-p1-s2"]
    assert page.locator(".study:visible").count() == 1
    page.get_by_role("searchbox").fill("P9")
    assert ids.count() == 0
    page.get_by_role("button", name="5 Comparison 1").click()
    assert ids.all_inner_texts() == ["trek-p9-s1"]
    page.locator("tbody").get_by_role("link", name="trek-p9-s1").click()
    assert page.locator("h1").inner_text() == "trek-p9-s1"
