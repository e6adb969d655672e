"""Answer keys must follow from the facts that a turn states."""

import pytest
from tests.audits.trek.breaking import audited, change, one_step, replaced, told, with_key

from carina.cases.model import Fact, Key, Option, Origin, Slot


def flipped(step):
    return with_key(step, label="no" if step.key.label == "yes" else "yes")


def asked_for(label, said, stored, *, task="severity", slot="grade"):
    """A closed question about an attribute, in the place of an open one."""
    return lambda s: change(
        s,
        task=task,
        format="yes_no",
        score="exact",
        key=Key(label=label, text=f"{label.capitalize()}."),
        slots=(Slot(name=slot, value=said),),
        facts=(s.facts[0], Fact(name=task, about="f1", text=stored)),
    )


def chosen(step, wanted):
    return with_key(step, options=(next(option.id for option in step.options if wanted(option)),))


def last_right(step, text):
    """The last option says this and is right; the value itself is not offered."""
    value = step.facts[1].text
    rest = [change(o, text=o.text if o.text != value else "slight") for o in step.options]
    options = (*rest[:-1], change(rest[-1], text=text))
    return change(step, options=options, key=change(step.key, options=(options[-1].id,)))


def boxed(text, **changes):
    return lambda s: with_key(
        s, text=text, boxes=(change(s.key.boxes[0], xyxy=(1.0, 2.5, 30.0, 40.25)),), **changes
    )


def region(label, *truths):
    return lambda s: change(
        s,
        task="region content",
        format="yes_no",
        score="exact",
        key=Key(label=label, text=f"{label.capitalize()}."),
        facts=(
            Fact(name="target", about="region", text="left upper zone"),
            *(Fact(name="truth", about="f1", text=truth) for truth in truths),
        ),
    )


def projected(stored, text):
    return lambda s: change(
        s,
        format="open",
        score="text",
        options=(),
        key=Key(text=text),
        facts=(s.facts[0], Fact(name="view", text=stored)),
    )


def listed(right, *names):
    """A choice among lists of which this one is the key."""
    texts = ("a mass and edema", "a mass and a fracture", "no abnormality")
    return lambda s: change(
        s,
        task="abnormalities",
        options=tuple(Option(id=letter, text=text) for letter, text in zip("ABC", texts, strict=True)),
        key=Key(
            options=(right,),
            kinds=tuple("key" if letter == right else "distractor" for letter in "ABC"),
            text=texts["ABC".index(right)],
        ),
        facts=(
            Fact(name="target", about="study", text="abnormalities"),
            *(Fact(name="listed", about=name, text=name) for name in names),
        ),
    )


def keys_of(cases):
    """What the gate says, and the share of cases that break each rule."""
    result = audited(cases)
    rows = {found.name: found.value for found in result.gate("key-consistency").rows if found.value}
    return result.gate("key-consistency"), rows, told(result, "key-consistency")


