"""Rows of tables as others write them."""

import contextlib
import csv
import gzip
import io
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sources.files import write_text

from carina.sources import SourceError
from carina.sources._encodings import describe_encoding
from carina.sources._record import RecordError
from carina.sources._tables import group_rows, index_rows, read_row, read_rows


def rows(path, *columns, **more):
    return [dict(row.values) for row in read_rows(path, columns, **more)]


def test_a_byte_order_mark_and_either_line_end_are_read(tmp_path):
    for end in ("\n", "\r\n"):
        path = write_text(tmp_path / "a.csv", "\ufeffid, x ", "a,1", "b,2", end=end)
        assert rows(path, "id", "x") == [{"id": "a", "x": "1"}, {"id": "b", "x": "2"}]


def test_quoted_line_breaks_do_not_end_a_row(tmp_path):
    path = write_text(tmp_path / "a.csv", "id,report", '"a","one', "two, three", '"', "b,x")
    read = list(read_rows(path, ("id", "report")))
    assert [row.text("report") for row in read] == ["one\ntwo, three", "x"]
    assert [row.number for row in read] == [2, 3]
    assert read[1].place == f"{path}: row 3"


def test_fields_of_several_megabytes_are_read(tmp_path):
    path = write_text(tmp_path / "a.csv", "id,mask", "a," + "12 34 " * 500_000)
    (row,) = read_rows(path, ("id", "mask"))
    assert len(row.values["mask"]) == 3_000_000


