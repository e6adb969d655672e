"""Which study of a patient came before and which after: by order, else by date, and never by the name of a folder.

Where neither is known, so are prior and follow-up: a study without order and date has no neighbours.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from carina.store.errors import StudySetError
from carina.studies import Studies

NONE: Final = -1
"""The place of a neighbour that there is not."""
_UNKNOWN: Final = np.iinfo(np.int32).min
"""Stands for an order or a date that is not known."""
_Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Neighbours:
    """Studies by their place in the set, and their neighbours in time; -1 for none."""

    chosen: NDArray[np.int64]
    """Places of the studies that are asked about."""
    before: NDArray[np.int64]
    """By place of any study."""
    after: NDArray[np.int64]


def neighbours(studies: Studies, split: str | None) -> Neighbours:
    """From four columns of the set, for any number of studies."""
    table = studies.columns("patient", "order", "date", "split", "id")
    if pc.count_distinct(table.column("id")).as_py() < table.num_rows:
        raise StudySetError(f"{studies.directory}: {_repeated(table.column('id'))}")
    patient = _codes(table.column("patient"))
    parts = _codes(table.column("split"))
    order = _numbers(table.column("order").fill_null(_UNKNOWN))
    date = _numbers(table.column("date").cast("int32").fill_null(_UNKNOWN))
    time = _times(patient, order, date)
    table = table.set_column(1, "order", pa.array(time))
    # Of several studies at the same time the ids decide, not the rows.
    keys = [(name, "ascending") for name in ("patient", "order", "date", "id")]
    rank = _numbers(pc.sort_indices(table, sort_keys=keys))
    rank = rank[time[rank] != _UNKNOWN]
    before = np.full(table.num_rows, NONE, np.int64)
    after = before.copy()
    one, other = rank[:-1], rank[1:]
    in_time = (time[one] < time[other]) & _allowed(order, one, other, ties=False)
    in_time &= _allowed(date, one, other, ties=True)
    linked = (patient[one] == patient[other]) & (parts[one] == parts[other]) & in_time
    before[other[linked]] = one[linked]
    after[one[linked]] = other[linked]
    if split is None:
        return Neighbours(np.arange(table.num_rows, dtype=np.int64), before, after)
    chosen = pc.indices_nonzero(pc.equal(table.column("split"), split))
    return Neighbours(_numbers(chosen), before, after)


def _times(patient: _Numbers, order: _Numbers, date: _Numbers) -> _Numbers:
    """What the studies of a patient are put in order by: their order, or their dates where one has a date alone."""
    if (order != _UNKNOWN).all():
        return order
    by_date = np.zeros(patient.max() + 1, bool)
    by_date[patient[(order == _UNKNOWN) & (date != _UNKNOWN)]] = True
    return np.where(by_date[patient], date, order)


def _allowed(values: _Numbers, one: _Numbers, other: _Numbers, *, ties: bool) -> NDArray[np.bool_]:
    """Whether these values, as far as they are known, let one study come before another."""
    first, second = values[one], values[other]
    rising = first <= second if ties else first < second
    return np.asarray(rising | (first == _UNKNOWN) | (second == _UNKNOWN))


def _repeated(ids: Any) -> str:  # noqa: ANN401 - pyarrow has no types
    """Which id comes more than once, in words."""
    counted = ids.value_counts()
    which = pc.sort_indices(counted.field("counts"), sort_keys=[("", "descending")])[0].as_py()
    name = counted.field("values")[which].as_py()
    rows = pc.indices_nonzero(pc.equal(ids, name)).to_pylist()
    return f"the id {name!r} is that of several studies, at the places {', '.join(map(str, rows[:5]))} of the set"


def _codes(column: Any) -> NDArray[np.int64]:  # noqa: ANN401
    """A number for each different value."""
    return _numbers(column.combine_chunks().dictionary_encode("encode").indices)


def _numbers(column: Any) -> NDArray[np.int64]:  # noqa: ANN401
    # In one piece, so that numpy sees Arrow's memory as it is, without a copy.
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return np.asarray(whole.to_numpy(), dtype=np.int64)
