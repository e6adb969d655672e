"""Findings that are taken for one another."""

import pytest

from carina.studies.lookalikes import LOOKS_LIKE, MAY_BE_CALLED, looks_like, may_be_called
from carina.studies.vocabulary import FINDINGS


@pytest.mark.parametrize("finding", FINDINGS)
def test_lookalikes_are_symmetric_and_listed_once(finding):
    assert all(finding in looks_like(other) for other in looks_like(finding))
    assert finding not in looks_like(finding) | may_be_called(finding)
    assert not looks_like(finding) & may_be_called(finding)


def test_all_lookalikes_are_findings():
    named = {*LOOKS_LIKE, *MAY_BE_CALLED, *(name for names in MAY_BE_CALLED.values() for name in names)}
    assert named <= set(FINDINGS)
    assert looks_like("a source's own name") == frozenset()