@pytest.mark.parametrize(
    ("task", "make", "rule", "words"),
    [
        (
            "location",
            asked_for("yes", "severe", "mild"),
            "attributes",
            "'yes' to 'severe' where the severity is 'mild'",
        ),
        ("location", asked_for("no", "mild", "mild"), "attributes", "'no' to 'mild'"),
        ("location", asked_for("uncertain", "mild", "mild"), "attributes", "'uncertain' to 'mild'"),
        (
            "location",
            asked_for("no", "in a", "in a", task="location", slot="at"),
            "attributes",
            "the location is",
        ),
        (
            "location",
            asked_for("no", "left", "left", task="side", slot="on_side"),
            "attributes",
            "the side is",
        ),
        (
            "location",
            asked_for("no", "a", "a", task="appearance", slot="look"),
            "attributes",
            "the appearance is",
        ),
        (
            "location",
            asked_for("yes", "b", "a", task="distribution", slot="spread"),
            "attributes",
            "distribution is",
        ),
        (
            "severity",
            lambda s: chosen(s, lambda o: o.text != s.facts[1].text),
            "choices",
            "where the severity is",
        ),
        ("severity", lambda s: last_right(s, "very severe"), "choices", "'very severe' where the severity"),
        (
            "severity",
            listed("B", "a mass", "edema"),
            "lists",
            "'a mass and edema' is wrong where the list is",
        ),
        (
            "severity",
            listed("A", "a mass"),
            "lists",
            "'a mass and a fracture' is wrong where the list is 'a mass'",
        ),
        (
            "severity",
            listed("A", "a nodule"),
            "lists",
            "'a mass and edema' is right where the list is 'a nodule'",
        ),
        ("severity", listed("A"), "lists", "'a mass and edema' is right where the list is 'nothing'"),
        ("presence", flipped, "presence", "where the truth is"),
        ("device presence", flipped, "presence", "where the truth is"),
        ("presence", lambda s: with_key(s, label="uncertain"), "presence", "'uncertain' where the truth is"),
        ("location", region("no", "present"), "regions", "'no' where the facts state a finding"),
        ("location", region("no", "absent", "uncertain"), "regions", "'no' where the facts state a finding"),
        ("location", region("yes"), "regions", "'yes' where the facts state no finding"),
        ("location", region("yes", "absent"), "regions", "'yes' where the facts state no finding"),
        (
            "region box",
            boxed("<|box|>(1, 2.5), (30, 40.35)<|/box|>"),
            "boxes",
            "the box (1, 2.5, 30, 40.35) in the answer text",
        ),
        (
            "region box",
            boxed("<|box|>(2.5, 1), (30, 40.25)<|/box|>"),
            "boxes",
            "in the answer text where the key has (1.0, 2.5",
        ),
        (
            "region box",
            boxed("(1, 2.5), (30, 40.25)"),
            "boxes",
            "0 boxes in the answer text where the key has 1",
        ),
        (
            "region box",
            boxed("<|box|>(1, 2.5), (30, 40.25)<|/box|>" * 2),
            "boxes",
            "2 boxes in the answer text",
        ),
        ("region box", lambda s: change(s, uses=()), "boxes", "which the question is not about"),
        ("view", projected("PA", "B. AP"), "views", "does not name the PA projection"),
        (
            "view",
            lambda s: chosen(s, lambda o: o.id not in s.key.options),
            "views",
            "key.options: ",
        ),
        ("view", projected("PA, lateral", "It is a postero-anterior view."), "views", "not name the lateral"),
        (
            "view",
            projected("PA", "PA and lateral"),
            "views",
            "names the lateral projection where there is PA",
        ),
        ("view", projected("AP", "An anteroposterior and a side view."), "views", "names the lateral"),
    ],
)
def test_a_key_that_contradicts_its_facts_fails(sound, task, make, rule, words):
    cases, case, step = one_step(sound, task, make)
    gate, rows, said = keys_of(cases)
    assert (gate.status, gate.count, rows) == ("fail", 1, {rule: pytest.approx(1 / 150)})
    assert f"{case.id}: turn {step.id}: {rule}: " in said
    assert words in said


@pytest.mark.parametrize(
    ("task", "make"),
    [
        ("location", asked_for("no", "severe", "mild")),
        ("location", asked_for("yes", "mild", "mild")),
        ("location", asked_for("yes", "mild", "moderate", slot="other")),
        ("location", lambda s: change(asked_for("yes", "mild", "")(s), facts=s.facts[:1])),
        ("severity", lambda s: last_right(s, "none of these")),
        ("severity", listed("A", "edema", "a mass")),
        ("severity", listed("C")),
        ("severity", lambda s: change(listed("B", "edema")(s), origin=Origin(method="import"))),
        ("location", region("no")),
        ("location", region("yes", "uncertain")),
        ("location", lambda s: change(region("yes")(s), origin=Origin(method="import"))),
        ("region box", boxed("Here: <|box|>(1.00, 2.50), (30, 40.25)<|/box|>.")),
        ("view", projected("PA, lateral", "Postero-anterior and side views.")),
        ("view", projected("AP", "It shows the left side as an AP view.")),
        ("view", projected("unknown", "It is a PA view.")),
    ],
)
def test_keys_that_follow_or_are_not_stated_pass(sound, task, make):
    cases, *_ = one_step(sound, task, make)
    assert keys_of(cases)[0].status == "pass"


