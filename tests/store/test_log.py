"""The append-only log: records come back as they were, and damage costs no more than the lines it touches."""

import os

import pytest

from carina.store.errors import CarinaError
from carina.store.log import Log, read_lines, read_record

RECORDS = [b"first", b"", b"\xff\x00 bytes", b"last"]


def written(path, records=RECORDS, **options):
    with Log(path, **options) as log:
        log.append(records)
    return path


def records(path, **options):
    return [line.record for line in read_lines(path, **options)]


@pytest.mark.parametrize("checksums", [False, True])
def test_records_come_back_in_order(tmp_path, checksums):
    path = written(tmp_path / "folder/log", checksums=checksums)
    written(path, [b"of a later call"], checksums=checksums)
    assert records(path, checksums=checksums) == [*RECORDS, b"of a later call"]


def test_without_checksums_the_file_is_its_lines(tmp_path):
    path = written(tmp_path / "log", [b"a", b"b"])
    assert path.read_bytes() == b"a\nb\n"
    assert [(line.number, line.start, line.end) for line in read_lines(path)] == [(1, 0, 2), (2, 2, 4)]


def test_a_record_is_read_again_by_the_offset_of_its_line(tmp_path):
    with Log(tmp_path / "log") as log:
        starts = [log.add(record) for record in RECORDS]
        assert [read_record(log.path, start) for start in starts] == RECORDS
    with Log(tmp_path / "log") as log:
        assert read_record(log.path, log.add(b"of a later call")) == b"of a later call"


@pytest.mark.parametrize("checksums", [False, True])
def test_a_last_line_that_was_cut_off_is_not_read_and_removed_on_repair(tmp_path, checksums):
    path = written(tmp_path / "log", checksums=checksums)
    whole = path.read_bytes()
    before = len(whole) - len(b"last\n") - (9 if checksums else 0)
    for cut in range(before, len(whole)):
        path.write_bytes(whole[:cut])
        assert records(path, checksums=checksums) == RECORDS[:-1]
        assert path.read_bytes() == whole[:cut]
        assert records(path, checksums=checksums, repair=True) == RECORDS[:-1]
        assert path.read_bytes() == whole[:before]
    assert records(written(path, [b"last"], checksums=checksums), checksums=checksums) == RECORDS


def test_a_changed_byte_is_found_by_the_checksum(tmp_path):
    path = written(tmp_path / "log", [b"one", b"two", b"three"], checksums=True)
    whole = path.read_bytes()
    ends = [line.end for line in read_lines(path, checksums=True)]
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 0x41
        path.write_bytes(bytes(damaged))
        found = records(path, checksums=True)
        intact = sum(end <= at for end in ends)
        assert found[:intact] == [b"one", b"two", b"three"][:intact]
        assert len(found) == intact or found[intact] is None


def test_a_log_is_truncated_to_the_kept_records(tmp_path):
    path = written(tmp_path / "log")
    with Log(path, keep=6) as log:
        log.append([b"new"])
    assert records(path) == [b"first", b"new"]
    Log(path, keep=0).close()
    assert records(path) == []


def test_a_private_log_is_readable_by_its_owner_alone(tmp_path):
    written(tmp_path / "log", private=True)
    assert (tmp_path / "log").stat().st_mode & 0o077 == 0


def test_synced_records_are_in_the_file(tmp_path):
    with Log(tmp_path / "log") as log:
        log.append([b"one"])
        log.flush()
        assert records(log.path) == [b"one"]
        log.append([b"two"])
        log.sync()
        assert records(log.path) == [b"one", b"two"]


def test_a_line_above_the_limit_is_refused_with_file_and_line(tmp_path, monkeypatch):
    monkeypatch.setattr("carina.store.log.MAX_LINE_BYTES", 10)
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"123456789\n0123456789\n")  # 10 and 11 bytes with their line feeds
    with pytest.raises(CarinaError, match=r"log\.jsonl, line 2: longer than the limit of 10 bytes"):
        list(read_lines(path))


def test_a_log_that_is_no_regular_file_is_refused_with_its_path(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name in ("pipe", "zero"):
        with pytest.raises(CarinaError, match=f"{name}: is not a regular file"):
            list(read_lines(tmp_path / name))
        with pytest.raises(CarinaError, match=f"{name}: is not a regular file"):
            Log(tmp_path / name)
