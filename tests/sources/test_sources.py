"""The interface of sources: what a reader declares, and what the import makes of what it yields."""

import csv
import json
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pytest
from msgspec import Meta
from tests.sources.swift_chat import sample
from typer.testing import CliRunner

from carina.cases import Benchmark, open_benchmark
from carina.cli import app
from carina.sources import (
    SOURCES,
    Repaired,
    Skipped,
    _evaluating,
    _writing,
    import_cases,
    import_source,
    import_studies,
    list_sources,
    source,
)
from carina.store import registry
from carina.store.errors import CarinaError
from carina.store.progress import call_on_advance
from carina.studies import Finding, Image, Studies, Study, open_studies, write_png


def study(name, *, width=8):
    """A study; a name with an equals sign also has a finding: "a=Edema"."""
    name, _, finding = name.partition("=")
    return Study(
        id=name,
        patient=f"p-{name}",
        source="scans",
        order=0,
        images=(Image(key=f"{name}.png", view="PA", width=width, height=8),),
        findings=(Finding(id="f1", name=finding, certainty="present"),) if finding else (),
    )


def read_line(path, number, line):
    if line == "bad":
        return [Skipped(place=f"{path}: line {number}", reason="is bad", field="id", kind="id")]
    return [study(line, width=0 if line == "narrow" else 8)]


@pytest.fixture
def scans():
    """A source with a study a line of a text file; every line that is read is noted."""
    calls = []

    @source(
        name="scans",
        title="A list of scans",
        needs="a text file.",
        licence="CC0-1.0",
        truth=("nothing",),
        url="https://example.org/scans",
        citation="Somebody, Scans, 2026",
    )
    def read_scans(
        path: Path,
        *,
        split: Annotated[Literal["train", "test"], Meta(description="Part of the data set.")] = "train",
        first: Annotated[int, Meta(ge=1, description="First line to read, from 1.")] = 1,
        notes: Annotated[Path | None, Meta(description="A file of notes.")] = None,
    ):
        calls.append((split, first, notes))
        for number, line in enumerate(path.read_text().split()[first - 1 :], start=1):
            yield partial(read_line, path, number, line)

    yield calls
    del SOURCES._entries["scans"]


@pytest.fixture
def lines(tmp_path):
    def write(*names):
        path = tmp_path / "scans.txt"
        path.write_text("\n".join(names))
        return path

    return write


# ---- declaring ----------------------------------------------------------------------------------------------------


def test_sources_are_listed_by_name_with_the_phantom():
    listed = list_sources()
    names = [found.name for found in listed]
    assert names == sorted(names)
    brings = {"chexpercept": "cases", "nih": "studies", "phantom": "studies", "swift-chat": "cases"}
    assert brings.keys() <= set(names)
    frame = listed.to_frame()
    assert frame["name"].to_list() == names
    assert brings.items() <= dict(frame.select("name", "brings").iter_rows()).items()
    assert "sources=" in repr(listed)


@pytest.mark.usefixtures("scans")
def test_two_sources_of_one_name_are_refused():
    with pytest.raises(ValueError, match="scans"):

        @source(name="scans", title="x", needs="x", licence="x", truth=())
        def read_others(_path: Path):
            yield from ()


@pytest.mark.usefixtures("scans")
def test_options_are_described_with_type_default_and_help():
    described = SOURCES["scans"].describe()
    assert described["options"] == [
        {
            "option": "--split",
            "takes": "train or test",
            "required": False,
            "default": "train",
            "help": "Part of the data set.",
        },
        {
            "option": "--first",
            "takes": "a whole number",
            "required": False,
            "default": "1",
            "help": "First line to read, from 1.",
        },
        {
            "option": "--notes",
            "takes": "a path",
            "required": False,
            "default": None,
            "help": "A file of notes.",
        },
    ]


@pytest.mark.usefixtures("scans")
def test_another_package_adds_a_source_by_an_entry_point(monkeypatch, lines, tmp_path):
    class Point:
        name, value, module, dist = "elsewhere", "package.module:SCANS", "package.module", None

        def load(self):
            return SOURCES["scans"]

    monkeypatch.setattr(registry, "entry_points", lambda group: [Point()] if "sources" in group else [])
    monkeypatch.setattr(SOURCES, "_has_entry_points", False)
    try:
        assert len(import_studies("elsewhere", lines("a"), tmp_path / "out", workers=1)) == 1
    finally:
        del SOURCES._entries["elsewhere"]


