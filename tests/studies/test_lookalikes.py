"""Findings that are taken for one another."""

import pytest

from carina.studies.lookalikes import LOOKS_LIKE, MAY_BE_CALLED, is_clearly_absent, look_alike
from carina.studies.vocabulary import DEVICES, FINDINGS


def test_the_tables_name_findings_once_and_no_devices():
    for name, others in LOOKS_LIKE.items():
        assert all(name in LOOKS_LIKE[other] for other in others)
    for name in MAY_BE_CALLED:
        assert name not in MAY_BE_CALLED[name] | LOOKS_LIKE.get(name, frozenset())
        assert not MAY_BE_CALLED[name] & LOOKS_LIKE.get(name, frozenset())
    named = {*LOOKS_LIKE, *MAY_BE_CALLED, *(name for names in MAY_BE_CALLED.values() for name in names)}
    assert named <= set(FINDINGS)
    assert not named & set(DEVICES)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("consolidation", "pneumonia", True),
        ("pneumonia", "consolidation", True),
        ("consolidation", "consolidation", False),
        ("consolidation", "infiltration", True),
        ("consolidation", "lobar pneumonia", True),
        ("consolidation", "laminar atelectasis", False),
        ("consolidation", "a source's own name", False),
    ],
)
def test_findings_of_the_same_appearance_look_alike_by_whatever_name(one, other, expected):
    assert look_alike(one, other) is expected


@pytest.mark.parametrize(
    ("name", "noticed", "clear"),
    [
        ("consolidation", set(), True),
        ("consolidation", {"consolidation"}, False),
        ("consolidation", {"pneumonia"}, False),
        ("pneumonia", {"lung opacity"}, False),
        ("lung opacity", {"nodule"}, False),
        ("nodule", {"mass"}, False),
        ("mass", {"nodule"}, False),
        ("edema", {"pneumonia"}, False),
        ("consolidation", {"cardiomegaly", "pleural effusion"}, True),
        ("pneumothorax", {"pleural effusion", "fracture"}, True),
        ("lung opacity", {"pleural effusion"}, False),
        ("chest tube", {"endotracheal tube"}, True),
        ("chest tube", {"chest tube"}, False),
        ("rare thing", {"mass"}, True),
        ("rare thing", {"rare thing"}, False),
        # A kind of it is present, or what it is a kind of, or a kind of what looks like it.
        ("atelectasis", {"laminar atelectasis"}, False),
        ("laminar atelectasis", {"atelectasis"}, False),
        ("nodule", {"lung lesion"}, False),
        ("lung opacity", {"infiltration"}, False),
        ("consolidation", {"infiltration"}, False),
        ("infiltration", {"lobar pneumonia"}, False),
        ("pneumothorax", {"infiltration"}, True),
        ("infiltration", {"laminar atelectasis"}, False),
        ("segmental atelectasis", {"laminar atelectasis"}, True),
    ],
)
def test_a_name_is_clearly_absent_unless_a_present_finding_may_be_called_by_it(name, noticed, clear):
    assert is_clearly_absent(name, frozenset(noticed)) is clear
