"""The page of a case: questions, right answers and the facts behind them; no text of a case becomes markup."""

import re

import cv2
import msgspec
import numpy as np
import pytest
from tests.pages import percept_cases as like

from carina.cases import Box, Constraints, Fact, Key, Origin, Step
from carina.cases.draw import HUES, MARKS
from carina.cases.faults import faults
from carina.pages import write_case_page
from carina.store.errors import BenchmarkError
from carina.studies import ReportSection


@pytest.fixture
def case():
    return like.rr_case()


@pytest.fixture
def page(case, tmp_path, read_page):
    return read_page(write_case_page(like.bench_of(case), case, tmp_path).html)


def step_of(page, number: int) -> str:
    """The source of one step."""
    found = re.search(rf'<section class="card step" id="step-{number}".*?</section>', page.source, re.DOTALL)
    assert found
    return found.group()


def choices(step: str) -> list[tuple[str, str, bool, str]]:
    """Number, text, whether it is marked right, and kind, of every option."""
    return [
        (
            re.search(r'class="n">\((\d+)\)', part).group(1),
            re.search(r'class="text">(.*?)</span>', part).group(1),
            "✓</span> right" in part,
            (re.findall(r'class="key kind">(.*?)</span>', part) or [""])[0],
        )
        for part in re.split(r'(?=<div class="choice)', step)[1:]
    ]


def test_cases_of_these_tests_are_consistent(case) -> None:
    assert list(faults(case)) == []
    assert list(faults(like.lf_case())) == []


def test_page_is_valid_and_loads_nothing(page) -> None:
    page.assert_sound()


def test_header_gives_target_path_study_and_licence(page) -> None:
    for words in (
        "consolidation",
        "revision required",
        "p000001-s1",
        "p000001",
        "phantom",
        "CC0-1.0",
        "consolidation/RR",
    ):
        assert words in page.text


def test_path_lists_steps_and_the_answers_that_lead_to_them(page) -> None:
    path = re.search(r'<section class="card key path".*?</section>', page.source, re.DOTALL).group()
    plain = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", path))
    assert plain.strip().startswith(
        "Stage 1 1 detection 1: Yes → Stage 2 2 contour evaluation 2: Yes → "
        "Stage 3 3a expansion 3b contraction 3c revision → "
        "Stage 4 4a distribution 4b location 4c severity 4d comparison → end"
    )


def test_options_show_number_key_and_kind(page) -> None:
    assert choices(step_of(page, 2)) == [("1", "No", False, ""), ("2", "Yes", True, "")]
    assert choices(step_of(page, 3)) == [
        ("1", "orange point", False, "outside"),
        ("2", "blue point", False, "contraction"),
        ("3", "green point", True, "expansion"),
        ("4", "yellow point", False, "inside"),
        ("5", "None", False, ""),
    ]
    assert choices(step_of(page, 5)) == [
        ("1", "1st mask", False, "partial"),
        ("2", "2nd mask", True, ""),
        ("3", "3rd mask", False, "wrong operation and partial"),
        ("4", "4th mask", False, "wrong place"),
    ]
    assert [number for number, _, right, _ in choices(step_of(page, 7)) if right] == ["1", "3"]


def test_point_options_have_the_colours_and_numbers_of_the_view(page) -> None:
    discs = re.findall(r'class="disc" style="background:(#\w+);color:#\w+">(\d)<', step_of(page, 3))
    assert discs == [(MARKS[name].hex, str(place)) for place, name in enumerate(like.COLOURS, start=1)]


def test_views_appear_at_their_steps_and_are_stored_once(page) -> None:
    uses = [re.findall(r'<use href="#(view-\d)"', step_of(page, number)) for number in range(1, 10)]
    assert uses == [
        ["view-1"],
        ["view-2"],
        ["view-3"],
        ["view-3"],
        ["view-3", "view-4", "view-5", "view-6", "view-7"],
        *[["view-1"]] * 4,
    ]
    assert "shown since 3a" in step_of(page, 4)
    # Each figure is stored once, however often it appears: seven views and the contour difference.
    assert page.source.count("data:image/jpeg") == 8


