"""A sound set passes every gate of trek; with one thing broken, the gate meant for it objects and names the record."""

from collections import Counter

import msgspec
import pytest

from carina.cases.audit import Thresholds, audit, common_gates
from carina.cases.model import Box, CaseImage, Constraints, Evidence, Fact, Key, Option, Origin, Slot
from carina.studies.model import ReportSection
from carina.trek.audit import Limits, trek_gates
from carina.trek.audit.history import History

change = msgspec.structs.replace
COMMON = Thresholds(slack=0.05)
BARE = Constraints(answer_only=True)


def audited(cases, *, history=False, **limits):
    """By all gates; the one that learns takes a second, so only where it is looked at."""
    gates = trek_gates(COMMON, limits=Limits(**limits))
    return audit(cases, [gate for gate in gates if history or not isinstance(gate, History)])


def objected(result, *, to=("fail", "warn")):
    return {gate.name for gate in result.gates if gate.status in to}


def row(result, gate, name):
    return next(row for row in result.gate(gate).rows if row.name == name)


def first(cases, wanted):
    return next(at for at, case in enumerate(cases) if wanted(case))


def replaced(cases, at, case):
    return [*cases[:at], case, *cases[at + 1 :]]


def one_step(cases, task, make):
    """All cases, but the first step of this task made anew; with the case and the step."""
    at = first(cases, lambda c: any(s.task == task for s in c.steps))
    case = cases[at]
    step = next(s for s in case.steps if s.task == task)
    steps = tuple(make(s) if s is step else s for s in case.steps)
    return replaced(cases, at, change(case, steps=steps)), case, step


def every_step(cases, make):
    return [change(case, steps=tuple(make(case, step) for step in case.steps)) for case in cases]


def with_key(step, **changes):
    return change(step, key=change(step.key, **changes))


def told(result, gate):
    return " | ".join(f"{found.id}: {found.what}" for found in result.gate(gate).worst)


# ---- a sound set ----------------------------------------------------------------------------------------------------


def test_a_sound_set_passes_every_gate(sound):
    result = audit(sound, [*common_gates(COMMON), *trek_gates(COMMON)])
    assert {gate.name: gate.status for gate in result.gates if gate.status != "pass"} == {
        "margins": "not applicable",
        "views": "not applicable",
    }
    assert (result.cases, result.patients) == (150, 150)
    assert all(gate.threshold and gate.meaning for gate in result.gates)


def test_each_rate_has_an_interval(sound):
    for gate in audited(sound).gates:
        if gate.name != "statistics":
            assert gate.rate is not None, gate.name
            assert gate.low - 1e-9 <= gate.rate <= gate.high + 1e-9, gate.name


def test_other_protocols_pass_by(sound):
    others = [change(case, protocol="percept") for case in sound[:20]]
    assert {gate.status for gate in audited(others).gates} == {"not applicable"}


def test_no_case_at_all_is_not_applicable():
    assert {gate.status for gate in audited([]).gates} == {"not applicable"}


def test_the_order_of_cases_does_not_matter_much(sound):
    one, other = audited(sound, history=True), audited(sound[::-1], history=True)
    for name in ("balance", "templates", "negatives", "history"):
        assert one.gate(name) == other.gate(name)


