"""Which studies come into question, from what they state alone."""

import numpy as np

from carina.percept.candidates import find_candidates
from carina.percept.lesions import LESIONS
from carina.studies import Assessed


def screened(studies, *targets, seed=1):
    return find_candidates(studies, targets or tuple(LESIONS), seed=seed)


def named(candidates):
    return {candidate.study for candidate in candidates}


def test_present_and_absent_are_candidates_and_silence_is_neither(chest):
    found = screened(
        [
            chest.study(chest.finding("edema"), name="with"),
            chest.study(chest.finding("edema", certainty="absent"), name="without"),
            chest.study(name="silent"),
        ],
        "edema",
    )
    assert named(found.present["edema"]) == {"with"}
    assert named(found.absent["edema"]) == {"without"}
    assert found.skipped == []
    assert found.not_absent == {("edema", "nobody looked for it"): 1}
    assert found.studies == 3


def test_silence_is_a_negative_where_someone_looked_for_the_lesion(chest):
    every, closed = Assessed(findings="every"), Assessed(findings="listed", listed=("edema", "mass"))
    found = screened(
        [
            chest.study(name="through", assessed=every),
            chest.study(name="listed", assessed=closed),
            chest.study(name="others", assessed=Assessed(findings="listed", listed=("mass",))),
            chest.study(name="devices", assessed=Assessed(devices="every")),
            chest.study(chest.finding("abnormality", certainty="absent"), name="normal"),
            # The rules about look-alikes and about other studies of the patient hold for silence, too.
            chest.study(chest.finding("lung opacity"), name="alike", assessed=every),
            chest.study(name="before", patient="a", assessed=every),
            chest.study(chest.finding("edema"), name="after", patient="a", assessed=every),
            chest.study(name="lateral", view="lateral", assessed=every),
        ],
        "edema",
    )
    assert named(found.absent["edema"]) == {"through", "listed", "normal"}
    assert named(found.present["edema"]) == {"after"}
    assert found.not_absent == {
        ("edema", "nobody looked for it"): 2,
        ("edema", "looks like another finding"): 1,
        ("edema", "lesion in another study of the patient"): 1,
        ("edema", "no frontal image"): 1,
    }


def test_a_patient_with_the_lesion_in_another_study_gives_no_negative(chest):
    studies = [
        chest.study(chest.finding("edema", certainty="absent"), name="before", patient="a"),
        chest.study(chest.finding("edema"), name="after", patient="a"),
        chest.study(chest.finding("edema", certainty="absent"), name="maybe", patient="b"),
        chest.study(chest.finding("edema", certainty="uncertain"), name="hedged", patient="b"),
        chest.study(chest.finding("edema", certainty="absent"), name="never", patient="c"),
        # Another lesion of the patient is no hindrance.
        chest.study(chest.finding("atelectasis"), name="other", patient="c"),
    ]
    for order in (studies, studies[::-1]):
        assert named(screened(order, "edema").absent["edema"]) == {"never"}


def test_uncertain_and_similar_looking_lesions_are_skipped_with_the_reason(chest):
    found = screened(
        [
            chest.study(chest.finding("edema", certainty="uncertain"), name="hedged"),
            chest.study(chest.finding("consolidation"), chest.finding("pneumonia", number=2), name="double"),
            chest.study(chest.finding("edema"), name="lateral", view="lateral"),
        ]
    )
    reasons = {(skip.study, skip.target): (skip.reason, skip.detail) for skip in found.skipped}
    assert reasons == {
        ("hedged", "edema"): ("uncertain", "edema is uncertain"),
        ("double", "consolidation"): ("looks like another finding", "pneumonia"),
        ("double", "pneumonia"): ("looks like another finding", "consolidation"),
        ("lateral", "edema"): ("no frontal image", "views: lateral"),
    }
    assert not any(found.present.values())


def test_a_study_that_states_both_presence_and_doubt_is_hedged(chest):
    both = chest.study(chest.finding("edema"), chest.finding("edema", number=2, certainty="uncertain"))
    found = screened([both], "edema")
    assert not found.present["edema"]
    assert [skip.reason for skip in found.skipped] == ["uncertain"]


def test_a_study_is_no_negative_where_another_finding_looks_like_the_lesion(chest):
    opaque = chest.study(chest.finding("lung opacity", certainty="absent"), chest.finding("edema", number=2))
    assert not screened([opaque], "opacity").absent["opacity"]
    # That is no failure of the study.
    assert not screened([opaque], "opacity").skipped


def test_the_order_of_candidates_depends_on_the_seed_and_not_on_the_disk(phantoms):
    shuffled = [phantoms[n] for n in np.random.default_rng(3).permutation(len(phantoms))]
    here, there = screened(phantoms), screened(shuffled)
    assert dict(here.present) == dict(there.present)
    assert dict(here.absent) == dict(there.absent)
    assert sorted(here.skipped, key=str) == sorted(there.skipped, key=str)
    other = screened(phantoms, seed=2)
    for target, candidates in here.present.items():
        assert named(candidates) == named(other.present[target])
    assert any(
        [one.study for one in here.present[target]] != [one.study for one in other.present[target]]
        for target in here.present
    )
    assert any(here.present.values())


def test_candidates_of_two_lesions_are_in_orders_of_their_own(chest):
    studies = [
        chest.study(chest.finding("edema"), chest.finding("atelectasis", number=2), name=f"n{n}")
        for n in range(12)
    ]
    found = screened(studies, "edema", "atelectasis")
    orders = [[one.study for one in found.present[target]] for target in ("edema", "atelectasis")]
    assert sorted(orders[0]) == sorted(orders[1])
    assert orders[0] != orders[1]


def test_a_study_is_no_negative_where_a_finding_may_be_called_by_the_name_of_the_lesion(chest):
    """Atelectasis may be called pneumonia: no lesion-free case; but a pneumonia beside it can be asked about."""
    found = screened(
        [
            chest.study(
                chest.finding("pneumonia", certainty="absent"),
                chest.finding("atelectasis", number=2),
                name="free",
            ),
            chest.study(
                chest.finding("pneumonia"), chest.finding("atelectasis", number=2), name="both", patient="b"
            ),
        ],
        "pneumonia",
    )
    assert named(found.absent["pneumonia"]) == set()
    assert found.not_absent == {("pneumonia", "looks like another finding"): 1}
    assert named(found.present["pneumonia"]) == {"both"}
