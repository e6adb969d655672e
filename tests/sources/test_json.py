"""Records of JSON files one by one: arrays, objects of records and lines of any length, and where they break."""

import gzip
import json
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from carina.sources import RecordError, SourceError, _json
from carina.sources._json import decode, decode_checked, read_entries

LENIENT = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.text(st.sampled_from('ab"\\{}[],:\n é'))
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.lists(st.dictionaries(st.text(max_size=4), JSON, max_size=4), max_size=6)
CHUNKS = st.sampled_from([1, 2, 7, 40, 1 << 20])


def decoded(path, layout="records"):
    return [json.loads(entry.content) for entry in read_entries(path, layout)]


# ---- layouts ------------------------------------------------------------------------------------------------------


@LENIENT
@given(records=OBJECTS, indent=st.sampled_from([None, 1]), chunk=CHUNKS)
def test_arrays_are_read_wherever_a_window_ends(tmp_path, monkeypatch, records, indent, chunk):
    monkeypatch.setattr(_json, "CHUNK", chunk)
    path = tmp_path / "a.json"
    path.write_text(json.dumps(records, indent=indent))
    assert decoded(path) == records


@LENIENT
@given(records=OBJECTS.filter(bool), chunk=CHUNKS)
def test_lines_are_read_wherever_a_window_ends(tmp_path, monkeypatch, records, chunk):
    monkeypatch.setattr(_json, "CHUNK", chunk)
    lines = "\n".join(json.dumps(value) for value in records)
    for name in ("a.jsonl", "a.json"):
        (tmp_path / name).write_text(lines)
        assert decoded(tmp_path / name) == records


@LENIENT
@given(records=st.dictionaries(st.text(), JSON, max_size=5), indent=st.none() | st.just(2), chunk=CHUNKS)
def test_named_records_are_read_wherever_a_window_ends(tmp_path, monkeypatch, records, indent, chunk):
    monkeypatch.setattr(_json, "CHUNK", chunk)
    path = tmp_path / "a.json"
    path.write_text(json.dumps(records, indent=indent))
    found = list(read_entries(path, "named records"))
    assert [entry.name for entry in found] == list(records)
    assert {entry.name: decode_checked(entry.content) for entry in found} == records


@pytest.mark.parametrize("number", ["0.5", "10e+20", "-1E-3", "12345", "-0.0"])
def test_a_number_is_whole_wherever_a_window_ends(tmp_path, monkeypatch, number):
    path = tmp_path / "a.json"
    path.write_text(f'{{"a":{number},"b":{number}}}')
    for chunk in range(1, 24):
        monkeypatch.setattr(_json, "CHUNK", chunk)
        assert decoded(path, "named records") == [json.loads(number)] * 2


def test_records_have_numbers_and_no_space_around_them(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b'\xef\xbb\xbf [ {"a": 1} ,\n {"b": "}"} ]\n')
    assert [(entry.number, entry.content) for entry in read_entries(path)] == [
        (1, b'{"a": 1}'),
        (2, b'{"b": "}"}'),
    ]


def test_objects_over_several_lines_need_no_array(tmp_path):
    (tmp_path / "a.json").write_text('{\n"a": 1}\n{\n"a": 2}')
    assert decoded(tmp_path / "a.json") == [{"a": 1}, {"a": 2}]


def test_compressed_files_are_read(tmp_path):
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(b'[{"a": 1}]'))
    assert decoded(tmp_path / "a.json.gz") == [{"a": 1}]


# ---- records that are wrong ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad", [b'{"a": 1,,}', b'{"a": NaN}', b'{"a" 1}', b'{"a": 01}', b'{"a": [1 2]}', b'{"a": "\xff"}']
)
def test_a_record_that_is_not_json_does_not_hide_the_next(tmp_path, bad):
    path = tmp_path / "a.json"
    for content, layout in (
        (b'[{"a": 0}, %s, {"a": 2}]' % bad, "records"),
        (b'{"a": 0}\n%s\n{"a": 2}' % bad, "records"),
        (b'{"x": {"a": 0}, "y": %s, "z": {"a": 2}}' % bad, "named records"),
    ):
        path.write_bytes(content)
        first, second, third = read_entries(path, layout)
        assert [decode(first.content), decode(third.content)] == [{"a": 0}, {"a": 2}]
        assert second.number == 2
        for read in (decode, decode_checked):
            with pytest.raises(RecordError):
                read(second.content)


def test_a_line_that_is_cut_short_does_not_hide_the_next(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n{"a": \n{"a": 3}\n')
    assert [entry.content for entry in read_entries(tmp_path / "a.jsonl")] == [
        b'{"a": 1}',
        b'{"a": ',
        b'{"a": 3}',
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"x": 1, "x": 2}', "the name 'x' is given twice in one object"),
        ('{"deep": [{"y": 1, "z": 2, "y": 1}]}', "the name 'y' is given twice in one object"),
        ('{"x": NaN}', "NaN is not a number of JSON"),
        ('{"x": -Infinity}', "-Infinity is not a number of JSON"),
        ('{"x": 1e999}', "1e999 is too large a number"),
        ('{"x": ' + "9" * 9000 + "}", "a number of 9000 digits"),
        ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
    ],
)
def test_what_json_libraries_accept_in_silence_is_a_fault_of_the_record(tmp_path, text, fault):
    path = tmp_path / "a.json"
    path.write_text(f'{{"a": {text}, "b": {{"x": 1}}}}')
    bad, good = read_entries(path, "named records")
    with pytest.raises(RecordError) as raised:
        decode_checked(bad.content)
    assert (raised.value.reason, raised.value.kind) == (fault, "json")
    assert (bad.name, good.name, decode_checked(good.content)) == ("a", "b", {"x": 1})


