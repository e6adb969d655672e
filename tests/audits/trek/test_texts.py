"""Constraints of answers, defects of texts, repeated questions and templates."""

import pytest
from tests.audits.gates import objecting
from tests.audits.trek.breaking import (
    audited,
    change,
    every_step,
    first,
    one_step,
    referred,
    replaced,
    row,
    told,
    with_key,
)

from carina.cases.model import Constraints, Evidence, Fact, Key, Option
from carina.studies.model import ReportSection

BARE = Constraints(answer_only=True)


@pytest.mark.parametrize(
    ("task", "make", "rule"),
    [
        ("abnormalities", lambda s: with_key(s, text="word " * 41), "max_words"),
        ("location", lambda s: change(s, constraints=Constraints(min_words=30)), "min_words"),
        (
            "statement",
            lambda s: change(s, constraints=BARE, key=change(s.key, text="No, it is elsewhere.")),
            "answer_only",
        ),
        ("view", lambda s: change(s, constraints=BARE,
                                  key=change(s.key, text=f"It is {s.key.text}, as it seems to me")), "answer_only"),
        ("abnormalities", lambda s: change(s, constraints=Constraints()), "stored"),
    ],
)  # fmt: skip
def test_answer_constraints_fail_for_an_answer_that_violates_them(sound, task, make, rule):
    cases, case, step = one_step(sound, task, make)
    result = audited(cases)
    assert "answer-constraints" in objecting(result, to=("fail",))
    assert row(result, "answer-constraints", rule).status == "fail"
    assert f"{case.id}: turn {step.id}: " in told(result, "answer-constraints")


@pytest.mark.parametrize(
    ("make", "rule", "words"),
    [
        (lambda s: change(s, question="Where is {finding}?"), "unfilled slots", "'{finding}'"),
        (lambda s: with_key(s, text="In at most {words} words."), "unfilled slots", "'{words}'"),
        (lambda s: change(s, question="Where is the the nodule?"), "doubled words", "'the' twice"),
        (lambda s: change(s, question="Give the boxs, please."), "misspellings", "'boxs'"),
        (lambda s: change(s, question="See at the lung at the lung now."), "repeated phrases", "'at the lung'"),
        (lambda s: with_key(s, text="It lies left, lies left, as seen."), "repeated phrases", "'lies left,'"),
    ],
)  # fmt: skip
def test_text_defects_fail_for_unfilled_slots_and_slips(sound, make, rule, words):
    if rule == "repeated phrases" and not words:
        cases, *_ = one_step(
            sound, "location", lambda s: change(s, question="See at the lung at the lung now.")
        )
    else:
        cases, *_ = one_step(sound, "location", make)
    result = audited(cases)
    assert objecting(result) == {"text-defects"}
    assert words in told(result, "text-defects")
    assert row(result, "text-defects", rule).status == "fail"


def test_text_defects_warn_for_slips_in_words_of_the_report(sound):
    said = "No pneumothorax. No pneumothorax. Recommend rib series to to see the boxs."
    section = ReportSection(name="impression", text=said)
    cases, case, step = one_step(
        sound,
        "full report",
        lambda s: change(
            s, key=Key(text=said, sections=(section,)), evidence=(Evidence(report="current", sentence=0),)
        ),
    )
    result = audited(cases)
    assert result.gate("text-defects").status == "warn"
    assert row(result, "text-defects", "slips in quoted reports").status == "warn"
    assert "templates" not in result.gate("text-defects").meaning
    assert f"{case.id}: turn {step.id}: " in told(result, "text-defects")
    # A composed report cites no sentence: its words are those of templates.
    cases, *_ = one_step(
        sound, "full report", lambda s: change(s, key=Key(text=said, sections=(section,)), evidence=())
    )
    assert audited(cases).gate("text-defects").status == "fail"


def test_text_defects_fail_for_a_slip_beside_a_quote(sound):
    quote = Fact(name="quote", about="current", text="Rib series to to see the ribs.")
    for text, status in (("I advise this. {}", "warn"), ("I now now advise this. {}", "fail")):
        cases, *_ = one_step(
            sound,
            "advice",
            lambda s, text=text: change(with_key(s, text=text.format(quote.text)), facts=(*s.facts, quote)),
        )
        assert audited(cases).gate("text-defects").status == status


def test_text_defects_accept_repeated_numbers_and_that_that(sound):
    text = "It is clear that that one lies at 5 5 and 12 12, very near."
    cases, *_ = one_step(sound, "location", lambda s: with_key(s, text=text))
    assert audited(cases).gate("text-defects").status == "pass"


def test_text_defects_accept_what_de_identification_leaves(sound):
    cases, *_ = one_step(sound, "location", lambda s: with_key(s, text="Seen by XXXX XXXX on the left."))
    assert audited(cases).gate("text-defects").status == "pass"


def test_text_defects_fail_for_an_option_with_an_unfilled_slot(sound):
    cases, *_ = one_step(
        sound, "severity", lambda s: change(s, options=(Option(id="A", text="{grade}"), *s.options[1:]))
    )
    assert "'{grade}'" in told(audited(cases), "text-defects")