def test_question_appears_without_its_options_and_as_sent(page, case) -> None:
    step = step_of(page, 1)
    assert '<p class="question">Is consolidation visible on this X-ray?</p>' in step
    assert f"<pre>{case.steps[0].question}</pre>" in step
    assert "Eight coloured points are drawn on the X-ray." in step_of(page, 3)


def test_margins_show_value_and_range(page) -> None:
    step = re.sub(r"\s+", " ", step_of(page, 2))
    # The band fills 1 / 1.36 of the bar between two ends that a value may pass: 0.55 at 13.24 %, 0.85 at 86.76 %,
    # and 0.713 at (0.713 - 0.55 + 0.18 * 0.3) / (1.36 * 0.3) = 53.19 %.
    assert 'style="left:13.24%;width:73.52%"' in step
    assert 'class="tick" style="left:53.19%"' in step
    assert '<span class="value">0.713</span> <span class="range quiet">0.55 to 0.85</span>' in step
    assert "IoU with truth <span" in step
    assert "shown mask" in step
    assert "the tightest is nearest change (4)" in step_of(page, 3)


def test_contour_edits_are_described_one_by_one(page) -> None:
    section = r'<section class="card key" aria-labelledby="difference-title".*?</section>'
    panel = re.search(section, page.source, re.DOTALL).group()
    plain = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", panel))
    assert (
        "The contour was changed by expansion (right lateral lung &amp; right lower zone lung); "
        "the revision it needs is contraction at point 2." in plain
    )
    assert "the revision it needs is expansion at point 3." in plain
    assert "2210 at least 600" in plain
    # Facts of edits appear only there, and roles of regions nowhere.
    whole = page.source[page.source.index('id="case-title"') :]
    assert "changed area" not in whole
    assert "mask by reader A" in whole
    assert "role" not in whole


def test_value_outside_its_range_is_marked(case, tmp_path, read_page) -> None:
    broken = msgspec.structs.replace(case, facts=(Fact(name="thickness", value=20.0, low=24.0),))
    page = read_page(write_case_page(like.bench_of(broken), broken, tmp_path).html)
    assert len(page.with_class("broken")) == 1
    assert "outside" in page.text
    # Without roles of regions there is no contour difference.
    assert "How the contour was changed" not in page.text


def test_text_of_a_case_is_escaped_everywhere(case, tmp_path, read_page) -> None:
    evil = "\"><img src=x onerror='alert(1)'></script>"
    step = case.steps[2]
    hostile = msgspec.structs.replace(
        case,
        id=evil,
        study=evil,
        patient=evil,
        source=evil,
        target=evil,
        path=evil,
        protocol=evil,
        steps=(
            *case.steps[:2],
            msgspec.structs.replace(
                step,
                question=evil,
                context=evil,
                task=evil,
                options=(msgspec.structs.replace(step.options[0], text=evil), *step.options[1:]),
                key=Key(options=("p3",), kinds=(evil, "a", "b", "c", "d")),
                facts=(
                    Fact(name=evil, about=evil, text=evil),
                    Fact(name=evil, about=evil, value=1.0, low=0.0),
                ),
                template=evil,
                origin=Origin(method="llm", model=evil, note=evil),
            ),
            *case.steps[3:],
        ),
        facts=(
            *case.facts,
            Fact(name="place", about="edit 3", text=evil),
            Fact(name=evil, about="edit 3", value=1.0),
        ),
    )
    written = write_case_page(like.bench_of(hostile), hostile, tmp_path)
    assert written.html.parent == tmp_path
    page = read_page(written.html)
    page.assert_sound()
    assert not any(tag == "img" or "onerror" in attrs for tag, attrs in page.tags)
    assert sum(tag == "script" for tag, _ in page.tags) == 2
    assert page.text.count(evil) > 15


def test_page_has_the_same_bytes_every_time(case, tmp_path) -> None:
    first, second = (write_case_page(like.bench_of(case), case, tmp_path / name) for name in "ab")
    assert first.html.read_bytes() == second.html.read_bytes()
    assert first.png.read_bytes() == second.png.read_bytes()


