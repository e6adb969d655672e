"""Common gates on steps that percept does not have: margins, "none of these", targets of steps."""

import msgspec
import pytest

from carina.audits import AuditContext, audit_cases
from carina.audits.answer_options import read_choices, task_of
from carina.audits.chance import expected, shift
from carina.audits.common.answer_position import AnswerPosition, AnswerPositionLimits
from carina.audits.common.constant_answers import ConstantAnswers, ConstantAnswersLimits
from carina.audits.common.text_only_baseline import TextOnlyBaseline, TextOnlyLimits
from carina.audits.facts import target_of
from carina.cases.model import Case, CaseImage, Fact, Key, Option, Step

change = msgspec.structs.replace


def step(right="A", *, texts=("pleural effusion", "edema"), kinds=(), facts=(), **more):
    options = tuple(Option(id="ABCD"[n], text=text) for n, text in enumerate(texts))
    return Step(
        id="t1",
        stage=2,
        task="presence",
        format="choice",
        question="Which of these is there?",
        options=options,
        key=Key(options=(right,), kinds=kinds),
        facts=facts,
        **more,
    )


def case(number, *steps):
    return Case(
        id=f"c{number}",
        protocol="trek",
        study=f"s{number}",
        patient=f"p{number}",
        source="made",
        images=(CaseImage(key="a.png", width=9, height=9),),
        steps=steps,
    )


def test_a_margin_accepts_a_significant_but_small_difference():
    # The first place is right in 53 of 100, a thousand times.
    cases = [case(n, step("A" if n % 100 < 53 else "B")) for n in range(20000)]
    worse = [case(n, step("A" if n % 100 < 58 else "B")) for n in range(20000)]
    for gate, limits in ((AnswerPosition, AnswerPositionLimits), (ConstantAnswers, ConstantAnswersLimits)):

        def status(audited, gate=gate, limits=limits, **stated):
            return audit_cases(audited, [gate(AuditContext(), limits(**stated))]).status

        assert status(cases) == "fail"
        assert status(cases, margin=0.05) == "pass"
        assert status(worse, margin=0.05) == "fail"


def test_shifted_trials_stay_probabilities():
    assert dict(shift({0.5: 10, 0.98: 4}, 0.05)) == {0.55: 10, 1.0: 4}
    assert expected(shift({0.02: 10}, -0.05)) == 0.0
    assert shift({0.5: 3}, 0.0) == {0.5: 3}


@pytest.mark.parametrize("kinds", [("distractor", "distractor", "none"), ("distractor", "distractor", "key")])
def test_none_of_these_is_not_a_content_option(kinds):
    asked = step("C", texts=("edema", "mass", "none of these"), kinds=kinds)
    assert read_choices(asked).content == (0, 1)
    assert read_choices(
        change(asked, key=Key(options=("A",), kinds=("key", "distractor", "distractor")))
    ).content == (
        0,
        1,
        2,
    )


def test_the_target_of_a_step_is_its_name_and_never_the_answer():
    facts = (
        Fact(name="target", about="finding", text="mass"),
        Fact(name="target", about="finding", text="edema"),
    )
    assert target_of(case(1), step(facts=facts)) == "edema + mass"
    assert target_of(case(1), step(facts=(Fact(name="target", about="view", text="PA"),))) == ""
    assert target_of(change(case(1), target="edema"), step(facts=facts)) == "edema"


def test_yes_or_no_without_options_is_a_task_of_its_own():
    closed = Step(id="t1", stage=2, task="presence", format="yes_no", question="?", key=Key(label="yes"))
    assert (task_of(step()), task_of(closed)) == ("2 presence", "2 presence, yes or no")
    assert read_choices(change(closed, key=Key(label="uncertain", text="?"))) is None


def test_text_may_use_how_often_a_named_target_is_present():
    """Each name has one answer: that is the name's prior, which another gate judges, and no leak of the wording."""

    def asked(n):
        name, label = (("mass", "yes"), ("edema", "no"))[n % 2]
        return Step(
            id="t1",
            stage=2,
            task="presence",
            format="yes_no",
            question=f"Is there {name}?",
            key=Key(label=label, text=label),
            facts=(Fact(name="target", about="finding", text=name),),
        )

    cases = [case(n, asked(n)) for n in range(100)]
    result = audit_cases(cases, [TextOnlyBaseline(AuditContext(), TextOnlyLimits())]).gate(
        "text-only-baseline"
    )
    assert result.status == "pass"
    assert result.rows[0].value == 1.0
    unnamed = [change(c, steps=(change(c.steps[0], facts=()),)) for c in cases]
    assert audit_cases(unnamed, [TextOnlyBaseline(AuditContext(), TextOnlyLimits())]).status == "fail"


def test_right_answers_without_end_are_counted_in_bounded_memory():
    gate = ConstantAnswers(AuditContext(), ConstantAnswersLimits())
    for n in range(5200):
        gate.see(case(n, step("A", texts=(f"statement {n}", f"statement {n} but wrong"))))
    assert len(gate._right_words["2 presence"]) == 5001
    assert gate._right_words["2 presence"].total() == 5200
