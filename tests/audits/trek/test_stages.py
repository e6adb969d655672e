"""Stages that a study supports, the order of turns, and the order of linked studies."""

from tests.audits.gates import objecting
from tests.audits.trek.breaking import audited, change, first, referred, replaced, row, told

from carina.cases.model import CaseImage, Evidence, Fact


def test_stages_that_the_study_does_not_support_fail(sound):
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
            "no step of stage 5 although there is a reference",
        ),
        (with_reference, change(case, images=case.images[:1]), "images: no image of the reference study"),
        (with_later, change(later, later_study=None), "stage: 6 without a later study"),
        (with_later, change(later, images=(*later.images, image)), "is of the later study"),
        (related, change(relation, steps=bare), "stage 4 without a relation"),
        (0, change(sound[0], steps=sound[0].steps[:-1]), "no step of stage 8"),
    ):
        result = audited(replaced(sound, at, broken))
        assert "stage-requirements" in objecting(result, to=("fail",)), words
        assert f"{broken.id}: " in told(result, "stage-requirements")
        assert words in told(result, "stage-requirements")


def test_a_stage_may_be_missing_where_the_conversation_states_that_its_key_is_not_known(sound):
    unknown = Fact(name="not asked", about="full report", text="not every finding was looked for", value=1.0)
    case = change(sound[0], steps=sound[0].steps[:-1], facts=(*sound[0].facts, unknown))
    assert "stage-requirements" not in objecting(audited(replaced(sound, 0, case)), to=("fail",))


def test_evidence_of_the_later_study_outside_stage_six_fails(sound):
    at = first(sound, lambda c: c.later_study)
    step = change(sound[at].steps[3], evidence=(Evidence(report="later", sentence=0),))
    case = change(sound[at], steps=(*sound[at].steps[:3], step, *sound[at].steps[4:]))
    result = audited(replaced(sound, at, case))
    assert objecting(result) == {"stage-requirements"}
    assert "turn t4: evidence: a sentence of the later study in stage 2" in told(result, "stage-requirements")


def test_staged_turns_that_go_back_and_a_shuffle_in_order_fail(sound):
    case = sound[0]
    swapped = (*case.steps[:2], case.steps[-2], *case.steps[2:-2], case.steps[-1])
    result = audited(replaced(sound, 0, change(case, steps=swapped)))
    assert "stage-order" in objecting(result)
    assert "in a staged conversation" in told(result, "stage-order")
    result = audited(replaced(sound, 0, change(case, order="shuffled")))
    assert objecting(result) == {"stage-order"}
    assert row(result, "stage-order", "shuffled: concordance with the order of stages").value == 1.0


def test_a_closed_question_about_a_location_after_its_side_fails(sound):
    case = sound[0]
    at = next(n for n, step in enumerate(case.steps) if n and step.format in ("yes_no", "choice"))
    about = (Fact(name="target", about="finding", text="pneumonia"),)
    asked = change(case.steps[at], task="location", facts=about)
    for task, format_, found in (("side", "open", True), ("severity", "open", False)):
        before = change(case.steps[at - 1], task=task, format=format_, score="text", options=(), facts=about)
        steps = (*case.steps[: at - 1], before, asked, *case.steps[at + 1 :])
        result = audited(replaced(sound, 0, change(case, steps=steps)))
        words = f"turn {asked.id}: question: closed, about the location of the pneumonia, whose side"
        assert (words in told(result, "stage-order")) == found


def test_linked_studies_with_wrong_time_patient_or_split_fail(sound):
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
            "reference study is dated 2009-01-01",
        ),
        (change(case, facts=()), "neither order nor date of the reference study"),
        (change(case, reference_study=case.study), "reference_study: is the current study itself"),
        (change(case, reference_study=sound[at - 1].study), "is of patient"),
        (change(case, later_study=sound[at + 1].study), f"linked by {case.id} is of patient"),
    ):
        result = audited(replaced(sound, at, broken))
        assert "linked-studies" in objecting(result, to=("fail",)), words
        assert words in told(result, "linked-studies")
    alone = change(case, facts=(), reference_study=None, later_study=None)
    assert "neither order" not in told(audited(replaced(sound, at, alone)), "linked-studies")
    elsewhere = change(sound[at - 1], patient=case.patient, split="train")
    linked = change(case, reference_study=elsewhere.study)
    result = audited(replaced(replaced(sound, at, linked), at - 1, elsewhere))
    assert "is in split 'train', not in 'test'" in told(result, "linked-studies")
