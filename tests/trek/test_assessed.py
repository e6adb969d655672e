"""A key that follows from what was looked for; a question without a known key is not asked, and counted."""

import json

import pytest

from carina.cases import NoCasesError
from carina.studies import Assessed, open_studies
from carina.trek import build_trek
from carina.trek.facts import NotAskedFact, TrekCaseFacts
from carina.trek.survey import count_studies

FOURTEEN = ("mass", "pneumonia", "pleural effusion", "cardiomegaly")
CLOSED = Assessed(findings="listed", listed=FOURTEEN)
NO_FINDING = "not every finding was looked for"
NO_DEVICE = "not every device was looked for"
NAME = "nobody looked for it"
NOT_MENTIONED = "the report does not mention it"
NOT_LABELLED = "the labels, which were read from a report, do not name it"
FOR_BALANCE = "left out to keep yes and no balanced"


def not_asked(case):
    return {(one.task, one.reason): one.number for one in TrekCaseFacts.of(case).not_asked}


def tasks(case):
    return {step.task for step in case.steps}


def labels(made, cases, task):
    return {made.label(step) for case in cases for step in case.steps if step.task == task}


# ---- anything at all -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("things", "assessed", "expected"),
    [
        pytest.param(lambda _: (), Assessed(findings="every"), {"no"}, id="looked through"),
        pytest.param(lambda _: (), CLOSED, set(), id="closed list"),
        pytest.param(lambda m: (m.finding("fracture", "absent"),), Assessed(), set(), id="one absent"),
        pytest.param(lambda m: (m.finding("mass"),), Assessed(), {"yes"}, id="present"),
        pytest.param(
            lambda m: (m.finding("mass", "uncertain"),), CLOSED, set(), id="uncertain, others unknown"
        ),
        pytest.param(
            lambda m: (m.finding("mass", "uncertain"),),
            Assessed(findings="every"),
            {"uncertain"},
            id="uncertain",
        ),
        pytest.param(lambda m: (m.finding("abnormality", "absent"),), Assessed(), {"no"}, id="stated normal"),
        pytest.param(lambda m: (m.finding("abnormality"),), Assessed(), {"yes"}, id="stated abnormal"),
    ],
)
def test_whether_anything_is_abnormal_is_asked_only_where_it_is_known(made, things, assessed, expected):
    cases = made.talks(20, made.study(*things(made), assessed=assessed))
    assert labels(made, cases, "any abnormality") == expected
    told = {not_asked(case).get(("any abnormality", NO_FINDING)) for case in cases}
    assert told == ({None} if expected else {1.0})


@pytest.mark.parametrize(
    ("things", "assessed", "expected"),
    [
        pytest.param(lambda _: (), Assessed(findings="every"), set(), id="nobody looked"),
        pytest.param(lambda _: (), Assessed(devices="every"), {"no"}, id="looked through"),
        pytest.param(lambda m: (m.device("pacemaker", "absent"),), Assessed(), set(), id="one absent"),
        pytest.param(lambda m: (m.device("device", "absent"),), Assessed(), {"no"}, id="stated"),
        pytest.param(lambda m: (m.device("device"),), Assessed(), {"yes"}, id="without a name"),
        pytest.param(lambda m: (m.device("chest tube"),), Assessed(), {"yes"}, id="with a name"),
    ],
)
def test_whether_there_is_a_device_is_asked_only_where_it_is_known(made, things, assessed, expected):
    cases = made.talks(20, made.study(made.finding("mass"), *things(made), assessed=assessed))
    assert labels(made, cases, "any device") == expected
    assert all(("any device", NO_DEVICE) in not_asked(case) for case in cases) == (not expected)


def test_an_image_with_a_device_without_a_name_is_not_called_normal(made):
    one = made.study(made.device("device"), assessed=Assessed(findings="every"))
    for case in made.talks(20, one):
        assert "any abnormality" not in tasks(case)
        assert not any("a device" in option.text for step in case.steps for option in step.options)