def test_boxes_that_an_import_has_repaired_pass(sound):
    texts = {
        "<|box|>(30, 40.25), (1, 2.5)<|/box|>": "pass",
        "(1, 2.5), (30, 40.25)": "pass",
        "<|box|>(30, 40.25), (1, 3.5)<|/box|>": "fail",
    }
    for text, status in texts.items():
        cases, *_ = one_step(
            sound, "region box", lambda s, t=text: change(boxed(t)(s), origin=Origin(method="import"))
        )
        assert keys_of(cases)[0].status == status, text


@pytest.mark.parametrize(
    ("task", "label", "facts", "words"),
    [
        (
            "any abnormality",
            "no",
            [("presence", "finding", "present")],
            "'no' where turn t2 records a finding as present",
        ),
        (
            "any abnormality",
            "uncertain",
            [("presence", "finding", "present")],
            "records a finding as present",
        ),
        ("any abnormality", "no", [("presence", "finding", "uncertain")], "records a finding as uncertain"),
        ("any abnormality", "no", [("presence", "device", "present")], None),
        ("any abnormality", "yes", [("presence", "finding", "absent")], None),
        ("any abnormality", "uncertain", [("presence", "finding", "uncertain")], None),
        ("any device", "no", [("device presence", "device", "present")], "records a device as present"),
        ("any device", "no", [("presence", "finding", "present")], None),
        (
            "any abnormality",
            "yes",
            [("abnormalities", "study", None)],
            "'yes' where turn t2 lists no finding",
        ),
        (
            "any abnormality",
            "yes",
            [("abnormalities", "study", "uncertain")],
            "lists no finding that is present",
        ),
        ("any abnormality", "no", [("abnormalities", "study", "present")], "records a finding as present"),
        ("any abnormality", "yes", [("devices", "study", None)], None),
        ("any device", "uncertain", [("full report", "study", None)], "lists no device"),
        (
            "any device",
            "no",
            [("full report", "study", "present"), ("device presence", "device", "present")],
            "turn t2 records a device",
        ),
    ],
)
def test_any_abnormality_that_contradicts_other_turns_fails(sound, task, label, facts, words):
    case, template = sound[0], sound[0].steps[2]
    steps = [
        change(
            template,
            id="t1",
            task=task,
            shows=("v1",),
            key=Key(label=label, text=f"{label.capitalize()}."),
            facts=(Fact(name="target", about="study", text=task),),
        )
    ]
    for at, (asked, kind, truth) in enumerate(facts, 2):
        stated = (Fact(name="truth", about="x1", text=truth),) if truth else ()
        key = {"present": "yes", "absent": "no", "uncertain": "uncertain"}.get(truth, "no")
        steps.append(
            change(
                template,
                id=f"t{at}",
                task=asked,
                key=Key(label=key, text=f"{key}."),
                facts=(Fact(name="target", about=kind, text="it"), *stated),
            )
        )
    gate, rows, said = keys_of([change(case, steps=tuple(steps))])
    assert rows == ({"anything": 1.0} if words else {}), said
    assert (words or "") in said
    assert gate.count == bool(words)


def test_a_conversation_gets_one_objection(sound):
    case = change(
        sound[0],
        steps=tuple(flipped(s) if s.task == "presence" and s.key.label else s for s in sound[0].steps),
    )
    gate, *_ = keys_of(replaced(sound, 0, case))
    assert (gate.count, len(gate.worst)) == (1, 1)
