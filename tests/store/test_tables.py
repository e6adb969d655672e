"""Records into columns: what row by row would give, and nothing that a column may not hold."""

import datetime
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from carina import cases, studies
from carina.cases import Box, Case, CaseImage, Constraints, Key, Origin, Provenance, Step, write_part
from carina.cases.store import CASES
from carina.store.columns import arrow_schema, to_row
from carina.store.errors import BenchmarkError
from carina.store.tables import Misfit, to_table
from carina.studies.store import STUDIES

SOME = settings(max_examples=60, suppress_health_check=list(HealthCheck))
PRINT = Provenance(command="test").fingerprint


def row_by_row(record: type[msgspec.Struct], records: Sequence[msgspec.Struct]):
    return pa.Table.from_pylist([to_row(one) for one in records], schema=arrow_schema(record))


class Inner(msgspec.Struct, frozen=True, kw_only=True):
    word: Literal["a", "b"]
    number: int
    maybe: float | None = None
    names: tuple[str, ...] = ()


class Outer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    inner: Inner = Inner(word="a", number=0)
    perhaps: Inner | None = None
    many: tuple[Inner, ...] = ()
    lists: tuple[tuple[Inner, ...], ...] = ()
    pair: tuple[float, float] | None = None
    pairs: tuple[tuple[int, int], ...] = ()
    parts: tuple[str, ...] | None = None
    day: datetime.date | None = None
    sure: bool = False
    side: Literal["left", "right"] | None = None


INNER = st.builds(
    Inner,
    word=st.sampled_from("ab"),
    number=st.integers(-(2**63), 2**63 - 1),
    maybe=st.none() | st.floats() | st.integers(-9, 9),
    names=st.lists(st.text(max_size=2), max_size=2).map(tuple) | st.lists(st.text(max_size=2), max_size=2),
)
POOL = st.lists(INNER, min_size=1, max_size=3)


@st.composite
def outers(draw) -> list[Outer]:
    """Records that share some of their inner records and have others to themselves."""
    inner = st.one_of(st.sampled_from(draw(POOL)), INNER)
    numbers = st.integers(-9, 9)
    one = st.builds(
        Outer,
        id=st.text(max_size=2),
        inner=inner,
        perhaps=st.none() | inner,
        many=st.lists(inner, max_size=3).map(tuple),
        lists=st.lists(st.lists(inner, max_size=2).map(tuple), max_size=2).map(tuple),
        pair=st.none() | st.tuples(st.floats(), st.floats()),
        pairs=st.lists(st.tuples(numbers, numbers), max_size=2).map(tuple),
        parts=st.none() | st.lists(st.text(max_size=1), max_size=2).map(tuple),
        day=st.none() | st.dates(),
        sure=st.booleans(),
        side=st.sampled_from([None, "left", "right"]),
    )
    return draw(st.lists(one, max_size=9))


def same(ours: Any, theirs: Any) -> None:
    ours.validate(full=True)
    assert ours.schema.equals(theirs.schema)
    # Not a number is equal to nothing, itself included, but written alike.
    assert repr(ours.to_pylist()) == repr(theirs.to_pylist())


@given(records=outers())
@SOME
def test_columns_equal_those_made_row_by_row(records):
    same(to_table(Outer, records), row_by_row(Outer, records))


@given(records=outers())
@SOME
def test_a_file_has_the_same_bytes(records, tmp_path_factory):
    import pyarrow.parquet as pq

    directory = tmp_path_factory.mktemp("files")
    for name, table in (
        ("ours", to_table(Outer, records)),
        ("theirs", row_by_row(Outer, records)),
    ):
        pq.write_table(table, directory / name, row_group_size=4)
    assert (directory / "ours").read_bytes() == (directory / "theirs").read_bytes()


@pytest.mark.parametrize("record", [studies.Study, cases.Case])
def test_no_records_are_an_empty_table(record):
    same(to_table(record, []), row_by_row(record, []))
    assert to_table(record, []).schema.equals({studies.Study: STUDIES, Case: CASES}[record].schema)


