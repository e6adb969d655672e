"""Evidence of statements, and paths and ids that no record may contain."""

import pytest
from tests.audits.gates import objecting
from tests.audits.trek.breaking import audited, change, every_step, one_step, replaced, row, told, with_key

from carina.cases.model import Origin


def test_statements_without_support_fail(sound):
    def bare(_, step):
        return change(step, evidence=(), facts=step.facts[:1]) if step.task == "location" else step

    result = audited(every_step(sound, bare))
    assert row(result, "evidence", "neither evidence nor structured truth").status == "fail"
    assert "no stored support" in result.gate("evidence").meaning


@pytest.mark.parametrize(
    ("origin", "rule"),
    [
        (Origin(method="llm", model="m"), "written by a model and not reviewed"),
        (Origin(method="llm", model="m", review="rejected"), "rejected by a reviewer"),
        (Origin(method="rule", review="rewritten"), "rewritten without a reason"),
    ],
)
def test_unreviewed_and_rejected_text_fails(sound, origin, rule):
    cases, case, step = one_step(sound, "location", lambda s: change(s, origin=origin))
    result = audited(cases)
    assert objecting(result) == {"evidence"}
    assert told(result, "evidence") == f"{case.id}: turn {step.id}: {rule}"
    fine = Origin(method="llm", model="m", review="accepted")
    cases, *_ = one_step(sound, "location", lambda s: change(s, origin=fine))
    assert audited(cases).gate("evidence").status == "pass"


def test_missing_citations_of_the_report_warn(sound):
    result = audited(every_step(sound, lambda _, s: change(s, evidence=())))
    assert row(result, "evidence", "no sentence although there is a report").status == "warn"


@pytest.mark.parametrize("key", ["/srv/a.png", "../a.png", "C:\\a.png", "s3://a/b.png"])
def test_image_keys_outside_the_root_fail(sound, key):
    case = change(sound[0], images=(change(sound[0].images[0], key=key), *sound[0].images[1:]))
    result = audited(replaced(sound, 0, case))
    assert "identifiers" in objecting(result, to=("fail",))
    assert repr(key) in told(result, "identifiers")


def test_paths_in_text_fail_and_restricted_ids_warn(sound):
    path = "/" + "home/someone/a.png"
    cases, *_ = one_step(sound, "location", lambda s: with_key(s, text=f"See {path}."))
    assert objecting(audited(cases), to=("fail",)) == {"identifiers"}
    result = audited(replaced(sound, 0, change(sound[0], patient="p1" + "0000032")))
    assert objecting(result, to=("warn",)) == {"identifiers"}
    fine, *_ = one_step(sound, "location", lambda s: with_key(s, text="Right and/or left."))
    assert audited(fine).gate("identifiers").status == "pass"
