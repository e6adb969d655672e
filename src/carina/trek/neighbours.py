"""The prior and the follow-up study of each study: by order, otherwise by date, and never by the name of a folder.

A study without order and date has no neighbours in time.
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
"""Stands for a neighbour that does not exist."""
_UNKNOWN: Final = np.iinfo(np.int32).min
"""Stands for an unknown order or date."""
_Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Neighbours:
    """Studies by their place in the set, and their neighbours in time; -1 for none."""

    chosen: NDArray[np.int64]
    """Places of the studies that are asked about."""
    before: NDArray[np.int64]
    """Place of the prior study, by place of a study."""
    after: NDArray[np.int64]
    """Place of the follow-up study, by place of a study."""
    priors_in_other_splits: int = 0
    """Studies that are asked about and whose prior study is not used, because it lies in another split."""


def find_neighbours(studies: Studies, split: str | None) -> Neighbours:
    """Find the neighbours in time of all studies, reading only five columns of the set."""
    table = studies.columns("patient", "order", "date", "split", "id")
    if pc.count_distinct(table.column("id")).as_py() < table.num_rows:
        raise StudySetError(f"{studies.directory}: {_describe_repeated_id(table.column('id'))}")
    patient = _encode_column(table.column("patient"))
    parts = _encode_column(table.column("split"))
    order = _to_numbers(table.column("order").fill_null(_UNKNOWN))
    date = _to_numbers(table.column("date").cast("int32").fill_null(_UNKNOWN))
    time = _order_values(patient, order, date)
    table = table.set_column(1, "order", pa.array(time))
    # Studies at the same time are ordered by id, not by row.
    keys = [(name, "ascending") for name in ("patient", "order", "date", "id")]
    rank = _to_numbers(pc.sort_indices(table, sort_keys=keys))
    rank = rank[time[rank] != _UNKNOWN]
    before = np.full(table.num_rows, NONE, np.int64)
    after = before.copy()
    one, other = rank[:-1], rank[1:]
    in_time = (time[one] < time[other]) & _may_precede(order, one, other, ties=False)
    in_time &= _may_precede(date, one, other, ties=True)
    in_time &= patient[one] == patient[other]
    linked = in_time & (parts[one] == parts[other])
    before[other[linked]] = one[linked]
    after[one[linked]] = other[linked]
    if split is None:
        chosen = np.arange(table.num_rows, dtype=np.int64)
    else:
        chosen = _to_numbers(pc.indices_nonzero(pc.equal(table.column("split"), split)))
    apart = np.isin(other[in_time & ~linked], chosen).sum()
    return Neighbours(chosen, before, after, priors_in_other_splits=int(apart))


def _order_values(patient: _Numbers, order: _Numbers, date: _Numbers) -> _Numbers:
    """The values that order the studies of a patient: their order, or dates where a study has only a date."""
    if (order != _UNKNOWN).all():
        return order
    by_date = np.zeros(patient.max() + 1, bool)
    by_date[patient[(order == _UNKNOWN) & (date != _UNKNOWN)]] = True
    return np.where(by_date[patient], date, order)


def _may_precede(values: _Numbers, one: _Numbers, other: _Numbers, *, ties: bool) -> NDArray[np.bool_]:
    """Whether one study may come before another by these values, as far as they are known."""
    first, second = values[one], values[other]
    rising = first <= second if ties else first < second
    return np.asarray(rising | (first == _UNKNOWN) | (second == _UNKNOWN))


def _describe_repeated_id(ids: Any) -> str:  # noqa: ANN401 - pyarrow has no types
    """Describe the id that occurs most often, for an error."""
    counted = ids.value_counts()
    which = pc.sort_indices(counted.field("counts"), sort_keys=[("", "descending")])[0].as_py()
    name = counted.field("values")[which].as_py()
    rows = pc.indices_nonzero(pc.equal(ids, name)).to_pylist()
    return (
        f"several studies have the id {name!r}, in rows {', '.join(map(str, rows[:5]))}; give each its own id"
    )


def _encode_column(column: Any) -> NDArray[np.int64]:  # noqa: ANN401
    """The column as numbers, one number for each different value."""
    return _to_numbers(column.combine_chunks().dictionary_encode("encode").indices)


def _to_numbers(column: Any) -> NDArray[np.int64]:  # noqa: ANN401
    # Combined into one chunk, so that numpy uses Arrow's memory without a copy.
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return np.asarray(whole.to_numpy(), dtype=np.int64)
