"""Writing study sets: exact round trips, the same bytes every time, and work that survives interruption."""

import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from carina.store.errors import StudySetError
from carina.store.files import sha256
from carina.studies import (
    Finding,
    Image,
    Provenance,
    Quality,
    Study,
    create_studies,
    finished_part,
    open_studies,
    write_part,
    write_studies,
)
from carina.studies.store import STUDIES

MADE = Provenance(command="carina test", seed=7, options={"size": 512})
PRINT = MADE.fingerprint
OTHER = Provenance(command="another", seed=8)


def claim(directory, provenance, *, replace=False):
    """Begin a set, as a process does that is killed before it writes anything."""
    with create_studies(directory, provenance, replace=replace):
        pass


def study(number: int, **more) -> Study:
    image = Image(key=f"{number:04d}.png", view="PA", width=8, height=4)
    return Study(
        id=f"s{number:04d}",
        patient=f"p{number // 2}",
        source="test",
        order=number % 2,
        images=(image,),
        **more,
    )


def test_an_empty_list_and_an_unknown_value_are_distinguished(tmp_path):
    def with_cut_off(number, cut_off):
        quality = Quality(cut_off=cut_off)
        image = Image(key="a.png", view="AP", width=1, height=1, quality=quality)
        return Study(id=str(number), patient="p", source="t", order=number, images=(image,))

    written = [with_cut_off(0, None), with_cut_off(1, ()), with_cut_off(2, ("left costophrenic angle",))]
    write_studies(tmp_path, written, MADE)
    read = [study.images[0].quality.cut_off for study in open_studies(tmp_path)]
    assert read == [None, (), ("left costophrenic angle",)]


def test_the_schema_is_nested_columns_with_the_records_nullability():
    assert STUDIES.schema.field("id").nullable is False
    assert STUDIES.schema.field("age").nullable is True
    assert str(STUDIES.schema.field("date").type) == "date32[day]"
    assert "findings.list.element.annotations.list.element.region.counts" in STUDIES.leaves


def test_every_leaf_path_is_one_of_parquets(tmp_path):
    write_part(tmp_path, 0, [study(0)], fingerprint=PRINT)
    schema = pq.ParquetFile(tmp_path / "studies/part-00000.parquet").schema
    assert tuple(schema.column(i).path for i in range(len(schema))) == STUDIES.leaves


