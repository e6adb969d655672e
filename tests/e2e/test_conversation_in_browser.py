"""The page of a conversation in a real browser: hidden answers, links, enlarged images, filters of the index."""

import numpy as np
import pytest
from tests.pages import conversation_cases as like

from carina.cases import Provenance, open_benchmark, write_benchmark
from carina.pages import write_case_pages
from carina.studies import write_png


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    directory = tmp_path_factory.mktemp("bench")
    for key in like.KEYS:
        write_png(directory / key, like.image_pixels())
    whole = like.conversation()
    short = like.conversation(
        id="trek-p9-s1", study="p9-s1", patient="p9", reference_study=None, later_study=None, facts=(),
        images=whole.images[:2], views=whole.views[:2], steps=whole.steps[:3],
    )  # fmt: skip
    write_benchmark(directory, [whole, short], Provenance(command="test"))
    return write_case_pages(open_benchmark(directory), tmp_path_factory.mktemp("pages"))


@pytest.fixture
def conversation(page, index):
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.goto(index.pages[0].html.as_uri())
    yield page
    assert messages == []


def visible_turns(page) -> list[str]:
    return [turn.get_attribute("data-step") for turn in page.locator(".turn:visible").all()]


def test_everything_is_visible_at_first(conversation):
    assert visible_turns(conversation) == [f"t{number}" for number in range(1, 10)]
    assert conversation.get_by_role("navigation", name="Stages").is_visible()
    assert conversation.get_by_role("heading", level=2).count() == 5
    assert conversation.get_by_role("heading", level=3).count() == 9
    assert conversation.locator(".verdict:visible").count() == 2
    assert conversation.locator(".badge:visible").all_inner_texts() == ["● yes", "◐ uncertain", "○ no"]
    assert conversation.locator("input:visible").count() == 0
    assert conversation.locator(".made[open]").count() == 0


@pytest.mark.parametrize("how", ["click", "keyboard"])
def test_hidden_answers_leave_the_first_question_and_its_images(conversation, how):
    toggle = conversation.get_by_role("button", name="Hide answers")
    if how == "click":
        toggle.click()
    else:
        conversation.keyboard.press("k")
    assert toggle.get_attribute("aria-pressed") == "true"
    assert conversation.locator(".key:visible").count() == 0
    assert visible_turns(conversation) == ["t1"]
    assert conversation.locator("figure.current:visible").count() == 2
    assert conversation.locator("figure.reference:visible").count() == 0
    text = conversation.locator("body").inner_text()
    # Neither the projections, which are asked for, nor what comes later.
    for word in ("PA", "lateral", "Attributes", "Report", "turns", "How this turn was made"):
        assert word not in text
    if how == "click":
        toggle.click()
    else:
        conversation.keyboard.press("k")
    assert len(visible_turns(conversation)) == 9


def test_reader_can_answer_by_keyboard(conversation):
    conversation.keyboard.press("k")
    conversation.locator("#step-1 .show-key").focus()
    conversation.keyboard.press("Enter")
    assert conversation.locator("#step-1 .answer").inner_text().endswith("PA and lateral.")
    assert visible_turns(conversation) == ["t1", "t2"]
    # The next question has the focus at its first answer.
    conversation.keyboard.press("Space")
    conversation.keyboard.press("Tab")
    conversation.keyboard.press("Enter")
    assert conversation.locator("#step-2 .outcome").inner_text() == "Your answer is right."
    conversation.get_by_role("radio", name="no", exact=True).last.check()
    conversation.locator("#step-3 .show-key").click()
    assert conversation.locator("#step-3 .outcome").inner_text() == "Your answer is wrong."
    assert visible_turns(conversation) == ["t1", "t2", "t3", "t4"]


def test_images_and_boxes_appear_with_their_turns(conversation):
    conversation.keyboard.press("k")
    boxes = conversation.locator("#step-6 .box")
    for _ in range(5):
        conversation.locator(".show-key:visible").click()
    assert visible_turns(conversation)[-1] == "t6"
    assert boxes.locator("visible=true").count() == 0
    conversation.locator(".show-key:visible").click()
    assert boxes.locator("visible=true").count() == 1
    assert conversation.locator("#step-7 .questioned:visible").count() == 1
    assert conversation.locator("figure.reference:visible").count() == 0
    conversation.locator(".show-key:visible").click()
    assert conversation.locator("figure.reference:visible").count() == 1
    for _ in range(2):
        conversation.locator(".show-key:visible").click()
    # After the last answer everything is visible.
    assert conversation.get_by_role("navigation", name="Stages").is_visible()