# ---- form -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "make", "rule", "words"),
    [
        ("location", lambda s: with_key(s, text=None), "answers", "there is no answer in words"),
        ("location", lambda s: change(s, score="exact"), "formats", "score: 'exact' does not go"),
        ("location", lambda s: change(s, format="report"), "formats", "key.sections: 0 with"),
        ("location", lambda s: with_key(s, label="yes"), "formats", "key.label: 'yes' with"),
        ("location", lambda s: change(s, stage=9), "formats", "stage: 9, expected 1 to 8"),
        (
            "view",
            lambda s: change(s, depends_on=("t9",)),
            "dependencies",
            "'t9' is of stage 2, later than 1",
        ),
        (
            "view",
            lambda s: with_key(s, kinds=s.key.kinds[::-1]),
            "options",
            "which the key contradicts",
        ),
        ("view", lambda s: change(s, multiple=True), "options", "score: 'exact' where several"),
        (
            "statement",
            lambda s: with_key(s, text="Yes." if s.key.label == "no" else "No."),
            "labels",
            "key.text: begins with",
        ),
        ("statement", lambda s: with_key(s, text="It does."), "labels", "does not begin with"),
        (
            "statement",
            lambda s: with_key(s, label="uncertain"),
            "labels",
            "where key.label is 'uncertain'",
        ),
        (
            "location",
            lambda s: change(s, evidence=(Evidence(report="current", sentence=-1),)),
            "evidence",
            "-1",
        ),
    ],
)
def test_form_trips_on_a_turn_that_contradicts_itself(sound, task, make, rule, words):
    cases, case, step = one_step(sound, task, make)
    result = audited(cases)
    assert "form" in objected(result, to=("fail",))
    assert words in told(result, "form")
    assert f"{case.id}: turn {step.id}: " in told(result, "form")
    assert row(result, "form", rule).value == pytest.approx(1 / 150)
    assert result.gate("form").count == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"xyxy": (10.0, 10.0, 101.0, 20.0)}, "leaves its percent frame of 100 x 100"),
        ({"xyxy": (10.0, 10.0, 10.0, 20.0)}, "has no area"),
        ({"xyxy": (10.0, 10.0, float("nan"), 20.0)}, "leaves its percent frame"),
        ({"xyxy": (0.0, 0.0, 512.0, 401.0), "frame": "pixel"}, "leaves its pixel frame of 512 x 400"),
        ({"image": "other.png"}, "which is not there"),
    ],
)
def test_form_trips_on_a_box_outside_its_frame(sound, changes, words):
    cases, *_ = one_step(
        sound, "region box", lambda s: with_key(s, boxes=(change(s.key.boxes[0], **changes),))
    )
    result = audited(cases)
    assert objected(result) >= {"form"}
    assert words in told(result, "form")
    assert row(result, "form", "boxes").status == "fail"


def test_form_accepts_boxes_that_touch_their_frame(sound):
    whole = Box(image="", xyxy=(0.0, 0.0, 512.0, 400.0), frame="pixel", name="heart", of="anatomy")
    cases, *_ = one_step(
        sound, "region box", lambda s: with_key(s, boxes=(change(whole, image=s.key.boxes[0].image),))
    )
    assert audited(cases).gate("form").status == "pass"


def referred(case):
    return case.reference_study is not None


def test_form_trips_on_images_that_enter_late_twice_or_never(sound):
    at = first(sound, referred)
    case = sound[at]
    compared = next(s for s in case.steps if s.stage == 5)
    last = case.steps[-1].id

    def moved(to):
        steps = (change(s, shows=("v2",)) if s.id == to else s for s in case.steps)
        return tuple(change(s, shows=()) if s.id == compared.id and to != compared.id else s for s in steps)

    second = change(compared, id="t99", question="And beside the earlier image?", shows=("v2",))
    first_of_two = change(compared, shows=())
    at_five = case.steps.index(compared)
    late = (*case.steps[:at_five], first_of_two, second, *case.steps[at_five + 1 :])
    for steps, words in (
        (late, "turn t99: shows: a reference image after the first turn of stage 5"),
        (moved(""), "shows: v1 over all turns, expected v1, v2"),
        (moved(last), f"turn {last}: shows: a reference image after the first turn of stage 5"),
        ((change(case.steps[0], shows=("v2", "v1")), *moved("")[1:]), "v2, v1 over all turns"),
    ):
        result = audited(replaced(sound, at, change(case, steps=steps)))
        assert words in told(result, "form"), words
        assert row(result, "form", "images").status == "fail"
    early = (change(case.steps[0], shows=("v1", "v2")), *moved("")[1:])
    assert audited(replaced(sound, at, change(case, steps=early))).gate("form").status == "pass"
    flipped = change(case, images=case.images[::-1], views=case.views)
    assert "a reference image stands before" in told(audited(replaced(sound, at, flipped)), "form")


