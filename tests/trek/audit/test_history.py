"""Seen, history and restated: what the conversation tells before it asks."""

from gates_trek import audited, change, every_step, objected, row, told, with_key

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


def test_seen_and_history_trip_when_only_true_findings_are_mentioned(sound):
    result = audited(mentioning(sound, only_true=True), history=True)
    assert {"seen", "history"} <= objected(result, to=("fail",))
    gap = row(result, "seen", "2 finding: seen less fresh")
    assert gap.status == "fail"
    assert gap.value > 0.7
    assert gap.low > 0.5
    assert row(result, "history", "2 presence, yes or no: question and history").value > 0.8


def test_mentioning_all_alike_tells_nothing(sound):
    result = audited(mentioning(sound[:75], only_true=False) + list(sound[75:]), history=True)
    assert result.gate("seen").status == "pass"
    assert result.gate("history").status == "pass"


def test_history_trips_on_labels_that_repeat_the_one_before(sound):
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
    failed = row(result, "history", "2 device presence, yes or no: question and history")
    # Only the second of two devices can be read off, so the gate is not quite sure with 150 patients.
    assert failed.status in ("warn", "fail")
    assert failed.value > failed.chance + 0.1


def test_restated_trips_on_closed_questions_that_an_earlier_one_answers(sound):
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
        assert "restated" in objected(result, to=("fail",)), name
        assert row(result, "restated", name).status == "fail"
        assert "is told by turn t99" in told(result, "restated")
    one = audited([early(sound[0], mark=True, stage=2), *sound[1:]])
    assert one.gate("restated").status == "pass"
    shuffled = [change(early(case, mark=True, stage=2), order="shuffled") for case in sound]
    result = audited(shuffled)
    assert result.gate("restated").status == "pass"
    assert row(result, "restated", "shuffled: closed turns answered by an earlier question").value > 0.1


def test_restated_warns_when_most_turns_restate(sound):
    result = audited(every_step(sound, lambda _, s: change(s, restates=s.stage > 1)))
    assert row(result, "restated", "turns that restate").status == "warn"


def test_slots_tell_what_a_finding_is_called(sound):
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
    assert row(result, "seen", "2 finding: seen less fresh").status == "fail"
