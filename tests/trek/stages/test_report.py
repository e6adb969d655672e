"""Stage 8: the study's own report where it has one, else one put together that says no more and no less."""

from collections import Counter

import msgspec
import pytest

from carina.studies import Assessed

TASKS = {"full report", "findings section", "impression", "impression from findings"}


@pytest.fixture(scope="module")
def asked(conversations):
    return [(talk, step) for talk in conversations for step in talk.case.steps if step.stage == 8]


def test_every_conversation_ends_with_its_report(conversations):
    patterns = Counter()
    for talk in conversations:
        tasks = tuple(step.task for step in talk.case.steps if step.stage == 8)
        patterns[tasks] += 1
        assert talk.case.steps[-1].stage == 8
    assert set(patterns) == {
        ("full report",),
        ("findings section",),
        ("impression",),
        ("impression from findings",),
        ("findings section", "impression"),
    }


def test_the_key_is_the_text_of_the_report(asked):
    seen = set()
    for talk, step in asked:
        report = talk.study.report
        assert step.format == "report"
        for section in step.key.sections:
            assert section.text == report.text(section.name).strip()
            assert section.text in step.key.text
        names = tuple(section.name for section in step.key.sections)
        expected = {
            "full report": ("impression", "findings"),
            "findings section": ("findings",),
        }.get(step.task, ("impression",))
        assert names == expected
        assert {mark.sentence for mark in step.evidence} == {
            number for number, sentence in enumerate(report.sentences) if sentence.section in names
        }
        seen.add(step.task)
    assert seen == TASKS


def test_only_one_prompt_states_the_findings_and_is_marked_as_restating(asked):
    for talk, step in asked:
        given = talk.study.report.text("findings").strip() in step.question
        assert given == step.restates == (step.task == "impression from findings")
        assert talk.study.report.text("impression").strip() not in step.question


def reports(made, study, number=30):
    return [
        (step, case)
        for case in made.talks(number, study, quotas=made.with_quotas(two_report_turns=0.5))
        for step in case.steps
        if step.stage == 8
    ]


@pytest.mark.parametrize(
    ("sections", "tasks"),
    [
        ({"findings": "A mass."}, {"findings section"}),
        ({"impression": "A mass."}, {"impression"}),
        ({"findings": "A mass.", "impression": "A mass is seen."}, TASKS),
        ({"findings": "   ", "impression": "A mass is seen."}, {"impression"}),
    ],
)
def test_only_existing_sections_are_asked_for(made, sections, tasks):
    steps = reports(made, made.study(made.finding("mass"), report=made.report(**sections)), 60)
    assert {step.task for step, _ in steps} == tasks
    for step, _ in steps:
        assert all(section.text == sections[section.name] for section in step.key.sections)


def test_without_a_report_one_is_composed_from_the_findings(made):
    study = made.study(
        made.finding("pneumonia", zones=("right lower",), side="right", severity="severe"),
        made.finding("pneumothorax", "uncertain", side="left"),
        made.finding("fracture", "absent"),
        made.device("chest tube", site="in the left pleural space"),
        made.device("pacemaker", "uncertain"),
    )
    seen = set()
    for step, case in reports(made, study):
        seen.add(step.task)
        for section in step.key.sections:
            said = [sentence for sentence in section.text.split(". ") if sentence]
            (pneumonia,) = (s for s in said if "pneumonia" in s)
            (pneumothorax,) = (s for s in said if "pneumothorax" in s)
            assert "severe pneumonia in the right lower zone" in pneumonia.lower()
            assert not made.hedges.search(pneumonia)
            assert made.hedges.search(pneumothorax)
            if section.name == "findings":
                (tube,) = (s for s in said if "chest tube" in s)
                (pacemaker,) = (s for s in said if "pacemaker" in s)
                (fracture,) = (s for s in said if "fracture" in s)
                assert "left pleural space" in tube
                assert not made.hedges.search(tube)
                assert made.hedges.search(pacemaker), pacemaker
                assert "no " in fracture.lower() or "without" in fracture
        # A report is the same text wherever the conversation has it.
        if step.task == "impression from findings":
            assert step.key.sections[0].text not in step.question
        assert step.evidence == ()
        texts = {s.text for other in case.steps for s in other.key.sections if s.name == "findings"}
        assert len(texts) <= 1
    assert seen == TASKS


def test_a_normal_report_is_composed_only_where_nothing_is_present(made):
    normal = made.words.wording.phrases[8]["impression"]["normal"]
    clear = reports(made, made.study(made.finding("mass", "absent")))
    assert all(
        any(text.rstrip(".").lower() in section.text.lower() for text in normal)
        for step, _ in clear
        for section in step.key.sections
        if section.name == "impression"
    )
    doubtful = made.study(made.device("pacemaker", "uncertain"))
    for step, _ in reports(made, doubtful):
        for section in step.key.sections:
            if section.name == "findings":
                assert "pacemaker" in section.text


def test_sentences_in_which_a_word_was_removed_are_no_part_of_the_key(made):
    report = made.report("A mass is seen. Dr XXXX was called.", "Compared to ___ there is a mass.")
    here = made.study(made.finding("mass"), assessed=Assessed(text=True), report=report)
    for case in made.talks(10, here):
        (step,) = [step for step in case.steps if step.stage == 8]
        assert step.key.text == "A mass is seen."
        assert [mark.sentence for mark in step.evidence] == [0]


def test_neither_excerpts_nor_a_disputed_report_are_asked_for(made):
    report = made.report(findings="small left apical pneumothorax")
    excerpt = msgspec.structs.replace(report, is_excerpt=True)
    one = made.study(made.finding("pneumothorax"), report=excerpt, assessed=Assessed())
    assert reports(made, one) == []
    disputed = made.study(
        made.finding("mass"), report=report, assessed=Assessed(findings="every", disputed=("pneumothorax",))
    )
    assert reports(made, disputed) == []
