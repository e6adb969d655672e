"""Parts written from columns: the same bytes as from records, and as strict about what a column may hold."""

from itertools import accumulate

import msgspec
import pyarrow as pa
import pytest

from carina.cases import (
    Box,
    Case,
    CaseImage,
    Key,
    Option,
    Provenance,
    Step,
    create_benchmark,
    open_benchmark,
    write_part,
    write_table_part,
)
from carina.cases.store import CASES
from carina.store.columns import to_row
from carina.store.errors import BenchmarkError
from carina.store.parts import pack_records, unpack_records, write_packed_part

MADE = Provenance(command="test")
PRINT = MADE.fingerprint


def case(number: int) -> Case:
    return Case(
        id=f"c{number}",
        protocol="test",
        study=f"s{number}",
        patient=None,
        source="phantom",
        images=(CaseImage(key=f"{number}.png", width=8, height=4),),
        steps=(
            Step(
                id="1",
                stage=1,
                task="detection",
                format="choice",
                question="Is it there?",
                options=(Option(id="yes", text="Yes"), Option(id="no", text="No")),
                key=Key(options=("yes",), boxes=(Box(image=f"{number}.png", xyxy=(0, 0, 8, 4)),)),
            ),
        ),
    )


def rows(count: int = 3) -> list[dict]:
    return [to_row(case(number)) for number in range(count)]


def table(content: list[dict], schema=CASES.schema):
    return pa.Table.from_pylist(content, schema=schema)


def test_records_may_be_made_while_they_are_taken(tmp_path):
    made = []

    def stream():
        for number in range(300):
            made.append(number)
            yield case(number)

    at_once = write_part(tmp_path / "list", 0, [case(n) for n in range(300)], fingerprint=PRINT)
    assert write_part(tmp_path / "stream", 0, stream(), fingerprint=PRINT) == at_once
    assert made == list(range(300))


def test_a_wrong_record_of_a_later_row_group_is_named_by_its_row(tmp_path):
    wrong = msgspec.structs.replace(case(130), source=7)
    records = (wrong if number == 130 else case(number) for number in range(200))
    with pytest.raises(BenchmarkError, match=r"row 130, case 'c130': Expected `str`, got `int`"):
        write_part(tmp_path, 0, records, fingerprint=PRINT)
    assert not list(tmp_path.rglob("*.parquet"))


def test_parts_are_counted_as_they_come(tmp_path):
    """The manifest is closed over parts that are written while they are taken."""
    with create_benchmark(tmp_path / "stream", MADE) as build:
        manifest = build.close(build.write_part(n, [case(2 * n), case(2 * n + 1)]) for n in range(3))
    assert [part.rows for part in manifest.parts] == [2, 2, 2]
    assert (manifest.counts.cases, manifest.counts.images) == (6, 6)
    assert [found.id for found in open_benchmark(tmp_path / "stream")] == [f"c{n}" for n in range(6)]


def test_columns_give_the_bytes_that_records_give(tmp_path):
    by_record = write_part(tmp_path / "records", 0, [case(n) for n in range(300)], fingerprint=PRINT)
    by_column = write_table_part(tmp_path / "columns", 0, table(rows(300)), fingerprint=PRINT)
    assert by_record == by_column
    with create_benchmark(tmp_path / "columns", MADE) as build:
        build.close([by_column])
    assert list(open_benchmark(tmp_path / "columns")) == [case(n) for n in range(300)]


def test_a_table_in_several_chunks_is_checked_in_all(tmp_path):
    bad = rows()
    bad[2]["steps"][0]["format"] = "essay"
    chunked = pa.concat_tables([table(rows()), table(bad)])
    with pytest.raises(
        BenchmarkError, match=r"column steps\[\]\.format holds 'essay', expected one of boxes"
    ):
        write_table_part(tmp_path, 0, chunked, fingerprint=PRINT)


@pytest.mark.parametrize("sizes", [(300,), (1,) * 300, (7, 128, 100, 65)], ids=["one", "single", "uneven"])
def test_packed_records_give_the_bytes_that_records_give(tmp_path, sizes):
    cases = [case(n) for n in range(300)]
    cases[150] = msgspec.structs.replace(cases[150], target="edema", extra="{}" * 500)
    by_record = write_part(tmp_path / "records", 0, cases, fingerprint=PRINT)
    ends = list(accumulate(sizes))
    packed = [
        pack_records(CASES, cases[end - size : end], "x") for size, end in zip(sizes, ends, strict=True)
    ]
    batches = [unpack_records(CASES, content) for content in packed]
    assert write_packed_part(CASES, tmp_path / "packed", 0, batches, fingerprint=PRINT) == by_record
    assert (tmp_path / "packed" / by_record.file).read_bytes() == (
        tmp_path / "records" / by_record.file
    ).read_bytes()


def test_slices_of_packed_records_give_the_bytes_that_their_records_give(tmp_path):
    cases = [case(n) for n in range(300)]
    batch = unpack_records(CASES, pack_records(CASES, cases, "x"))
    slices = [batch.slice(3, 50), batch.slice(60, 1), batch.slice(63)]
    packed = write_packed_part(CASES, tmp_path / "packed", 0, slices, fingerprint=PRINT)
    kept = [*cases[3:53], cases[60], *cases[63:]]
    assert packed == write_part(tmp_path / "records", 0, kept, fingerprint=PRINT)


def test_a_record_that_cannot_be_packed_is_named():
    wrong = msgspec.structs.replace(case(1), split="dev")
    with pytest.raises(BenchmarkError, match=r"table\.csv: case 'c1': .*split"):
        pack_records(CASES, [case(0), wrong], "table.csv")


def without_question(content):
    content[1]["steps"][0]["question"] = None


def without_id(content):
    content[1]["id"] = None


def with_strange_split(content):
    content[0]["split"] = "dev"


def with_short_box(content):
    content[0]["steps"][0]["key"]["boxes"][0]["xyxy"] = [1.0, 2.0]


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (without_question, r"column steps\[\]\.question: 1 values are null"),
        (without_id, "column id: 1 values are null"),
        (with_strange_split, "column split holds 'dev', expected one of test, train, val"),
        (with_short_box, r"column steps\[\]\.key\.boxes\[\]\.xyxy holds 2 values, expected 4"),
    ],
)
def test_a_table_with_values_that_no_record_allows_is_refused(tmp_path, damage, told):
    content = rows()
    damage(content)
    with pytest.raises(BenchmarkError, match=rf"cases/part-00007\.parquet: {told}"):
        write_table_part(tmp_path, 7, table(content), fingerprint=PRINT)
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_table_with_other_columns_is_refused(tmp_path):
    with pytest.raises(BenchmarkError, match="not the columns of a case: missing column split"):
        write_table_part(tmp_path, 0, table(rows()).drop_columns(["split"]), fingerprint=PRINT)
    nullable = pa.schema([field.with_nullable(True) for field in CASES.schema])
    with pytest.raises(BenchmarkError, match="order or nullability differ"):
        write_table_part(tmp_path, 0, table(rows(), nullable), fingerprint=PRINT)
