"""Files of conversations to benchmarks: counts, order, what is skipped; and our own conversations there and back."""

import csv
import gc
import json
import tracemalloc
from collections import deque
from itertools import islice

import msgspec
import pytest
from tests.exports.chat import conversation
from tests.sources.swift_chat import sample

from carina.cases import open_benchmark
from carina.exports import export
from carina.sources import SourceError, import_source
from carina.sources.swift_chat import read_conversations


def bring(path, out, *, workers=1, **more):
    return import_source("swift-chat", path, out, workers=workers, **more)


def defects(result):
    return {name: count for name, count, _ in result.defects}


def write(path, records, *, lines=False):
    path.write_text("\n".join(map(json.dumps, records)) if lines else json.dumps(records, indent=4))
    return path


@pytest.mark.parametrize("lines", [False, True])
def test_a_file_becomes_a_benchmark(tmp_path, lines):
    records = [sample.numbered(n) for n in range(3)]
    path = write(tmp_path / "sample.json", records, lines=lines)
    result = bring(path, tmp_path / "bench")
    counts = result.counts
    assert (counts.records, counts.kept, counts.questions, counts.skipped) == (3, 3, 36, [])
    bench = open_benchmark(tmp_path / "bench")
    assert bench.ids() == [f"trek-p1000000{n}-s50000002" for n in range(3)]
    assert list(bench.check(images=False)) == []
    assert counts.formats == {"open": 5 * 3, "yes_no": 2 * 3, "choice": 3 * 3, "boxes": 3, "report": 3}
    text = "".join(path.read_text(errors="replace") for path in (tmp_path / "bench").glob("*.*"))
    assert "somebody" not in text


def test_defects_are_counted_over_the_file(tmp_path):
    records = [sample.numbered(n) for n in range(4)]
    for n in (1, 3):
        records[n]["content"][0]["question"] = "In {words} words and {words}: which view?"
    path = write(tmp_path / "sample.json", records)
    result = bring(path, tmp_path / "bench")
    tallies = defects(result)
    tally = tallies["unfilled slot"]
    assert (tally.times, tally.records, tally.first) == (4, 2, 2)
    assert (tallies["texts differ"].times, tallies["multi-choice-N"].times) == (2, 12)
    rows = list(csv.DictReader((tmp_path / "bench" / "defects.csv").read_text().splitlines()))
    wrong = [(row["file"], row["row"], row["times"]) for row in rows if row["defect"] == "unfilled slot"]
    assert wrong == [("sample.json", "2", "2"), ("sample.json", "4", "2")]
    assert all(row["what was done"] for row in rows)


def test_skipped_records_are_reported_with_number_and_field(tmp_path):
    records = [sample.numbered(n) for n in range(4)]
    records[1]["content"][2]["stage"] = 12
    records[2]["image"].append("x.jpg")
    path = write(tmp_path / "sample.json", records)
    result = bring(path, tmp_path / "bench")
    assert [(item.place, item.field) for item in result.skipped] == [
        (f"{path}: record 2", "content[2].stage"),
        (f"{path}: record 3", "messages"),
    ]
    assert result.skipped[0].message == f"{path}: record 2: content[2].stage: is 12, expected 1 to 8"
    assert result.counts.kept == 2
    assert "content[2].stage" in (tmp_path / "bench" / "skipped.csv").read_text()
    with pytest.raises(SourceError, match=r"sample\.json: record 2: content\[2\]\.stage: .*\b12\b"):
        bring(path, tmp_path / "other", on_error="stop")
    assert not (tmp_path / "other" / "bench.json").exists()


def test_a_broken_line_is_skipped(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join([json.dumps(sample.numbered(1)), '{"a": ', json.dumps(sample.numbered(2))]))
    result = bring(path, tmp_path / "bench")
    assert (result.counts.kept, [item.place for item in result.skipped]) == (2, [f"{path}: record 2"])


def test_several_cases_of_a_study_have_names_of_their_own(tmp_path):
    path = write(tmp_path / "a.json", [sample.record(), sample.record(), sample.record()])
    result = bring(path, tmp_path / "bench")
    name = "trek-p10000001-s50000002"
    assert open_benchmark(tmp_path / "bench").ids() == [name, f"{name}-2", f"{name}-3"]
    assert defects(result)["second case of a study"].times == 2