# ---- keys -----------------------------------------------------------------------------------------------------------


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
    rows = {found.name: found.value for found in result.gate("keys").rows if found.value}
    return result.gate("keys"), rows, told(result, "keys")


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
        ("location", region("no", "present"), "regions", "'no' where the facts hold something"),
        ("location", region("no", "absent", "uncertain"), "regions", "'no' where the facts hold something"),
        ("location", region("yes"), "regions", "'yes' where the facts hold nothing"),
        ("location", region("yes", "absent"), "regions", "'yes' where the facts hold nothing"),
        (
            "region box",
            boxed("<|box|>(1, 2.5), (30, 40.35)<|/box|>"),
            "boxes",
            "the box (1, 2.5, 30, 40.35) in words",
        ),
        (
            "region box",
            boxed("<|box|>(2.5, 1), (30, 40.25)<|/box|>"),
            "boxes",
            "in words where the key has (1.0, 2.5",
        ),
        ("region box", boxed("(1, 2.5), (30, 40.25)"), "boxes", "0 boxes in words where the key has 1"),
        ("region box", boxed("<|box|>(1, 2.5), (30, 40.25)<|/box|>" * 2), "boxes", "2 boxes in words"),
        ("region box", lambda s: change(s, uses=()), "boxes", "which the question is not about"),
        ("view", projected("PA", "B. AP"), "views", "does not tell the PA projection"),
        (
            "view",
            lambda s: chosen(s, lambda o: o.id not in s.key.options),
            "views",
            "key.options: ",
        ),
        ("view", projected("PA, lateral", "It is a postero-anterior view."), "views", "not tell the lateral"),
        (
            "view",
            projected("PA", "PA and lateral"),
            "views",
            "tells the lateral projection where there is PA",
        ),
        ("view", projected("AP", "An anteroposterior and a side view."), "views", "tells the lateral"),
    ],
)
def test_keys_trip_on_a_key_against_its_facts(sound, task, make, rule, words):
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
def test_keys_accept_what_follows_or_is_not_stated(sound, task, make):
    cases, *_ = one_step(sound, task, make)
    assert keys_of(cases)[0].status == "pass"


def test_keys_accept_boxes_that_an_import_has_repaired(sound):
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
            "'no' where turn t2 holds a finding as present",
        ),
        ("any abnormality", "uncertain", [("presence", "finding", "present")], "holds a finding as present"),
        ("any abnormality", "no", [("presence", "finding", "uncertain")], "holds a finding as uncertain"),
        ("any abnormality", "no", [("presence", "device", "present")], None),
        ("any abnormality", "yes", [("presence", "finding", "absent")], None),
        ("any abnormality", "uncertain", [("presence", "finding", "uncertain")], None),
        ("any device", "no", [("device presence", "device", "present")], "holds a device as present"),
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
        ("any abnormality", "no", [("abnormalities", "study", "present")], "holds a finding as present"),
        ("any abnormality", "yes", [("devices", "study", None)], None),
        ("any device", "uncertain", [("full report", "study", None)], "lists no device"),
        (
            "any device",
            "no",
            [("full report", "study", "present"), ("device presence", "device", "present")],
            "turn t2 holds a device",
        ),
    ],
)
def test_keys_trip_on_anything_at_all_against_what_is_stated(sound, task, label, facts, words):
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


def test_keys_object_once_to_a_conversation(sound):
    case = change(
        sound[0],
        steps=tuple(flipped(s) if s.task == "presence" and s.key.label else s for s in sound[0].steps),
    )
    gate, *_ = keys_of(replaced(sound, 0, case))
    assert (gate.count, len(gate.worst)) == (1, 1)


# ---- gating ---------------------------------------------------------------------------------------------------------


def test_gating_trips_on_stages_that_the_study_does_not_support(sound):
    with_reference, with_later = first(sound, referred), first(sound, lambda c: c.later_study)
    related = first(sound, lambda c: any(s.stage == 4 for s in c.steps))
    case, later, relation = sound[with_reference], sound[with_later], sound[related]
    bare = tuple(
        change(s, facts=tuple(f for f in s.facts if f.name != "relation")) if s.stage == 4 else s
        for s in relation.steps
    )
    image = CaseImage(key=f"{later.later_study}/a.png", width=9, height=9)
    for at, broken, words in (
        (with_reference, change(case, reference_study=None), "stage: 5 without a reference study"),
        (
            with_reference,
            change(case, steps=tuple(s for s in case.steps if s.stage != 5)),
            "none of stage 5 though there is a reference",
        ),
        (with_reference, change(case, images=case.images[:1]), "images: none of the reference study"),
        (with_later, change(later, later_study=None), "stage: 6 without a later study"),
        (with_later, change(later, images=(*later.images, image)), "is of the later study"),
        (related, change(relation, steps=bare), "stage 4 without a relation"),
        (0, change(sound[0], steps=sound[0].steps[:-1]), "none of stage 8"),
    ):
        result = audited(replaced(sound, at, broken))
        assert "gating" in objected(result, to=("fail",)), words
        assert f"{broken.id}: " in told(result, "gating")
        assert words in told(result, "gating")


