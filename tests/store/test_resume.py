"""Directories that are written one command at a time, and continued only by the command that began them."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from carina.store.errors import BenchmarkError, CarinaError
from carina.store.resume import (
    LOCK,
    UNFINISHED,
    claim_directory,
    contents,
    is_empty,
    lock_directory,
    mark_finished,
    partial_directory,
    read_marker,
)

HOLD = (
    "import sys, time; from pathlib import Path; from carina.store.resume import lock_directory\n"
    "with lock_directory(Path(sys.argv[1])):\n    print('locked', flush=True)\n    time.sleep(600)"
)


def incomplete():
    return False


def partial(out, fingerprint="one", check=incomplete, **more):
    return partial_directory(out, fingerprint, check, error=BenchmarkError, **more)


def claim(directory, fingerprint):
    return claim_directory(directory, fingerprint, incomplete, error=BenchmarkError)


# ---- locks ----------------------------------------------------------------------------------------------------------


def test_a_directory_is_locked_for_one_block_at_a_time(tmp_path):
    place = tmp_path / "new/place"
    with lock_directory(place):
        with pytest.raises(BenchmarkError, match="place: another process is writing here"):
            lock_directory(place, BenchmarkError).__enter__()
        assert (place / LOCK).is_file()
    with lock_directory(place):
        pass


def test_a_lock_leaves_nothing_behind(tmp_path):
    with lock_directory(tmp_path):
        assert contents(tmp_path) == []
        assert is_empty(tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="inside"), lock_directory(tmp_path):
        raise ValueError("inside")
    assert list(tmp_path.iterdir()) == []


def test_the_lock_of_a_killed_process_is_free_and_its_file_is_taken_over(tmp_path):
    with subprocess.Popen([sys.executable, "-c", HOLD, tmp_path], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"locked\n"
        with pytest.raises(CarinaError, match="another process is writing here"):
            lock_directory(tmp_path).__enter__()
        process.kill()
        process.wait()
    assert (tmp_path / LOCK).exists()
    assert is_empty(tmp_path)
    with lock_directory(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_file_cannot_be_locked_as_a_directory(tmp_path):
    (tmp_path / "file").write_text("here")
    for path in (tmp_path / "file", tmp_path / "file/below", tmp_path / "file/below/it"):
        with pytest.raises(CarinaError) as raised:
            lock_directory(path).__enter__()
        assert str(raised.value) == f"{tmp_path / 'file'}: is a file, expected a directory"
    with pytest.raises(CarinaError, match="file: is a file, expected a directory"):
        partial(tmp_path / "file/below").__enter__()


def refuse(path, *_, **__):
    raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))


@pytest.mark.parametrize("way", [lock_directory, partial])
def test_a_directory_that_cannot_be_created_is_an_error_with_its_path(tmp_path, monkeypatch, way):
    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(CarinaError, match=rf"{tmp_path}.*: cannot be created: Read-only file system; choose"):
        way(tmp_path / "new/out").__enter__()


@pytest.mark.parametrize("way", [lock_directory, partial])
def test_a_directory_that_cannot_be_written_is_an_error_with_its_path(tmp_path, way):
    with (
        pytest.raises(CarinaError, match=rf"{tmp_path}.*: cannot be written: Read-only file system; choose"),
        way(tmp_path / "out") as hidden,
    ):
        refuse((hidden or tmp_path / "out") / "file")
    for other in ("/elsewhere/file", None):
        with pytest.raises(OSError, match="Read-only"), way(tmp_path / "out"):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), other)


def test_temporary_files_of_killed_processes_are_removed_and_others_are_not(tmp_path):
    (tmp_path / "tables").mkdir()
    left = [tmp_path / ".a.json.99.tmp", tmp_path / "tables/.b.csv.7.tmp"]
    foreign = [tmp_path / ".a.json.tmp", tmp_path / "a.99.tmp", tmp_path / ".99.tmp", tmp_path / ".a.9x.tmp"]
    for path in (*left, *foreign):
        path.touch()
    with pytest.raises(ValueError, match="inside"), lock_directory(tmp_path, folders=("tables",)):
        raise ValueError("inside")
    assert all(path.exists() for path in left)
    with lock_directory(tmp_path, folders=("tables",)):
        pass
    assert not any(path.exists() for path in left)
    assert all(path.exists() for path in foreign)


def test_a_directory_that_a_failed_command_created_is_removed_where_it_is_empty(tmp_path):
    with pytest.raises(ValueError, match="inside"), lock_directory(tmp_path / "new/place"):
        raise ValueError("inside")
    assert not (tmp_path / "new").exists()
    with pytest.raises(FileExistsError), lock_directory(tmp_path / "new/place"):
        (tmp_path / "new/place/folder/..").mkdir(parents=True)
    assert (tmp_path / "new/place/folder").is_dir()
    (tmp_path / "there").mkdir()
    with pytest.raises(ValueError, match="inside"), lock_directory(tmp_path / "there"):
        raise ValueError("inside")
    assert (tmp_path / "there").is_dir()


# ---- in place -------------------------------------------------------------------------------------------------------


def test_an_unfinished_directory_is_continued_with_the_same_fingerprint_only(tmp_path):
    with claim(tmp_path, "one"):
        (tmp_path / "part").write_text("1")
    assert (tmp_path / UNFINISHED).read_text() == "one"
    with pytest.raises(BenchmarkError, match="the beginning of a set made in another way"):
        claim(tmp_path, "other").__enter__()
    with claim(tmp_path, "one"):
        assert (tmp_path / "part").read_text() == "1"
        mark_finished(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["part"]


def test_a_complete_directory_is_not_marked_as_unfinished(tmp_path):
    with claim_directory(tmp_path, "one", lambda: True, error=BenchmarkError):
        assert contents(tmp_path) == []


# ---- beside its place -----------------------------------------------------------------------------------------------


def export(out, fingerprint, content="whole"):
    with partial(out, fingerprint) as hidden:
        (hidden / "file").write_text(content)


def test_an_export_gets_its_name_when_it_is_whole(tmp_path):
    out = tmp_path / "out"
    with partial(out, "one") as hidden:
        (hidden / "file").write_text("whole")
        assert not out.exists()
        with pytest.raises(BenchmarkError, match="another command exports to it"):
            partial(out, "one").__enter__()
    assert [path.name for path in out.iterdir()] == ["file"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(("fingerprint", "kept"), [("one", ["file"]), ("other", [])])
def test_an_interrupted_export_is_continued_with_the_same_fingerprint_and_else_emptied(
    tmp_path, fingerprint, kept
):
    out = tmp_path / "out"
    (tmp_path / ".out.partial").mkdir()
    (tmp_path / ".out.partial" / UNFINISHED).write_text("one")
    (tmp_path / ".out.partial/file").write_text("half")
    (tmp_path / ".out.partial/.file2.99.tmp").write_text("of a killed process")
    assert not out.exists()
    with partial(out, fingerprint) as hidden:
        assert [path.name for path in hidden.iterdir() if path.name != UNFINISHED] == kept


def test_an_export_goes_into_an_empty_directory_and_into_no_other(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / LOCK).touch()  # of a killed process
    export(out, "one")
    assert [path.name for path in out.iterdir()] == ["file"]
    with pytest.raises(BenchmarkError, match="out: holds something else already"):
        export(out, "one", "again")
    assert (out / "file").read_text() == "whole"


def test_files_in_the_hidden_directory_that_nobody_marked_as_an_export_are_kept(tmp_path):
    (tmp_path / ".out.partial").mkdir()
    (tmp_path / ".out.partial/mine").write_text("mine")
    with pytest.raises(BenchmarkError, match=r"\.out\.partial: holds files that Carina did not write"):
        partial(tmp_path / "out").__enter__()
    assert (tmp_path / ".out.partial/mine").read_text() == "mine"


def test_a_complete_export_is_freed_of_what_a_killed_command_left(tmp_path):
    out = tmp_path / "out"
    export(out, "one")
    (out / UNFINISHED).write_text("one")
    (out / "notes").mkdir()
    (out / "notes/1").touch()
    with partial(out, check=lambda: True, notes=("notes",)) as hidden:
        assert hidden is None
    assert [path.name for path in out.iterdir()] == ["file"]
    (out / "notes").mkdir()  # of the user: the export is complete, and nothing says that a command was killed
    with partial(out, check=lambda: True, notes=("notes",)):
        pass
    assert (out / "notes").is_dir()


def test_a_marker_that_is_no_regular_file_is_refused_instead_of_waited_for(tmp_path):
    os.mkfifo(tmp_path / UNFINISHED)
    with pytest.raises(CarinaError, match=r"\.unfinished: is not a regular file"):
        read_marker(tmp_path)


@pytest.mark.parametrize(
    ("make", "found"), [(lambda lock: lock.symlink_to("x"), "a link"), (os.mkfifo, "not a reg")]
)
def test_something_else_with_the_name_of_the_lock_is_refused_by_name(tmp_path, make, found):
    make(tmp_path / LOCK)
    with (
        pytest.raises(CarinaError, match=rf"\.carina\.lock: is {found}.*remove it"),
        lock_directory(tmp_path),
    ):
        pass
    assert os.path.lexists(tmp_path / LOCK)
