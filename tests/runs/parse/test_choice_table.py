"""The examples of the specification, each as it stands there."""

import pytest
from tests.runs.parse.steps import NY, YN, K, L, P, V, Z, numbers

from carina.runs.parse import parse

TABLE = [
    (YN, "Answer: 1", {1}),
    (YN, "Option 1 looked likely at first. **Answer:** [2]", {2}),
    (NY, "Answer: Yes", {2}),
    (YN, "Answer: 2 (Yes)", "ambiguous"),
    (YN, "Yes, the right base is clearly opaque.", {1}),
    (YN, "I'm sorry, but I can't interpret medical images.", "refusal"),
    (K, "ANSWER - the third mask", {3}),
    (K, "The apex is missed.\n\n$\\boxed{4}$", {4}),
    (K, "I considered 1, then 3. Final answer: 2", {2}),
    (K, "Answer: 1\nOn a second look the apex is missing.\nAnswer: 4", {4}),
    (K, "<think>Answer: 2 seems fine</think>Answer: 3", {3}),
    (K, "<think>mask 2 covers the base, mask 3", "truncated"),
    (K, "Not 2 and not 3; the answer is 4.", {4}),
    (K, "Answer: 1 or 2", "ambiguous"),
    (K, "Answer: 1, 2", "too_many"),
    (K, "Answer: 7", "out_of_range"),
    (K, "Option 2 is wrong because the 3rd rib is covered.", "no_answer"),
    (K, "Answer: [Option Number]", "no_answer"),
    (K, '{"reasoning": "mask 1 omits the base", "answer": 3}', {3}),
    (K, "Answer: 3 (confidence 90%)", {3}),
    (L, '```json\n{"answers": [1, 3]}\n```', {1, 3}),
    (L, "Answer: 1 and 3", {1, 3}),
    (L, "Answer: (1), (3)", {1, 3}),
    (L, "Answer: 1; 3", {1, 3}),
    (L, "Answer: 1 & 3", {1, 3}),
    (L, "Answer: 1-3", {1, 2, 3}),
    (L, "**Final answer:**\n- 1\n- 2", {1, 2}),
    (L, "Answer: None of the above (options 1-3)", {4}),
    (L, "Answer: 1, 4", "ambiguous"),
    (L, "Answer: all except 2", {1, 3}),
    (P, "Answer: red and blue points, but not orange", {1, 5}),
    (P, "No expansion is needed, so I select None.", {6}),
    (Z, "Answer: 2 zones", {3}),
    (Z, "Answer: 2", {2}),
    (V, "Answer: 2/3 or more", {3}),
]


@pytest.mark.parametrize(("step", "reply", "expected"), TABLE, ids=[reply for _, reply, _ in TABLE])
def test_each_reply_of_the_specification_gives_its_documented_answer(step, reply, expected):
    assert numbers(step, parse(step, reply)) == expected
