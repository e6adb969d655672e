"""Cases as columns of a Hugging Face data set: those of a benchmark, and a column of pictures where they are wanted.

`datasets` reads nested Arrow columns as they are; pictures alone need a word of explanation, which it looks for in the
metadata of the file.
"""

import json
from collections.abc import Sequence
from typing import Any, Final

import msgspec
import pyarrow as pa

from carina.cases.chat.messages import answer
from carina.cases.chat.pictures import Mode
from carina.cases.model import Case, without_keys
from carina.store.columns import arrow_schema
from carina.store.tables import to_table

PICTURES: Final = "pictures"
"""Column of pictures, one a view in the order of `views`."""
_EMBEDDED: Final = pa.list_(pa.struct([pa.field("bytes", pa.binary()), pa.field("path", pa.string())]))
_COPIED: Final = pa.list_(pa.string())
_FEATURES: Final = {PICTURES: {"feature": {"_type": "Image"}, "_type": "List"}}

Picture = bytes | str
"""Content, or a path relative to the folder."""


def published(case: Case, *, answers: bool) -> Case:
    """A case as it is handed on: every key in words too, or no key at all; never the record that it was read from."""
    if not answers:
        return without_keys(case)
    steps = tuple(
        step
        if step.key.text is not None
        else msgspec.structs.replace(step, key=msgspec.structs.replace(step.key, text=answer(case, step)))
        for step in case.steps
    )
    return msgspec.structs.replace(case, steps=steps, extra=None)


def schema(mode: Mode) -> Any:  # noqa: ANN401 - pyarrow has no types
    """The columns of a file."""
    columns = arrow_schema(Case)
    if mode == "none":
        return columns
    if mode == "copy":
        return columns.append(pa.field(PICTURES, _COPIED))
    explained = {"huggingface": json.dumps({"info": {"features": _FEATURES}})}
    return columns.append(pa.field(PICTURES, _EMBEDDED)).with_metadata(explained)


def table(cases: Sequence[Case], pictures: Sequence[Sequence[Picture]], mode: Mode) -> Any:  # noqa: ANN401
    """Rows of cases with their pictures, which are as many as their views."""
    found = to_table(Case, cases)
    if mode != "none":
        rows = [
            [{"bytes": picture, "path": None} if mode == "embed" else picture for picture in of_one]
            for of_one in pictures
        ]
        field = schema(mode).field(PICTURES)
        found = found.append_column(field, pa.array(rows, field.type))
    return found.cast(schema(mode))
