"""How often Python looks for cycles."""

import gc

from carina.store.garbage import collect_rarely


def test_cycles_are_looked_for_as_often_as_before_when_the_block_ends():
    before = gc.get_threshold()
    with collect_rarely():
        assert gc.get_threshold() == (100_000, *before[1:])
    assert gc.get_threshold() == before
