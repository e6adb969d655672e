"""Drawings, labels and the report of one study: what combines, what contradicts, and what is trusted."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carina.reports.combine import combine_with_report, is_report_read
from carina.reports.read import read_report
from carina.reports.trust import TRUST, check_trust, split_trust
from carina.store.errors import CarinaError
from carina.studies import (
    Annotation,
    Assessed,
    Device,
    Finding,
    Image,
    Location,
    Region,
    Report,
    ReportSection,
    Sentence,
    Statement,
    Study,
    certainty_of,
    states_no_abnormality,
)
from carina.studies.faults import faults

IMAGE = Image(key="a.png", view="PA", width=20, height=20)
DRAWN = Annotation(
    image="a.png", region=Region.from_box(1, 1, 5, 5, height=20, width=20), drawn="mask", annotator="A"
)
replace = msgspec.structs.replace


def finding(name, certainty="present", *, number=1, drawn=False, **more):
    annotations = (DRAWN,) if drawn else ()
    return Finding(id=f"f{number}", name=name, certainty=certainty, annotations=annotations, **more)


def study(text, *findings, assessed=None, **more):
    report = Report(sections=(ReportSection(name="findings", text=text),))
    return Study(
        id="s1",
        patient="p1",
        source="made",
        images=(IMAGE,),
        findings=findings,
        assessed=assessed or Assessed(),
        report=report,
        **more,
    )


def conflicts(combined):
    return [(one.name, one.summary) for one in combined.conflicts]


def test_the_report_adds_place_severity_and_sentences_to_what_was_drawn():
    combined = combine_with_report(
        study(
            "There is a small right pleural effusion. No pneumothorax.",
            finding("pleural effusion", drawn=True),
        )
    )
    assert combined.conflicts == ()
    effusion, pneumothorax = combined.study.findings
    assert (effusion.id, effusion.certainty, effusion.annotations) == ("f1", "present", (DRAWN,))
    assert (effusion.location.side, effusion.severity, effusion.evidence) == ("right", "mild", (0,))
    assert (pneumothorax.name, pneumothorax.certainty, pneumothorax.evidence) == (
        "pneumothorax",
        "absent",
        (1,),
    )
    assert pneumothorax.id != effusion.id
    assert [state.about for one in combined.study.report.sentences for state in one.states] == [
        effusion.id,
        pneumothorax.id,
    ]
    assert list(faults(combined.study)) == []
    # A second time there is nothing left to add.
    assert combine_with_report(combined.study) == replace_conflicts(combined)


def replace_conflicts(combined):
    return type(combined)(combined.study, ())


def test_what_the_record_states_itself_stays():
    own = finding("pleural effusion", drawn=True, severity="severe", location=Location(side="left"))
    merged = combine_with_report(study("Small pleural effusion.", own)).study.findings[0]
    assert (merged.severity, merged.location.side) == ("severe", "left")


@pytest.mark.parametrize(
    ("text", "record", "assessed", "expected"),
    [
        (
            "No pleural effusion.",
            finding("pleural effusion", drawn=True),
            None,
            "drawn, but denied in the report",
        ),
        (
            "No pleural effusion.",
            finding("pleural effusion"),
            None,
            "labelled present, but denied in the report",
        ),
        (
            "Large pleural effusion.",
            finding("pleural effusion", "absent"),
            None,
            "labelled absent, but stated in the report",
        ),
        (
            "Possible pleural effusion.",
            finding("pleural effusion", "absent"),
            None,
            "labelled absent, but possible in the report",
        ),
        (
            "No pleural effusion.",
            finding("pleural effusion", "uncertain"),
            None,
            "labelled uncertain, but denied in the report",
        ),
        (
            "Large pleural effusion.",
            finding("pleural effusion", "uncertain"),
            None,
            "labelled uncertain, but stated in the report",
        ),
        (
            "Large pleural effusion.",
            finding("mass", "absent"),
            Assessed(findings="listed", listed=("mass", "pleural effusion")),
            "looked for and not recorded, but stated in the report",
        ),
    ],
)
def test_a_contradiction_is_a_conflict_and_nothing_is_known_then(text, record, assessed, expected):
    combined = combine_with_report(study(text, record, assessed=assessed))
    assert conflicts(combined) == [("pleural effusion", expected)]
    assert combined.conflicts[0].sentence == text
    assert combined.study.assessed.disputed == ("pleural effusion",)
    assert "pleural effusion" not in {one.name for one in combined.study.findings}
    assert certainty_of(combined.study, "pleural effusion") is None
    assert states_no_abnormality(combined.study) in (None, False)
    assert list(faults(combined.study)) == []


@pytest.mark.parametrize("text", [None, "No pneumothorax.", "Large pleural effusion. No mass."])
def test_records_that_the_source_disputes_are_not_asked_about(text):
    """Whether there is a report or not, and whatever it says."""
    disputed = Assessed(findings="every", disputed=("pleural effusion",))
    records = (finding("pleural effusion", drawn=True), finding("nodule", number=2))
    made = replace(study(text or "x", *records, assessed=disputed), **({} if text else {"report": None}))
    combined = combine_with_report(made).study
    assert "pleural effusion" not in {one.name for one in combined.findings}
    assert "nodule" in {one.name for one in combined.findings}
    assert "pleural effusion" in combined.assessed.disputed
    assert certainty_of(combined, "pleural effusion") is None
    asked = combine_with_report(made, on_conflict="ask").study
    assert "pleural effusion" in {one.name for one in asked.findings}


@pytest.mark.parametrize(
    ("text", "certainty"),
    [
        # A hedge does not contradict what somebody drew.
        ("Possible pleural effusion.", "present"),
        ("Possible pleural effusion.", "uncertain"),
        ("No left pleural effusion.", "uncertain"),
        ("No pleural effusion.", "absent"),
        ("Pleural effusion on the right. No pleural effusion on the left.", "present"),
        ("The heart is normal.", "present"),
    ],
)
def test_what_does_not_contradict_is_no_conflict(text, certainty):
    combined = combine_with_report(
        study(text, finding("pleural effusion", certainty, drawn=certainty == "present"))
    )
    assert combined.conflicts == ()
    assert combined.study.findings[0].certainty == certainty


def test_where_nobody_looked_the_report_alone_counts():
    combined = combine_with_report(study("Large pleural effusion.", finding("mass", drawn=True)))
    assert combined.conflicts == ()
    assert [(one.name, one.certainty) for one in combined.study.findings] == [
        ("mass", "present"),
        ("pleural effusion", "present"),
    ]


@pytest.mark.parametrize(
    ("trust", "expected"),
    [
        (TRUST, "present"),
        (("label", "drawing", "text"), "present"),
        (("text", "drawing", "label"), "absent"),
        (("label", "text", "drawing"), "absent"),
    ],
)
def test_where_conflicts_are_asked_about_what_is_trusted_most_counts(trust, expected):
    drawn = study("No pleural effusion.", finding("pleural effusion", drawn=True))
    combined = combine_with_report(drawn, on_conflict="ask", trust=trust)
    assert conflicts(combined) == [("pleural effusion", "drawn, but denied in the report")]
    assert combined.study.assessed.disputed == ()
    (merged,) = combined.study.findings
    assert (merged.certainty, bool(merged.annotations)) == (expected, expected == "present")


def test_two_records_of_a_name_share_a_sentence_and_two_sentences_share_no_record():
    right, left = (finding("pleural effusion", number=number, drawn=True) for number in (1, 2))
    one_sentence = combine_with_report(study("Bilateral pleural effusions.", right, left)).study
    assert [state.about for state in one_sentence.report.sentences[0].states] == ["f1", "f2"]
    two = combine_with_report(
        study(
            "Small right pleural effusion. Large left pleural effusion.",
            finding("pleural effusion", drawn=True),
        )
    ).study
    assert [one.states for one in two.report.sentences] == [(), ()]
    assert [one.id for one in two.findings] == ["f1"]


def test_relations_and_advice_follow_to_the_records():
    text = "Right lower lobe consolidation suggests pneumonia. A follow-up chest radiograph is recommended."
    merged = combine_with_report(study(text, finding("pneumonia", number=7, drawn=True))).study
    (relation,) = merged.relations
    assert (relation.object, relation.subject in {one.id for one in merged.findings}) == ("f7", True)
    assert merged.recommendations[0].about
    assert list(faults(merged)) == []


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("ground glass opacity", "The lungs are clear.", True),
        ("COVID-19 pneumonia", "No pneumonia.", True),
        ("COVID-19 pneumonia", "There is pneumonia.", False),
        # A nodule is an opacity, too, but a report that denies nodules says so.
        ("nodule", "No acute cardiopulmonary abnormality.", False),
        ("azygos lobe", "The lungs are clear.", False),
    ],
)
def test_a_kind_of_what_the_report_denies_is_denied(name, text, expected):
    combined = combine_with_report(study(text, finding(name, drawn=True)))
    found = [name] if expected else []
    assert [conflict.name for conflict in combined.conflicts] == found


def test_a_report_in_another_language_is_not_read():
    spanish = study("No mass.", finding("mass", drawn=True))
    spanish = replace(spanish, report=replace(spanish.report, language="es"))
    assert combine_with_report(spanish).study == spanish


def test_devices_are_compared_too():
    tube = Device(id="d1", name="endotracheal tube", certainty="absent")
    combined = combine_with_report(study("Endotracheal tube in place.", devices=(tube,)))
    assert conflicts(combined) == [("endotracheal tube", "labelled absent, but stated in the report")]
    assert combined.study.devices == ()


def test_a_report_that_was_read_is_compared_by_its_statements():
    read = combine_with_report(study("No mass. Large right pleural effusion.")).study
    assert is_report_read(read)
    changed = replace(read, findings=tuple(replace(one, certainty="present") for one in read.findings))
    combined = combine_with_report(changed)
    assert conflicts(combined) == [("mass", "labelled present, but denied in the report")]
    assert [one.name for one in combined.study.findings] == ["pleural effusion"]
    assert list(faults(combined.study)) == []


def test_a_report_of_which_a_phrase_is_quoted_is_read_as_a_whole():
    text = "The left pleural effusion has increased. No pneumothorax. A mass is seen."
    effusion = finding("pleural effusion", evidence=(0,))
    plain = study(text, replace(effusion, evidence=()), finding("pneumothorax", number=2))
    start = text.index("left")
    quote = Sentence(
        section="findings",
        start=start,
        end=start + len("left pleural effusion"),
        states=(Statement(kind="finding", about="f1", certainty="present"),),
    )
    quoted = replace(
        plain,
        findings=(effusion, *plain.findings[1:]),
        report=replace(plain.report, sentences=(quote,)),
    )
    assert not is_report_read(quoted)
    expected, combined = combine_with_report(plain), combine_with_report(quoted)
    assert conflicts(combined) == conflicts(expected) != []
    by_name = {one.name: one for one in combined.study.findings}
    assert by_name.keys() == {one.name for one in expected.study.findings}
    stated = by_name["pleural effusion"]
    assert (stated.trend, stated.location.side) == ("worse", "left")
    report = combined.study.report
    # The sentence that was read and the quote within it; only the quote is what states it.
    assert [report.quote(report.sentences[place]) for place in stated.evidence] == [
        "The left pleural effusion has increased.",
        "left pleural effusion",
    ]
    assert [
        report.quote(one) for one in report.sentences if any(state.about == stated.id for state in one.states)
    ] == ["left pleural effusion"]
    # Now nothing is unread, and combining again changes nothing.
    assert combine_with_report(combined.study).study == combined.study


def test_a_normal_label_contradicts_an_abnormal_report():
    combined = combine_with_report(study("Large pleural effusion.", finding("abnormality", "absent")))
    assert conflicts(combined) == [
        ("pleural effusion", "looked for and not recorded, but stated in the report")
    ]
    assert states_no_abnormality(combined.study) is None


NAMES = ("pleural effusion", "mass", "pneumothorax", "consolidation")
SENTENCES = {"present": "There is a {}.", "absent": "There is no {}.", "uncertain": "There may be a {}."}


@given(
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from(list(SENTENCES))),
    st.dictionaries(st.sampled_from(NAMES), st.tuples(st.sampled_from(list(SENTENCES)), st.booleans())),
    st.sampled_from(["every", "unknown"]),
    st.permutations(TRUST),
)
def test_nothing_in_conflict_is_known_and_every_other_record_stays(stated, recorded, scope, trust):
    text = " ".join(SENTENCES[certainty].format(name) for name, certainty in stated.items())
    findings = [
        finding(name, certainty, number=number, drawn=drawn and certainty == "present")
        for number, (name, (certainty, drawn)) in enumerate(recorded.items(), start=1)
    ]
    given_study = study(text or "Nothing else.", *findings, assessed=Assessed(findings=scope))
    combined = combine_with_report(given_study, trust=trust)
    disputed = {one.name for one in combined.conflicts}
    assert all(certainty_of(combined.study, name, kind="finding") is None for name in disputed)
    for one in findings:
        if one.name not in disputed:
            assert one.certainty == certainty_of(combined.study, one.name, kind="finding")
    assert list(faults(combined.study)) == []
    asked = combine_with_report(given_study, on_conflict="ask", trust=trust)
    assert asked.conflicts == combined.conflicts
    assert all(certainty_of(asked.study, name, kind="finding") is not None for name in disputed)


def test_an_order_of_trust_names_each_once():
    assert split_trust("text, label,drawing") == ("text", "label", "drawing")
    with pytest.raises(CarinaError, match="trust 'text, text, label': expected drawing, label, text"):
        check_trust(["text", "text", "label"])


LEFT = replace(DRAWN, region=Region.from_box(13, 1, 5, 5, height=20, width=20))


@pytest.mark.parametrize(
    ("drawn", "view", "text", "expected"),
    [
        (
            DRAWN,
            "PA",
            "There is a left pleural effusion.",
            "drawn on the right, but on the left in the report",
        ),
        (LEFT, "AP", "Small right pleural effusion.", "drawn on the left, but on the right in the report"),
        (DRAWN, "PA", "There is a right pleural effusion.", None),
        (DRAWN, "PA", "Bilateral pleural effusions.", None),
        (DRAWN, "PA", "There is a pleural effusion.", None),
        # Where the view is unknown, or the region reaches the middle, nobody knows the side.
        (DRAWN, "unknown", "There is a left pleural effusion.", None),
        (
            replace(DRAWN, region=Region.from_box(1, 1, 9, 5, height=20, width=20)),
            "PA",
            "Left effusion.",
            None,
        ),
    ],
)
def test_a_report_about_the_other_side_is_a_conflict(drawn, view, text, expected):
    effusion = Finding(id="f1", name="pleural effusion", certainty="present", annotations=(drawn,))
    recorded = replace(study(text, effusion), images=(replace(IMAGE, view=view),))
    combined = combine_with_report(recorded)
    assert conflicts(combined) == ([("pleural effusion", expected)] if expected else [])
    assert certainty_of(combined.study, "pleural effusion", kind="finding") == (
        None if expected else "present"
    )


@pytest.mark.parametrize(
    ("drawn", "text", "expected"),
    [
        ([DRAWN], "No left pleural effusion.", None),
        ([DRAWN], "No pleural effusion on the left. Right angle not included.", None),
        ([LEFT], "No pleural effusion on the right.", None),
        ([DRAWN], "No right pleural effusion.", "drawn, but denied in the report"),
        (
            [DRAWN, LEFT],
            "Right pleural effusion. No left pleural effusion.",
            "drawn, but denied in the report",
        ),
        ([DRAWN], "No right pleural effusion. No left pleural effusion.", "drawn, but denied in the report"),
        ([DRAWN], "Right pleural effusion. No left pleural effusion.", None),
        (
            [LEFT],
            "Opacity at the right base consistent with pleural effusion.",
            "drawn on the left, but on the right in the report",
        ),
        (
            [LEFT],
            "Right basilar opacity may represent pleural effusion.",
            "drawn on the left, but on the right in the report",
        ),
    ],
)
@pytest.mark.parametrize("is_read", [False, True])
def test_a_denial_of_one_side_contradicts_what_was_drawn_there_and_nothing_else(
    drawn, text, expected, is_read
):
    effusions = [
        Finding(id=f"d{number}", name="pleural effusion", certainty="present", annotations=(one,))
        for number, one in enumerate(drawn)
    ]
    recorded = study(text, *effusions)
    if is_read:
        facts = read_report(recorded.report)
        recorded = replace(
            recorded,
            findings=(*effusions, *facts.findings),
            relations=facts.relations,
            report=facts.report,
        )
    combined = combine_with_report(recorded)
    assert [one.summary for one in combined.conflicts if one.name == "pleural effusion"] == (
        [expected] if expected else []
    )
    assert list(faults(combined.study)) == []


def test_what_the_report_denies_on_one_side_is_not_absent_as_a_whole():
    record = finding("nodule", drawn=True)
    combined = combine_with_report(study("Nodule. No left pleural effusion.", record)).study
    assert certainty_of(combined, "pleural effusion") is None
    both = study("Nodule. No left pleural effusion. No right pleural effusion.", record)
    assert certainty_of(combine_with_report(both).study, "pleural effusion") == "absent"
    # A label for the whole stays a label for the whole.
    labelled = study("No left pleural effusion.", finding("pleural effusion", "absent"))
    assert certainty_of(combine_with_report(labelled).study, "pleural effusion") == "absent"


def test_the_side_that_is_trusted_more_is_kept():
    effusion = finding("pleural effusion", drawn=True)
    recorded = study("There is a left pleural effusion.", effusion)
    for trust, expected in ((TRUST, (None, 1)), (("text", "drawing", "label"), ("left", 0))):
        (kept,) = combine_with_report(recorded, on_conflict="ask", trust=trust).study.findings
        side = kept.location.side if kept.location else None
        # What was drawn on one side never gets the other side from the report.
        assert (side, len(kept.annotations)) == expected


def test_a_side_that_is_labelled_is_compared_too():
    labelled = finding("pneumothorax", location=Location(zones=("right upper zone",)))
    (conflict,) = combine_with_report(study("Small left apical pneumothorax.", labelled)).conflicts
    assert conflict.summary == "labelled on the right, but on the left in the report"
    assert (conflict.report, conflict.is_recorded_present) == ("on the left", True)