def test_a_name_that_is_taken_is_not_given_again(tmp_path):
    records = [sample.record(id=name) for name in ("a", "a-2", "a", "a", "a-2")]
    path = write(tmp_path / "a.json", records)
    bring(path, tmp_path / "bench")
    assert open_benchmark(tmp_path / "bench").ids() == ["a", "a-2", "a-3", "a-4", "a-2-2"]


def test_the_same_bytes_for_any_number_of_workers(tmp_path):
    records = [sample.numbered(n) for n in range(70)]
    records[40]["study_id"] = ""
    path = write(tmp_path / "a.json", records)
    for workers in (1, 2):
        result = bring(path, tmp_path / f"b{workers}", workers=workers)
        assert (result.counts.kept, len(result.skipped)) == (69, 1)
    one, two = (
        {file.name: file.read_bytes() for file in sorted((tmp_path / name).rglob("*")) if file.is_file()}
        for name in ("b1", "b2")
    )
    assert one == two


def test_nothing_is_written_where_nothing_can_be_used(tmp_path):
    path = write(tmp_path / "a.json", [{"study_id": ""}])
    result = bring(path, tmp_path / "bench")
    assert (result.is_empty, result.counts.records) == (True, 1)
    assert not (tmp_path / "bench").exists()
    with pytest.raises(SourceError, match=r"b\.json: "):
        bring(write(tmp_path / "b.json", []), tmp_path / "bench")


def test_a_limit_applies_to_all_files_of_a_folder(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    write(folder / "b.jsonl", [sample.numbered(3)], lines=True)
    write(folder / "a.json", [sample.numbered(1), sample.numbered(2)])
    (folder / "carina.json").write_text("{}")
    bring(folder, tmp_path / "all")
    assert [case.patient for case in open_benchmark(tmp_path / "all")] == [
        "p10000001",
        "p10000002",
        "p10000003",
    ]
    result = bring(folder, tmp_path / "two", limit=2)
    assert result.counts.kept == len(open_benchmark(tmp_path / "two")) == 2


def test_memory_does_not_grow_with_the_number_of_records(tmp_path):
    # Parts are the writer's business: here records are read and let go.
    path = write(tmp_path / "a.json", [sample.numbered(n) for n in range(300)])
    peaks = []
    for count in (100, 100, 300):  # the first pass fills caches
        gc.collect()
        tracemalloc.start()
        items = (item for call in read_conversations(path) for item in call())
        deque(islice(items, count), maxlen=0)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert path.stat().st_size > 2_000_000
    assert peaks[2] < peaks[1] + 500_000


# ---- there and back -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pictures", ["none", "copy"])
def test_exported_conversations_are_imported_unchanged(tmp_path, pictures):
    cases = [conversation.case(1), conversation.case(2, split="test")]
    bench = conversation.write(tmp_path / "bench", cases)
    options = {"layout": "swift", "pictures": pictures, "system": "You read."}
    export(bench, tmp_path / "chat", to="chat", options=options)
    root = tmp_path / ("images" if pictures == "none" else "chat")
    result = bring(tmp_path / "chat", tmp_path / "again", images=root)
    assert defects(result) == {}
    again = open_benchmark(tmp_path / "again")
    assert list(again.check(images=True)) == []
    for case in cases:
        back = again[case.id]
        assert (back.study, back.patient, back.split, back.source) == (
            case.study,
            case.patient,
            case.split,
            case.source,
        )
        assert (back.reference_study, back.later_study, back.order) == ("s0", "s9", "staged")
        assert [(image.role, image.width, image.height) for image in back.images] == [
            (image.role, image.width, image.height) for image in case.images
        ]
        keys = dict(zip([i.key for i in back.images], [i.key for i in case.images], strict=True))
        for step, wanted in zip(back.steps, case.steps, strict=True):
            for name in (
                "id",
                "stage",
                "task",
                "format",
                "question",
                "multiple",
                "options",
                "shows",
                "score",
                "constraints",
            ):
                assert getattr(step, name) == getattr(wanted, name), (step.id, name)
            moved = tuple(msgspec.structs.replace(box, image=keys[box.image]) for box in step.key.boxes)
            assert msgspec.structs.replace(step.key, boxes=moved) == wanted.key
            assert [fact for fact in step.facts if fact.name == "target"] == [
                fact for fact in wanted.facts if fact.name == "target"
            ]
