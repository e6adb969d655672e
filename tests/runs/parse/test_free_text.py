"""Open answers, and the rules of the original."""

import tracemalloc

import pytest
from tests.runs.parse.steps import YN, K, L, make_step, numbers

from carina.runs.parse import parse, parse_chexpercept


@pytest.mark.parametrize("form", ["open", "report", "map"])
@pytest.mark.parametrize(
    ("reply", "stop", "status", "text"),
    [
        ("The heart is enlarged.", "stop", "ok", "The heart is enlarged."),
        ("<think>hm</think>\nThe heart is enlarged.\n", "stop", "ok", "The heart is enlarged."),
        ("The heart is enlar", "max_tokens", "ok", "The heart is enlar"),
        ("<think>The heart", "stop", "truncated", None),
        ("", "max_tokens", "truncated", None),
        ("  \n", "stop", "no_answer", None),
        (
            "I'm sorry, but I can't help with that.",
            "stop",
            "refusal",
            "I'm sorry, but I can't help with that.",
        ),
        ("a\ud800b", "stop", "ok", "a?b"),
    ],
)
def test_free_text_is_kept_unless_it_is_empty_cut_off_or_a_refusal(form, reply, stop, status, text):
    parsed = parse(make_step(form, "Describe."), reply, stop=stop)
    assert (parsed.status, parsed.text) == (status, text)


@pytest.mark.parametrize(
    ("step", "reply", "expected"),
    [
        (K, "Answer: 3", {3}),
        (K, "Answer: (3)", {3}),
        (K, "answer: 1\nAnswer: 3", {3}),
        (K, "The final answer would be 3", {3}),
        (K, "3", {3}),
        (K, "the answer is 3", {3}),
        (K, "Both 2 and 4 are wrong.\n3", {3}),
        (K, "Mask 2 omits the 3rd rib.", {2}),
        (K, "Answer: 1,2", {1}),
        (K, "\\boxed{3}", {3}),
        (K, "<think>Answer: 2</think>Answer: 3", {3}),
        (K, "<unused94>Answer: 3", {3}),
        (K, "Answer: 9", "out_of_range"),
        (K, "none", "no_answer"),
        (YN, "Yes", "no_answer"),
        (L, "Answer: 1, 3", {1, 3}),
        (L, "regions 1 and 3", {1, 3}),
    ],
)
def test_chexpercept_rules_read_the_number_that_the_published_code_reads(step, reply, expected):
    assert numbers(step, parse_chexpercept(step, reply)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1," * 200_000 + "1", {1}),
        ("1," * 200_000 + "x", {1}),
        ("1 ,( 2 ) ," * 40_000, {1, 2}),
        ("Answer: " + "1, " * 130_000 + "3", {1, 3}),
        ("Answer: 1, 2" * 30_000 + "\nAnswer: 3", {3}),
        ("final answer 1, 2 " * 20_000, {1, 2}),
        ("the answer is " + "2, " * 130_000, {2}),
        ("1 x " * 100_000, {1}),
        ("x\n" * 100_000 + "1 " * 100_000, {1}),
        ("1" * 400_000, "no_answer"),
        ("Answer:" + " " * 400_000, "no_answer"),
        ("<think>" * 50_000 + "</think>3", {3}),
        ("x <think>1</think>" * 20_000, "no_answer"),
        ("\\boxed{3}, " * 40_000, {3}),
    ],
    ids=range(14),
)
def test_chexpercept_rules_need_little_memory_for_long_lists(text, expected):
    """A few copies of the text; a record of every number would take a hundred bytes for each character."""
    tracemalloc.start()
    try:
        parsed = parse_chexpercept(L, text)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert numbers(L, parsed) == expected
    assert most < 8 * len(text)


def test_chexpercept_rules_read_ten_megabytes():
    text = "1, " * 3_400_000
    assert len(text) > 10_000_000
    assert numbers(K, parse_chexpercept(K, text)) == {1}
    assert numbers(K, parse_chexpercept(K, f"{text}9")) == {1}
    assert numbers(L, parse_chexpercept(L, f"9, {text}")) == "out_of_range"
    assert numbers(K, parse_chexpercept(K, f"{text} Answer: 3")) == {3}
