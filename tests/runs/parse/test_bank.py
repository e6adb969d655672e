"""Every reply of the bank is read as a careful person reads it, or fails in the way that the bank says."""

from collections import Counter

import pytest
from tests.runs.parse.bank import FAILURES, IMAGES, load_bank, load_steps, read_as_person_would

from carina.runs.parse import parse

BANK = load_bank()
CLASSES = {
    *("marker", "number sign", "conclusion", "judged", "comparison", "notation", "specification", "remark"),
    *(
        "changing remark",
        "letters",
        "shares",
        "other words",
        "list",
        "none",
        "yes and no",
        "certainty",
        "course",
    ),
    *(
        "contradiction",
        "sentence",
        "sentence label",
        "label",
        "prose box",
        "json box",
        "box",
        "box failure",
        "no box",
    ),
    *(
        "language",
        "json",
        "latex",
        "markdown",
        "reasoning",
        "refusal",
        "truncated",
        "hedge",
        "echo",
        "unrelated",
    ),
    *("free text", "held out", "tricky"),
}


@pytest.mark.parametrize("banked", BANK, ids=[banked.id for banked in BANK])
def test_a_reply_is_read_as_a_careful_person_reads_it(banked):
    parsed = parse(banked.step, banked.reply, stop=banked.stop, images=IMAGES)
    assert read_as_person_would(parsed, banked.step) == banked.reading, banked.why


def test_the_bank_has_many_replies_of_every_class_and_format():
    assert len(BANK) >= 1190
    assert Counter(banked.kind for banked in BANK).keys() == CLASSES
    assert {banked.step.format for banked in BANK} == {"choice", "yes_no", "boxes", "open", "report"}
    failing = Counter(banked.reading for banked in BANK if banked.reading in FAILURES)
    assert failing.keys() == set(FAILURES)
    assert failing.total() >= 350


def test_every_reply_has_an_id_of_its_own_and_says_why():
    assert len({banked.id for banked in BANK}) == len(BANK)
    assert all(banked.why.strip() for banked in BANK)
    questions = [(banked.step.question, banked.step.options, banked.reply, banked.stop) for banked in BANK]
    assert len(set(questions)) == len(questions)


def test_every_step_is_answered_by_some_reply():
    answered = {banked.step for banked in BANK}
    assert [name for name, step in load_steps().items() if step not in answered] == []
