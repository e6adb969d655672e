"""Findings and devices that accompany one another are asked about as negatives more often."""

from carina.studies.vocabulary import DEVICES, FINDINGS
from carina.trek.companions import COMPANIONS, find_companions, negative_weight


def test_the_table_names_what_the_vocabulary_names_and_nothing_itself():
    names = {*FINDINGS, *DEVICES}
    assert set(COMPANIONS) <= names
    assert all(others <= names and name not in others for name, others in COMPANIONS.items())


def test_companions_have_a_higher_weight_as_negatives():
    assert "atelectasis" in find_companions(frozenset({"pleural effusion"}))
    assert "atelectasis" not in find_companions(frozenset({"cardiomegaly"}))
    assert find_companions(frozenset()) == frozenset()
    assert negative_weight("atelectasis", frozenset({"pleural effusion"})) > negative_weight(
        "atelectasis", frozenset({"cardiomegaly"})
    )
    assert negative_weight("anything", frozenset()) > 0
