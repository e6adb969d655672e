"""What has become of everything between two studies."""

import pytest

from carina.cases import Evidence
from carina.studies import Assessed
from carina.trek.changes import covers_all_changes, find_changes


@pytest.fixture
def trends(made):
    def between(before, now, known=(), prior=None, assessed=Assessed()):  # noqa: B008 - frozen
        changes = find_changes(
            made.subject(made.study(*before, name="a", assessed=assessed), known=known),
            made.subject(made.study(*now, name="b", prior=prior, assessed=assessed), known=known),
        )
        return {change.name: change.trend for change in changes}

    return between


@pytest.mark.parametrize("trend", ["worse", "improved", "unchanged"])
@pytest.mark.parametrize(
    ("grades", "fit"),
    [
        (("mild", "severe"), {"worse"}),
        (("severe", "mild"), {"improved"}),
        # Within a grade something may well get worse.
        (("mild", "mild"), {"worse", "improved", "unchanged"}),
        ((None, "mild"), {"worse", "improved", "unchanged"}),
    ],
)
def test_the_stated_trend_is_used_unless_grades_contradict_it(made, trends, trend, grades, fit):
    old, new = made.finding("mass", severity=grades[0]), made.finding("mass", severity=grades[1], trend=trend)
    assert trends([old], [new]) == ({"mass": trend} if trend in fit else {})


def test_without_a_stated_trend_grades_decide(made, trends):
    grades = {
        "mass": ("mild", "severe"),
        "edema": ("severe", "mild"),
        "fracture": ("mild", "mild"),
        "nodule": (None, "mild"),
    }
    assert trends(
        [made.finding(name, severity=old) for name, (old, _) in grades.items()],
        [made.finding(name, severity=new) for name, (_, new) in grades.items()],
    ) == {"mass": "worse", "edema": "improved", "fracture": "unchanged"}


def test_a_finding_is_new_only_where_it_was_certainly_absent_before(made, trends):
    now = [made.finding("mass"), made.device("pacemaker"), made.finding("edema", "uncertain")]
    looked = [
        made.finding("mass", "absent"),
        made.device("pacemaker", "absent"),
        made.finding("edema", "absent"),
    ]
    assert trends(looked, now) == {"mass": "new", "pacemaker": "new"}
    # What the earlier study did not look for may have been there.
    assert trends([], now) == {}
    known = (("finding", "mass"), ("device", "pacemaker"))
    assert trends([], now, known=known) == {}
    assert trends([], now, known=known, assessed=Assessed(devices="every")) == {"pacemaker": "new"}
    closed = Assessed(findings="listed", devices="listed", listed=("mass",))
    assert trends([], now, known=known, assessed=closed) == {"mass": "new"}
    assert trends([made.finding("mass", "absent")], [made.finding("mass", trend="new")]) == {"mass": "new"}
    assert trends([], [made.finding("mass", trend="new")]) == {"mass": "new"}


@pytest.mark.parametrize(("prior", "counts"), [(None, True), ("a", True), ("z", False)])
def test_a_stored_trend_is_used_only_against_the_study_it_compares_with(made, trends, prior, counts):
    old = [
        made.finding("mass", severity="mild"),
        made.finding("fracture"),
        made.finding("pneumothorax"),
    ]
    now = [
        made.finding("mass", severity="mild", trend="improved"),
        made.finding("fracture", trend="worse"),
        made.finding("pneumothorax", "absent", trend="resolved"),
        made.finding("cardiomegaly", trend="new"),
    ]
    told = {"mass": "improved", "fracture": "worse", "cardiomegaly": "new", "pneumothorax": "resolved"}
    # Without it, grades tell of the mass alone.
    assert trends(old, now, prior=prior) == (told if counts else {"mass": "unchanged"})


@pytest.mark.parametrize(
    ("before", "now", "all_told"),
    [
        (("mass",), ("mass",), True),
        ((), (), True),
        (("mass", "fracture"), ("mass",), False),
        (("mass",), ("mass", "fracture"), False),
    ],
)
def test_covers_all_changes_needs_the_course_of_everything_in_both_studies(made, before, now, all_told):
    """Of a fracture that only one of them knows, nobody can tell the course."""
    one, other = (
        made.subject(made.study(*(made.finding(n, severity="mild") for n in names), name=name))
        for names, name in ((before, "a"), (now, "b"))
    )
    assert covers_all_changes(find_changes(one, other), one, other) == all_told


def test_a_name_is_the_same_in_any_spelling(made, trends):
    assert trends([made.finding("Mass", severity="mild")], [made.finding(" mass", severity="severe")]) == {
        "mass": "worse"
    }
    assert trends([made.finding("MASS", "absent")], [made.finding("mass")]) == {"mass": "new"}
    assert trends([made.finding("mass")], [made.finding("Mass", "absent")]) == {"mass": "resolved"}


