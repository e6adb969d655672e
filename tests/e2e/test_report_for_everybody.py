"""The report by keyboard, on a narrow screen, on paper, and without colours: nothing is lost."""

import pytest
from tests.runs.analysis import small_runs as small

from carina.pages.report import report


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    root = tmp_path_factory.mktemp("histories")
    return report(small.write_histories(root), root / "report")


@pytest.fixture
def shown(page, written):
    page.goto(written.pages[0].as_uri())
    return page


def test_paths_are_told_in_words_where_cases_are_chosen(shown):
    options = shown.locator("#f-path option").evaluate_all(
        "all => all.map(one => [one.value, one.text, one.title])"
    )
    assert options == [
        ["", "all", ""],
        ["LF", "lesion-free (LF)", "LF: the lesion is absent; the case ends after detection"],
        ["RF", "no revision needed (RF)", "RF: the lesion is present, and the contour shown is good"],
        ["RR", "revision required (RR)", "RR: the lesion is present, and the contour shown is wrong"],
    ]
    assert shown.locator("#list .path").first.inner_text() == "revision required (RR)"
    assert shown.locator("#case h3").inner_text() == "consolidation, revision required (RR)"


def test_everything_that_takes_the_focus_shows_it(shown):
    seen = set()
    for _ in range(60):
        shown.keyboard.press("Tab")
        told = shown.evaluate(
            """() => {
                const one = document.activeElement, style = getComputedStyle(one);
                return [one.tagName, style.outlineStyle, parseFloat(style.outlineWidth)];
            }"""
        )
        seen.add(told[0])
        if told[0] != "BODY":
            assert told[1] != "none", told
            assert told[2] >= 1, told
    assert seen >= {"A", "BUTTON", "DIV", "SUMMARY"}


def test_runs_have_the_marks_of_the_charts_beside_their_names(shown):
    answers = shown.locator("#case [data-step='1'] .answers > li")
    marks = answers.locator(".who svg").evaluate_all(
        "all => all.map(one => one.innerHTML.replace(/var\\\\(--[a-z0-9]+\\\\)/g, ''))"
    )
    # Seven runs, and no two marks alike even where all are of one colour.
    assert len(marks) == len(set(marks)) == 7


def test_what_is_the_same_under_two_histories_is_a_sentence(shown):
    section = shown.get_by_role("region", name="Histories", exact=True)
    assert (
        "builtin/majority: all 22 answers are the same with history own as with gold" in section.inner_text()
    )
    section.locator("summary").click()
    assert section.locator("tbody th[scope=row]").all_inner_texts() == ["lab/alpha"] * 3


@pytest.mark.parametrize("width", [400, 1032])
def test_unfolded_nothing_is_wider_than_screen_or_paper(shown, width):
    shown.set_viewport_size({"width": width, "height": 900})
    shown.evaluate("dispatchEvent(new Event('beforeprint'))")
    if width > 1000:
        shown.emulate_media(media="print")
    assert shown.evaluate("document.documentElement.scrollWidth") <= width


OVERLAPS = """() => [...document.querySelectorAll("svg.chart")].flatMap((chart) => {
    const words = [...chart.querySelectorAll("text")];
    const boxes = words.map((one) => one.getBoundingClientRect());
    const apart = (a, b) =>
        a.left >= b.right - 1 || b.left >= a.right - 1 || a.top >= b.bottom - 3 || b.top >= a.bottom - 3;
    return words.flatMap((one, at) => words
        .filter((_, place) => place > at && !apart(boxes[at], boxes[place]))
        .map((other) => [one.textContent, other.textContent]));
})"""
OUTSIDE = """() => [...document.querySelectorAll("svg.chart")].flatMap((chart) => {
    const { left, right, top, bottom } = chart.getBoundingClientRect();
    const within = (box) =>
        box.left >= left - 1 && box.right <= right + 1 && box.top >= top - 1 && box.bottom <= bottom + 1;
    const words = [...chart.querySelectorAll("text")];
    return words.filter((one) => !within(one.getBoundingClientRect())).map((one) => one.textContent);
})"""


def test_words_in_charts_lie_neither_on_each_other_nor_outside(shown):
    shown.set_viewport_size({"width": 1300, "height": 900})
    shown.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert shown.locator("svg.chart:visible").count() == 5
    assert shown.evaluate(OVERLAPS) == []
    assert shown.evaluate(OUTSIDE) == []


CUT = """() => {
    const seen = (one) => one.checkVisibility() && !one.closest(".vh, svg, template, script, style");
    const scrolled = [...document.querySelectorAll("main *")].filter((one) =>
        seen(one) && getComputedStyle(one).overflowX !== "visible" && one.scrollWidth > one.clientWidth + 1);
    const words = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
    const outside = [];
    while (words.nextNode()) {
        const one = words.currentNode;
        if (!one.data.trim() || !seen(one.parentElement)) continue;
        const range = document.createRange();
        range.selectNodeContents(one);
        const right = one.parentElement.closest(".card, .notices, main").getBoundingClientRect().right;
        if ([...range.getClientRects()].some((box) => box.right > right + 1)) outside.push(one.data.trim());
    }
    return [...scrolled.map((one) => one.getAttribute("aria-label") || one.tagName), ...outside];
}"""
"""Parts that would have to be scrolled sideways, and words that end outside their card."""


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    """Seven runs whose names are long, as those of checkpoints are."""
    root = tmp_path_factory.mktemp("labels")
    runs = small.write_histories(root)
    labels = [
        f"A long name of the model {run.name} with its checkpoint/at-step-1000-of-some-run" for run in runs
    ]
    return report(runs, root / "report", labels=labels)


@pytest.mark.parametrize(("width", "media"), [(1280, "screen"), (1032, "print")])
def test_nothing_is_cut_on_a_screen_or_on_paper(page, labelled, width, media):
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(labelled.pages[0].as_uri())
    page.emulate_media(media=media)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(CUT) == []
    assert page.evaluate(OVERLAPS) == []
    assert page.evaluate(OUTSIDE) == []


def test_marks_of_neighbouring_lines_stand_side_by_side(page, labelled):
    """No mark of a chart of lines covers another's, although most runs have the same values."""
    page.goto(labelled.pages[0].as_uri())
    places = page.evaluate(
        """() => [...document.querySelectorAll("svg.chart")].filter((one) => one.getAttribute("aria-label").startsWith(
            "Share of cases still right after each stage or step"))
            .flatMap((chart) => [...chart.querySelectorAll("title")].map((tip) => {
                const box = tip.parentElement.getBoundingClientRect();
                return [box.x + box.width / 2, box.y + box.height / 2];
            }))"""
    )
    assert len(places) > 10
    near = [
        (one, other)
        for number, one in enumerate(places)
        for other in places[number + 1 :]
        if abs(one[0] - other[0]) < 5 and abs(one[1] - other[1]) < 5
    ]
    assert near == []
