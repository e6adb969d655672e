"""Whatever a record is declared to hold comes back exactly, for every kind of set."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import inspect

from carina import cases, studies
from carina.cases.store import CASES
from carina.store.columns import arrow_field, to_row
from carina.store.parts import find_table_problems
from carina.store.tables import to_table
from carina.studies import Region
from carina.studies.store import STUDIES


def values(info: inspect.Type) -> st.SearchStrategy:  # noqa: PLR0911
    """Random values of whatever the records are declared to hold."""
    match info:
        case inspect.UnionType():
            return st.one_of(*(values(member) for member in info.types))
        case inspect.StructType() if info.cls is Region:
            return st.binary(min_size=6, max_size=6).map(
                lambda bits: Region.from_mask(np.frombuffer(bits, np.uint8).reshape(2, 3) > 127)
            )
        case inspect.StructType():
            return st.builds(info.cls, **{field.name: values(field.type) for field in info.fields})
        case inspect.VarTupleType():
            return st.lists(values(info.item_type), max_size=2).map(tuple)
        case inspect.TupleType():
            return st.tuples(*(values(item) for item in info.item_types))
        case inspect.LiteralType():
            return st.sampled_from(info.values)
        case inspect.IntType():
            return st.integers(-(2**63), 2**63 - 1)
        case inspect.FloatType():
            return st.floats(allow_nan=False)
        case inspect.BoolType():
            return st.booleans()
        case inspect.NoneType():
            return st.none()
        case inspect.DateType():
            return st.dates()
        case inspect.StrType():
            return st.text(max_size=4)
    raise TypeError(info)


STUDY = values(inspect.type_info(studies.Study))
CASE = values(inspect.type_info(cases.Case))
MANY = settings(max_examples=80, suppress_health_check=list(HealthCheck))
FEW = settings(max_examples=12, suppress_health_check=list(HealthCheck))


@given(records=st.lists(STUDY, min_size=1, max_size=3, unique_by=lambda study: study.id))
@FEW
def test_any_study_comes_back_exactly(tmp_path_factory, records):
    directory = tmp_path_factory.mktemp("set")
    studies.write_studies(directory, records, studies.Provenance(command="test"), part_size=2)
    assert list(studies.open_studies(directory)) == records


@given(records=st.lists(CASE, min_size=1, max_size=3, unique_by=lambda case: case.id))
@FEW
def test_any_case_comes_back_exactly(tmp_path_factory, records):
    directory = tmp_path_factory.mktemp("set")
    manifest = cases.write_benchmark(directory, records, cases.Provenance(command="test"), part_size=2)
    assert list(cases.open_benchmark(directory)) == records
    assert manifest.counts.steps == sum(len(case.steps) for case in records)
    assert sum(manifest.counts.cells.values()) == len(records)
    assert set(manifest.counts.cells) == {case.cell for case in records}


@pytest.mark.parametrize(("kind", "records"), [(STUDIES, STUDY), (CASES, CASE)], ids=["study", "case"])
def test_any_record_survives_arrow_alone(kind, records):
    @given(record=records)
    @MANY
    def survives(record):
        table = to_table(kind.record, [record])
        assert table.equals(pa.Table.from_pylist([to_row(record)], schema=kind.schema))
        assert [kind.to_record(row) for row in table.to_pylist()] == [record]
        assert list(find_table_problems(table, kind.record)) == []

    survives()


def test_a_type_without_a_column_is_refused():
    with pytest.raises(TypeError, match="no Arrow type is known for 'x'"):
        arrow_field("x", inspect.type_info(dict[str, int]))
    with pytest.raises(TypeError, match="one type or None"):
        arrow_field("x", inspect.type_info(int | str))
