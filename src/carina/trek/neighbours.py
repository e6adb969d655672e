"""Which study of a patient came before and which after, by order and date; never by the name of a folder."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from carina.studies import Studies

NONE: Final = -1
"""The place of a neighbour that there is not."""
_UNDATED = np.iinfo(np.int32).min


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
    table = studies.table(["patient", "order", "date", "split", "id"]).collect().to_arrow()
    patient = _codes(table.column("patient"))
    parts = _codes(table.column("split"))
    order = table.column("order").to_numpy()
    date = table.column("date").cast("int32").fill_null(_UNDATED).to_numpy()
    # Of several studies at the same time the ids decide, not the rows.
    keys = [(name, "ascending") for name in ("patient", "order", "date", "id")]
    rank = pc.sort_indices(table, sort_keys=keys).to_numpy().astype(np.int64)
    before = np.full(len(rank), NONE, np.int64)
    after = before.copy()
    one, other = rank[:-1], rank[1:]
    in_time = (order[one] < order[other]) & (
        (date[one] == _UNDATED) | (date[other] == _UNDATED) | (date[one] <= date[other])
    )
    linked = (patient[one] == patient[other]) & (parts[one] == parts[other]) & in_time
    before[other[linked]] = one[linked]
    after[one[linked]] = other[linked]
    chosen = np.arange(len(rank), dtype=np.int64)
    if split is not None:
        names = table.column("split").to_pylist()
        chosen = chosen[np.array([name == split for name in names], dtype=bool)]
    return Neighbours(chosen, before, after)


def _codes(column: object) -> NDArray[np.int64]:
    """A number for each different value."""
    codes = column.combine_chunks().dictionary_encode("encode").indices  # type: ignore[attr-defined]
    return np.asarray(codes.to_numpy(zero_copy_only=False), dtype=np.int64)
