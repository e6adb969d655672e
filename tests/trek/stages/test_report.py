"""Stage 8: the study's own report where it has one, else one put together that says no more and no less."""

from collections import Counter

import msgspec
import pytest

from carina.reports import with_report_truth
from carina.studies import Assessed, Report, ReportSection
from carina.trek.facts import TrekCaseFacts
from carina.trek.turn import NOT_SHOWN

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
            if not speaks_of_unseen(talk, section.name):
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


def speaks_of_unseen(talk, name):
    """Whether a section compares with a study that the conversation does not show; every view of a phantom is shown."""
    report = talk.study.report
    return talk.case.reference_study is None and any(
        state.trend is not None or "prior" in report.quote(sentence)
        for sentence in report.sentences
        if sentence.section == name
        for state in sentence.states
    )


def test_phantoms_have_reports_of_both_kinds(asked):
    unseen = [speaks_of_unseen(talk, section.name) for talk, step in asked for section in step.key.sections]
    assert set(unseen) == {True, False}


def test_only_one_prompt_states_the_findings_and_is_marked_as_restating(asked):
    for talk, step in asked:
        stated = [slot.value for slot in step.slots if slot.name == "findings"]
        given = bool(stated) and stated[0] in step.question
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


def read(made, **sections):
    """A study of which nothing is known but its report."""
    report = Report(sections=tuple(ReportSection(name=name, text=text) for name, text in sections.items()))
    return with_report_truth(made.study(assessed=Assessed(), report=report))


@pytest.mark.parametrize(
    ("impression", "kept", "names", "gone"),
    [
        ("Stable cardiomegaly. No effusion.", "No effusion.", ["cardiomegaly"], "table"),
        ("No change since the prior study. No effusion.", "No effusion.", [], "prior"),
        (
            "The right effusion has increased to a large one. Clear lungs.",
            "Clear lungs.",
            ["pleural effusion on the right"],
            "ncreas",
        ),
        ("Pneumothorax has resolved. A mass is seen.", "A mass is seen.", ["no pneumothorax"], "resolved"),
        ("Unchanged nodule, seen on CT. Clear pleura.", "Clear pleura.", ["nodule"], "CT"),
        (
            "PA and lateral views show a nodule. The heart is normal.",
            "The heart is normal.",
            ["nodule"],
            "lateral",
        ),
        (
            "Fracture and nodule are unchanged. Nodule is stable.",
            "",
            ["fracture", "nodule"],
            "table",
        ),
    ],
)
def test_what_is_not_shown_is_restated_from_the_images(made, impression, kept, names, gone):
    study = read(made, impression=impression)
    steps = reports(made, study, 12)
    assert steps
    for step, _ in steps:
        text = step.key.sections[0].text
        assert kept in text
        assert gone not in text
        told = text.replace(kept, "").lower()
        for name in names:
            negated, _, bare = name.rpartition("no ")
            assert told.count(bare) == 1
            assert made.hedges.search(told) is None
            assert bool(negated or name.startswith("no ")) == (" no " in f" {told}" or "without" in told)
        assert bool(told.strip()) == bool(names)


@pytest.mark.parametrize(
    "said", ["A nodule is only seen on the lateral view.", "CT shows a nodule; it was shown by CT scan."]
)
def test_what_was_only_seen_elsewhere_is_neither_asked_nor_part_of_a_key(made, said):
    """Nobody who sees one frontal image can know of it."""
    study = read(made, findings="A mass is seen. The heart is normal.", impression=said)
    for case in made.talks(12, study):
        assert all("nodule" not in step.key.text for step in case.steps)
        assert {step.task for step in case.steps if step.stage == 8} == {"findings section"}
        reasons = {(one.task, one.reason) for one in TrekCaseFacts.of(case).not_asked}
        assert {("presence", NOT_SHOWN), ("impression section", NOT_SHOWN)} <= reasons


def test_what_is_denied_on_another_view_alone_is_not_known_to_be_absent(made):
    study = read(made, findings="A mass is seen. No nodule is seen on the lateral view.")
    subjects = [step.key.text for case in made.talks(20, study) for step in case.steps]
    assert subjects
    assert all("nodule" not in text for text in subjects)


def test_what_is_seen_on_a_view_that_is_shown_as_well_is_asked(made):
    study = read(made, findings="A nodule is seen on the lateral view. There is a nodule.")
    assert any("nodule" in step.key.text for case in made.talks(6, study) for step in case.steps)


@pytest.mark.parametrize(
    ("impression", "said"),
    [
        ("Stable nodule on the left.", "nodule"),
        ("Stable nodules on both sides.", "nodule on both sides"),
        ("Stable nodule.", "nodule"),
    ],
)
def test_a_sentence_is_restated_without_a_place_that_it_does_not_name(made, impression, said):
    """The findings name nodules of both sides, of which the left one is stable."""
    study = read(made, findings="There are nodules on both sides.", impression=impression)
    for step, _ in reports(made, study):
        for section in step.key.sections:
            if section.name == "impression":
                assert section.text.rstrip(".").endswith(said)


def test_a_report_that_only_compares_is_not_asked_for(made):
    study = read(made, findings="A mass is seen.", impression="No change since the prior study.")
    tasks = {step.task for step, _ in reports(made, study)}
    assert tasks == {"findings section"}


def test_with_the_prior_study_shown_the_report_keeps_its_words(made):
    text = "Stable cardiomegaly. No effusion."
    before = made.study(made.finding("cardiomegaly"), name="r", order=0)
    now = msgspec.structs.replace(read(made, impression=text), order=1, prior="r")
    cases = [case for case in made.talks(12, now, before) if case.reference_study]
    assert cases
    for case in cases:
        assert [step.key.text for step in case.steps if step.stage == 8] == [text]


def test_a_finding_without_a_name_that_is_only_compared_leaves_the_section_out(made):
    study = read(made, findings="A mass is seen.", impression="Stable mass.")
    hidden = msgspec.structs.replace(
        study, findings=tuple(msgspec.structs.replace(one, name="abnormality") for one in study.findings)
    )
    for case in made.talks(6, hidden):
        assert {step.task for step in case.steps if step.stage == 8} == {"findings section"}
        facts = TrekCaseFacts.of(case)
        assert ("impression section", NOT_SHOWN) in {(one.task, one.reason) for one in facts.not_asked}
