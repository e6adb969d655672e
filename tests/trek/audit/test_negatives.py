"""Negatives and hedges: what a no rests on."""

from gates_trek import audited, change, every_step, first, objected, replaced, row, told, with_key

from carina.cases.model import Fact, Key
from carina.studies.model import ReportSection


def test_negatives_trip_on_missing_and_single_origins(sound):
    def untagged(_, step):
        return change(step, facts=tuple(f for f in step.facts if f.name != "negative"))

    result = audited(every_step(sound, untagged))
    assert row(result, "negatives", "untagged").status == "fail"
    assert row(result, "negatives", "untagged").value == 1.0

    def stated(_, step):
        facts = tuple(change(f, text="stated") if f.name == "negative" else f for f in step.facts)
        return change(step, facts=facts)

    result = audited(every_step(sound, stated))
    assert objected(result) == {"negatives"}
    assert row(result, "negatives", "origin: stated").status == "fail"


def test_negatives_trip_on_an_indication_that_names_what_is_there(sound):
    def leaking(case, step):
        if step.id != "t1":
            return step
        names = [s.facts[0].text for s in case.steps if s.task == "presence" and s.key.label == "yes"]
        return change(step, context=f"Known {', '.join(names)}.")

    result = audited(every_step(sound, leaking))
    failed = row(result, "negatives", "heuristic: the text that is shown names it")
    assert failed.status == "fail"
    assert failed.value > 0.8
    neutral = every_step(sound, lambda _, s: change(s, context="Cough and fever.") if s.id == "t1" else s)
    assert audited(neutral).gate("negatives").status == "pass"


def test_hedged_trips_on_uncertain_facts_behind_a_no(sound):
    at = first(sound, lambda c: any(s.key.label == "uncertain" for s in c.steps))
    case = sound[at]
    steps = tuple(
        change(s, key=Key(label="no", text="No."), facts=(*s.facts, Fact(name="negative", text="sampled")))
        if s.key.label == "uncertain"
        else s
        for s in case.steps
    )
    result = audited(replaced(sound, at, change(case, steps=steps)))
    assert objected(result) == {"hedged", "keys"}
    assert f"{case.id}: turn " in told(result, "hedged")
    assert "uncertain in the facts" in told(result, "hedged")


def test_hedged_trips_on_hedges_in_answers_and_warns_of_the_report(sound):
    def doubtful(_, step):
        if step.task != "presence" or step.key.label != "no":
            return step
        return with_key(step, text="No, but it may be hidden.")

    assert row(audited(every_step(sound, doubtful)), "hedged", "hedged in the answer").status == "fail"

    def reported(case, step):
        if step.format != "report":
            return step
        denied = [s.facts[0].text for s in case.steps if s.task == "presence" and s.key.label == "no"]
        text = f"There is possible {denied[0]}." if denied else "Clear."
        return with_key(step, sections=(ReportSection(name="findings", text=text),))

    result = audited(every_step(sound, reported))
    assert row(result, "hedged", "hedged in the report").status == "warn"
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
    assert audited(denied).gate("hedged").status == "pass"
