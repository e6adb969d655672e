"""Structures are the same, whether the study was read with its anatomy or the column was read apart."""

import msgspec
import pytest

from carina.phantom import PhantomOptions, make_studies
from carina.store.tables import to_table
from carina.studies import Study
from carina.trek.structures import Structures, read_structures

STUDIES = [study for study, _ in make_studies(3, 5, PhantomOptions(size=64))]
BARE = msgspec.structs.replace(STUDIES[1], anatomy=())


@pytest.mark.parametrize("chosen", [STUDIES, [BARE, *STUDIES], [STUDIES[0], BARE, STUDIES[2]], [BARE]])
def test_a_column_holds_what_the_records_hold(chosen):
    read = read_structures(to_table(Study, chosen).column("anatomy").combine_chunks())
    for study, found in zip(chosen, read, strict=True):
        known = Structures.of(study)
        assert (found.names, found.images) == (known.names, known.images)
        regions = [found.region(number) for number in range(len(found.names))]
        assert regions == [structure.region for structure in study.anatomy]
        assert regions == [known.region(number) for number in range(len(known.names))]


def test_a_column_of_some_of_the_rows_is_counted_from_its_own_first_row():
    column = to_table(Study, STUDIES).column("anatomy").combine_chunks().slice(1)
    assert [found.names for found in read_structures(column)] == [
        [structure.name for structure in study.anatomy] for study in STUDIES[1:]
    ]
