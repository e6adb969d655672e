"""What may be asked about as absent: nothing that something there could be called."""

import pytest

from carina.studies.vocabulary import DEVICES, FINDINGS
from carina.trek.confusable import (
    COMPANIONS,
    MAY_BE_CALLED,
    find_companions,
    is_clearly_absent,
    negative_weight,
)


def test_the_tables_name_what_the_vocabulary_names_and_nothing_itself():
    names = {*FINDINGS, *DEVICES}
    for table in (MAY_BE_CALLED, COMPANIONS):
        assert set(table) <= names
        for others in table.values():
            assert others <= names
    assert all(name not in others for name, others in COMPANIONS.items())
    # Devices are never confused with findings, nor with each other.
    assert not set(MAY_BE_CALLED) & set(DEVICES)
    assert all(not others & set(DEVICES) for others in MAY_BE_CALLED.values())


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
    ],
)
def test_a_name_is_clearly_absent_unless_a_present_finding_may_be_called_by_it(name, noticed, clear):
    assert is_clearly_absent(name, frozenset(noticed)) is clear


def test_companions_have_a_higher_weight_as_negatives():
    assert "atelectasis" in find_companions(frozenset({"pleural effusion"}))
    assert "atelectasis" not in find_companions(frozenset({"cardiomegaly"}))
    assert find_companions(frozenset()) == frozenset()
    assert negative_weight("atelectasis", frozenset({"pleural effusion"})) > negative_weight(
        "atelectasis", frozenset({"cardiomegaly"})
    )
    assert negative_weight("anything", frozenset()) > 0