# ---- by name ---------------------------------------------------------------------------------------------------------


def test_only_names_that_were_looked_for_are_asked_about_as_absent(made):
    one = made.study(made.finding("mass"), made.finding("fracture", "absent"), assessed=CLOSED)
    known = tuple(
        ("finding", name) for name in ("cardiomegaly", "edema", "fracture", "mass", "pleural effusion")
    )
    read = made.subject(one, known=(*known, ("device", "pacemaker")))
    assert {missing.name for missing in read.absent_findings} == {
        "fracture",
        "cardiomegaly",
        "pleural effusion",
    }
    assert read.absent_devices == []
    assert read.unknown == {"finding": 1, "device": 1}


def test_listed_names_may_be_spelled_as_they_like(made):
    one = made.study(assessed=Assessed(findings="listed", listed=("Pleural  Effusion", "MASS")))
    read = made.subject(
        one, known=(("finding", "mass"), ("finding", "pleural effusion"), ("finding", "edema"))
    )
    assert [missing.name for missing in read.absent_findings] == ["mass", "pleural effusion"]


def test_nothing_is_offered_or_named_as_absent_that_nobody_looked_for(made):
    here = made.study(made.finding("mass", zones=("left upper",), side="left"), assessed=CLOSED)
    asked = 0
    for case in made.talks(60, here, quotas=made.everything):
        for step in case.steps:
            if step.task not in ("presence", "device presence"):
                continue
            asked += 1
            wrong = {"yes": (), "no": made.targets(step)}.get(made.label(step) or "", made.wrong(step))
            assert {name for name in wrong if name not in ("Yes", "No")} <= {*FOURTEEN, *none_of_these(made)}
        assert not any(step.task == "device presence" for step in case.steps)
    assert asked > 10


def test_a_name_that_a_study_known_from_its_report_alone_does_not_record_is_not_mentioned(made):
    mass = made.finding("mass", zones=("left upper",))
    told = {}
    report = made.report("There is a mass.")
    for name, assessed, text in (
        ("read", Assessed(text=True), report),
        ("mined", Assessed(text=True), None),
        ("labelled", CLOSED, None),
        ("neither", Assessed(), None),
    ):
        study = made.study(mass, assessed=assessed, report=text)
        told[name] = {reason for task, reason in not_asked(made.talks(1, study)[0]) if task == "presence"}
    assert NOT_MENTIONED in told["read"]
    assert NAME not in told["read"]
    # A source that has labels and no report says nothing of what its reports mention.
    assert NOT_LABELLED in told["mined"]
    assert NOT_MENTIONED not in told["mined"]
    assert NAME in told["labelled"]
    assert NAME in told["neither"]


def test_recorded_findings_that_are_not_asked_about_by_name_are_counted(made):
    denied = ("cardiomegaly", "fracture", "pleural effusion")
    study = made.study(
        made.finding("mass"), *(made.finding(name, "absent") for name in denied), assessed=Assessed()
    )
    numbers = set()
    for case in made.talks(20, study):
        named = {name for step in case.steps if step.task == "presence" for name in made.targets(step)}
        number = not_asked(case).get(("presence", FOR_BALANCE), 0)
        assert number == len({"mass", *denied} - named)
        numbers.add(number)
    assert len(numbers) > 1


def none_of_these(made):
    return made.words.wording.common["none_of_these"]


# ---- everything that needs all findings ------------------------------------------------------------------------------

NEEDS_ALL = {
    "abnormalities",
    "devices",
    "abnormalities and devices",
    "others",
    "region content",
    "box content",
}


@pytest.mark.parametrize("assessed", [Assessed(), CLOSED], ids=["unknown", "listed"])
def test_no_list_no_clear_zone_and_no_composed_report_where_something_may_be_missing(made, assessed):
    here = made.study(
        made.finding("mass", zones=("left upper",), side="left", boxed=made.rectangle(10, 20, 30, 40)),
        assessed=assessed,
    )
    for case in made.talks(20, here, quotas=made.everything):
        assert not tasks(case) & {*NEEDS_ALL, "comparison", "prognosis"}
        assert not any(step.stage == 8 for step in case.steps)
        told = not_asked(case)
        assert told["full report", NO_FINDING] == 1
        assert told["devices", NO_DEVICE] == told["abnormalities", NO_FINDING] == 1
        assert told["region content", NO_FINDING] == 1


