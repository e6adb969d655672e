"""The file of records, piece by piece."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carina.percept.bundle import scan
from carina.percept.bundle.faults import BundleError
from carina.percept.bundle.scan import entries

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(
    records=st.dictionaries(st.text(), JSON, max_size=5),
    chunk=st.integers(1, 40),
    indent=st.none() | st.integers(0, 2),
)
def test_any_object_is_read_in_windows_of_any_size(records, chunk, indent, tmp_path_factory):
    path = tmp_path_factory.mktemp("scan") / "records.json"
    path.write_text(json.dumps(records, indent=indent, ensure_ascii=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "CHUNK", chunk)
        found = list(entries(path))
    assert {entry.key_id: entry.record for entry in found} == records
    assert [entry.key_id for entry in found] == list(records)
    assert not any(entry.faults for entry in found)


@pytest.mark.parametrize("number", ["0.5", "10e+20", "-1E-3", "12345", "-0.0"])
def test_a_number_is_whole_wherever_a_window_ends(tmp_path, monkeypatch, number):
    path = tmp_path / "records.json"
    path.write_text(f'{{"a":{number},"b":{number}}}')
    for chunk in range(1, 24):
        monkeypatch.setattr(scan, "CHUNK", chunk)
        assert [entry.record for entry in entries(path)] == [json.loads(number)] * 2


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"a": {"x": 1, "x": 2}}', "the name 'x' is given twice in one object"),
        ('{"a": {"deep": [{"y": 1, "z": 2, "y": 1}]}}', "the name 'y' is given twice in one object"),
        ('{"a": {"x": NaN}}', "NaN is not a number of JSON"),
        ('{"a": {"x": -Infinity}}', "-Infinity is not a number of JSON"),
        ('{"a": {"x": 1e999}}', "1e999 is too large a number"),
        ('{"a": {"x": ' + "9" * 9000 + "}}", "a number of 9000 digits"),
    ],
)
def test_what_a_json_library_lets_pass_is_a_fault_of_the_record(tmp_path, text, fault):
    path = tmp_path / "records.json"
    path.write_text(text[:-1] + ', "b": {"x": 1}}')
    bad, good = entries(path)
    assert (bad.key_id, bad.faults) == ("a", (fault,))
    assert (good.key_id, good.record, good.faults) == ("b", {"x": 1}, ())


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "expected one JSON object"),
        ("[1]", "expected one JSON object"),
        ('{"a": {}', "expected a comma or the closing brace after key_id 'a'"),
        ('{"a": {"b": ', "not JSON: Expecting value at character 12"),
        ('{"a" {}}', "expected a colon after key_id 'a'"),
        ("{a: {}}", "expected a key_id in quotes at character 1"),
        ('{"a": {},}', "expected a key_id in quotes at character 9"),
        ('{"a": {}} {}', "text after the closing brace at character 10"),
        ('{"a": ' + "[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_bundle_is_told_with_its_place(tmp_path, text, sentence):
    path = tmp_path / "records.json"
    path.write_text(text)
    with pytest.raises(BundleError) as told:
        list(entries(path))
    assert str(told.value).startswith(f"{path}: ")
    assert sentence in str(told.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(BundleError, match=r"chexpercept.json: missing, so .* is not a CheXpercept bundle"):
        list(entries(tmp_path / "chexpercept.json"))


def test_other_encodings_are_refused_and_a_byte_order_mark_is_not(tmp_path):
    path = tmp_path / "records.json"
    path.write_bytes('{"é": {}}'.encode("utf-8-sig"))
    assert [entry.key_id for entry in entries(path)] == ["é"]
    path.write_bytes('{"é": {}}'.encode("latin-1"))
    with pytest.raises(BundleError, match="not UTF-8 text"):
        list(entries(path))


def test_a_file_is_never_wholly_in_memory(tmp_path, monkeypatch):
    path = tmp_path / "records.json"
    path.write_text(json.dumps({f"k{n}": {"text": "x" * 100} for n in range(2000)}))
    monkeypatch.setattr(scan, "CHUNK", 1000)
    windows = []
    more = scan._Reader._more

    def watched(self):
        result = more(self)
        windows.append(len(self._text))
        return result

    monkeypatch.setattr(scan._Reader, "_more", watched)
    assert sum(1 for _ in entries(path)) == 2000
    assert max(windows) < 3000 < path.stat().st_size


def test_a_record_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(scan, "CHUNK", 100)
    monkeypatch.setattr(scan, "MAX_RECORD", 1000)
    path = tmp_path / "records.json"
    path.write_text('{"a": "' + "x" * 5000 + '"}')
    with pytest.raises(BundleError, match="does not end within 1,000 characters"):
        list(entries(path))
