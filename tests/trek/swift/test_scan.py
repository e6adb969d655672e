"""Records one by one: arrays and lines of any length, in little memory, and where they break."""

import gzip
import json
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from carina.trek.swift import SwiftError, scan

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.sampled_from('ab"\\{}[],:\n é')),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
objects = st.lists(st.dictionaries(st.text(max_size=4), values, max_size=4), max_size=6)


def decoded(path):
    return [json.loads(raw.content) for raw in scan.records(path)]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(objects, st.sampled_from([None, 1]), st.sampled_from([1, 2, 7, 1 << 20]))
def test_arrays_come_apart_wherever_they_are_cut(tmp_path, monkeypatch, given_objects, indent, chunk):
    monkeypatch.setattr(scan, "CHUNK", chunk)
    path = tmp_path / "a.json"
    path.write_text(json.dumps(given_objects, indent=indent, ensure_ascii=False), encoding="utf-8")
    assert decoded(path) == given_objects


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(objects.filter(bool), st.sampled_from([1, 2, 7, 1 << 20]))
def test_so_do_lines(tmp_path, monkeypatch, given_objects, chunk):
    monkeypatch.setattr(scan, "CHUNK", chunk)
    lines = "\n".join(json.dumps(value) for value in given_objects)
    for name in ("a.jsonl", "a.json"):
        (tmp_path / name).write_text(lines)
        assert decoded(tmp_path / name) == given_objects


def test_numbers_and_places(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b'\xef\xbb\xbf [ {"a": 1} ,\n {"b": "}"} ]\n')
    assert [(raw.number, raw.content) for raw in scan.records(path)] == [(1, b'{"a": 1}'), (2, b'{"b": "}"}')]


def test_objects_over_several_lines_need_no_array(tmp_path):
    (tmp_path / "a.json").write_text('{\n"a": 1}\n{\n"a": 2}')
    assert decoded(tmp_path / "a.json") == [{"a": 1}, {"a": 2}]


def test_compressed_files_are_read(tmp_path):
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(b'[{"a": 1}]'))
    assert decoded(tmp_path / "a.json.gz") == [{"a": 1}]


def test_a_bad_line_does_not_hide_the_next(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n{"a": \n{"a": 3}\n')
    assert [raw.content for raw in scan.records(tmp_path / "a.jsonl")] == [
        b'{"a": 1}',
        b'{"a": ',
        b'{"a": 3}',
    ]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "expected a JSON array of conversations, or one conversation a line"),
        (b"hello", "expected a JSON array"),
        (b'[{"a": 1} {"a": 2}]', "expected a comma or the closing bracket after record 1, at byte 10"),
        (b'[{"a": 1}, {"a": ', "record 2: does not end, at byte 11"),
        (b'[{"a": "x}]', "record 1: does not end"),
        (b'[{"a": 1}, 5]', "record 2: expected an object, at byte 11"),
        (b'[{"a": 1}] more', "text after the closing bracket, at byte 11"),
    ],
)
def test_what_cannot_be_taken_apart_is_told_with_its_place(tmp_path, content, sentence):
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(SwiftError, match=sentence):
        list(scan.records(tmp_path / "a.json"))


def test_a_record_without_end_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(scan, "MAX_RECORD", 100)
    monkeypatch.setattr(scan, "CHUNK", 64)
    (tmp_path / "a.json").write_bytes(b'[{"a": "' + b"x" * 1000)
    with pytest.raises(SwiftError, match="record 1: does not end within 100 bytes"):
        list(scan.records(tmp_path / "a.json"))


def test_damaged_files_are_told(tmp_path):
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(b'[{"a": 1}]')[:-9])
    with pytest.raises(SwiftError, match=r"a\.json\.gz: cannot be read"):
        list(scan.records(tmp_path / "a.json.gz"))


def test_memory_does_not_grow_with_the_array(tmp_path):
    path = tmp_path / "a.json"
    one = json.dumps({"text": "x" * 20_000, "list": [{"a": '{[\\"'}] * 50})
    with path.open("w") as file:
        file.write("[" + ",".join([one] * 500) + "]")
    tracemalloc.start()
    assert sum(1 for _ in scan.records(path)) == 500
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert path.stat().st_size > 10e6
    assert peak < 6e6