def test_gating_trips_on_later_evidence_outside_stage_six(sound):
    at = first(sound, lambda c: c.later_study)
    step = change(sound[at].steps[3], evidence=(Evidence(report="later", sentence=0),))
    case = change(sound[at], steps=(*sound[at].steps[:3], step, *sound[at].steps[4:]))
    result = audited(replaced(sound, at, case))
    assert objected(result) == {"gating"}
    assert "turn t4: evidence: of the later study in stage 2" in told(result, "gating")


# ---- order and time -------------------------------------------------------------------------------------------------


def test_order_trips_on_staged_turns_that_go_back_and_on_a_shuffle_in_order(sound):
    case = sound[0]
    swapped = (*case.steps[:2], case.steps[-2], *case.steps[2:-2], case.steps[-1])
    result = audited(replaced(sound, 0, change(case, steps=swapped)))
    assert "order" in objected(result)
    assert "in a staged conversation" in told(result, "order")
    result = audited(replaced(sound, 0, change(case, order="shuffled")))
    assert objected(result) == {"order"}
    assert row(result, "order", "shuffled: concordance with the order of stages").value == 1.0


def test_chronology_trips_on_time_patient_and_split(sound):
    at = first(sound, lambda c: c.reference_study and c.later_study)
    case = sound[at]

    def facts(**changes):
        return tuple(
            change(f, **changes[f"{f.name}_{f.about}"]) if f"{f.name}_{f.about}" in changes else f
            for f in case.facts
        )

    for broken, words in (
        (
            change(case, facts=facts(order_reference={"value": 1})),
            "order 1 of the reference study, 1 of the current",
        ),
        (change(case, facts=facts(order_later={"value": 0})), "order 1 of the current study, 0 of the later"),
        (
            change(case, facts=facts(date_reference={"text": "2009-01-01"})),
            "reference study is of 2009-01-01",
        ),
        (change(case, facts=()), "neither order nor date of the reference study"),
        (change(case, reference_study=case.study), "reference_study: is the current study itself"),
        (change(case, reference_study=sound[at - 1].study), "is of patient"),
        (change(case, later_study=sound[at + 1].study), f"linked by {case.id} is of patient"),
    ):
        result = audited(replaced(sound, at, broken))
        assert "chronology" in objected(result, to=("fail",)), words
        assert words in told(result, "chronology")
    elsewhere = change(sound[at - 1], patient=case.patient, split="train")
    linked = change(case, reference_study=elsewhere.study)
    result = audited(replaced(replaced(sound, at, linked), at - 1, elsewhere))
    assert "is in split 'train', not in 'test'" in told(result, "chronology")


# ---- words ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "make", "rule"),
    [
        ("abnormalities", lambda s: with_key(s, text="word " * 41), "max_words"),
        ("location", lambda s: change(s, constraints=Constraints(min_words=30)), "min_words"),
        (
            "statement",
            lambda s: change(s, constraints=BARE, key=change(s.key, text="No, it is elsewhere.")),
            "answer_only",
        ),
        ("view", lambda s: change(s, constraints=BARE,
                                  key=change(s.key, text=f"It is {s.key.text}, as it seems to me")), "answer_only"),
        ("abnormalities", lambda s: change(s, constraints=Constraints()), "stored"),
    ],
)  # fmt: skip
def test_constraints_trip_on_an_answer_that_breaks_them(sound, task, make, rule):
    cases, case, step = one_step(sound, task, make)
    result = audited(cases)
    assert "constraints" in objected(result, to=("fail",))
    assert row(result, "constraints", rule).status == "fail"
    assert f"{case.id}: turn {step.id}: " in told(result, "constraints")


@pytest.mark.parametrize(
    ("make", "rule", "words"),
    [
        (lambda s: change(s, question="Where is {finding}?"), "unfilled slots", "'{finding}'"),
        (lambda s: with_key(s, text="In at most {words} words."), "unfilled slots", "'{words}'"),
        (lambda s: change(s, question="Where is the the nodule?"), "doubled words", "'the' twice"),
        (lambda s: change(s, question="Give the boxs, please."), "misspellings", "'boxs'"),
        (lambda s: change(s, question="See at the lung at the lung now."), "repeated phrases", "'at the lung'"),
        (lambda s: with_key(s, text="It lies left, lies left, as seen."), "repeated phrases", "'lies left,'"),
    ],
)  # fmt: skip
def test_wording_trips_on_residue_and_slips(sound, make, rule, words):
    if rule == "repeated phrases" and not words:
        cases, *_ = one_step(
            sound, "location", lambda s: change(s, question="See at the lung at the lung now.")
        )
    else:
        cases, *_ = one_step(sound, "location", make)
    result = audited(cases)
    assert objected(result) == {"wording"}
    assert words in told(result, "wording")
    assert row(result, "wording", rule).status == "fail"


