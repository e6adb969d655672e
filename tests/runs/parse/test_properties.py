"""What holds of every reply: answers come back, no answer is made up, nothing raises, nothing takes long."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.runs.parse.bank import load_bank
from tests.runs.parse.steps import NY, YN, C, K, L, M, P, T, V, Z, make_step, numbers

from carina.runs.parse import parse, parse_chexpercept

STEPS = [YN, NY, K, L, P, Z, V, C, T, M]
OTHERS = [
    make_step("yes_no", "Is there an effusion?"),
    make_step("boxes", "Where? In percent."),
    make_step("boxes", "Where?"),
    make_step("open", "What?"),
    make_step("report", "Report."),
    make_step("map", "Map."),
]
IMAGES = {"a.png": (512, 512)}
MARKERS = [
    "Answer: {}",
    "**Answer:** {}",
    "Final answer: {}.",
    "The answer is {}",
    "ANSWER - {}",
    "I select {}.",
    "{}",
]
REASONING = ["", "<think>Answer: 1, or 2?</think>\n", "Mask 1 is small.\n\n", "answer: 1</think>"]


@st.composite
def answers(draw):
    """A step, an admissible answer to it, and words that give this answer."""
    step = draw(st.sampled_from(STEPS))
    others = [
        n for n, o in enumerate(step.options, start=1) if not o.text.lower().startswith(("none", "nothing"))
    ]
    if step.multiple:
        chosen = draw(st.lists(st.sampled_from(others), min_size=1, max_size=3, unique=True))
        if len(others) < len(step.options) and draw(st.booleans()):
            chosen = [len(step.options)]
    else:
        chosen = [draw(st.integers(1, len(step.options)))]
    letters = step.options[0].id == "A"
    dress = draw(
        st.sampled_from(
            ["{n}", "({n})", "[{n}]", "option {n}", "{text}", "({n}) {text}", "{n}. {text}", "{upper}"]
        )
    )
    label = draw(st.booleans()) if letters else False
    items = [
        dress.format(
            n=step.options[n - 1].id if label else n,
            text=step.options[n - 1].text,
            upper=step.options[n - 1].text.upper(),
        )
        for n in chosen
    ]
    return step, set(chosen), items


@given(
    answers(),
    st.sampled_from([", ", "; ", " and ", " & ", " + ", ", and "]),
    st.sampled_from(MARKERS),
    st.sampled_from(REASONING),
)
@settings(max_examples=300)
def test_any_rendering_of_any_answer_parses_back(answer, joiner, marker, reasoning):
    step, chosen, items = answer
    said = reasoning + marker.format(joiner.join(items))
    assert numbers(step, parse(step, said)) == chosen


@given(answers(), st.sampled_from(["Answer:\n", "**Final answer:**\n\n", "The correct options are:\n"]))
@settings(max_examples=100)
def test_any_list_parses_back(answer, head):
    step, chosen, items = answer
    assert numbers(step, parse(step, head + "\n".join(f"- {item}" for item in items))) == chosen


@given(answers(), st.sampled_from(["answer", "answers", "final_answer", "Options", "choice"]), st.booleans())
@settings(max_examples=100)
def test_any_json_parses_back(answer, key, fenced):
    step, chosen, items = answer
    said = json.dumps({"reasoning": "2 of 3 [1, 2]", key: items if len(items) > 1 else items[0]})
    assert numbers(step, parse(step, f"```json\n{said}\n```" if fenced else said)) == chosen


WORDS = [
    "the",
    "lesion",
    "covers",
    "3",
    "ribs",
    "rib",
    "base",
    "of",
    "apex",
    "2",
    "cm",
    "heart",
    "opacity",
    "lies",
    "x-ray",
]


@given(st.sampled_from([K, L, P, Z, V, C]), st.lists(st.sampled_from(WORDS), min_size=1, max_size=8))
@settings(max_examples=200)
def test_a_sentence_without_an_answer_is_never_taken_for_one(step, words):
    said = f"The film shows {' '.join(words)} here."
    assert parse(step, said).status == "no_answer"
    assert parse(step, f"{said} {said}").status == "no_answer"


@given(
    st.text(), st.sampled_from(STEPS + OTHERS), st.sampled_from(["stop", "max_tokens", "content_filter", ""])
)
@settings(max_examples=300)
def test_any_text_gives_an_answer_in_the_terms_of_its_step(text, step, stop):
    parsed = parse(step, text, stop=stop, images=IMAGES)
    assert set(parsed.options) <= {option.id for option in step.options}
    assert (parsed.status == "ok") == bool(
        parsed.options or parsed.label or parsed.boxes or (parsed.text and step in OTHERS[3:])
    )
    assert parse(step, text, stop=stop, images=IMAGES) == parsed
    parse_chexpercept(step, text)


FIGURES = "0123456789٣०３²①፩𐩀½Ⅷxnthsrd./%-"
"""Figures of several scripts, of which Python takes some for a number and some not, and signs that go with them."""


@given(st.text(alphabet=FIGURES, min_size=1, max_size=9), st.sampled_from(STEPS + OTHERS))
@settings(max_examples=300)
def test_any_number_parses_without_an_error(figures, step):
    for text in (
        figures,
        f"Answer: {figures}",
        f"Answer: 1-{figures}",
        f"{figures}. Yes, 1st mask",
        f"[1, 2, 3, {figures}]",
    ):
        parse(step, text, images=IMAGES)
        parse_chexpercept(step, text)


PIECES = [banked.reply for banked in load_bank()] + [
    "<think>",
    "</think>",
    "```",
    "{",
    "[",
    "\\boxed{",
    "(",
    "not ",
    "or ",
    "-",
    "\x00",
    "\ud800",
]


@given(st.lists(st.sampled_from(PIECES), max_size=5), st.integers(0, 200), st.sampled_from(STEPS + OTHERS))
@settings(max_examples=300)
def test_any_mangled_reply_parses_without_an_error(pieces, cut, step):
    text = "".join(pieces)
    for said in (text, text[cut:], text[:cut], text[::-1]):
        parse(step, said, images=IMAGES)
        parse_chexpercept(step, said)


@given(answers())
@settings(max_examples=100)
def test_parsing_a_repeated_answer_gives_the_same_options(answer):
    step, chosen, _ = answer
    first = parse(step, "Answer: " + ", ".join(map(str, sorted(chosen))))
    ids = [option.id for option in step.options]
    again = parse(
        step, ", ".join(f"({ids.index(name) + 1}) {step.option(name).text}" for name in first.options)
    )
    assert again == first


HEAVY = [
    "answer:",
    "(",
    "1,",
    "{",
    "[",
    "1\n",
    " ",
    "1 (",
    "<think>",
    "not ",
    "answer to ",
    "\\boxed{",
    "1.",
    "1",
    "\u0300\u0327",
    "no ",
    "no doubt ",
    "therefore ",
    ", so no",
    "is best ",
    "mask 1 is the ",
    "none of the ",
    "there is an effusion? ",
    "effusion without ",
    "no change in the effusion ",
    "not absent ",
    "[1]",
    "1 ",
    "a. ",
    "ac",
    "is larger than ",
    "x = 1 and ",
    "1 to 2 in ",
    "(1, 2) width ",
    "(1, 2), ",
    "wait, ",
    "x from 1 to ",
    "不",
    "答案",
    "no hay ",
    "kein ",
    "n'",
]


@pytest.mark.parametrize("piece", HEAVY)
def test_a_long_reply_is_read_to_its_end(piece):
    """A tenth of a megabyte each: quadratic work on it would not end while anybody waits."""
    text = piece * (100_000 // len(piece))
    for step in (K, OTHERS[0], OTHERS[1]):
        parse(step, text, images=IMAGES)
        parse(step, f"Answer: {text}", images=IMAGES)
    last = f"{text}\n</think>\nAnswer: 3"
    assert numbers(K, parse(K, last)) == {3}


def test_the_last_answer_of_ten_megabytes_is_found():
    text = "The apex is covered by mask 2. " * 350_000
    assert len(text) > 10_000_000
    assert numbers(K, parse(K, f"{text}\nAnswer: 3")) == {3}
    assert numbers(K, parse(K, f"Answer: 3\n{text}")) == {3}


LABELLED = make_step("yes_no", "Is there an effusion?")


def test_only_the_ends_of_a_huge_reply_are_searched(monkeypatch):
    """Whatever a reply's length, the text that is searched is bounded."""
    seen = []

    def searched(words):
        seen.append(len(words))
        return iter(())

    monkeypatch.setattr("carina.runs.parse.labels.find_marked_answers", searched)
    monkeypatch.setattr("carina.runs.parse.choice.find_marked_answers", searched)
    for step in (LABELLED, K):
        parse(step, "The apex is covered by a mask. " * 100_000)
    assert seen
    assert max(seen) < 500_000


def test_the_last_answer_of_a_huge_reply_is_found_in_every_format():
    text = "The apex is covered by a mask. " * 40_000
    assert parse(LABELLED, f"{text}\nAnswer: yes").label == "yes"
    assert parse(LABELLED, f"<think>{text}</think>{text}\nAnswer: no").label == "no"
    assert numbers(K, parse(K, f"{text}\nAnswer: 3")) == {3}
    assert len(parse(OTHERS[1], f"{text}\nAnswer: [10, 20, 30, 40]", images=IMAGES).boxes) == 1
    assert parse(OTHERS[3], text).text == text.strip()


def test_no_answer_is_read_across_the_removed_middle():
    filler = "x " * 99_996
    assert parse(K, f"{filler}Answer: 3 of the ribs, {'as one sees ' * 100_000}").status == "no_answer"