def test_a_resolved_finding_is_found_in_any_spelling(made, trends):
    gone = made.finding("Mass", "absent", trend="resolved")
    assert trends([made.finding("mass")], [gone]) == {"mass": "resolved"}


@pytest.mark.parametrize(
    ("before", "trend"),
    [
        ("present", "new"),
        ("absent", "worse"),
        ("absent", "unchanged"),
        (None, "improved"),
        ("present", "resolved"),
    ],
)
def test_a_trend_that_the_earlier_study_contradicts_is_dropped(made, trends, before, trend):
    old = [] if before is None else [made.finding("mass", before, severity="mild")]
    assert trends(old, [made.finding("mass", severity="mild", trend=trend)]) == {}


def test_a_finding_has_resolved_only_if_stated_or_looked_for(made, trends):
    old = made.finding("mass")
    assert trends([old], [made.finding("mass", "absent", trend="resolved")]) == {"mass": "resolved"}
    assert trends([old], [made.finding("mass", "absent")]) == {"mass": "resolved"}
    assert trends([old], []) == {}
    # That other studies of the set know a mass does not say that this one looked for it.
    known = (("finding", "mass"),)
    assert trends([old], [], known=known) == {}
    assert trends([old], [], known=known, assessed=Assessed(findings="every")) == {"mass": "resolved"}
    listed = Assessed(findings="listed", listed=("mass",))
    assert trends([old], [], known=known, assessed=listed) == {"mass": "resolved"}
    others = Assessed(findings="listed", listed=("edema",))
    assert trends([old], [], known=known, assessed=others) == {}
    # What may be hidden by something else has not surely gone.
    assert trends([old], [made.finding("mass", "absent"), made.finding("nodule", trend="new")]) == {
        "nodule": "new"
    }


def test_an_uncertain_finding_does_not_resolve(made, trends):
    assert trends([made.finding("mass", "uncertain")], [made.finding("mass", "absent")]) == {}
    assert (
        trends([made.finding("mass", "uncertain")], [made.finding("mass", "absent", trend="resolved")]) == {}
    )


def test_findings_of_the_same_name_are_not_compared(made, trends):
    two = [made.finding("nodule", number="f1"), made.finding("nodule", number="f2")]
    one = [made.finding("nodule", severity="mild", trend="unchanged")]
    assert trends(two, one) == {}
    assert trends(one, two) == {}
    assert trends(two, [made.finding("nodule", "absent", trend="resolved")]) == {}


def test_changes_have_the_order_ids_and_evidence_of_the_later_study(made):
    before = made.study(
        made.finding("edema", number="x1", evidence=(7,)),
        made.finding("mass", number="x2", severity="mild", evidence=(8, 9)),
        made.device("chest tube", number="x3"),
        made.finding("fracture", "absent", number="x4", evidence=(5,)),
        name="a",
    )
    now = made.study(
        made.finding("fracture", number="y1", evidence=(1,)),
        made.finding("mass", number="y2", severity="mild", evidence=(2,)),
        made.finding("edema", "absent", number="y3", trend="resolved", evidence=(3,)),
        made.device("chest tube", "absent", number="y4"),
        name="b",
    )
    changes = find_changes(made.subject(before), made.subject(now))
    assert [(c.name, c.trend, c.id, c.kind_of_answer) for c in changes] == [
        ("fracture", "new", "y1", "new"),
        ("mass", "unchanged", "y2", "unchanged"),
        ("edema", "resolved", "y3", "resolved"),
        ("chest tube", "resolved", "y4", "resolved_device"),
    ]
    new, same, gone, removed = changes
    assert (new.before, gone.now, removed.now) == (None, None, None)
    assert same.evidence == (
        Evidence(report="current", sentence=2),
        Evidence(report="reference", sentence=8),
        Evidence(report="reference", sentence=9),
    )
    assert gone.evidence == (
        Evidence(report="current", sentence=3),
        Evidence(report="reference", sentence=7),
    )
    assert new.evidence == (Evidence(report="current", sentence=1),)
    assert removed.later_sentences == ()


def test_studies_without_findings_have_no_changes(trends):
    assert trends([], []) == {}


def test_what_lasts_has_not_resolved_because_a_report_does_not_repeat_it(made, trends):
    known = (("finding", "mass"), ("finding", "fibrosis"))
    both = [made.finding("mass"), made.finding("fibrosis")]
    listed = Assessed(findings="listed", listed=("mass", "fibrosis"))
    assert trends(both, [], known=known, assessed=listed) == {"mass": "resolved", "fibrosis": "resolved"}
    from_text = Assessed(findings="listed", listed=("mass", "fibrosis"), text=True)
    assert trends(both, [], known=known, assessed=from_text) == {"mass": "resolved"}
    stated = [made.finding("fibrosis", "absent", evidence=(0,))]
    assert trends(both, stated, known=known, assessed=from_text)["fibrosis"] == "resolved"
