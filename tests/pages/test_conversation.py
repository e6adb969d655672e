"""The page of a conversation: images at their turns, stages, answers in every format, boxes at the right place."""

import re

import cv2
import msgspec
import numpy as np
import pytest
from tests.pages import conversation_cases as like
from tests.pages import percept_cases as percept

from carina.cases import Box, CaseView, Constraints, Fact, Key, Option, Origin, Panel, Slot
from carina.cases.draw import HUES, colour_of
from carina.cases.faults import faults
from carina.pages import is_conversation, load_conversation, write_case_page
from carina.pages.conversation import stage_entries
from carina.pages.missing_images import FramedViews
from carina.studies import ReportSection


def bench_of(*cases):
    return percept.bench_of(*cases, image=like.image_pixels())


@pytest.fixture
def case():
    return like.conversation()


@pytest.fixture
def page(case, tmp_path, read_page):
    return read_page(write_case_page(bench_of(case), case, tmp_path).html)


def source_of(page, number: int) -> str:
    """The source of one turn."""
    return re.search(
        rf'<article class="turn step" id="step-{number}".*?</article>', page.source, re.DOTALL
    ).group()


def flat(source: str) -> str:
    """The words of a piece of source, cells of tables apart."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", re.sub(r"</t[hd]>", " ", source))).strip()


def replaced(case, number: int, **changes: object):
    steps = list(case.steps)
    steps[number - 1] = msgspec.structs.replace(steps[number - 1], **changes)
    return msgspec.structs.replace(case, steps=tuple(steps))


def test_case_of_these_tests_is_a_consistent_conversation(case) -> None:
    assert list(faults(case)) == []
    assert is_conversation(case)


def test_cases_with_branches_masks_or_image_options_are_no_conversations(case) -> None:
    assert not is_conversation(percept.rr_case())
    assert not is_conversation(percept.lf_case())
    pictured = tuple(msgspec.structs.replace(option, view="v2") for option in case.steps[4].options)
    assert not is_conversation(replaced(case, 5, options=pictured))
    cropped = CaseView(id="v3", panels=(Panel(image=like.KEYS[2], crop=(0, 0, 20, 20)),))
    assert not is_conversation(msgspec.structs.replace(case, views=(*case.views[:2], cropped)))


def test_a_single_question_is_a_conversation_where_the_protocol_has_conversations(case) -> None:
    single = msgspec.structs.replace(case, steps=case.steps[:1])
    assert is_conversation(msgspec.structs.replace(single, protocol="trek"))
    assert not is_conversation(msgspec.structs.replace(single, protocol="mine"))


def test_an_image_that_was_imported_without_its_file_is_an_empty_frame(case, tmp_path, read_page) -> None:
    images = tuple(msgspec.structs.replace(image, width=0, height=0, sha256=None) for image in case.images)
    steps = tuple(step for step in case.steps if step.format != "boxes")
    bare = msgspec.structs.replace(case, images=images, steps=steps)
    page = read_page(write_case_page(bench_of(bare), bare, tmp_path).html)
    page.assert_sound()
    assert bare.steps[0].question.split(". ")[0] in page.text
    drawn = FramedViews(bench_of(bare)).array(bare, "v1")
    assert drawn.shape == (512, 512, 3)
    assert (drawn[200:300] < 128).any()  # it says which file is missing


def test_page_is_valid_and_loads_nothing(page) -> None:
    page.assert_sound()
    # Each image is stored once, however often it appears.
    assert page.source.count("data:image/jpeg") == 3


def test_header_gives_dates_and_distances_of_studies(page) -> None:
    assert page.text.count("p1-s2 · 2141-03-02") == 1
    assert "p1-s1 · 2141-03-01 · 1 day earlier" in page.text
    assert "p1-s3 · 2141-03-12 · 10 days later" in page.text
    assert "9 in 5 stages" in page.text
    # They appear only there.
    assert "Facts of the case" not in page.text


def test_images_stand_beside_the_turns_that_use_them(page) -> None:
    figure = re.compile(r'<figure class="(current|reference)">.*?<figcaption>(.*?)</figcaption>', re.DOTALL)
    parts = page.source.split('<div class="span')[1:]
    found = [[(role, flat(caption)) for role, caption in figure.findall(part)] for part in parts]
    assert found == [
        [("current", "Current 1 PAfirst shown at t1"), ("current", "Current 2 lateralfirst shown at t1")],
        [
            ("current", "Current 1 PAsince t1"),
            ("current", "Current 2 lateralsince t1"),
            ("reference", "Reference APfirst shown at t8"),
        ],
    ]
    turns = [re.findall(r'data-step="(t\d)"', part) for part in parts]
    assert turns == [["t1", "t2", "t3", "t4", "t5", "t6", "t7"], ["t8", "t9"]]


def test_projection_belongs_to_the_answer_key(page) -> None:
    assert page.source.count('<span class="key">PA</span>') == 2
    alts = [attrs["aria-label"] for tag, attrs in page.tags if attrs.get("role") == "img"]
    assert alts[:2] == ["Current 1 chest radiograph.", "Current 2 chest radiograph."]
    assert not any("lateral" in alt or "pa.png" in alt for alt in alts)


def test_stages_have_headings_and_links_with_counts(page) -> None:
    headings = [flat(item) for item in re.findall(r'<h2 id="stage-.*?</h2>', page.source, re.DOTALL)]
    assert headings == [
        "1 Image quality", "2 Findings", "3 Attributes and location", "5 Comparison", "8 Report",
    ]  # fmt: skip
    nav = re.search(r'<nav class="stages key".*?</nav>', page.source, re.DOTALL).group()
    assert re.findall(r'href="#([\w-]+)"', nav) == ["stage-1", "stage-2", "stage-3", "stage-5", "stage-8"]
    assert flat(nav) == (
        "1 Image quality 1 turn 2 Findings 3 turns 3 Attributes and location 3 turns "
        "5 Comparison 1 turn 8 Report 1 turn"
    )


def test_stage_continues_after_new_images(case, tmp_path, read_page) -> None:
    early = replaced(replaced(case, 8, shows=()), 3, shows=("v3",))
    page = read_page(write_case_page(bench_of(early), early, tmp_path).html)
    page.assert_sound()
    headings = [flat(item) for item in re.findall(r'<h2 id="stage-.*?</h2>', page.source, re.DOTALL)]
    assert headings[1:4] == ["2 Findings", "2 Findings continued", "3 Attributes and location"]


def test_shuffled_conversation_names_the_stage_at_every_turn(case, tmp_path, read_page) -> None:
    order = (1, 5, 2, 8, 3, 9, 4, 6, 7)
    steps = tuple(msgspec.structs.replace(case.steps[place - 1], depends_on=()) for place in order)
    mixed = msgspec.structs.replace(case, order="shuffled", steps=steps)
    page = read_page(write_case_page(bench_of(mixed), mixed, tmp_path).html)
    page.assert_sound()
    assert "<h2 id=" not in page.source
    assert "t5 location stage 3" in flat(source_of(page, 2))
    assert "9 in 5 stages, shuffled" in page.text
    assert [(item.stage, item.anchor, item.turns) for item in stage_entries(mixed)] == [
        (1, "step-1", 1), (2, "step-3", 3), (3, "step-2", 3), (5, "step-4", 1), (8, "step-6", 1),
    ]  # fmt: skip


def test_stages_of_an_unknown_protocol_have_numbers_only(case, tmp_path, read_page) -> None:
    other = msgspec.structs.replace(case, protocol="mine")
    page = read_page(write_case_page(bench_of(other), other, tmp_path).html)
    assert "Stage 5" in page.text
    assert "Comparison" not in page.text


def test_labels_are_badges_beside_their_sentence(page) -> None:
    badges = re.findall(
        r'<span class="badge (\w+)"><span aria-hidden="true">(.)</span> (\w+)</span>', page.source
    )
    assert badges == [("yes", "●", "yes"), ("uncertain", "◐", "uncertain"), ("no", "○", "no")]
    assert '<p class="prose">Yes, there is one.</p>' in source_of(page, 2)
    # A sentence that only repeats the label is left out.
    assert "prose" not in source_of(page, 3)
    assert "prose" not in source_of(page, 4)
    tries = [
        re.findall(
            r'<input type="radio" name="step-\d" value="(\w+)"( data-right)?>', source_of(page, number)
        )
        for number in (2, 3, 4)
    ]
    assert [[name for name, right in found if right] for found in tries] == [["yes"], ["uncertain"], ["no"]]


def test_right_options_are_marked_and_keep_their_labels(page) -> None:
    turn = source_of(page, 5)
    assert '<span class="vh">Question: </span>Which zones hold it? Choose all that do.</p>' in turn
    parts = [flat(part.split("</label>")[0]) for part in re.split(r'(?=<div class="choice)', turn)[1:]]
    assert [re.sub(r"^<?.*?(?=[ABC]\.)", "", part) for part in parts] == [
        "A. upper", "B. mid ✓ right", "C. lower ✓ right",
    ]  # fmt: skip
    assert turn.count('type="checkbox"') == 3
    assert [bool(mark) for mark in re.findall(r'type="checkbox"[^>]*?( data-right)?>', turn)] == [
        False,
        True,
        True,
    ]


def test_limits_and_dependencies_are_listed(page) -> None:
    def notes(number: int) -> list[str]:
        return [flat(item) for item in re.findall(r"<li.*?</li>", source_of(page, number), re.DOTALL)]

    assert [notes(number) for number in (1, 2, 3, 5, 8, 9)] == [
        ["at most 20 words"],
        [],
        ["answer only"],
        ["several may be right", "depends on t2", "reveals an answer"],
        ["depends on t2, t5"],
        ["at least 2 words"],
    ]
    assert re.findall(r'href="#(step-\d)"', source_of(page, 8)) == ["step-2", "step-5"]
    assert "The request reads: cough." in source_of(page, 1)


def test_details_hold_evidence_template_and_origin(page) -> None:
    assert "evidence: current report, sentences 3 and 7<" in source_of(page, 2)
    assert "evidence: current report, sentence 1; reference report, sentence 4<" in source_of(page, 8)
    made = flat(source_of(page, 5).split('<details class="made">')[1])
    assert "template s3.location.choice.004 slot the_finding the effusion" in made
    assert "Which zones hold it? [A. upper; B. mid; C. lower] Choose all that do." in made
    assert "B. mid and C. lower" in made
    assert "worded by a language model (m1) · review: accepted" in flat(source_of(page, 8))
    assert "target finding pleural effusion" in flat(source_of(page, 2))


def test_report_is_shown_by_sections(page) -> None:
    assert re.findall(r'<h4>(.*?)</h4><p class="prose">(.*?)</p>', source_of(page, 9), re.DOTALL) == [
        ("impression", "Effusion."),
        ("findings", "One.\nTwo."),
    ]


def test_boxes_are_readable_in_the_answer_and_raw_in_the_details(page) -> None:
    turn, made = source_of(page, 6).split('<details class="made">')
    assert 'It is <b>heart</b> <span class="corners">10.0, 10.0 to 30.0, 50.0</span>.' in turn
    assert "percent of width and height, from the top left" in turn
    assert "|ref|" not in turn
    assert "&lt;|ref|&gt; heart &lt;|/ref|&gt;" in made
    assert "box heart</th><td>20, 10 to 60, 50 pixels of Current 1" in made


@pytest.mark.parametrize(
    ("xyxy", "frame"),
    [
        ((20.0, 10.0, 60.0, 50.0), "pixel"),
        ((10.0, 10.0, 30.0, 50.0), "percent"),
        ((0.1, 0.1, 0.3, 0.5), "unit"),
        ((100.0, 100.0, 300.0, 500.0), "thousand"),
    ],
)
def test_boxes_of_every_frame_are_drawn_at_the_same_place(case, tmp_path, read_page, xyxy, frame) -> None:
    """Of 200 x 100 pixels: from a tenth to three tenths across (20 to 60), from a tenth to a half down (10 to 50)."""
    steps = (*case.steps[:5], like.boxed(6, xyxy, frame), *case.steps[7:])
    made = msgspec.structs.replace(case, steps=steps)
    written = write_case_page(bench_of(made), made, tmp_path)
    page = read_page(written.html)
    turn = source_of(page, 6)
    assert 'viewBox="0 0 200 100"' in turn
    line = (
        f'<rect class="line" x="20.0" y="10.0" width="40.0" height="40.0" stroke="{colour_of("heart").hex}"/>'
    )
    assert turn.count(line) == 1
    assert 'aria-label="Current 1 image, boxes: heart, 20, 10 to 60, 50 pixels."' in turn
    # On the summary image it is 190 pixels wide (0.95 of its size) and begins where answers do.
    picture = cv2.imread(str(written.png))[..., ::-1]
    rows, columns = np.nonzero((picture == colour_of("heart")).all(axis=2))
    assert columns.max() + 1 - columns.min() == pytest.approx(38, abs=2)
    assert rows.max() + 1 - rows.min() == pytest.approx(38, abs=2)
    assert (columns.min() - 30 - 46 - 14) % 530 == pytest.approx(19, abs=2)


def test_boxes_are_scaled_with_a_smaller_view(case, tmp_path, read_page) -> None:
    small = msgspec.structs.replace(
        case, views=(msgspec.structs.replace(case.views[0], side=100), *case.views[1:])
    )
    turn = source_of(read_page(write_case_page(bench_of(small), small, tmp_path).html), 6)
    assert 'viewBox="0 0 100 50"' in turn
    assert '<rect class="line" x="10.0" y="5.0" width="20.0" height="20.0"' in turn


def test_boxes_of_two_images_are_drawn_on_two_figures(case, tmp_path, read_page) -> None:
    boxes = tuple(
        Box(image=key, xyxy=(0, 0, 10, 10), name=name) for key, name in zip(like.KEYS, "ab", strict=False)
    )
    both = replaced(case, 6, key=Key(text="Two.", boxes=boxes))
    turn = source_of(read_page(write_case_page(bench_of(both), both, tmp_path).html), 6)
    assert re.findall(r"<figcaption>(.*?)</figcaption>", turn) == ["Current 1: a", "Current 2: b"]
    assert turn.count('<rect class="line"') == 2


def test_box_in_a_question_is_drawn_where_its_unit_is_known(case, page, tmp_path, read_page) -> None:
    turn = source_of(page, 7)
    assert f'x="20.0" y="10.0" width="40.0" height="40.0" stroke="{HUES["yellow"].hex}"' in turn
    # It belongs to the question, so it stands before the key.
    assert turn.index("the box in question") < turn.index('class="key')
    other = replaced(case, 6, key=Key(text="None."), format="open", score="text")
    assert "rect" not in source_of(read_page(write_case_page(bench_of(other), other, tmp_path).html), 7)


def test_text_of_a_case_is_escaped_everywhere(case, tmp_path, read_page) -> None:
    evil = "\"><img src=x onerror='alert(1)'></script>"
    hostile = msgspec.structs.replace(case, id=evil, study=evil, reference_study=evil, protocol=evil)
    hostile = replaced(
        hostile, 5, question=evil, context=evil, task=evil, template=evil,
        options=(*(Option(id=f"{evil}{place}", text=f"{evil}{place}") for place in range(2)),),
        key=Key(options=(f"{evil}1",), kinds=(evil, "key"), text=evil), slots=(Slot(name=evil, value=evil),),
        facts=(Fact(name=evil, about=evil, text=evil),), origin=Origin(method="llm", model=evil, note=evil),
    )  # fmt: skip
    box = Box(image=like.KEYS[0], xyxy=(0, 0, 10, 10), name=evil)
    text = f"<|ref|> {evil} <|/ref|> <|box|>{evil}<|/box|>"
    hostile = replaced(hostile, 6, key=Key(text=text, boxes=(box,)))
    hostile = replaced(hostile, 9, key=Key(text=evil, sections=(ReportSection(name=evil, text=evil),)))
    page = read_page(write_case_page(bench_of(hostile), hostile, tmp_path).html)
    page.assert_sound()
    assert not any(tag == "img" or "onerror" in attrs for tag, attrs in page.tags)
    assert sum(tag == "script" for tag, _ in page.tags) == 3
    assert page.text.count(evil) > 25


def test_page_has_the_same_bytes_every_time(case, tmp_path) -> None:
    first, second = (write_case_page(bench_of(case), case, tmp_path / name) for name in "ab")
    assert first.html.read_bytes() == second.html.read_bytes()
    assert first.png.read_bytes() == second.png.read_bytes()


def test_longer_conversation_gets_more_columns(case, tmp_path) -> None:
    shapes = []
    for count in (1, 4, 8):
        steps = tuple(
            msgspec.structs.replace(
                step, id=f"{step.id}-{turn}", shows=step.shows if turn == 0 else (), depends_on=(),
                constraints=Constraints(),
            )
            for turn in range(count)
            for step in case.steps
        )  # fmt: skip
        long = msgspec.structs.replace(case, order="shuffled", steps=steps)
        shapes.append(cv2.imread(str(write_case_page(bench_of(long), long, tmp_path).png)).shape)
    widths = [width for _, width, _ in shapes]
    # Columns of 500 pixels with 30 around each.
    assert [(width - 30) % 530 for width in widths] == [0, 0, 0]
    assert widths[0] < widths[1] < widths[2]
    assert all(height <= 1.5 * width for height, width, _ in shapes)


def test_turns_keep_their_order(case) -> None:
    class Views:
        def array(self, _case, _view):
            return np.zeros((100, 200, 3), np.uint8)

    content = load_conversation(bench_of(case), case, Views())
    assert [turn.step.id for turn in content.turns] == [f"t{number}" for number in range(1, 10)]
    assert [sorted(span.new) for span in content.spans] == [["view-1", "view-2"], ["view-3"]]


def test_summary_image_names_the_stage_of_shuffled_turns(case, tmp_path, monkeypatch) -> None:
    from carina.pages import conversation_summary, summary_text

    texts: list[str] = []
    put = summary_text.put_text
    for module in (conversation_summary, summary_text):
        monkeypatch.setattr(
            module, "put_text", lambda band, text, **more: (texts.append(text), put(band, text, **more))
        )
    write_case_page(bench_of(case), case, tmp_path)
    assert "3  Attributes and location" in texts
    assert "trek · 9 turns" in texts
    assert "right: B. mid" in texts
    assert "It is heart [10.0, 10.0 to 30.0, 50.0]." in texts
    assert {"yes", "uncertain", "no"} <= set(texts)
    assert "Reference · AP · from t8" in texts
    assert not any(text.startswith("stage") for text in texts)
    texts.clear()
    mixed = msgspec.structs.replace(case, order="shuffled")
    write_case_page(bench_of(mixed), mixed, tmp_path)
    assert "stage 5 · trend · depends on t2, t5" in texts
    assert "trek · 9 turns · shuffled" in texts
