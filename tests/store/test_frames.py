"""Tables of Carina's own: the path is taken literally, and what cannot be read is refused with a sentence."""

import re
from pathlib import Path

import polars as pl
import pytest

import carina
from carina.store.errors import CarinaError
from carina.store.frames import check_table, describe_table, read_frame

SOURCES = Path(carina.__file__).parent
STRANGE = ["m[1]", "a*b", "q?", "{x}", "lr=3", "m1"]
"""Names of folders that are patterns to some readers, or columns; the last is what the first matches as a pattern."""
READERS = re.compile(r"\b(?:pl\.(?:read|scan)_\w+|pq\.(?:read_\w+|ParquetDataset)|dataset\.dataset)\(")


@pytest.fixture
def tables(tmp_path):
    """A table in each strange folder that holds its number."""
    for number, name in enumerate(STRANGE):
        (tmp_path / name).mkdir()
        pl.DataFrame({"number": [number]}).write_parquet(tmp_path / name / "table.parquet")
    return [tmp_path / name / "table.parquet" for name in STRANGE]


def test_a_path_is_never_a_pattern_nor_a_column(tables):
    for number, path in enumerate(tables):
        frame = read_frame(path, "")
        assert (frame.columns, frame["number"].to_list()) == (["number"], [number])


def test_only_the_store_reads_parquet_files():
    found = {
        f"{path.relative_to(SOURCES).as_posix()}: {call}"
        for path in SOURCES.rglob("*.py")
        for call in READERS.findall(path.read_text())
    }
    assert found == {
        "store/frames.py: pl.read_parquet(",
        # Of the content of a file.
        "store/frames.py: pl.read_csv(",
        # With glob=False, and tested with the folders above in `test_reading`.
        "store/view.py: pl.scan_parquet(",
        # Tables of others, with glob=False too.
        "sources/cxr_qba.py: pl.scan_csv(",
        "sources/cxr_qba.py: pl.scan_parquet(",
    }


@pytest.mark.parametrize("content", [b"", b"PAR1", b"nothing at all", b"PAR1" + b"x" * 40 + b"PAR1"])
def test_a_file_that_is_no_table_is_refused(tmp_path, content):
    (tmp_path / "table.parquet").write_bytes(content)
    with pytest.raises(CarinaError, match=r"table\.parquet: not a Parquet file.*make it again"):
        read_frame(tmp_path / "table.parquet", "make it again")


def test_a_damaged_page_is_refused(tmp_path):
    path = tmp_path / "table.parquet"
    pl.DataFrame({"text": [f"word {number}" for number in range(2000)]}).write_parquet(path)
    content = bytearray(path.read_bytes())
    content[60:90] = bytes(30)
    path.write_bytes(content)
    with pytest.raises(CarinaError, match=r"table\.parquet: not a Parquet file"):
        read_frame(path, "make it again")


def test_a_name_of_a_column_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "table.parquet"
    pl.DataFrame({"number": [1, 2]}).write_parquet(path)
    path.write_bytes(path.read_bytes().replace(b"number", b"\xe8umber"))
    with pytest.raises(CarinaError, match=r"table\.parquet: not a Parquet file.*utf-8.*make it again"):
        read_frame(path, "make it again")


def test_a_missing_table_and_a_directory_are_refused(tmp_path):
    with pytest.raises(CarinaError, match=r"table\.parquet: missing; make it again"):
        read_frame(tmp_path / "table.parquet", "make it again")
    (tmp_path / "table.parquet").mkdir()
    with pytest.raises(CarinaError, match=r"table\.parquet: is a directory"):
        read_frame(tmp_path / "table.parquet", "make it again")


def test_a_table_that_was_changed_is_refused(tables, tmp_path):
    info = describe_table(tables[0], 1)
    check_table(tables[0], info, stated_in="run.json", remedy="make it again")
    tables[0].write_bytes(tables[1].read_bytes())
    with pytest.raises(
        CarinaError, match=r"table\.parquet: its SHA-256 is not the one that run\.json states"
    ):
        check_table(tables[0], info, stated_in="run.json", remedy="make it again")
    with pytest.raises(CarinaError, match="missing"):
        check_table(tmp_path / "none", info, stated_in="run.json", remedy="make it again")
