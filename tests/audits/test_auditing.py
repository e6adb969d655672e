"""Gates shared between processes: the same audit, the same errors, and no process left running."""

import os
from functools import partial

import pytest
from tests.audits.gates import COMMON, gates_of

from carina.audits import audit_cases
from carina.audits.auditing import Work, audit_in_processes, share_gates
from carina.store.errors import CarinaError


class Costly:
    def __init__(self, cost, decoder=None):
        self.cost, self.decoder = cost, decoder


class Decoder:
    cost = 40.0


def costs(gates, dealt):
    return [sorted(gates[place].cost for place in share) for share in dealt]


def test_shares_cost_about_the_same():
    gates = [Costly(cost) for cost in (5, 50, 30, 20, 15)]
    assert costs(gates, share_gates(gates, 2)) == [[15, 50], [5, 20, 30]]
    assert share_gates(gates, 1) == [[0, 1, 2, 3, 4]]


def test_gates_that_share_a_decoder_stay_together_unless_it_pays():
    one = Decoder()
    few = [Costly(10, one), Costly(60), Costly(10, one)]
    assert costs(few, share_gates(few, 2)) == [[60], [10, 10]]
    many = [Costly(60, one) for _ in range(4)]
    assert costs(many, share_gates(many, 2)) == [[60, 60], [60, 60]]


def test_cheap_gates_stay_in_one_process():
    assert len(share_gates([Costly(5) for _ in range(5)], 8)) == 1
    assert len(share_gates([Costly(20) for _ in range(5)], 8)) == 3


def test_one_process_gives_the_result_of_audit_cases(sound):
    gates = partial(gates_of, COMMON)
    advanced = []
    result = audit_in_processes(
        lambda: Work(sound, gates()), benchmark="f", progress=lambda: advanced.append(1)
    )
    assert result == audit_cases(sound, gates(), benchmark="f")
    assert len(advanced) == len(sound)


MODULE = """
import os
from itertools import cycle

from carina.audits import AuditContext, Gate, GateResult, NoLimits
from carina.audits.auditing import Work
from carina.store.errors import CarinaError


class Costly(Gate):
    cost = 100.0

    def __init__(self, error):
        super().__init__(AuditContext(), NoLimits())
        self.error = error

    def see(self, case):
        if self.error:
            raise CarinaError(self.error)

    def result(self):
        return GateResult(name="costly", status="pass", n=1, threshold="none", meaning="Nothing is checked.")


def failing(cases, here):
    error = "" if os.getpid() == here else "part-00007: cut or changed"
    return Work(cases, [Costly(error), Costly(error)])


def endless(cases, here):
    return Work(cases if os.getpid() == here else cycle(cases), [Costly(""), Costly("")])
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
        audit_in_processes(work("failing"), workers=2)


def test_when_this_process_fails_the_others_end(work):
    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audit_in_processes(work("endless"), workers=2, progress=interrupted)
