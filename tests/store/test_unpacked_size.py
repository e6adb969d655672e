"""A small Parquet file that stands for gigabytes is refused before it is unpacked."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from carina.store import parts, unpacked_size
from carina.store.errors import CarinaError, StudySetError
from carina.store.frames import read_frame
from carina.store.parts import finished_part
from carina.studies import Image, Provenance, Study, open_studies, write_studies
from carina.studies.store import STUDIES

MADE = Provenance(command="test")


@pytest.fixture
def directory(tmp_path):
    image = Image(key="a.png", view="PA", width=4, height=4)
    studies = [
        Study(id=f"s{number}", patient="p", source="test", order=number, images=(image,))
        for number in range(40)
    ]
    write_studies(tmp_path / "set", studies, MADE)
    return tmp_path / "set"


def set_patients(directory, patients, **how):
    """Write the patients of a set anew, whatever its manifest says; returns the size of the part."""
    path = directory / "studies/part-00000.parquet"
    table = pq.read_table(path)
    at = table.schema.get_field_index("patient")
    table = table.set_column(at, table.schema.field(at), pa.array(patients, pa.string()))
    pq.write_table(table, path, compression="zstd", **how)
    return path.stat().st_size


def test_a_small_part_with_a_huge_cell_is_refused_and_nothing_is_unpacked(directory, monkeypatch):
    size = set_patients(directory, ["A" * 70_000_000] + ["p"] * 39, use_dictionary=False)
    assert size < 100_000
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", None)
    with pytest.raises(StudySetError, match=r"part-00000\.parquet: .* bytes unpack to 70,\d+,\d+, more than"):
        list(open_studies(directory, verify=False))
    monkeypatch.setattr(pq.ParquetFile, "read_row_group", None)
    assert finished_part(STUDIES, directory, 0, fingerprint=MADE.fingerprint) is None


def test_a_column_above_the_limit_is_refused_by_name(directory, monkeypatch):
    monkeypatch.setattr(parts, "MAX_COLUMN_BYTES", 50_000)
    set_patients(directory, ["A" * 60_000] + ["p"] * 39, use_dictionary=False)
    with pytest.raises(StudySetError, match=r"column patient of row group 0 unpacks to 60,\d+ bytes.*50,000"):
        list(open_studies(directory, verify=False))


def test_one_huge_value_that_all_rows_repeat_is_read_a_few_rows_at_a_time_and_refused(directory, monkeypatch):
    set_patients(directory, ["A" * 60_000] * 40)  # one value in the dictionary: 60 KB that stand for 2.4 MB
    monkeypatch.setattr(unpacked_size, "MAX_COLUMN_BYTES", 150_000)
    monkeypatch.setattr(parts, "MAX_COLUMN_BYTES", 150_000)
    read = []
    monkeypatch.setattr(parts, "_keep_rows", lambda _rows, batches, _keep: read.extend(batches) or [])
    with pytest.raises(StudySetError, match=r"part-00000\.parquet: \d+ rows unpack to more than .*300,000"):
        list(open_studies(directory, verify=False))
    assert [batch.num_rows for batch in read] == [4]  # 300,000 // 60,0xx; the second batch exceeds the limit


def test_a_table_with_a_huge_cell_is_refused(tmp_path):
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table({"text": ["A" * 70_000_000]}), path, compression="zstd", use_dictionary=False)
    with pytest.raises(CarinaError, match=r"table\.parquet: .* bytes unpack to 70,\d+,\d+.*make it again"):
        read_frame(path, "make it again")


def test_small_records_are_written_in_larger_row_groups(tmp_path):
    image = Image(key="a.png", view="PA", width=4, height=4)
    groups = {}
    for size in (10, 30_000):
        studies = [
            Study(id=f"s{number}", patient=f"{number:0{size}d}", source="test", order=number, images=(image,))
            for number in range(600)
        ]
        write_studies(tmp_path / str(size), studies, MADE)
        assert list(open_studies(tmp_path / str(size))) == studies
        part = pq.ParquetFile(tmp_path / str(size) / "studies/part-00000.parquet")
        groups[size] = [part.metadata.row_group(at).num_rows for at in range(part.num_row_groups)]
    assert groups[10] == [600]
    # A row holds some 30,400 bytes, so that 8 MB are some 260 rows.
    assert len(groups[30_000]) == 3
    assert all(250 < rows < 270 for rows in groups[30_000][:2])


def test_records_that_are_large_are_written_in_row_groups_that_can_be_read(tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "MAX_COLUMN_BYTES", 100_000)
    image = Image(key="a.png", view="PA", width=4, height=4)
    studies = [
        Study(id=f"s{number}", patient=f"{number}" * 9_000, source="test", order=number, images=(image,))
        for number in range(9)
    ]
    write_studies(tmp_path, studies, MADE)
    assert list(open_studies(tmp_path)) == studies
    assert pq.ParquetFile(tmp_path / "studies/part-00000.parquet").num_row_groups > 1