# ---- files that are wrong -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "layout", "sentence"),
    [
        ("", "records", "expected a JSON array of records, or one record a line"),
        ("hello", "records", "expected a JSON array of records"),
        ('[{"a": 1} {"a": 2}]', "records", "a comma or the closing bracket after record 1, at byte 10"),
        ('[{"a": 1}, {"a": ', "records", "record 2: does not end, at byte 11"),
        ('[{"a": "x}]', "records", "record 1: does not end"),
        ('[{"a": 1}, 5]', "records", "record 2: expected an object, at byte 11"),
        ('[{"a": 1},]', "records", "record 2: expected an object, at byte 10"),
        ('[{"a": 1}] more', "records", "text after the closing bracket, at byte 11"),
        ("", "named records", "expected one JSON object of records by name"),
        ("[1]", "named records", "expected one JSON object of records by name"),
        ('{"a": {}', "named records", "expected a comma or the closing brace after record 'a', at byte 8"),
        ('{"a": {"b": ', "named records", "'a': does not end, at byte 6"),
        ('{"a" {}}', "named records", "expected a colon after the name 'a', at byte 5"),
        ("{a: {}}", "named records", "expected a name in quotes, at byte 1"),
        ('{"a": {},}', "named records", "expected a name in quotes, at byte 9"),
        ('{"a": {}} {}', "named records", "text after the closing brace, at byte 10"),
        ('{"a": ' + "[" * 100_000, "named records", "'a': does not end"),
    ],
)
def test_a_file_that_cannot_be_taken_apart_is_refused_with_the_place(tmp_path, content, layout, sentence):
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(SourceError) as raised:
        list(read_entries(path, layout))
    assert str(raised.value).startswith(f"{path}: ")
    assert sentence in str(raised.value)


def test_a_byte_order_mark_is_accepted_and_other_encodings_are_refused(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes('{"é": {}}'.encode("utf-8-sig"))
    assert [entry.name for entry in read_entries(path, "named records")] == ["é"]
    path.write_bytes('{"é": {}}'.encode("latin-1"))
    with pytest.raises(SourceError, match=r"a\.json: .*UTF-8"):
        list(read_entries(path, "named records"))


@pytest.mark.parametrize("layout", ["records", "named records"])
def test_a_record_without_end_is_refused(tmp_path, monkeypatch, layout):
    monkeypatch.setattr(_json, "CHUNK", 64)
    monkeypatch.setattr(_json, "MAX_RECORD", 100)
    path = tmp_path / "a.json"
    path.write_bytes((b"[" if layout == "records" else b'{"a": ') + b'{"a": "' + b"x" * 1000)
    with pytest.raises(SourceError, match=r"a\.json: .*\b100 bytes"):
        list(read_entries(path, layout))


def test_a_missing_or_damaged_file_is_named(tmp_path):
    with pytest.raises(SourceError, match=r"nowhere\.json: .*No such file"):
        list(read_entries(tmp_path / "nowhere.json"))
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(b'[{"a": 1}]')[:-9])
    with pytest.raises(SourceError, match=r"a\.json\.gz: "):
        list(read_entries(tmp_path / "a.json.gz"))


# ---- memory -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["records", "named records"])
def test_memory_does_not_grow_with_the_file(tmp_path, layout):
    path = tmp_path / "a.json"
    one = json.dumps({"text": "x" * 20_000, "list": [{"a": '{[\\"'}] * 50})
    records = [one] * 500 if layout == "records" else [f'"k{n}": {one}' for n in range(500)]
    joined = ",".join(records)
    path.write_text(f"[{joined}]" if layout == "records" else f"{{{joined}}}")
    del joined, records
    tracemalloc.start()
    assert sum(1 for _ in read_entries(path, layout)) == 500
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert path.stat().st_size > 10e6
    assert peak < 6e6


def test_grouped_records_are_named_by_group_and_name(tmp_path):
    path = tmp_path / "grouped.json"
    path.write_text('{"train": {"a": {"x": 1}, "b": [2]}, "val": {}, "test": {"c": "}"}}')
    assert [(one.number, one.name, one.content) for one in read_entries(path, "grouped records")] == [
        (1, "train/a", b'{"x": 1}'),
        (2, "train/b", b"[2]"),
        (3, "test/c", b'"}"'),
    ]
    path.write_text('{"train": {"a": 1}} and more')
    with pytest.raises(SourceError, match="text after the closing brace"):
        list(read_entries(path, "grouped records"))