def test_box_has_the_right_place_on_the_screen(conversation):
    """Of the image: from a tenth to three tenths across, from a tenth to a half down."""
    image = conversation.locator("#step-6 svg").bounding_box()
    box = conversation.locator("#step-6 .box .line").bounding_box()
    # A browser counts the width of the line in, half of it on each side.
    edges = [
        (box["x"] - image["x"]) / image["width"],
        (box["y"] - image["y"]) / image["height"],
        (box["x"] + box["width"] - image["x"]) / image["width"],
        (box["y"] + box["height"] - image["y"]) / image["height"],
    ]
    assert edges == pytest.approx([0.1, 0.1, 0.3, 0.5], abs=0.04)


def test_links_lead_to_turns_and_stages(conversation):
    conversation.locator("#step-8").get_by_role("link", name="t5").click()
    assert conversation.url.endswith("#step-5")
    bar = conversation.get_by_role("navigation", name="Stages").bounding_box()
    assert conversation.locator("#step-5 .question").bounding_box()["y"] >= bar["y"] + bar["height"]
    conversation.get_by_role("navigation", name="Stages").get_by_role("link", name="Comparison").click()
    assert conversation.url.endswith("#stage-5")
    bar = conversation.get_by_role("navigation", name="Stages").bounding_box()
    assert conversation.locator("#stage-5").bounding_box()["y"] >= bar["y"] + bar["height"]


def test_image_is_enlarged_and_closed_by_keyboard(conversation):
    button = conversation.locator("#step-6 .enlarge")
    small = button.bounding_box()["width"]
    button.focus()
    conversation.keyboard.press("Enter")
    large = conversation.get_by_role("dialog", name="Enlarged image")
    assert large.locator("svg").bounding_box()["width"] > 3 * small
    assert large.locator(".box").count() == 1
    conversation.keyboard.press("Escape")
    assert not large.is_visible()
    assert button.evaluate("e => e === document.activeElement")


def test_images_have_pixels_wherever_they_appear(conversation):
    import cv2

    for svg in (
        conversation.locator(".images svg").first,
        conversation.locator(".images svg").last,
        conversation.locator("#step-6 svg"),
    ):
        shot = cv2.imdecode(np.frombuffer(svg.screenshot(), np.uint8), cv2.IMREAD_GRAYSCALE)
        assert shot.std() > 20


def test_details_hold_the_stored_answer(conversation):
    made = conversation.locator("#step-6 .made")
    assert not made.locator("pre").first.is_visible()
    made.locator("summary").press("Enter")
    assert made.locator("pre").last.inner_text() == like.steps()[5].key.text


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast_in_light_and_dark(conversation, scheme):
    conversation.emulate_media(color_scheme=scheme)
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
    for selector in (".question", ".answer .prose", ".badge", ".notes li", ".notes a", ".made summary", ".task",
                     ".verdict", "figcaption", ".corners", ".stage", ".unit"):  # fmt: skip
        ratios = conversation.evaluate(contrast, selector)
        assert ratios, selector
        assert min(ratios) >= 4.5, selector


def test_print_has_questions_and_answers_without_controls(conversation):
    conversation.emulate_media(media="print")
    assert conversation.locator(".answer:visible").count() == 8
    assert conversation.locator(".images svg:visible").count() == 5
    for hidden in ("nav:visible", "#keys:visible", ".made:visible"):
        assert conversation.locator(hidden).count() == 0


def test_pages_fit_a_phone(page, index):
    page.set_viewport_size({"width": 390, "height": 800})
    for html in (index.html, *(written.html for written in index.pages)):
        page.goto(html.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_index_keeps_conversations_that_match_all_filters(page, index):
    page.goto(index.html.as_uri())
    ids = page.locator("tbody tr:visible th")
    assert ids.all_inner_texts() == ["trek-p1-s2", "trek-p9-s1"]
    page.get_by_role("button", name="nodule 2").click()
    assert page.get_by_role("status").inner_text() == "2 of 2 match"
    page.get_by_role("button", name="5 Comparison 1").click()
    assert ids.all_inner_texts() == ["trek-p1-s2"]
    assert page.locator(".study:visible").count() == 1
    page.get_by_role("searchbox").fill("P9")
    assert ids.count() == 0
    page.get_by_role("button", name="5 Comparison 1").click()
    assert ids.all_inner_texts() == ["trek-p9-s1"]
    page.locator("tbody").get_by_role("link", name="trek-p9-s1").click()
    assert page.locator("h1").inner_text() == "trek-p9-s1"