def test_a_report_of_its_own_is_asked_for_whatever_was_looked_for(made):
    here = made.study(
        made.finding("mass"), assessed=Assessed(text=True), report=made.report("A mass is seen.")
    )
    for case in made.talks(5, here):
        assert [step.key.text for step in case.steps if step.stage == 8] == ["A mass is seen."]


def test_devices_are_listed_where_only_devices_were_looked_through(made):
    here = made.study(made.finding("mass"), made.device("pacemaker"), assessed=Assessed(devices="every"))
    cases = made.talks(30, here, quotas=made.everything)
    assert any("devices" in tasks(case) for case in cases)
    assert not any({"abnormalities", "abnormalities and devices"} & tasks(case) for case in cases)


# ---- comparison ------------------------------------------------------------------------------------------------------


def test_two_studies_without_findings_are_compared_only_where_both_were_looked_through(made):
    every = Assessed(findings="every", devices="every")
    for before, now, asked in ((every, every, True), (CLOSED, every, False), (every, CLOSED, False)):
        cases = made.talks(
            5,
            made.study(name="b", order=1, prior="a", assessed=now),
            made.study(name="a", assessed=before),
        )
        assert all(("comparison" in tasks(case)) == asked for case in cases)
        told = {reason for case in cases for (task, reason) in not_asked(case) if task == "comparison"}
        expected = {NO_FINDING} if now is CLOSED else {"not everything was looked for in the prior study"}
        assert told == (set() if asked else expected)


def test_a_finding_of_a_closed_list_that_is_gone_has_resolved_and_nothing_else_is_said(made):
    old = made.study(made.finding("mass", side="left"), name="a", assessed=CLOSED)
    new = made.study(made.finding("fracture", "absent"), name="b", order=1, prior="a", assessed=CLOSED)
    for case in made.talks(10, new, old, quotas=made.everything):
        compared = [step for step in case.steps if step.stage == 5]
        assert {step.task for step in compared} == {"trend"}
        for step in compared:
            assert [(fact.about, fact.text) for fact in made.facts(step, "trend")] == [("mass", "resolved")]
            assert made.targets(step) == ["mass"]


# ---- balance ---------------------------------------------------------------------------------------------------------


def test_the_survey_knows_which_names_can_be_negatives(made):
    studies = [
        made.study(made.finding("mass", "absent"), name="a", assessed=Assessed()),
        made.study(name="b", assessed=CLOSED),
        made.study(name="c"),
    ]
    contents = count_studies(studies, made.words, most_images=2).contents
    found = [(one.looked_for, one.is_none_known) for one in contents["finding"]]
    assert set(found) == {(frozenset({"mass"}), False), (frozenset(FOURTEEN), False), (None, True)}
    assert len(found) == 3
    devices = {(one.looked_for, one.is_none_known): times for one, times in contents["device"].items()}
    assert devices == {(frozenset(), False): 2, (None, True): 1}


@pytest.mark.parametrize("assessed", [CLOSED, Assessed()], ids=["listed", "stated"])
def test_yes_and_no_stay_balanced_by_name_in_a_set_of_labels(made, assessed):
    studies = [
        made.study(
            *([made.finding(FOURTEEN[number % 4])] if number % 2 else []),
            *(
                made.finding(name, "absent")
                for place, name in enumerate(FOURTEEN)
                if assessed is not CLOSED and not (number % 2 and place == number % 4)
            ),
            name=f"n{number}",
            assessed=assessed,
        )
        for number in range(160)
    ]
    among = made.survey(studies)
    cases = [made.talk(one, among=among, seed=seed) for seed in range(4) for one in studies]
    counts = {"yes": 0, "no": 0}
    for case in cases:
        for step in case.steps:
            if step.task == "presence" and made.label(step):
                counts[made.label(step)] += 1
    assert min(counts.values()) > 100
    assert 0.4 < counts["yes"] / sum(counts.values()) < 0.6


