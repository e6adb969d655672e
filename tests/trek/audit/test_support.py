"""Support and identifiers: what answers rest on, and what no text may hold."""

import pytest
from gates_trek import audited, change, every_step, objected, one_step, replaced, row, told, with_key

from carina.cases.model import Origin


def test_support_trips_on_statements_that_rest_on_nothing(sound):
    def bare(_, step):
        return change(step, evidence=(), facts=step.facts[:1]) if step.task == "location" else step

    result = audited(every_step(sound, bare))
    assert row(result, "support", "neither evidence nor structured truth").status == "fail"
    assert "rest on nothing" in result.gate("support").meaning


@pytest.mark.parametrize(
    ("origin", "rule"),
    [
        (Origin(method="llm", model="m"), "worded by a model and not reviewed"),
        (Origin(method="llm", model="m", review="rejected"), "rejected by a review"),
        (Origin(method="rule", review="rewritten"), "rewritten without a reason"),
    ],
)
def test_support_trips_on_text_that_nobody_answers_for(sound, origin, rule):
    cases, case, step = one_step(sound, "location", lambda s: change(s, origin=origin))
    result = audited(cases)
    assert objected(result) == {"support"}
    assert told(result, "support") == f"{case.id}: turn {step.id}: {rule}"
    fine = Origin(method="llm", model="m", review="accepted")
    cases, *_ = one_step(sound, "location", lambda s: change(s, origin=fine))
    assert audited(cases).gate("support").status == "pass"


def test_support_warns_when_the_report_is_not_cited(sound):
    result = audited(every_step(sound, lambda _, s: change(s, evidence=())))
    assert row(result, "support", "no sentence where there is a report").status == "warn"


@pytest.mark.parametrize("key", ["/srv/a.png", "../a.png", "C:\\a.png", "s3://a/b.png"])
def test_identifiers_trip_on_keys_outside_the_root(sound, key):
    case = change(sound[0], images=(change(sound[0].images[0], key=key), *sound[0].images[1:]))
    result = audited(replaced(sound, 0, case))
    assert "identifiers" in objected(result, to=("fail",))
    assert repr(key) in told(result, "identifiers")


def test_identifiers_trip_on_paths_in_text_and_warn_of_restricted_ids(sound):
    path = "/" + "home/someone/a.png"
    cases, *_ = one_step(sound, "location", lambda s: with_key(s, text=f"See {path}."))
    assert objected(audited(cases), to=("fail",)) == {"identifiers"}
    result = audited(replaced(sound, 0, change(sound[0], patient="p1" + "0000032")))
    assert objected(result, to=("warn",)) == {"identifiers"}
    fine, *_ = one_step(sound, "location", lambda s: with_key(s, text="Right and/or left."))
    assert audited(fine).gate("identifiers").status == "pass"