def test_the_same_studies_give_the_same_bytes(tmp_path):
    studies = [study(n) for n in range(5)]
    for name in ("a", "b"):
        write_studies(tmp_path / name, iter(studies), MADE, part_size=2)
    files = sorted(path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*") if path.is_file())
    assert [str(file) for file in files] == [
        "studies/part-00000.parquet",
        "studies/part-00001.parquet",
        "studies/part-00002.parquet",
        "studies.json",
    ]
    for file in files:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_counts_are_of_studies_patients_images_and_findings(tmp_path):
    nodule = Finding(id="f1", name="nodule", certainty="present")
    other = Finding(id="f2", name="nodule", certainty="present")
    clear = Finding(id="f3", name="edema", certainty="absent")
    manifest = write_studies(
        tmp_path,
        [study(0, findings=(nodule, other)), study(1, findings=(clear,)), study(2)],
        MADE,
        part_size=2,
    )
    assert manifest.counts.studies == 3
    assert manifest.counts.patients == 2
    assert manifest.counts.images == 3
    assert manifest.counts.findings == {"edema": {"absent": 1}, "nodule": {"present": 2}}


def test_an_empty_set_is_a_set(tmp_path):
    write_studies(tmp_path, [], MADE)
    opened = open_studies(tmp_path)
    assert (len(opened), list(opened), opened.ids()) == (0, [], [])
    assert opened.table().collect().height == 0
    assert opened.sql("SELECT count(*) FROM studies").fetchall() == [(0,)]


def test_a_stream_is_written_one_part_at_a_time(tmp_path):
    parts_seen = []

    def stream() -> Iterator[Study]:
        for number in range(9):
            parts_seen.append(len(list(tmp_path.glob("studies/part-*.parquet"))))
            yield study(number)

    write_studies(tmp_path, stream(), MADE, part_size=3)
    assert parts_seen == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_a_wrong_value_is_caught_by_the_writer(tmp_path):
    wrong = study(3, findings=(Finding(id="f", name="nodule", certainty="maybe"),))
    with pytest.raises(StudySetError) as caught:
        write_part(tmp_path, 2, [study(2), wrong], fingerprint=PRINT)
    message = str(caught.value)
    assert "part-00002.parquet: row 1, study 's0003'" in message
    assert "'maybe' - at `$.findings[0].certainty`; expected one of absent, present, uncertain" in message
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_number_too_large_for_its_column_is_an_error(tmp_path):
    with pytest.raises(StudySetError, match="does not fit its column"):
        write_part(tmp_path, 0, [study(0, age=2**70)], fingerprint=PRINT)


def test_two_studies_with_one_id_are_refused(tmp_path):
    with pytest.raises(
        StudySetError, match=r"part-00001.parquet: row 0, study 's0000'.*row 0 of studies/part-00000"
    ):
        write_studies(tmp_path, [study(0), study(1), study(0)], MADE, part_size=2)
    with pytest.raises(StudySetError, match="unfinished"):
        open_studies(tmp_path)


# Resuming ---------------------------------------------------------------------------------------------------


def test_a_finished_part_is_found_again(tmp_path):
    written = write_part(tmp_path, 4, [study(0)], fingerprint=PRINT)
    assert finished_part(tmp_path, 4, fingerprint=PRINT) == written
    assert written.file == "studies/part-00004.parquet"
    assert written.sha256 == sha256(tmp_path / written.file)
    assert finished_part(tmp_path, 5, fingerprint=PRINT) is None


def test_a_part_made_in_another_way_is_not_finished(tmp_path):
    write_part(tmp_path, 0, [study(0)], fingerprint=PRINT)
    assert finished_part(tmp_path, 0, fingerprint="other") is None


@pytest.mark.parametrize("damage", ["cut", "empty", "changed", "text"])
def test_a_damaged_part_is_not_finished(tmp_path, damage):
    path = tmp_path / write_part(tmp_path, 0, [study(n) for n in range(40)], fingerprint=PRINT).file
    content = path.read_bytes()
    changed = bytearray(content)
    changed[100] ^= 1
    path.write_bytes(
        {"cut": content[:-20], "empty": b"", "changed": bytes(changed), "text": b"hello"}[damage]
    )
    assert finished_part(tmp_path, 0, fingerprint=PRINT) is None


def test_a_part_of_other_columns_is_not_finished(tmp_path):
    path = tmp_path / write_part(tmp_path, 0, [study(0)], fingerprint=PRINT).file
    pq.write_table(pq.read_table(path).drop_columns(["age"]), path)
    assert finished_part(tmp_path, 0, fingerprint=PRINT) is None


def test_another_set_is_not_overwritten(tmp_path):
    write_studies(tmp_path, [study(0)], MADE)
    with pytest.raises(
        StudySetError, match=r"already holds 1 studies made in another way \(`carina test`; seed 7, not 8; "
    ):
        claim(tmp_path, OTHER)
    assert len(open_studies(tmp_path)) == 1
    claim(tmp_path, MADE)
    assert len(open_studies(tmp_path)) == 1


def test_a_set_given_up_is_no_longer_readable(tmp_path):
    write_studies(tmp_path, [study(0)], MADE)
    claim(tmp_path, OTHER, replace=True)
    with pytest.raises(StudySetError, match="unfinished"):
        open_studies(tmp_path)


def test_a_file_cannot_be_claimed(tmp_path):
    (tmp_path / "file").write_text("here")
    with pytest.raises(StudySetError, match="is a file, expected a directory"):
        claim(tmp_path / "file", MADE)


def test_a_file_that_is_no_manifest_is_not_overwritten(tmp_path):
    (tmp_path / "studies.json").write_text("my notes")
    with pytest.raises(StudySetError, match="not the manifest of a study set"):
        claim(tmp_path, MADE)


def test_rewriting_a_part_closes_the_set_to_readers(tmp_path):
    write_studies(tmp_path, [study(n) for n in range(4)], MADE, part_size=2)
    write_part(tmp_path, 0, [study(8)], fingerprint=PRINT)
    with pytest.raises(StudySetError, match="unfinished"):
        open_studies(tmp_path)


def test_parts_beyond_the_new_set_are_removed(tmp_path):
    write_studies(tmp_path, [study(n) for n in range(6)], MADE, part_size=2)
    (tmp_path / "studies/.part-00001.parquet.99.tmp").write_bytes(b"left by a killed process")
    write_studies(tmp_path, [study(n) for n in range(2)], MADE, part_size=2, replace=True)
    assert [path.name for path in (tmp_path / "studies").iterdir()] == ["part-00000.parquet"]
    assert open_studies(tmp_path).ids() == ["s0000", "s0001"]


def test_a_part_of_another_set_is_not_removed(tmp_path):
    write_part(tmp_path, 3, [study(0)], fingerprint=OTHER.fingerprint)
    foreign = (tmp_path / "studies/part-00003.parquet").read_bytes()
    for replace in (False, True):
        with pytest.raises(StudySetError, match=r"part-00003\.parquet: was not written by this command"):
            write_studies(tmp_path, [study(1)], MADE, replace=replace)
    assert (tmp_path / "studies/part-00003.parquet").read_bytes() == foreign
    assert [path.name for path in tmp_path.iterdir()] == ["studies"]


def test_a_set_given_up_takes_its_own_parts_with_it_and_no_others(tmp_path):
    write_studies(tmp_path, [study(n) for n in range(6)], OTHER, part_size=2)
    (tmp_path / "studies/part-00009.parquet").write_bytes(b"mine")
    write_studies(tmp_path, [study(0)], MADE, replace=True)
    assert open_studies(tmp_path).ids() == ["s0000"]
    names = sorted(path.name for path in (tmp_path / "studies").iterdir())
    assert names == ["part-00000.parquet", "part-00009.parquet"]
    assert (tmp_path / "studies/part-00009.parquet").read_bytes() == b"mine"


def part(index: int) -> list[Study]:
    return [study(index * 50 + number) for number in range(50)]


def write_parts_for_ever(directory: Path, fingerprint: str) -> None:
    for index in count():
        write_part(directory, index, part(index), fingerprint=fingerprint)


def test_a_killed_writer_is_resumed_to_the_same_bytes(tmp_path):
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    claim(killed, MADE)
    # A process of its own, not a fork: Arrow's threads do not survive one.
    run = "import runpy, sys; from pathlib import Path; test = runpy.run_path(sys.argv[1]); "
    run += "test['write_parts_for_ever'](Path(sys.argv[2]), sys.argv[3])"
    with subprocess.Popen([sys.executable, "-c", run, __file__, killed, PRINT]) as process:
        while len(list(killed.glob("studies/part-*.parquet"))) < 3:
            assert process.poll() is None
            time.sleep(0.005)
        process.kill()
    with pytest.raises(StudySetError, match="unfinished"):
        open_studies(killed)
    done = len(list(killed.glob("studies/part-*.parquet")))
    with create_studies(killed, MADE) as build:
        resumed = []
        for index in range(done + 2):
            assert (build.finished_part(index) is not None) == (index < done)
            resumed.append(build.complete_part(index, lambda index=index: part(index)))
        build.close(resumed)
    with create_studies(whole, MADE) as build:
        build.close([build.write_part(index, part(index)) for index in range(done + 2)])
    names = sorted(path.relative_to(whole) for path in whole.rglob("*") if path.is_file())
    assert names == sorted(path.relative_to(killed) for path in killed.rglob("*") if path.is_file())
    assert all((whole / name).read_bytes() == (killed / name).read_bytes() for name in names)


def test_the_fingerprint_changes_with_everything_that_changes_the_bytes():
    def made(**more):
        return Provenance(**{"command": "c", "seed": 7, "options": {"a": 1, "b": 2}, **more}).fingerprint

    assert made(command="with more workers") == made(options={"b": 2, "a": 1}) == made()
    assert len({made(), made(seed=8), made(options={"a": 1}), made(image_root="elsewhere")}) == 4


def test_the_beginning_of_another_set_is_not_written_over(tmp_path):
    claim(tmp_path, MADE)
    with pytest.raises(StudySetError, match="the beginning of a set made in another way"):
        claim(tmp_path, OTHER)
    with create_studies(tmp_path, MADE) as build:
        build.close([build.write_part(0, [])])
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_complete_set_is_replaced_only_when_asked(tmp_path):
    write_studies(tmp_path, [study(0)], MADE)
    with pytest.raises(StudySetError, match="already holds 1 studies: choose another directory"):
        write_studies(tmp_path, [study(1)], MADE)
    assert open_studies(tmp_path).ids() == ["s0000"]
    write_studies(tmp_path, [study(1)], MADE, replace=True)
    assert open_studies(tmp_path).ids() == ["s0001"]