def test_repeated_questions_fail_for_same_similar_and_other_words(sound):
    case = sound[0]
    at = next(n for n, s in enumerate(case.steps) if s.task == "location")
    step = case.steps[at]
    again = change(step, id="t99", question="In which part of the image would you say that this is found?")
    near = change(step, id="t99", question=f"{step.question} Well?")
    twice = change(step, id="t99")
    for extra, name, status in ((twice, "the same words", "fail"), (near, "nearly the same words", "fail")):
        broken = change(case, steps=(*case.steps[: at + 1], extra, *case.steps[at + 1 :]))
        result = audited(replaced(sound, 0, broken), limits={"repeated-questions": {"word_overlap": 0.7}})
        assert objecting(result) == {"repeated-questions"}
        assert row(result, "repeated-questions", name).status == status
        assert f"{case.id}: turn t99: asks in {name} as turn {step.id}" in told(result, "repeated-questions")
    broken = [
        change(c, steps=tuple(x for s in c.steps for x in ((s, change(again, facts=s.facts, key=s.key,
               depends_on=s.depends_on, uses=s.uses)) if s.task == "location" else (s,))))
        for c in sound
    ]  # fmt: skip
    result = audited(broken)
    assert row(result, "repeated-questions", "the same thing in other words").status == "fail"
    assert (
        row(
            audited(broken[:1] + list(sound[1:])), "repeated-questions", "the same thing in other words"
        ).status
        == "pass"
    )


def test_template_frequency_fails_for_one_wording_in_all_questions(sound):
    def same(_, step):
        return change(step, template="s2.presence.yes_no.001") if step.task == "presence" else step

    result = audited(every_step(sound, same))
    assert objecting(result) == {"template-frequency"}
    failed = row(result, "template-frequency", "stage 2: most frequent template")
    assert failed.status == "fail"
    assert "s2.presence.yes_no.001" in failed.note
    without = audited(every_step(sound, lambda _, step: change(step, template=None)))
    assert without.gate("template-frequency").status == "warn"


def test_text_defects_accept_repetitions_in_lists_of_options(sound):
    zones = ("right mid zone", "left mid zone", "left lower zone")
    listed = " ".join(zones)

    def zoned(step):
        options = tuple(change(o, text=text) for o, text in zip(step.options, zones, strict=True))
        return change(
            step, options=options, question=f"Which zones? {listed}\nA. Yes B. No\nNo reasons are needed."
        )

    cases, *_ = one_step(sound, "severity", zoned)
    assert audited(cases).gate("text-defects").status == "pass"


QUOTED = (Evidence(report="current", sentence=0),)


def with_report(step, text, **more):
    section = ReportSection(name="impression", text=text)
    return change(with_key(step, text=text, sections=(section,)), evidence=QUOTED, **more)


@pytest.mark.parametrize(
    ("text", "unseen"),
    [
        ("No effusion. Stable cardiomegaly.", "an earlier study"),
        ("A nodule, as seen on CT.", "another examination"),
        ("The lateral view shows an effusion.", "a view that is not shown"),
    ],
)
def test_unseen_contents_fail_for_quotes_about_what_is_not_shown(sound, text, unseen):
    at = first(sound, lambda case: not referred(case))
    case = sound[at]
    (report,) = (step for step in case.steps if step.stage == 8)
    steps = tuple(with_report(s, text) if s is report else s for s in case.steps)
    result = audited(replaced(sound, at, change(case, steps=steps)))
    assert objecting(result) == {"unseen-contents"}
    assert row(result, "unseen-contents", unseen).status == "fail"
    assert result.gate("unseen-contents").status == "fail"
    assert f"{case.id}: turn {report.id}: " in told(result, "unseen-contents")
    assert text.split(". ")[-1] in told(result, "unseen-contents")


def test_unseen_contents_accept_a_comparison_with_the_study_that_is_shown(sound):
    at = first(sound, referred)
    case = sound[at]
    steps = tuple(with_report(s, "Stable cardiomegaly.") if s.stage == 8 else s for s in case.steps)
    result = audited(replaced(sound, at, change(case, steps=steps)))
    assert result.gate("unseen-contents").status == "pass"


def test_unseen_contents_read_imported_reports_and_leave_other_stages_alone(sound):
    at = first(sound, lambda case: not referred(case))
    case = sound[at]
    elsewhere = tuple(
        change(s, question="Is the stable effusion on the left?") if s.stage == 3 else s for s in case.steps
    )
    assert (
        audited(replaced(sound, at, change(case, steps=elsewhere))).gate("unseen-contents").status == "pass"
    )
    bare = tuple(
        with_key(s, text="Stable cardiomegaly.", sections=()) if s.stage == 8 else s for s in case.steps
    )
    assert audited(replaced(sound, at, change(case, steps=bare))).gate("unseen-contents").status == "fail"
