"""The report in a real browser: cases by click and keyboard, filters, search, colours, print; nothing goes wrong."""

import pytest
from tests.runs.analysis import small_runs as small

from carina.pages.report import report

ALL = ["c-RR1", "c-RR2", "c-RF1", "c-RF2", "c-LF1", "c-LF2"]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    root = tmp_path_factory.mktemp("report")
    return report(small.write_all(root), root / "report")


@pytest.fixture
def shown(page, written):
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.goto(written.pages[0].as_uri())
    yield page
    assert said == []


def listed(page) -> list[str]:
    return [button.get_attribute("data-case") for button in page.locator("#list button:visible").all()]


def chosen(page) -> str:
    (button,) = page.locator("#list button[aria-current=true]").all()
    return button.get_attribute("data-case")


def test_the_page_opens_at_its_top_with_the_first_case(shown):
    assert shown.evaluate("scrollY") == 0
    assert listed(shown) == ALL
    assert chosen(shown) == "c-RR1"
    assert shown.locator("#left").inner_text() == "6 of 6 cases"
    # One group of runs needs no choice of groups.
    assert not shown.locator("#f-group").is_visible()
    assert shown.locator("svg.chart:visible").count() == 4


def test_a_click_shows_a_case_with_pictures_and_answers(shown):
    shown.locator("[data-case=c-RF2]").click()
    assert chosen(shown) == "c-RF2"
    pane = shown.locator("#case")
    assert [step.get_attribute("data-step") for step in pane.locator(".step").all()] == ["1", "2", "4a", "4c"]
    # Both pictures are drawn, not merely named.
    sizes = pane.locator("img").evaluate_all(
        "images => images.map(image => [image.complete, image.naturalWidth])"
    )
    assert sizes == [[True, small.SIDE], [True, small.SIDE]]
    answers = pane.locator("[data-step='4a'] .answers > li")
    assert [one.locator(".verdict").inner_text() for one in answers.all()] == [
        "✕ wrong", "… incomplete", "✕ wrong", "✓ right",
    ]  # fmt: skip
    assert [one.get_attribute("data-run") for one in answers.all()] == [
        "alpha",
        "beta",
        "majority",
        "alpha-gold",
    ]
    assert "Hint before the question: The contour needed no revision." in answers.nth(3).inner_text()
    assert "Right answer: (2) 2 zones" in pane.inner_text()
    # Words with tags are words.
    assert "<b>I say</b>" in pane.locator("[data-step='1'] details pre").first.text_content()


def test_keys_move_open_search_and_leave(shown):
    shown.keyboard.press("j")
    assert chosen(shown) == "c-RR2"
    shown.keyboard.press("j")
    shown.keyboard.press("k")
    assert chosen(shown) == "c-RR2"
    shown.keyboard.press("ArrowDown")
    assert chosen(shown) == "c-RF1"
    shown.keyboard.press("ArrowUp")
    shown.keyboard.press("ArrowUp")
    shown.keyboard.press("ArrowUp")
    assert chosen(shown) == "c-RR1"
    shown.keyboard.press("Enter")
    assert shown.evaluate("document.activeElement.id") == "case"
    shown.keyboard.press("/")
    assert shown.evaluate("document.activeElement.id") == "find"
    shown.keyboard.type("cannot help")
    assert listed(shown) == ["c-RR2"]
    # Letters that are keys elsewhere are letters here.
    shown.keyboard.press("Escape")
    assert shown.locator("#find").input_value() == ""
    assert listed(shown) == ALL
    shown.keyboard.type("jk")
    assert listed(shown) == []
    assert "No case matches" in shown.locator("#case").inner_text()
    shown.keyboard.press("Escape")
    shown.keyboard.press("Escape")
    assert shown.evaluate("document.activeElement.tagName") == "BODY"


@pytest.mark.parametrize(
    ("choices", "left"),
    [
        ({"target": "edema"}, ["c-RR2", "c-RF2", "c-LF2"]),
        ({"path": "LF"}, ["c-LF1", "c-LF2"]),
        ({"run": "alpha", "status": "wrong"}, ["c-RR2", "c-RF2", "c-LF2"]),
        ({"run": "alpha", "stage": "0/4"}, ["c-RF2"]),
        ({"stage": "0/3"}, ["c-RR1", "c-RR2"]),
        ({"status": "incomplete"}, ["c-RF2"]),
        ({"status": "unparsed"}, ["c-RR2"]),
        ({"target": "edema", "run": "beta", "status": "right"}, ["c-LF2"]),
    ],
)
def test_filters_all_hold_and_are_cleared_at_once(shown, choices, left):
    for name, value in choices.items():
        shown.select_option(f"#f-{name}", value)
    assert listed(shown) == left
    assert chosen(shown) in left
    assert shown.locator("#left").inner_text() == f"{len(left)} of 6 cases"
    shown.get_by_role("button", name="Clear").click()
    shown.wait_for_function("document.getElementById('left').textContent === '6 of 6 cases'")
    assert listed(shown) == ALL


def test_a_picture_is_enlarged_and_put_away(shown):
    shown.locator("#case .images button").first.click()
    dialog = shown.get_by_role("dialog", name="Image")
    assert dialog.locator("img").is_visible()
    shown.keyboard.press("Escape")
    assert not dialog.is_visible()


def ground(page) -> str:
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_dark_and_light_by_the_reader_or_the_switch(browser, written):
    for scheme, first in (("dark", "rgb(17, 19, 22)"), ("light", "rgb(243, 244, 246)")):
        page = browser.new_page(color_scheme=scheme)
        page.goto(written.pages[0].as_uri())
        assert ground(page) == first
        page.get_by_role("button", name="Dark").click()
        assert ground(page) == "rgb(17, 19, 22)"
        label = page.locator("svg.chart text[style*='var(--ink)']").first
        assert label.evaluate("text => getComputedStyle(text).fill") == "rgb(228, 232, 236)"
        page.get_by_role("button", name="Light").click()
        assert ground(page) == "rgb(243, 244, 246)"
        assert label.evaluate("text => getComputedStyle(text).fill") == "rgb(26, 30, 35)"
        page.get_by_role("button", name="Auto").click()
        assert ground(page) == first
        page.close()


def test_print_leaves_out_the_controls_and_unfolds_the_tables(shown):
    shown.emulate_media(media="print", color_scheme="dark")
    assert ground(shown) == "rgb(255, 255, 255)"
    assert not shown.locator(".filters").is_visible()
    assert not shown.locator(".frame-bar").is_visible()
    assert shown.locator("#case").is_visible()
    folded = shown.locator("main details:not([open])").count()
    assert folded > 5
    shown.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert shown.locator("main details:not([open])").count() == 0
    shown.evaluate("dispatchEvent(new Event('afterprint'))")
    assert shown.locator("main details:not([open])").count() == folded


@pytest.mark.parametrize("width", [360, 820, 1400])
def test_nothing_is_wider_than_the_window(shown, width):
    shown.set_viewport_size({"width": width, "height": 900})
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