def test_wording_lets_figures_and_that_that_stand(sound):
    text = "It is clear that that one lies at 5 5 and 12 12, very near."
    cases, *_ = one_step(sound, "location", lambda s: with_key(s, text=text))
    assert audited(cases).gate("wording").status == "pass"


def test_an_option_with_a_slot_trips_wording(sound):
    cases, *_ = one_step(
        sound, "severity", lambda s: change(s, options=(Option(id="A", text="{grade}"), *s.options[1:]))
    )
    assert "'{grade}'" in told(audited(cases), "wording")


def test_repeats_trip_on_the_same_nearly_the_same_and_the_same_thing_again(sound):
    case = sound[0]
    at = next(n for n, s in enumerate(case.steps) if s.task == "location")
    step = case.steps[at]
    again = change(step, id="t99", question="In which part of the image would you say that this is found?")
    near = change(step, id="t99", question=f"{step.question} Well?")
    twice = change(step, id="t99")
    for extra, name, status in ((twice, "the same words", "fail"), (near, "nearly the same words", "fail")):
        broken = change(case, steps=(*case.steps[: at + 1], extra, *case.steps[at + 1 :]))
        result = audited(replaced(sound, 0, broken), near=0.7)
        assert objected(result) == {"repeats"}
        assert row(result, "repeats", name).status == status
        assert f"{case.id}: turn t99: asks in {name} as turn {step.id}" in told(result, "repeats")
    broken = [
        change(c, steps=tuple(x for s in c.steps for x in ((s, change(again, facts=s.facts, key=s.key,
               depends_on=s.depends_on, uses=s.uses)) if s.task == "location" else (s,))))
        for c in sound
    ]  # fmt: skip
    result = audited(broken)
    assert row(result, "repeats", "the same thing in other words").status == "fail"
    assert (
        row(audited(broken[:1] + list(sound[1:])), "repeats", "the same thing in other words").status
        == "pass"
    )


def test_templates_trip_on_one_wording_for_all(sound):
    def same(_, step):
        return change(step, template="s2.presence.yes_no.001") if step.task == "presence" else step

    result = audited(every_step(sound, same))
    assert objected(result) == {"templates"}
    failed = row(result, "templates", "stage 2: most frequent template")
    assert failed.status == "fail"
    assert "s2.presence.yes_no.001" in failed.note
    without = audited(every_step(sound, lambda _, step: change(step, template=None)))
    assert without.gate("templates").status == "warn"


# ---- balance and baselines ------------------------------------------------------------------------------------------


def always_yes(task):
    def make(_, step):
        if step.task != task or step.key.label is None:
            return step
        facts = tuple(
            change(f, text="present") if f.name == "truth" else f for f in step.facts if f.name != "negative"
        )
        return change(step, key=Key(label="yes", text="Yes."), facts=facts)

    return make


def test_balance_trips_on_devices_that_are_always_there(sound):
    result = audited(every_step(sound, always_yes("device presence")))
    assert "balance" in objected(result, to=("fail",))
    group = row(result, "balance", "2 device presence (device)")
    assert (group.value, group.n, group.status) == (1.0, 300, "fail")
    assert row(result, "balance", "2 device presence (device): by name").status == "fail"
    assert row(result, "balance", "2 presence (finding)").status == "pass"


def test_balance_trips_on_one_name_although_the_family_is_balanced(sound):
    flips = {"nodule": "yes", "mass": "no"}

    def make(_, step):
        name = next((f.text for f in step.facts if f.name == "target"), "")
        if step.task != "presence" or step.key.label not in ("yes", "no") or name not in flips:
            return step
        return change(step, key=Key(label=flips[name], text=f"{flips[name].capitalize()}."))

    result = audited(every_step(sound, make))
    assert row(result, "balance", "2 presence (finding)").status == "pass"
    assert row(result, "balance", "2 presence: nodule").status == "fail"
    assert row(result, "balance", "2 presence: mass").status == "fail"


def test_balance_does_not_fail_few_questions_and_reports_prevalence(sound):
    few = every_step(sound[:3], always_yes("device presence"))
    assert audited(few).gate("balance").status in ("pass", "warn")
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
    assert row(result, "balance", "3 any device (study)").status == "pass"
    assert row(result, "balance", "3 any device (study)").value == 1.0