# ---- options ------------------------------------------------------------------------------------------------------


def test_options_reach_the_reader_with_their_types(scans, lines, tmp_path):
    (tmp_path / "notes.txt").write_text("n")
    options = {"split": "test", "first": "2", "notes": str(tmp_path / "notes.txt")}
    studies = import_studies("scans", lines("a", "b", "c"), tmp_path / "out", options=options, workers=1)
    assert scans == [("test", 2, tmp_path / "notes.txt")]
    assert studies.ids() == ["b", "c"]


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"splits": "x"}, ("source scans", "'splits'", "split, first, notes")),
        ({"split": "val"}, ("source scans", "--split", "train or test", "'val'")),
        ({"first": "one"}, ("source scans", "--first", "a whole number", "'one'")),
        ({"first": 0}, ("source scans", "--first", ">= 1")),
        ({"notes": 5}, ("source scans", "--notes", "a path", "5")),
    ],
)
def test_a_wrong_option_is_refused_before_anything_is_read(scans, lines, tmp_path, options, parts):
    with pytest.raises(CarinaError) as raised:
        import_studies("scans", lines("a"), tmp_path / "out", options=options)
    for part in parts:
        assert part in str(raised.value)
    assert scans == []


@pytest.mark.usefixtures("scans")
@pytest.mark.parametrize(
    ("more", "part"),
    [
        ({"on_error": "ask"}, "on_error"),
        ({"limit": 0}, "limit"),
        ({"images": "x"}, "takes no folder of images"),
    ],
)
def test_wrong_arguments_are_refused(lines, tmp_path, more, part):
    with pytest.raises(CarinaError, match=part):
        import_studies("scans", lines("a"), tmp_path / "out", **more)


def test_an_unknown_source_is_refused_with_the_known_ones():
    with pytest.raises(CarinaError, match=r"'swift-chart'.*Did you mean 'swift-chat'"):
        import_cases("swift-chart", "x", "y")
    with pytest.raises(
        CarinaError, match="phantom: is not imported; make phantom studies with `carina phantom`"
    ):
        import_studies("phantom", "x", "y")


# ---- importing ----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("scans")
def test_studies_become_a_study_set_with_licence_and_citation(lines, tmp_path):
    studies = import_studies("scans", lines("a", "b"), tmp_path / "out", workers=1)
    assert isinstance(studies, Studies)
    assert studies.ids() == ["a", "b"]
    stored = json.loads((tmp_path / "out" / "studies.json").read_text())
    assert stored["sources"] == [
        {
            "name": "scans",
            "licence": "CC0-1.0",
            "url": "https://example.org/scans",
            "citation": "Somebody, Scans, 2026",
        }
    ]
    assert stored["command"] == "carina import scans"
    assert set(stored["options"]) == {"file", "split", "first", "notes", "limit"}
    assert len(stored["options"]["file"]) == 64
    assert str(tmp_path) not in json.dumps(stored)


def test_cases_become_a_benchmark(tmp_path):
    path = tmp_path / "sample.json"
    path.write_text(json.dumps([sample.numbered(1)]))
    bench = import_cases("swift-chat", path, tmp_path / "out", workers=1)
    assert isinstance(bench, Benchmark)
    assert len(bench) == 1
    with pytest.raises(CarinaError, match="use import_cases"):
        import_studies("swift-chat", path, tmp_path / "other")


@pytest.mark.usefixtures("scans")
def test_skipped_records_are_counted_and_listed_with_reasons(lines, tmp_path):
    path = lines("a", "bad", "narrow", "b")
    imported = import_source("scans", path, tmp_path / "out", workers=1)
    assert (imported.counts.records, imported.counts.kept) == (4, 2)
    bad, narrow = imported.skipped
    assert bad.message == f"{path}: line 2: id: is bad"
    # A record that cannot be stored is skipped like one that cannot be read.
    assert narrow.message.startswith(f"{path}: narrow: images: ")
    with (tmp_path / "out" / "skipped.csv").open(newline="") as table:
        rows = list(csv.DictReader(table))
    assert [(row["study"], row["reason"]) for row in rows] == [("", "id"), ("narrow", "record")]
    assert imported.to_frame()["detail"].to_list() == [row["detail"] for row in rows]


