"""Balance of answers and shortcuts: what can be scored without looking."""

import pytest
from tests.audits import gates
from tests.audits.gates import objecting
from tests.audits.trek.breaking import audited, change, every_step, row, with_key

from carina.cases.model import Fact, Key, Option


def always_yes(task):
    def make(_, step):
        if step.task != task or step.key.label is None:
            return step
        facts = tuple(
            change(f, text="present") if f.name == "truth" else f for f in step.facts if f.name != "negative"
        )
        return change(step, key=Key(label="yes", text="Yes."), facts=facts)

    return make


def test_devices_that_are_always_present_fail_answer_balance(sound):
    result = audited(every_step(sound, always_yes("device presence")))
    assert "answer-balance" in objecting(result, to=("fail",))
    group = row(result, "answer-balance", "2 device presence (device)")
    assert (group.value, group.n, group.status) == (1.0, 300, "fail")
    assert row(result, "answer-balance", "2 device presence (device): by name").status == "fail"
    assert row(result, "answer-balance", "2 presence (finding)").status == "pass"


def test_one_unbalanced_name_in_a_balanced_task_fails(sound):
    flips = {"nodule": "yes", "mass": "no"}

    def make(_, step):
        name = next((f.text for f in step.facts if f.name == "target"), "")
        if step.task != "presence" or step.key.label not in ("yes", "no") or name not in flips:
            return step
        return change(step, key=Key(label=flips[name], text=f"{flips[name].capitalize()}."))

    result = audited(every_step(sound, make))
    assert row(result, "answer-balance", "2 presence (finding)").status == "pass"
    assert row(result, "answer-balance", "2 presence: nodule").status == "fail"
    assert row(result, "answer-balance", "2 presence: mass").status == "fail"


def test_few_questions_do_not_fail_and_prevalence_is_reported(sound):
    few = every_step(sound[:3], always_yes("device presence"))
    assert audited(few).gate("answer-balance").status in ("pass", "warn")
    asked = every_step(
        sound,
        lambda _, s: (
            change(
                s,
                task="any device",
                key=Key(label="yes", text="Yes."),
                facts=(Fact(name="target", about="study"),),
            )
            if s.task == "statement"
            else s
        ),
    )
    result = audited(asked)
    assert row(result, "answer-balance", "3 any device (study)").status == "pass"
    assert row(result, "answer-balance", "3 any device (study)").value == 1.0


def test_yes_and_no_as_options_count_as_yes_no_answers(sound):
    def dressed(_, step):
        if step.task != "device presence":
            return step
        options = (Option(id="A", text="Yes"), Option(id="B", text="No"))
        key = Key(options=("A",), kinds=("key", "distractor"), text="A. Yes")
        return change(step, format="choice", options=options, key=key)

    result = audited(every_step(sound, dressed))
    assert row(result, "answer-balance", "2 device presence (device)").status == "fail"
    assert row(result, "option-shortcuts", "2 device presence: first option").status == "fail"


def test_a_longest_option_that_is_always_right_fails(sound):
    def longer(_, step):
        if step.task != "severity":
            return step
        right = step.key.options[0]
        options = tuple(
            change(o, text=f"{o.text}, as far as can be told") if o.id == right else o for o in step.options
        )
        return change(step, options=options)

    result = audited(every_step(sound, longer))
    assert objecting(result, to=("fail",)) >= {"option-shortcuts"}
    longest = row(result, "option-shortcuts", "3 severity: longest option")
    assert (longest.value, longest.n, longest.status) == (1.0, 150, "fail")
    assert longest.chance == pytest.approx(1 / 3)


def test_none_of_these_that_is_always_right_fails(sound):
    def none(_, step):
        if "none" not in step.key.kinds:
            return step
        return with_key(step, options=(step.options[-1].id,), kinds=("distractor",) * 3 + ("none",))

    cases = [c for c in sound for _ in range(3)]
    result = audited(every_step(cases, none))
    assert row(result, "option-shortcuts", "2 presence: none of these").status == "fail"
    assert row(audited(cases), "option-shortcuts", "2 presence: none of these").status == "pass"


def test_the_mean_box_is_reported(sound):
    boxes = row(audited(sound), "option-shortcuts", "mean box: heart")
    assert boxes.status == "pass"
    assert 0.6 < boxes.value < 1.0
    same = every_step(
        sound,
        lambda _, s: (
            with_key(s, boxes=(change(s.key.boxes[0], xyxy=(1.0, 1.0, 2.0, 2.0)),)) if s.key.boxes else s
        ),
    )
    assert row(audited(same), "option-shortcuts", "mean box: heart").value == pytest.approx(1.0)


def test_a_set_whose_presence_questions_are_all_uncertain_fails(sound):
    def doubtful(_, step):
        asked = step.task in ("presence", "device presence") and step.format == "yes_no"
        return with_key(step, label="uncertain") if asked else step

    result = gates.audited(every_step(sound, doubtful), gates.COMMON, gates.TREK, protocols=("trek",))
    assert {"answer-balance", "constant-answers"} <= objecting(result, to=("fail",))
    failed = row(result, "answer-balance", "2 presence (finding): always uncertain")
    assert (failed.status, failed.value) == ("fail", 1.0)
