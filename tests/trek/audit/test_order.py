"""Gating, order and chronology: stages that a study supports, turns in their order, studies in theirs."""

from gates_trek import audited, change, first, objected, referred, replaced, row, told

from carina.cases.model import CaseImage, Evidence, Fact


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


def test_order_trips_on_staged_turns_that_go_back_and_on_a_shuffle_in_order(sound):
    case = sound[0]
    swapped = (*case.steps[:2], case.steps[-2], *case.steps[2:-2], case.steps[-1])
    result = audited(replaced(sound, 0, change(case, steps=swapped)))
    assert "order" in objected(result)
    assert "in a staged conversation" in told(result, "order")
    result = audited(replaced(sound, 0, change(case, order="shuffled")))
    assert objected(result) == {"order"}
    assert row(result, "order", "shuffled: concordance with the order of stages").value == 1.0


def test_order_trips_on_a_closed_question_about_a_place_whose_side_was_told(sound):
    case = sound[0]
    at = next(n for n, step in enumerate(case.steps) if n and step.format in ("yes_no", "choice"))
    about = (Fact(name="target", about="finding", text="pneumonia"),)
    asked = change(case.steps[at], task="location", facts=about)
    for task, format_, found in (("side", "open", True), ("severity", "open", False)):
        before = change(case.steps[at - 1], task=task, format=format_, score="text", options=(), facts=about)
        steps = (*case.steps[: at - 1], before, asked, *case.steps[at + 1 :])
        result = audited(replaced(sound, 0, change(case, steps=steps)))
        words = (
            f"turn {asked.id}: question: a closed one about the place of the pneumonia, whose side was told"
        )
        assert (words in told(result, "order")) == found


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
