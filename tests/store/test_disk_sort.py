"""Sorting more than fits into memory."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from carina.store.disk_sort import sort_on_disk


@given(
    items=st.lists(st.tuples(st.text(max_size=3), st.binary(max_size=5)), max_size=40),
    run=st.integers(1, 50),
)
def test_records_come_in_the_order_of_their_keys_whatever_fits_into_memory(tmp_path_factory, items, run):
    folder = tmp_path_factory.mktemp("sort") / "runs"
    with sort_on_disk(folder, run=run) as sorting:
        sorting.add(items[:7])
        sorting.add(items[7:])
        assert len(sorting) == len(items)
        assert list(sorting.read()) == [record for _, record in sorted(items, key=lambda item: item[0])]
    assert not folder.exists()


def test_what_a_killed_process_left_is_not_read(tmp_path: Path):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "00000").write_bytes(b"left behind")
    with sort_on_disk(tmp_path / "runs", run=1) as sorting:
        sorting.add([("b", b"2"), ("a", b"1")])
        assert list(sorting.read()) == [b"1", b"2"]