@pytest.mark.usefixtures("scans")
def test_stop_raises_at_the_first_record_that_cannot_be_used(lines, tmp_path):
    with pytest.raises(CarinaError, match="line 2: id: "):
        import_studies("scans", lines("a", "bad"), tmp_path / "out", on_error="stop", workers=1)
    assert not (tmp_path / "out" / "studies.json").exists()


@pytest.mark.usefixtures("scans")
def test_nothing_is_written_where_no_record_can_be_used(lines, tmp_path):
    with pytest.raises(CarinaError, match=r"scans: .*\b2 records\b.*line 1: id: "):
        import_studies("scans", lines("bad", "bad"), tmp_path / "out", workers=1)
    assert not (tmp_path / "out").exists()
    with pytest.raises(CarinaError, match=r"scans\.txt: "):
        import_studies("scans", lines(), tmp_path / "out", workers=1)


@pytest.mark.usefixtures("scans")
def test_a_limit_counts_studies_and_reads_no_further(lines, tmp_path):
    imported = import_source("scans", lines("a", "bad", "b", "bad"), tmp_path / "out", limit=2, workers=1)
    assert (imported.counts.kept, imported.counts.records) == (2, 3)


@pytest.mark.usefixtures("scans")
def test_images_stay_where_they_are_or_are_copied(lines, tmp_path):
    path = lines("a", "b")
    for name in ("a", "b"):
        write_png(tmp_path / f"{name}.png", np.zeros((8, 8), np.uint8))
    assert import_studies("scans", path, tmp_path / "kept", workers=1).manifest.image_root == ".."
    copied = import_studies("scans", path, tmp_path / "copied", copy_images=True, workers=1)
    assert copied.manifest.image_root == "images"
    (tmp_path / "a.png").unlink()
    assert list(open_studies(tmp_path / "copied").check(images=True)) == []
    with pytest.raises(CarinaError, match=r"a\.png: "):
        import_studies("scans", path, tmp_path / "more", copy_images=True, workers=1)


@pytest.mark.usefixtures("scans")
def test_temporary_files_of_a_killed_import_are_removed_by_the_next_one(lines, tmp_path):
    path, out = lines("a"), tmp_path / "out"
    write_png(tmp_path / "a.png", np.zeros((8, 8), np.uint8))
    leftovers = [
        out / name for name in ("images/.a.png.99.tmp", "images/deep/.b.png.99.tmp", ".studies.json.99.tmp")
    ]
    foreign = out / "images/.a-user's.tmp"
    for file in (*leftovers, foreign):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"half")
    import_studies("scans", path, out, copy_images=True, workers=1)
    assert not [file for file in leftovers if file.exists()]
    assert foreign.exists()


@pytest.mark.usefixtures("scans")
def test_progress_counts_records(lines, tmp_path):
    counted = []
    with pytest.warns(UserWarning, match="1 record skipped"):
        import_studies(
            "scans",
            lines("a", "bad", "b"),
            tmp_path / "out",
            workers=1,
            progress=call_on_advance(counted.append),
        )
    assert sum(counted) == 3


def test_a_reader_of_the_wrong_records_is_a_fault_of_the_reader(tmp_path):
    @source(name="wrong", title="x", needs="x", licence="x", truth=(), brings="cases")
    def read_wrong(_path: Path):
        yield study("a")

    try:
        with pytest.raises((TypeError, AttributeError)):
            import_cases("wrong", tmp_path, tmp_path.with_name("out"), workers=1)
    finally:
        del SOURCES._entries["wrong"]


# ---- defects and ids ----------------------------------------------------------------------------------------------


@pytest.fixture
def untidy():
    @source(
        name="untidy",
        title="Untidy scans",
        needs="a text file.",
        licence="CC0-1.0",
        truth=(),
        defects={"capital": "kept", "second": "its id gets a number", "rare": "kept"},
        second_id="second",
    )
    def read_untidy(path: Path):
        for number, name in enumerate(path.read_text().split(), start=1):
            capitals = sum(letter.isupper() for letter in name)
            yield Repaired(
                record=study(name),
                number=number,
                defects={"capital": capitals} if capitals else {},
                unmapped=("colour",),
            )

    yield
    del SOURCES._entries["untidy"]


