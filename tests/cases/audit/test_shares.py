"""Gates shared between processes: the same audit, the same errors, and nobody left behind."""

import os
from functools import partial

import pytest

from carina.cases.audit import Thresholds, Work, audit, audit_shared, common_gates
from carina.cases.audit.shares import shares
from carina.errors import CarinaError


class Costly:
    def __init__(self, cost, decoder=None):
        self.cost, self.decoder = cost, decoder


class Decoder:
    cost = 40.0


def costs(gates, dealt):
    return [sorted(gates[place].cost for place in share) for share in dealt]


def test_shares_cost_about_the_same():
    gates = [Costly(cost) for cost in (5, 50, 30, 20, 15)]
    assert costs(gates, shares(gates, 2)) == [[15, 50], [5, 20, 30]]
    assert shares(gates, 1) == [[0, 1, 2, 3, 4]]


def test_gates_that_share_a_decoder_stay_together_unless_it_pays():
    one = Decoder()
    few = [Costly(10, one), Costly(60), Costly(10, one)]
    assert costs(few, shares(few, 2)) == [[60], [10, 10]]
    many = [Costly(60, one) for _ in range(4)]
    assert costs(many, shares(many, 2)) == [[60, 60], [60, 60]]


def test_what_costs_little_is_not_shared():
    assert len(shares([Costly(5) for _ in range(5)], 8)) == 1
    assert len(shares([Costly(20) for _ in range(5)], 8)) == 3


def test_one_process_says_what_an_audit_says(sound):
    gates = partial(common_gates, Thresholds(render=0))
    told = []
    result = audit_shared(lambda: Work(sound, gates()), benchmark="f", progress=lambda: told.append(1))
    assert result == audit(sound, gates(), benchmark="f")
    assert len(told) == len(sound)


MODULE = """
import os
from itertools import cycle

from carina.cases.audit import Thresholds, Work, common_gates
from carina.errors import CarinaError


class Gate:
    cost = 100.0

    def __init__(self, error):
        self.error = error

    def see(self, case):
        if self.error:
            raise CarinaError(self.error)

    def result(self):
        return common_gates(Thresholds())[0].result()


def failing(cases, here):
    error = "" if os.getpid() == here else "part-00007: cut or changed"
    return Work(cases, [Gate(error), Gate(error)])


def endless(cases, here):
    return Work(cases if os.getpid() == here else cycle(cases), [Gate(""), Gate("")])
"""


@pytest.fixture
def work(tmp_path, monkeypatch, sound):
    """What other processes can import: cases and gates that fail, or go on, only there."""
    (tmp_path / "work_elsewhere.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    import work_elsewhere

    return lambda name: partial(getattr(work_elsewhere, name), sound[:3], os.getpid())


def test_an_error_of_another_process_is_raised_here(work):
    with pytest.raises(CarinaError, match="part-00007: cut or changed"):
        audit_shared(work("failing"), workers=2)


def test_when_this_process_fails_the_others_end(work):
    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audit_shared(work("endless"), workers=2, progress=interrupted)