def test_shared_objects_are_written_for_each_record():
    first, second = Inner(word="a", number=1), Inner(word="b", number=2, names=("x", "y"))
    records = [Outer(id=str(n), inner=first if n % 3 else second) for n in range(200)]
    records.append(Outer(id="last", inner=Inner(word="b", number=9)))
    table = to_table(Outer, records)
    same(table, row_by_row(Outer, records))
    assert [row["number"] for row in table["inner"].to_pylist()] == [2, 1, 1] * 66 + [2, 1, 9]


# What no column may hold ------------------------------------------------------------------------------------


GOOD = Outer(id="good", many=(Inner(word="a", number=1),), pair=(1.0, 2.0), pairs=((1, 2),), parts=("p",))


def inner(**values: Any) -> dict[str, Any]:
    return {"many": (Inner(**{"word": "a", "number": 1, **values}),)}


class Word(str):
    __slots__ = ()


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"id": 3}, r"id holds 3 \(int\), expected text"),
        ({"id": None}, r"id holds None \(NoneType\), expected text"),
        ({"id": b"raw"}, r"id holds b'raw' \(bytes\), expected text"),
        ({"id": Word("w")}, r"id holds 'w' \(Word\), expected text"),
        (inner(number="3"), r"many\[\]\.number holds '3' \(str\), expected a whole number"),
        (inner(number=True), r"many\[\]\.number holds True \(bool\), expected a whole number"),
        (inner(number=1.0), r"many\[\]\.number holds 1\.0 \(float\), expected a whole number"),
        (inner(number=None), r"many\[\]\.number holds None"),
        (inner(number=np.int64(3)), r"many\[\]\.number holds np\.int64\(3\)"),
        (inner(number=2**63), r"a value of many\[\]\.number does not fit its column"),
        (inner(maybe="1"), r"many\[\]\.maybe holds '1' \(str\), expected a number"),
        (inner(maybe=True), r"many\[\]\.maybe holds True \(bool\), expected a number"),
        (inner(maybe=2**60 + 1), r"a value of many\[\]\.maybe does not fit its column"),
        (inner(maybe=np.zeros(2)), r"many\[\]\.maybe holds array\(\[0\., 0\.\]\)"),
        (inner(word="c"), r"many\[\]\.word holds 'c' \(str\), expected one of a, b"),
        (inner(word=None), r"many\[\]\.word holds None"),
        (inner(word=[]), r"many\[\]\.word holds \[\] \(list\), expected one of a, b"),
        (inner(names="ab"), r"many\[\]\.names holds 'ab' \(str\), expected a tuple"),
        (inner(names=None), r"many\[\]\.names holds None"),
        (inner(names=("a", 1)), r"many\[\]\.names\[\] holds 1 \(int\), expected text"),
        (inner(names=("\ud800",)), r"a value of many\[\]\.names\[\] does not fit its column"),
        ({"inner": None}, r"inner holds None \(NoneType\), expected Inner"),
        (
            {"inner": {"word": "a", "number": 1}},
            r"inner holds {'word': 'a', 'number': 1} \(dict\), expected Inner",
        ),
        ({"perhaps": GOOD}, r"perhaps holds Outer\(.*\.\.\. \(Outer\), expected Inner"),
        ({"perhaps": Inner(word="a", number="1")}, r"perhaps\.number holds '1'"),
        ({"many": {"a": 1}}, r"many holds {'a': 1} \(dict\), expected a tuple"),
        ({"many": (None,)}, r"many\[\] holds None"),
        ({"lists": ((Inner(word="c", number=1),),)}, r"lists\[\]\[\]\.word holds 'c'"),
        ({"pair": (1.0,)}, r"pair holds \(1\.0,\) \(tuple\), expected 2 values"),
        ({"pair": ()}, r"pair holds \(\) \(tuple\), expected 2 values"),
        ({"pairs": ((1, 2), (1, 2, 3))}, r"pairs\[\] holds \(1, 2, 3\) \(tuple\), expected 2 values"),
        ({"pairs": ((),)}, r"pairs\[\] holds \(\)"),
        ({"parts": "p"}, r"parts holds 'p' \(str\), expected a tuple"),
        ({"day": "2020-01-01"}, r"day holds '2020-01-01' \(str\), expected a date"),
        ({"day": datetime.datetime(2020, 1, 1)}, r"day holds datetime\.datetime"),
        ({"sure": 1}, r"sure holds 1 \(int\), expected true or false"),
        ({"side": "up"}, r"side holds 'up' \(str\), expected one of left, right"),
    ],
)
def test_a_wrong_value_is_refused_wherever_it_stands(values, told):
    wrong = msgspec.structs.replace(GOOD, **values)
    empty = Outer(id="empty")
    for records in ([wrong], [GOOD] * 5 + [wrong], [empty] * 5 + [wrong], [empty, wrong, GOOD]):
        with pytest.raises(Misfit, match=f"^{told}"):
            to_table(Outer, records)