@pytest.mark.usefixtures("untidy")
def test_defects_are_counted_by_times_records_and_first_record(lines, tmp_path):
    imported = import_source("untidy", lines("a", "AB", "A", "a"), tmp_path / "out", workers=1)
    assert [(name, c.times, c.records, c.first, done) for name, c, done in imported.defects] == [
        ("capital", 3, 2, 2, "kept"),
        ("second", 1, 1, 4, "its id gets a number"),
    ]
    assert imported.counts.unmapped == {"colour": 4}
    rows = (tmp_path / "out" / "defects.csv").read_text().splitlines()
    assert rows == [
        "defect,times,record,file,row,what was done",
        "capital,2,AB,scans.txt,2,kept",
        "capital,1,A,scans.txt,3,kept",
        "second,1,a-2,scans.txt,4,its id gets a number",
    ]


@pytest.mark.usefixtures("untidy")
def test_a_second_id_gets_a_number(lines, tmp_path):
    path = lines("a", "a-2", "a", "a", "a-2")
    assert import_studies("untidy", path, tmp_path / "out", workers=1).ids() == [
        "a",
        "a-2",
        "a-3",
        "a-4",
        "a-2-2",
    ]


# ---- interrupted --------------------------------------------------------------------------------------------------


def snapshot(root):
    return {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["scans", "untidy"])
def test_an_interrupted_import_goes_on_after_the_last_finished_part(
    request, name, lines, tmp_path, monkeypatch
):
    request.getfixturevalue(name)
    monkeypatch.setattr(_writing, "PART_SIZE", 2)
    second = "f" if name == "scans" else "a"
    path = lines("a", "b", "bad", "c", "d", second, "bad2")
    import_source(name, path, tmp_path / "whole", workers=1)
    parts = []
    real = _writing._write_note

    def interrupted(out, index, note):
        real(out, index, note)
        parts.append(index)
        if index == 1 and len(parts) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(_writing, "_write_note", interrupted)
    with pytest.raises(KeyboardInterrupt):
        import_source(name, path, tmp_path / "out", workers=1)
    assert not (tmp_path / "out" / "studies.json").exists()
    imported = import_source(name, path, tmp_path / "out", workers=1)
    assert parts[:3] == [0, 1, 2]
    assert snapshot(tmp_path / "out") == snapshot(tmp_path / "whole")
    assert imported.counts.records == 7


@pytest.mark.usefixtures("scans")
def test_a_resumed_import_reads_no_finished_record_again(lines, tmp_path, monkeypatch):
    monkeypatch.setattr(_writing, "PART_SIZE", 2)
    read = []

    def noting(*arguments):
        (call,) = arguments[-1]
        read.append(call.args[-1])
        if read == ["a", "b", "c"]:
            raise KeyboardInterrupt
        return real(*arguments)

    real = _evaluating.Evaluation.__call__
    monkeypatch.setattr(_evaluating.Evaluation, "__call__", noting)
    with pytest.raises(KeyboardInterrupt):
        import_studies("scans", lines("a", "b", "c"), tmp_path / "out", workers=1)
    assert len(import_studies("scans", tmp_path / "scans.txt", tmp_path / "out", workers=1)) == 3
    assert read == ["a", "b", "c", "c"]


def test_a_finished_import_is_read_no_more_and_another_one_is_refused(lines, tmp_path, scans):
    path = lines("a", "bad")
    first = import_source("scans", path, tmp_path / "out", workers=1)
    whole = snapshot(tmp_path / "out")
    scans.clear()
    assert import_source("scans", path, tmp_path / "out", workers=1).counts == first.counts
    assert scans == []
    assert snapshot(tmp_path / "out") == whole
    with pytest.raises(CarinaError, match="out: "):
        import_studies("scans", path, tmp_path / "out", options={"split": "test"}, workers=1)


@pytest.mark.usefixtures("scans")
def test_a_damaged_part_of_a_finished_import_is_made_again(lines, tmp_path):
    path, out = lines("a", "b"), tmp_path / "out"
    import_source("scans", path, out, workers=1)
    whole = snapshot(out)
    part = out / "studies/part-00000.parquet"
    part.write_bytes(part.read_bytes()[:-7])
    import_source("scans", path, out, workers=1)
    assert snapshot(out) == whole


def test_batches_grow_to_a_sixteenth_of_what_came_before():
    sizes = [len(batch) for batch in _writing._make_batches(range(4000), 128)]
    assert sizes[:18] == [1] * 16 + [2] * 2
    assert max(sizes) == sizes[-2] == 128
    assert sum(sizes) == 4000
    assert [len(batch) for batch in _writing._make_batches(range(40), 1)] == [1] * 40


