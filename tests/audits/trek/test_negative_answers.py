"""Origins of negative answers, and uncertain findings."""

from tests.audits.gates import objecting
from tests.audits.trek.breaking import audited, change, every_step, first, replaced, row, told, with_key

from carina.cases.model import Fact, Key
from carina.studies.model import ReportSection


def test_missing_and_single_origins_fail(sound):
    def untagged(_, step):
        return change(step, facts=tuple(f for f in step.facts if f.name != "negative"))

    result = audited(every_step(sound, untagged))
    assert row(result, "negative-origins", "no origin stated").status == "fail"
    assert row(result, "negative-origins", "no origin stated").value == 1.0

    def stated(_, step):
        facts = tuple(change(f, text="stated") if f.name == "negative" else f for f in step.facts)
        return change(step, facts=facts)

    result = audited(every_step(sound, stated))
    assert objecting(result) == {"negative-origins"}
    assert row(result, "negative-origins", "origin: stated").status == "fail"


def test_stated_negatives_alone_pass_only_where_no_study_has_others(sound):
    def stated(_, step):
        facts = tuple(change(f, text="stated") if f.name == "negative" else f for f in step.facts)
        return change(step, facts=facts)

    def looked_for(case, scope):
        rows = tuple(Fact(name="looked for", about=kind, text=scope) for kind in ("finding", "device"))
        return change(case, facts=(*case.facts, *rows))

    from_reports = [looked_for(case, "none") for case in every_step(sound, stated)]
    result = audited(from_reports)
    assert objecting(result) == set()
    assert "beyond the reports" in row(result, "negative-origins", "origin: stated").note
    at = first(sound, lambda c: any(s.task == "presence" and s.key.label == "no" for s in c.steps))
    one_more = replaced(from_reports, at, looked_for(every_step(sound, stated)[at], "listed"))
    assert objecting(audited(one_more)) == {"negative-origins"}


def test_sampled_negatives_alone_pass_only_where_no_report_states_anything(sound):
    def sampled(_, step):
        facts = tuple(change(f, text="sampled") if f.name == "negative" else f for f in step.facts)
        return change(step, facts=facts)

    with_reports = every_step(sound, sampled)
    result = audited(with_reports)
    assert row(result, "negative-origins", "origin: sampled").status == "fail"
    of_labels = every_step(with_reports, lambda _, step: change(step, evidence=()))
    result = audited(of_labels)
    assert result.gate("negative-origins").status == "pass"
    assert "no report" in row(result, "negative-origins", "origin: sampled").note


def test_an_indication_that_names_present_findings_fails(sound):
    def leaking(case, step):
        if step.id != "t1":
            return step
        names = [s.facts[0].text for s in case.steps if s.task == "presence" and s.key.label == "yes"]
        return change(step, context=f"Known {', '.join(names)}.")

    result = audited(every_step(sound, leaking))
    failed = row(result, "negative-origins", "heuristic: the shown text names it")
    assert failed.status == "fail"
    assert failed.value > 0.8
    neutral = every_step(sound, lambda _, s: change(s, context="Cough and fever.") if s.id == "t1" else s)
    assert audited(neutral).gate("negative-origins").status == "pass"


def test_an_uncertain_fact_behind_a_no_fails(sound):
    at = first(sound, lambda c: any(s.key.label == "uncertain" for s in c.steps))
    case = sound[at]
    steps = tuple(
        change(s, key=Key(label="no", text="No."), facts=(*s.facts, Fact(name="negative", text="sampled")))
        if s.key.label == "uncertain"
        else s
        for s in case.steps
    )
    result = audited(replaced(sound, at, change(case, steps=steps)))
    assert objecting(result) == {"uncertain-findings", "key-consistency"}
    assert f"{case.id}: turn " in told(result, "uncertain-findings")
    assert "uncertain in the facts" in told(result, "uncertain-findings")


def test_hedges_in_answers_fail_and_in_the_report_warn(sound):
    def doubtful(_, step):
        if step.task != "presence" or step.key.label != "no":
            return step
        return with_key(step, text="No, but it may be hidden.")

    assert (
        row(audited(every_step(sound, doubtful)), "uncertain-findings", "hedged in the answer").status
        == "fail"
    )

    def reported(case, step):
        if step.format != "report":
            return step
        denied = [s.facts[0].text for s in case.steps if s.task == "presence" and s.key.label == "no"]
        text = f"There is possible {denied[0]}." if denied else "Clear."
        return with_key(step, sections=(ReportSection(name="findings", text=text),))

    result = audited(every_step(sound, reported))
    assert row(result, "uncertain-findings", "hedged in the report").status == "warn"
    denied = every_step(
        sound,
        lambda _, s: (
            with_key(
                s,
                sections=(
                    ReportSection(name="findings", text="No nodule, mass or edema. Possibly scarring."),
                ),
            )
            if s.format == "report"
            else s
        ),
    )
    assert audited(denied).gate("uncertain-findings").status == "pass"