def test_a_record_of_another_class_is_refused():
    with pytest.raises(Misfit, match=r"the record holds Inner.*expected Outer"):
        to_table(Outer, [GOOD, Inner(word="a", number=1)])


def test_a_type_without_a_known_check_is_refused():
    class Ranged(msgspec.Struct, frozen=True):
        share: Annotated[float, msgspec.Meta(ge=0)]

    with pytest.raises(TypeError, match="no check is known for 'share'"):
        to_table(Ranged, [])


# What the writer says ---------------------------------------------------------------------------------------


def case(number: int, **values: Any) -> Case:
    step = Step(id="1", stage=1, task="x", format="open", question="?")
    return Case(
        id=f"c{number}",
        protocol="test",
        study="s",
        patient=None,
        source="phantom",
        images=(CaseImage(key="i.png", width=8, height=4),),
        steps=(msgspec.structs.replace(step, **values),),
    )


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"stage": "1"}, r"Expected `int`, got `str` - at `\$\.steps\[0\]\.stage`"),
        ({"stage": True}, r"Expected `int`, got `bool` - at `\$\.steps\[0\]\.stage`"),
        ({"stage": 1.0}, r"Expected `int`, got `float` - at `\$\.steps\[0\]\.stage`"),
        ({"question": 7}, r"Expected `str`, got `int` - at `\$\.steps\[0\]\.question`"),
        ({"question": None}, r"Expected `str`, got `null` - at `\$\.steps\[0\]\.question`"),
        ({"key": None}, r"Expected `object`, got `null` - at `\$\.steps\[0\]\.key`"),
        ({"uses": "v1"}, r"Expected `array`, got `str` - at `\$\.steps\[0\]\.uses`"),
        (
            {"score": "luck"},
            r"Invalid enum value 'luck' - at `\$\.steps\[0\]\.score`; expected one of boxes, exact",
        ),
        (
            {"key": Key(boxes=(Box(image="i.png", xyxy=(1.0, 2.0, 3.0)),))},  # type: ignore[arg-type]
            r"Expected `array` of length 4, got 3 - at `\$\.steps\[0\]\.key\.boxes\[0\]\.xyxy`",
        ),
        # What msgspec would turn into something else without a word, or does not know.
        ({"question": b"raw"}, r"Expected `str`, got `bytes` - at `\$\.steps\[0\]\.question`"),
        ({"stage": np.int64(1)}, r"steps\[\]\.stage holds np\.int64\(1\) \(int64\), expected a whole number"),
        (
            {"constraints": Constraints(max_words=2**64)},
            r"a value of steps\[\]\.constraints\.max_words does not fit",
        ),
    ],
)
def test_the_writer_names_record_and_field(tmp_path, values, told):
    with pytest.raises(BenchmarkError, match=rf"^cases/part-00007\.parquet: row 2, case 'c2': {told}"):
        write_part(tmp_path, 7, [case(0), case(1), case(2, **values), case(3)], fingerprint=PRINT)
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_list_is_as_good_as_a_tuple(tmp_path):
    written = write_part(tmp_path / "list", 0, [case(0, uses=["v1", "v2"])], fingerprint=PRINT)
    assert written == write_part(tmp_path / "tuple", 0, [case(0, uses=("v1", "v2"))], fingerprint=PRINT)


def test_a_default_and_its_equal_are_written_alike(tmp_path):
    shared = write_part(tmp_path / "a", 0, [case(n) for n in range(200)], fingerprint=PRINT)
    apart = [case(n, origin=Origin(), key=Key(), constraints=Constraints()) for n in range(200)]
    assert write_part(tmp_path / "b", 0, apart, fingerprint=PRINT) == shared