# ---- the build -------------------------------------------------------------------------------------------------------


def labels_of_two_kinds(made):
    """Twelve studies: labels of a closed list and nothing about devices; every third has none of the labels."""
    return [
        made.study(
            *([made.finding(FOURTEEN[number % 4])] if number % 3 else []),
            name=f"n{number:02d}",
            patient=f"p{number}",
            assessed=CLOSED,
        )
        for number in range(12)
    ]


def test_the_build_counts_what_it_did_not_ask(made, tmp_path):
    studies = open_studies(made.write(tmp_path / "studies", labels_of_two_kinds(made)))
    built = build_trek(studies, tmp_path / "bench", workers=1)
    report = built.build_report
    assert report.conversations == 12
    assert report.skipped == {}
    assert report.not_asked["any device"] == {NO_DEVICE: 12}
    # Eight studies have a finding, which answers it.
    assert report.not_asked["any abnormality"] == {NO_FINDING: 4}
    assert report.not_asked["full report"] == {NO_FINDING: 12}
    assert report.not_asked["abnormalities"][NO_FINDING] == 12
    stored = json.loads((tmp_path / "bench" / "build.json").read_text())
    assert stored["not_asked"] == report.not_asked
    total = sum(one.number for case in built for one in TrekCaseFacts.of(case).not_asked)
    assert total == sum(number for reasons in report.not_asked.values() for number in reasons.values())


def test_a_study_of_which_no_question_is_left_has_the_true_reason_and_is_counted(made, tmp_path):
    # The projection is unknown, and nothing else is asked of a single label that no other study has.
    odd = made.study(
        made.finding("odd shadow", "absent"), name="odd", views=("unknown",), assessed=Assessed()
    )
    studies = open_studies(made.write(tmp_path / "studies", [*labels_of_two_kinds(made), odd]))
    built = build_trek(studies, tmp_path / "bench", workers=1)
    reason = f"no question is left: {FOR_BALANCE}"
    report = built.build_report
    assert report.skipped == {reason: 1}
    assert f"odd,{reason}" in (tmp_path / "bench" / "skipped.csv").read_text()
    kept = sum(
        one.number for case in built for one in TrekCaseFacts.of(case).not_asked if one.reason == FOR_BALANCE
    )
    # The label of the study that is left out is counted, too.
    assert sum(reasons.get(FOR_BALANCE, 0) for reasons in report.not_asked.values()) == kept + 1


def test_where_nothing_is_known_to_be_absent_the_error_says_what_to_do(made, tmp_path):
    found = [
        made.study(made.finding("nodule"), name=name, views=("unknown",), assessed=Assessed())
        for name in ("one", "two")
    ]
    studies = open_studies(made.write(tmp_path / "studies", found))
    with pytest.raises(NoCasesError, match=r"none of 2 studies.*--looked-for") as caught:
        build_trek(studies, tmp_path / "bench", workers=1)
    report = caught.value.benchmark.build_report
    assert report.skipped == {f"no question is left: {FOR_BALANCE}": 2}
    assert report.not_asked["presence"] == {FOR_BALANCE: 2}


def test_a_phantom_leaves_nothing_out_except_to_balance_the_answers(conversations):
    assert {reason for one in conversations for _, reason in not_asked(one.case)} == {FOR_BALANCE}


def test_what_is_not_asked_can_be_stored_and_read_again():
    facts = TrekCaseFacts(
        not_asked=(NotAskedFact("presence", NAME, 3.0), NotAskedFact("devices", NO_DEVICE, 1.0))
    )
    assert TrekCaseFacts.of(Holder(facts.rows())) == facts


class Holder:
    def __init__(self, facts):
        self.facts = facts