def test_gzip_is_read_and_a_damaged_file_is_named(tmp_path):
    content = gzip.compress(b"id,x\n" + b"".join(b"%d,%d\n" % (n, n * n) for n in range(5000)))
    path = tmp_path / "a.csv.gz"
    path.write_bytes(content)
    assert len(rows(path, "id")) == 5000
    cut, flipped = content[:-20], bytearray(content)
    flipped[len(content) // 2] ^= 0xFF
    for damaged in (cut, bytes(flipped), b"no gzip"):
        path.write_bytes(damaged)
        with pytest.raises(SourceError, match=r"a\.csv\.gz: .*cannot be read|several|no column"):
            rows(path, "id")


@pytest.mark.parametrize("word", ["", " ", "nan", "NaN", "None", "null", "N/A", "NA"])
def test_words_for_nothing_are_blank(tmp_path, word):
    (row,) = read_rows(write_text(tmp_path / "a.csv", "id,x", f"a,{word}"), ("id", "x"))
    assert row.text("x") == ""
    assert row.optional_number("x") is None
    for read in (row.required, row.number_of, row.integer):
        with pytest.raises(RecordError, match="x: is empty"):
            read("x")


def test_short_and_long_rows_are_faults_of_the_row_alone(tmp_path):
    path = write_text(tmp_path / "a.csv", "id,x,y", "a,1", "b,1,2,3", "c,1,2,,", "", " , ", "d,1,2")
    short, long, padded, good = read_rows(path, ("id", "x", "y"))
    with pytest.raises(RecordError, match="y: is missing: the row ends before it"):
        short.text("y")
    with pytest.raises(RecordError, match="4 fields, expected 3"):
        long.text("id")
    assert padded.text("y") == good.text("y") == "2"
    assert [row.number for row in (short, long, padded, good)] == [2, 3, 4, 7]


@pytest.mark.parametrize(
    ("text", "read", "message"),
    [
        ("abc", "number_of", "x: is 'abc', expected a number"),
        ("inf", "number_of", "expected a number"),
        ("1e999", "optional_number", "expected a number"),
        ("7.5", "integer", "expected a whole number"),
    ],
)
def test_numbers_are_finite_and_whole_where_they_must_be(tmp_path, text, read, message):
    (row,) = read_rows(write_text(tmp_path / "a.csv", "id,x", f"a,{text}"), ("id", "x"))
    with pytest.raises(RecordError, match=message):
        getattr(row, read)("x")


def test_whole_numbers_may_be_written_with_a_point_and_spaces(tmp_path):
    (row,) = read_rows(write_text(tmp_path / "a.csv", "id,x", "a, 7.0 "), ("id", "x"))
    assert row.integer("x") == 7
    assert row.choice("x", {"7.0": "seven"}) == "seven"
    with pytest.raises(RecordError, match=r"x: is '7\.0', expected one of 'YES', ''"):
        row.choice("x", {"YES": 1, "": 0})


@pytest.mark.parametrize(
    ("lines", "parts"),
    [
        ((), ("no column 'id'", "found nothing")),
        (("name,x",), ("no column 'id'", "expected id, x", "found name, x")),
        (("id,x,x",), ("several columns are called 'x'",)),
    ],
)
def test_a_table_without_its_columns_is_refused(tmp_path, lines, parts):
    path = write_text(tmp_path / "a.csv", *lines)
    with pytest.raises(SourceError) as raised:
        rows(path, "id", "x")
    for part in (f"{path}: ", *parts):
        assert part in str(raised.value)


def test_a_missing_table_is_named_with_its_columns(tmp_path):
    with pytest.raises(SourceError, match=r"a\.csv: missing, expected a table with the columns id, x"):
        rows(tmp_path / "a.csv", "id", "x")
    with pytest.raises(SourceError, match="is a directory, expected a file"):
        rows(tmp_path, "id")


def test_unnamed_columns_do_not_matter(tmp_path):
    assert rows(write_text(tmp_path / "a.csv", ",id,x", "0,a,b"), "id", "x") == [{"id": "a", "x": "b"}]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_ids_that_differ_in_a_file_of_any_encoding_differ_when_they_are_read(tmp_path, encoding, end):
    path = tmp_path / "a.csv"
    names = ["M\u00fcller1", "M\u00e4ller1", "plain", "\u00c3\u00a4"]
    path.write_bytes(end.join(["id,Gr\u00f6\u00dfe", *(f"{name},1" for name in names), ""]).encode(encoding))
    columns = ("id", "Gr\u00f6\u00dfe")
    assert [row.text("id") for row in read_rows(path, columns)] == names
    indexed = list(index_rows(path, columns))
    assert [read_row(path, place) for _, place in indexed] == [row for row, _ in indexed]
    assert [row for row, _ in indexed] == list(read_rows(path, columns))


def test_the_whole_file_decides_about_its_encoding(tmp_path):
    """The first byte that is not UTF-8 stands after megabytes that are, in a row of the same id."""
    path = tmp_path / "a.csv"
    filled = b"".join(b"%d,\xc3\xa4\n" % number for number in range(300_000))
    path.write_bytes(b"id,x\n" + filled + b"last,\x81\x8d\xe4\n")
    read = list(read_rows(path, ("id", "x")))
    assert (read[0].text("x"), read[-1].text("x")) == ("\u00c3\u00a4", "\x81\x8d\u00e4")
    *_, (_, place) = index_rows(path, ("id", "x"))
    assert read_row(path, place) == read[-1]
    assert describe_encoding(path) == "a.csv: not UTF-8, and read as Windows-1252 (cp1252)"
    packed = tmp_path / "a.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert [row.values for row in read_rows(packed, ("id", "x"))] == [row.values for row in read]


def test_a_pipe_in_place_of_a_table_is_not_waited_for(tmp_path):
    path = tmp_path / "a.csv"
    os.mkfifo(path)
    assert describe_encoding(path) is None
    with pytest.raises(SourceError, match=r"a\.csv"):
        rows(path, "id")


def test_a_mark_of_utf_8_belongs_to_no_column_whatever_follows(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xef\xbb\xbfid,x\nM\xfcller,1\n")
    assert rows(path, "id", "x") == [{"id": "M\u00fcller", "x": "1"}]
    ((row, place),) = index_rows(path, ("id", "x"))
    assert read_row(path, place) == row


def test_an_encoding_may_be_stated_and_damaged_text_is_named(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("id\n\u0141ukasz\n".encode("cp1250"))
    assert rows(path, "id", encoding="cp1250") == [{"id": "\u0141ukasz"}]
    path.write_bytes("id\na\n".encode("utf-16")[:-1])
    with pytest.raises(SourceError, match=r"a\.csv: cannot be read as text"):
        rows(path, "id")


def test_rows_are_grouped_in_the_order_of_the_file(tmp_path):
    path = write_text(tmp_path / "a.csv", "id,x", "b,1", "a,2", " b ,3")
    groups = group_rows(read_rows(path, ("id", "x")), "id")
    assert {name: [row.text("x") for row in own] for name, own in groups.items()} == {
        "b": ["1", "3"],
        "a": ["2"],
    }
    assert list(groups) == ["b", "a"]


@given(st.binary(max_size=300))
def test_any_bytes_are_rows_or_a_source_error(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("any") / "a.csv"
    path.write_bytes(b"id,x\n" + content)
    with contextlib.suppress(SourceError):
        for row in read_rows(path, ("id", "x")):
            assert row.number >= 2


@given(
    st.lists(st.tuples(st.text(max_size=8), st.text(max_size=8)), max_size=8),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "\ufeff"]),
)
def test_a_row_that_is_read_alone_is_the_row_of_the_table(tmp_path_factory, fields, end, mark):
    path = tmp_path_factory.mktemp("tables") / "a.csv"
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerows(
        [("id", "x"), *((f"r{one}".replace("\0", ""), f"v{two}".replace("\0", "")) for one, two in fields)]
    )
    path.write_bytes((mark + text.getvalue()).encode("utf-8", "replace"))
    whole = list(read_rows(path, ("id", "x")))
    indexed = list(index_rows(path, ("id", "x")))
    assert [row for row, _ in indexed] == whole
    # In any order, and as another process would.
    for row, place in reversed(indexed):
        assert read_row(path, place) == row


def test_places_skip_empty_lines_and_span_quoted_ones(tmp_path):
    path = write_text(tmp_path / "a.csv", "id,x", "", 'a,"one', 'two"', "", "b,3")
    indexed = list(index_rows(path, ("id",)))
    assert [place.number for _, place in indexed] == [row.number for row in read_rows(path, ("id",))]
    assert [read_row(path, place).values["x"] for _, place in indexed] == ["one\ntwo", "3"]
    with pytest.raises(SourceError, match=r"no\.csv: missing"):
        list(index_rows(tmp_path / "no.csv", ("id",)))
