"""Files that users give: one sentence for whatever is wrong with them, and nothing that waits or fills the memory."""

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from carina.store.documents import (
    MAX_YAML_BYTES,
    read_csv,
    read_file,
    read_json,
    read_stored_path,
    read_yaml,
    require_finite,
)
from carina.store.errors import CarinaError, MapsError


class Record(msgspec.Struct):
    name: str


def put(path, content):
    path.write_bytes(content)
    return path


def test_a_document_is_read(tmp_path):
    assert read_json(put(tmp_path / "a.json", b'{"name": "x"}'), Record) == Record("x")
    assert read_yaml(put(tmp_path / "a.yaml", b"a: {b: 0.5}\n")) == {"a": {"b": 0.5}}
    assert read_csv(put(tmp_path / "a.csv", "\ufeffid,patient\n1,é\n2\n".encode())) == [
        {"id": "1", "patient": "é"},
        {"id": "2", "patient": ""},
    ]


def test_what_is_no_regular_file_is_refused_and_never_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "zeros").symlink_to("/dev/zero")
    for name, words in (
        ("pipe", "not a regular file"),
        ("zeros", "not a regular file"),
        (".", "is a directory"),
        ("gone", "no such file"),
        ("loop", "cannot be read"),
    ):
        with pytest.raises(MapsError, match=words) as refused:
            read_file(tmp_path / name, error=MapsError)
        assert str(tmp_path / name) in str(refused.value)


def test_a_file_above_the_limit_is_refused_before_it_is_read(tmp_path):
    with (tmp_path / "large.yaml").open("wb") as file:
        file.truncate(MAX_YAML_BYTES + 1)
    with pytest.raises(CarinaError, match=r"large\.yaml: 1,000,001 bytes, more than the limit of 1,000,000"):
        read_yaml(tmp_path / "large.yaml")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"name": "\xff"}', "not UTF-8"),
        (b"{", "truncated"),
        (b'{"name": 3}', "Expected `str`"),
        (b'{"name": NaN}', "invalid"),
        (b"", "truncated"),
    ],
)
def test_content_that_is_not_the_document_is_refused_with_its_file(tmp_path, content, words):
    path = put(tmp_path / "a.json", content)
    with pytest.raises(CarinaError, match=rf"a\.json: not a record: .*{words}"):
        read_json(path, Record, what="a record")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a: \xff", "not UTF-8"),
        (b"a: [", "not YAML"),
        (b"[" * 50_000, "nested too deeply"),
        (b"a: &x [1]\nb: [*x, *x]\n", "alias"),
        (b"a: {b: [1, .nan]}", r"a\.b\.1: expected a finite number, found nan"),
        (b"a: -.inf", "a: expected a finite number, found -inf"),
        (b"!!python/object/apply:os.system ['true']", "not YAML"),
        (b"a: !!bool maybe", "not YAML"),
        (b'!!int ""', "not YAML"),
        (b'!!float "-"', "not YAML"),
        (b"a: !!timestamp x", "not YAML"),
        (b"a: {b: 1, c: 2, b: 3}", "'b' stands twice"),
    ],
)
def test_yaml_that_is_not_plain_values_is_refused(tmp_path, content, words):
    with pytest.raises(CarinaError, match=rf"a\.yaml: .*{words}"):
        read_yaml(put(tmp_path / "a.yaml", content))


def test_json_that_is_nested_too_deeply_is_refused(tmp_path):
    with pytest.raises(CarinaError, match=r"a\.json: not JSON: nested too deeply"):
        read_json(put(tmp_path / "a.json", b"[" * 100_000), Any, what="JSON")


def test_csv_that_is_not_text_is_refused(tmp_path):
    for content in (b"id\n\xff\n", b'id\n"' + b"x" * 200_000 + b'"\n'):
        with pytest.raises(CarinaError, match=r"a\.csv: not a CSV file"):
            read_csv(put(tmp_path / "a.csv", content))


def test_numbers_that_are_not_finite_are_named():
    require_finite({"a": [1, 2.5, "nan", None]}, "x")
    with pytest.raises(CarinaError, match=r"x: a\.1: .* inf"):
        require_finite({"a": [1, float("inf")]}, "x")


@pytest.mark.parametrize(
    "text",
    ["gate: 0x" + "F" * 6000, "? 0x" + "F" * 6000 + "\n: 1", "gate: " + "9" * 5000, "gate: !!int 1:30"],
)
def test_a_number_of_thousands_of_digits_or_in_base_60_is_refused_with_its_place(tmp_path, text):
    (tmp_path / "limits.yaml").write_text(f"first: 1\n{text}\n")
    with pytest.raises(CarinaError, match=r"limits\.yaml: not YAML: a number .*line 2") as caught:
        read_yaml(tmp_path / "limits.yaml")
    assert len(str(caught.value)) < 300


def test_numbers_with_colons_are_text_and_other_numbers_what_they_were(tmp_path):
    (tmp_path / "limits.yaml").write_text("a: 1:30\nb: 1:30.5\nc: -12\nd: 1.5e+3\ne: 0x1F\nf: 1_000\n")
    assert read_yaml(tmp_path / "limits.yaml") == {
        "a": "1:30",
        "b": "1:30.5",
        "c": -12,
        "d": 1500.0,
        "e": 31,
        "f": 1000,
    }


def test_a_stored_path_with_a_nul_character_is_refused_with_its_field():
    with pytest.raises(CarinaError, match=r"bench\.json: image_root: .*NUL"):
        read_stored_path("a\0b", where="bench.json: image_root")
    assert read_stored_path("../a", where="") == Path("../a")
