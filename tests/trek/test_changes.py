"""What has become of everything between two studies."""

import pytest

from carina.cases import Evidence
from carina.trek.changes import changes_between


@pytest.fixture
def trends(made):
    def between(before, now, known=()):
        changes = changes_between(
            made.subject(made.study(*before, name="a"), known=known),
            made.subject(made.study(*now, name="b"), known=known),
        )
        return {change.name: change.trend for change in changes}

    return between


@pytest.mark.parametrize("trend", ["worse", "improved", "unchanged"])
def test_what_the_later_study_says_goes_before_what_grades_say(made, trends, trend):
    old = made.finding("mass", severity="mild")
    new = made.finding("mass", severity="severe", trend=trend)
    assert trends([old], [new]) == {"mass": trend}


def test_grades_tell_where_nothing_is_said(made, trends):
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


def test_what_was_not_there_is_new_where_it_surely_is(made, trends):
    assert trends(
        [], [made.finding("mass"), made.device("pacemaker"), made.finding("edema", "uncertain")]
    ) == {
        "mass": "new",
        "pacemaker": "new",
    }
    assert trends([made.finding("mass", "absent")], [made.finding("mass", trend="new")]) == {"mass": "new"}


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


def test_what_has_gone_is_said_or_was_looked_for(made, trends):
    old = made.finding("mass")
    assert trends([old], [made.finding("mass", "absent", trend="resolved")]) == {"mass": "resolved"}
    assert trends([old], [made.finding("mass", "absent")]) == {"mass": "resolved"}
    assert trends([old], []) == {}
    # That other studies of the set know a mass does not say that this one looked for it.
    assert trends([old], [], known=(("finding", "mass"),)) == {}
    # What may be hidden by something else has not surely gone.
    assert trends([old], [made.finding("mass", "absent"), made.finding("nodule", trend="new")]) == {
        "nodule": "new"
    }


def test_what_only_may_have_been_there_has_not_gone(made, trends):
    assert trends([made.finding("mass", "uncertain")], [made.finding("mass", "absent")]) == {}
    assert (
        trends([made.finding("mass", "uncertain")], [made.finding("mass", "absent", trend="resolved")]) == {}
    )


def test_what_there_is_several_times_is_not_compared(made, trends):
    two = [made.finding("nodule", number="f1"), made.finding("nodule", number="f2")]
    one = [made.finding("nodule", severity="mild", trend="unchanged")]
    assert trends(two, one) == {}
    assert trends(one, two) == {}
    assert trends(two, [made.finding("nodule", "absent", trend="resolved")]) == {}


def test_order_ids_and_evidence(made):
    before = made.study(
        made.finding("edema", number="x1", evidence=(7,)),
        made.finding("mass", number="x2", severity="mild", evidence=(8, 9)),
        made.device("chest tube", number="x3"),
        name="a",
    )
    now = made.study(
        made.finding("fracture", number="y1", evidence=(1,)),
        made.finding("mass", number="y2", severity="mild", evidence=(2,)),
        made.finding("edema", "absent", number="y3", trend="resolved", evidence=(3,)),
        made.device("chest tube", "absent", number="y4"),
        name="b",
    )
    changes = changes_between(made.subject(before), made.subject(now))
    assert [(c.name, c.trend, c.id, c.kind_of_answer) for c in changes] == [
        ("fracture", "new", "y1", "new"),
        ("mass", "unchanged", "y2", "unchanged"),
        ("edema", "resolved", "y3", "resolved"),
        ("chest tube", "resolved", "y4", "resolved_device"),
    ]
    new, same, gone, removed = changes
    assert (new.before, gone.now, removed.now) == (None, None, None)
    assert same.evidence("current", "reference") == (
        Evidence(report="current", sentence=2),
        Evidence(report="reference", sentence=8),
        Evidence(report="reference", sentence=9),
    )
    assert gone.evidence("later", "current") == (
        Evidence(report="later", sentence=3),
        Evidence(report="current", sentence=7),
    )
    assert removed.later_sentences == ()


def test_nothing_to_compare(trends):
    assert trends([], []) == {}
