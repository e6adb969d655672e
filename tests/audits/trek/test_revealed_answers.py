"""What the conversation reveals before it asks: earlier mentions, history, presupposed answers."""

from tests.audits.gates import objecting
from tests.audits.trek.breaking import audited, change, every_step, row, told, with_key

from carina.cases.model import Key, Slot


def mentioning(cases, *, only_true):
    """The first answer lists names that will be asked about: those that are there, or all."""

    def make(case, step):
        if step.id != "t1":
            return step
        asked = [s for s in case.steps if s.task == "presence" and s.key.label in ("yes", "no")]
        names = [s.facts[0].text for s in asked if not only_true or s.key.label == "yes"]
        return with_key(step, text=f"Besides {', '.join(names)} it is of good quality.")

    return every_step(cases, make)


def test_mentioning_only_present_findings_fails_mentions_and_history(sound):
    result = audited(mentioning(sound, only_true=True), history=True)
    assert {"earlier-mentions", "history-baseline"} <= objecting(result, to=("fail",))
    gap = row(result, "earlier-mentions", "2 finding: mentioned less new")
    assert gap.status == "fail"
    assert gap.value > 0.7
    assert gap.low > 0.5
    assert row(result, "history-baseline", "2 presence, yes or no: question and history").value > 0.8


def test_mentioning_present_and_absent_findings_passes(sound):
    result = audited(mentioning(sound[:75], only_true=False) + list(sound[75:]), history=True)
    assert result.gate("earlier-mentions").status == "pass"
    assert result.gate("history-baseline").status == "pass"


def test_labels_that_repeat_the_previous_one_do_not_pass_the_history_baseline(sound):
    def echo(case):
        label, steps = None, []
        for step in case.steps:
            if step.task == "device presence":
                label = label or step.key.label
                steps.append(change(step, key=Key(label=label, text=f"{label.capitalize()}.")))
            else:
                steps.append(step)
        return change(case, steps=tuple(steps))

    result = audited([echo(case) for case in sound], history=True)
    failed = row(result, "history-baseline", "2 device presence, yes or no: question and history")
    # Only the second of two devices can be read off, so the gate is not quite sure with 150 patients.
    assert failed.status in ("warn", "fail")
    assert failed.value > failed.chance + 0.1


def test_closed_questions_that_an_earlier_one_presupposes_fail(sound):
    def early(case, *, mark, stage):
        """A question that takes the first finding that is there for granted stands before all."""
        name = next(
            (s.facts[0].text for s in case.steps if s.task == "presence" and s.key.label == "yes"), "nothing"
        )
        step = next(s for s in case.steps if s.task == "location")
        told = change(
            step,
            id="t99",
            stage=stage,
            question=f"Where in the image is the {name}?",
            restates=mark,
            depends_on=(),
        )
        return change(case, steps=(case.steps[0], told, *case.steps[1:]))

    for mark, stage, name in (
        (True, 2, "closed turns answered by an earlier question (marked)"),
        (False, 2, "closed turns answered by an earlier question (unmarked)"),
        (True, 8, "closed turns answered by an earlier question (report prompt)"),
    ):
        result = audited([early(case, mark=mark, stage=stage) for case in sound])
        assert "presupposed-answers" in objecting(result, to=("fail",)), name
        assert row(result, "presupposed-answers", name).status == "fail"
        assert "is presupposed by turn t99" in told(result, "presupposed-answers")
    one = audited([early(sound[0], mark=True, stage=2), *sound[1:]])
    assert one.gate("presupposed-answers").status == "pass"
    shuffled = [change(early(case, mark=True, stage=2), order="shuffled") for case in sound]
    result = audited(shuffled)
    assert result.gate("presupposed-answers").status == "pass"
    assert (
        row(result, "presupposed-answers", "shuffled: closed turns answered by an earlier question").value
        > 0.1
    )


def test_too_many_restating_turns_warn(sound):
    result = audited(every_step(sound, lambda _, s: change(s, restates=s.stage > 1)))
    assert row(result, "presupposed-answers", "turns that restate").status == "warn"


def test_slots_give_the_name_that_a_question_uses(sound):
    """A name that the question words otherwise is recognised by its slot."""

    def synonym(case, step):
        if step.id == "t1":
            true = [s for s in case.steps if s.task == "presence" and s.key.label == "yes"]
            words = ", ".join(f"the sign {s.facts[0].text[::-1]}" for s in true)
            return with_key(step, text=f"Besides {words} it is fine.")
        if step.task == "presence" and step.key.label in ("yes", "no"):
            name = step.facts[0].text[::-1]
            return change(
                step, question=f"Is {name} there?", slots=(Slot(name="a_finding", value=f"a {name}"),)
            )
        return step

    result = audited(every_step(sound, synonym))
    assert row(result, "earlier-mentions", "2 finding: mentioned less new").status == "fail"