def test_yes_and_no_as_options_count_as_such(sound):
    def dressed(_, step):
        if step.task != "device presence":
            return step
        options = (Option(id="A", text="Yes"), Option(id="B", text="No"))
        key = Key(options=("A",), kinds=("key", "distractor"), text="A. Yes")
        return change(step, format="choice", options=options, key=key)

    result = audited(every_step(sound, dressed))
    assert row(result, "balance", "2 device presence (device)").status == "fail"
    assert row(result, "baselines", "2 device presence: first option").status == "fail"


def test_baselines_trip_on_the_longest_option(sound):
    def longer(_, step):
        if step.task != "severity":
            return step
        right = step.key.options[0]
        options = tuple(
            change(o, text=f"{o.text}, as far as can be told") if o.id == right else o for o in step.options
        )
        return change(step, options=options)

    result = audited(every_step(sound, longer))
    assert objected(result, to=("fail",)) >= {"baselines"}
    longest = row(result, "baselines", "3 severity: longest option")
    assert (longest.value, longest.n, longest.status) == (1.0, 150, "fail")
    assert longest.chance == pytest.approx(1 / 3)


def test_baselines_trip_on_none_of_these_that_is_always_right(sound):
    def none(_, step):
        if "none" not in step.key.kinds:
            return step
        return with_key(step, options=(step.options[-1].id,), kinds=("distractor",) * 3 + ("none",))

    cases = [c for c in sound for _ in range(3)]
    result = audited(every_step(cases, none))
    assert row(result, "baselines", "2 presence: none of these").status == "fail"
    assert row(audited(cases), "baselines", "2 presence: none of these").status == "pass"


def test_the_mean_box_is_reported(sound):
    boxes = row(audited(sound), "baselines", "mean box: heart")
    assert boxes.status == "pass"
    assert 0.6 < boxes.value < 1.0
    same = every_step(
        sound,
        lambda _, s: (
            with_key(s, boxes=(change(s.key.boxes[0], xyxy=(1.0, 1.0, 2.0, 2.0)),)) if s.key.boxes else s
        ),
    )
    assert row(audited(same), "baselines", "mean box: heart").value == pytest.approx(1.0)


# ---- negatives and hedges -------------------------------------------------------------------------------------------


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


# ---- what the conversation tells ------------------------------------------------------------------------------------


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


# ---- support and identifiers ----------------------------------------------------------------------------------------


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


# ---- statistics -----------------------------------------------------------------------------------------------------


def test_statistics_count_what_is_there_beside_the_sample(sound):
    result = audited(sound)
    turns = [len(case.steps) for case in sound]
    formats = Counter(step.format for case in sound for step in case.steps)
    mean = row(result, "statistics", "turns per conversation, mean")
    assert mean.value == pytest.approx(sum(turns) / len(turns))
    assert mean.low < mean.value < mean.high
    assert mean.note == "the original's sample: 26.06"
    assert row(result, "statistics", "turns per conversation, most").value == max(turns)
    assert row(result, "statistics", "turns per conversation, least").value == min(turns)
    yes_no = row(result, "statistics", "format yes_no")
    assert (yes_no.value, yes_no.n) == (pytest.approx(formats["yes_no"] / sum(turns)), sum(turns))
    assert yes_no.note == "the original's sample: 20.9%"
    images = sum(len(case.images) for case in sound) / len(sound)
    assert row(result, "statistics", "images per conversation, mean").value == pytest.approx(images)
    assert row(result, "statistics", "device presence: yes among yes and no").value == pytest.approx(
        0.5, abs=0.03
    )
    shares = [r.value for r in result.gate("statistics").rows if r.name.endswith("share of answer words")]
    assert sum(shares) == pytest.approx(1.0)
    several = row(result, "statistics", "choices with several right")
    assert 0.05 < several.value < 0.15


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


def test_wording_lets_lists_of_options_repeat_themselves(sound):
    zones = ("right mid zone", "left mid zone", "left lower zone")
    listed = " ".join(zones)

    def zoned(step):
        options = tuple(change(o, text=text) for o, text in zip(step.options, zones, strict=True))
        return change(
            step, options=options, question=f"Which zones? {listed}\nA. Yes B. No\nNo reasons are needed."
        )

    cases, *_ = one_step(sound, "severity", zoned)
    assert audited(cases).gate("wording").status == "pass"