@pytest.mark.usefixtures("scans")
def test_parts_do_not_depend_on_how_records_are_divided_among_workers(lines, tmp_path, monkeypatch):
    names = ["bad" if number % 7 == 3 else f"s{number}" for number in range(90)]
    path = lines(*names)
    for batch in (1, 128):
        monkeypatch.setattr(_writing, "BATCH", batch)
        monkeypatch.setattr(_writing, "PART_SIZE", 11)
        import_source("scans", path, tmp_path / str(batch), workers=1)
    assert snapshot(tmp_path / "1") == snapshot(tmp_path / "128")
    kept = [name for name in names if name != "bad"]
    assert [one.id for one in open_studies(tmp_path / "128")] == kept


@pytest.mark.usefixtures("untidy")
def test_a_repeated_id_gets_its_number_within_a_batch(lines, tmp_path, monkeypatch):
    monkeypatch.setattr(_writing, "_BATCH_SHARE", 1)
    imported = import_source("untidy", lines("a", "b", "c", "b", "d", "b"), tmp_path / "out", workers=1)
    assert [one.id for one in open_studies(imported.path)] == ["a", "b", "c", "b-2", "d", "b-3"]


def test_workers_change_no_byte(tmp_path):
    path = tmp_path / "sample.json"
    records = [sample.numbered(n) for n in range(70)]
    records[33]["study_id"] = ""
    path.write_text(json.dumps(records))
    for workers in (1, 2):
        import_cases("swift-chat", path, tmp_path / f"out{workers}", workers=workers)
    assert snapshot(tmp_path / "out1") == snapshot(tmp_path / "out2")
    assert len(open_benchmark(tmp_path / "out1")) == 69


# ---- names that are not known -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("scans")
def test_names_that_are_not_known_are_kept_and_counted_over_parts(lines, tmp_path, monkeypatch):
    monkeypatch.setattr(_writing, "PART_SIZE", 2)
    file = lines("a=Edema", "b=edema", "c=dragon", "d=Edema", "e")
    imported = import_source("scans", file, tmp_path / "out", workers=1)
    assert imported.counts.unknown_names == {"finding": {"Edema": 2, "dragon": 1}}
    assert [(one.name, one.studies, one.nearest) for one in imported.unknown_names] == [
        ("Edema", 2, "edema"),
        ("dragon", 1, None),
    ]
    written = json.loads((tmp_path / "out/import.json").read_text())
    assert written["unknown_names"] == {"finding": {"Edema": 2, "dragon": 1}}
    assert [one.findings[0].name for one in open_studies(tmp_path / "out") if one.findings] == [
        "Edema",
        "edema",
        "dragon",
        "Edema",
    ]
    # Read from the file.
    assert import_source("scans", file, tmp_path / "out", workers=1).unknown_names == imported.unknown_names


@pytest.mark.usefixtures("scans")
def test_names_that_are_not_known_are_printed_with_the_nearest_name(lines, tmp_path):
    file = lines("a=Edema", "b=dragon")
    arguments = ["import", "scans", str(file), "-o", str(tmp_path / "out"), "--workers", "1"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert result.stderr.splitlines() == [
        "Notice: finding 'Edema' in 1 study: not a known name, did you mean 'edema'?",
        "Notice: finding 'dragon' in 1 study: not a known name",
        "2 studies of 2 records, 0 skipped",
    ]
    told = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
    assert told["unknown_names"] == [
        {"kind": "finding", "name": "Edema", "studies": 1, "nearest": "edema"},
        {"kind": "finding", "name": "dragon", "studies": 1, "nearest": None},
    ]


READERS = sorted(name for name, one in SOURCES.entries().items() if one.read is not None)


@pytest.mark.parametrize("name", READERS)
def test_a_path_that_is_not_there_is_named_as_such(name, tmp_path):
    with pytest.raises(CarinaError, match="nowhere: no such file or directory"):
        import_source(name, tmp_path / "nowhere", tmp_path / "out", workers=1)


@pytest.mark.parametrize("name", READERS)
def test_an_empty_folder_is_named_as_such(name, tmp_path):
    (tmp_path / "bare").mkdir()
    with pytest.raises(CarinaError, match=r"bare: (an empty folder|is a folder)"):
        import_source(name, tmp_path / "bare", tmp_path / "out", workers=1)