def test_inconsistent_case_is_refused(case, tmp_path) -> None:
    wrong = msgspec.structs.replace(case, steps=(msgspec.structs.replace(case.steps[0], key=Key()),))
    with pytest.raises(
        BenchmarkError, match="'c-0123456789abcdef' cannot be shown: step '1': has options and no key"
    ):
        write_case_page(like.bench_of(wrong), wrong, tmp_path)
    assert not list(tmp_path.iterdir())


def other_formats(case):
    """A case with one step of every format that has no options."""

    def step(name: str, form: str, key: Key, **more: object) -> Step:
        shows = ("v1",) if name == "t1" else ()
        return Step(
            id=name, stage=int(name[1]), task=f"task {name}", format=form, question=f"Question {name}?", shows=shows,
            uses=("v1",), key=key, **more,
        )  # fmt: skip

    steps = (
        step("t1", "yes_no", Key(label="uncertain")),
        step("t2", "open", Key(text="A left effusion."), score="text",
             constraints=Constraints(max_words=5, answer_only=True)),
        step("t3", "boxes", Key(boxes=(Box(image=like.KEY, xyxy=(25, 50, 50, 75), frame="percent", name="effusion"),)),
             score="boxes"),
        step("t4", "report", Key(sections=(ReportSection(name="impression", text="Effusion."),)), score="text",
             origin=Origin(method="llm", model="m1", review="accepted")),
        step("t5", "map", Key(regions=("r6",)), score="map"),
    )  # fmt: skip
    return msgspec.structs.replace(case, protocol="trek", target=None, path=None, steps=steps, facts=())


def test_every_answer_format_shows_its_key(case, tmp_path, read_page) -> None:
    mixed = other_formats(case)
    assert list(faults(mixed)) == []
    written = write_case_page(like.bench_of(mixed), mixed, tmp_path)
    page = read_page(written.html)
    page.assert_sound()
    assert "Uncertain" in step_of(page, 1)
    assert "A left effusion." in step_of(page, 2)
    assert "at most 5 words · answer only · scored by its text" in step_of(page, 2)
    # A quarter to a half of 160 pixels across, a half to three quarters down.
    assert "40, 80 to 80, 120" in step_of(page, 3)
    assert "1 effusion" in step_of(page, 3)
    assert "<h3>impression</h3>" in step_of(page, 4)
    assert "worded by a language model (m1) · review: accepted" in step_of(page, 4)
    assert [re.findall(r'"#(key-[\d-]+)"', step_of(page, number)) for number in (3, 4, 5)] == [
        ["key-3-1"],
        [],
        ["key-5-1"],
    ]
    assert cv2.imread(str(written.png)) is not None


def test_summary_image_shows_views_in_order_and_frames_the_right_mask(case, tmp_path) -> None:
    written = write_case_page(like.bench_of(case), case, tmp_path)
    picture = cv2.imread(str(written.png))[..., ::-1]
    assert picture.shape[1] == 1600
    frame = np.argwhere((picture == HUES["bluish green"]).all(axis=2))
    top, left = frame.min(axis=0)
    bottom, right = frame.max(axis=0) + 1
    # Around the second of four cells of 385 pixels, five pixels wide.
    assert (left, right) == (12 + 397 - 5, 12 + 397 + 385 + 5)
    assert bottom - top == 385 + 10
    # The first row: plain, with mask, with mask and points, and the contour difference.
    cyan = [
        (picture[94 : 94 + 385, 12 + 397 * place : 397 * (place + 1)] > (-1, 200, 150)).all(axis=2).sum()
        for place in range(4)
    ]
    assert cyan[1] > 500
    assert cyan[2] > 500


def test_short_case_has_a_narrow_summary_image(tmp_path) -> None:
    case = like.lf_case()
    written = write_case_page(like.bench_of(case), case, tmp_path)
    assert cv2.imread(str(written.png)).shape[1] == 2 * 397 + 12
    page = written.html.read_text(encoding="utf-8")
    assert "lesion-free" in page
    assert "<dd>unknown</dd>" in page
