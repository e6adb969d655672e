"""Reads `steps.parquet` of a run: checked, a row group at a time, and only the columns and cases that are wanted."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import polars as pl

from carina.runs.records import RunInfo, StepRow
from carina.store.errors import CarinaError
from carina.store.frames import check_table, open_table, read_frame, to_frame
from carina.store.tables import to_table

STEPS_FILE: Final = "steps.parquet"
"""Name of the table in the directory of a run."""
_ADDED_LATER: Final = frozenset(
    {"seen_sha256", "bertscore", "chexbert_f1", "radgraph_entity_f1", "radgraph_f1"}
)
"""Columns that tables of earlier versions lack; they are read as null."""
_REPAIR: Final = "call `carina run` again with the same options, which writes the table again from the log"
_CHANGED: Final = f"it was changed, or a call was killed while it wrote; {_REPAIR}"
_ROUNDING: Final = 1e-9
"""How far rounding may carry a number beyond its range."""
_SHARES: Final = (
    "score", "overlap", "f1", "iou", "rouge", "entity_f1", "attribute_f1", "chance",
    "chexbert_f1", "radgraph_entity_f1", "radgraph_f1",
)  # fmt: skip
RANGES: Final[Mapping[str, tuple[float, float]]] = {
    **dict.fromkeys(_SHARES, (0.0, 1.0)),
    "bertscore": (-1.0, 1.0),
    **dict.fromkeys(("seconds", "input_tokens", "output_tokens", "images"), (0.0, 1e15)),
    **dict.fromkeys(("number", "stage", "options"), (0.0, 1e6)),
}
"""Smallest and largest value of the columns that hold numbers. The upper limits of counts are far beyond any run; they
keep sums exact."""


def find_range_problem(row: StepRow) -> str | None:
    """What is wrong with the numbers of a step; None where each is in its range."""
    for name, (lowest, highest) in RANGES.items():
        value = getattr(row, name)
        if value is not None and not lowest - _ROUNDING <= value <= highest + _ROUNDING:
            return f"{name} is {value}, expected {lowest:g} to {highest:g}"
    return None


def run_columns(info: RunInfo) -> dict[str, str | bool]:
    """Columns that are the same in all rows, so that tables of several runs can be concatenated."""
    return {"model": info.model, "history": info.policy.history, "blind": info.blind}


class StepsTable:
    """The table of a run; nothing is read before it is asked for."""

    def __init__(self, path: Path, info: RunInfo) -> None:
        self.path = path
        self._info = info
        self._checked: tuple[int, int, int] | None = None
        """What the operating system says of the file that was compared with `run.json`."""

    def exists(self) -> bool:
        """Whether the run has a table, which is written at the end of the first call."""
        return self.path.is_file()

    def read(self, columns: Sequence[str]) -> pl.DataFrame:
        """Some columns of all rows.

        Raises:
            CarinaError: The run has no table, or the table is damaged, belongs to another run, or holds a value that no
                step could have; the message names the file, the row and the column.
        """
        wanted = list(dict.fromkeys((*columns, "case", "number")))
        with self._open() as file:
            stored = _stored_names(file)
            names = [stored[name] for name in wanted if name in stored]
            frame = self._complete(read_frame(self.path, _REPAIR, names), stored, wanted, 0)
        self._check_repeated(frame)
        return frame.select(columns)

    def read_batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Some columns, a row group at a time, for columns that would fill the memory."""
        return (frame for _, frame in self._batches(columns))

    def read_rows(self, cases: Collection[str]) -> list[StepRow]:
        """The steps of some cases as records; only the row groups that hold them are read in full."""
        wanted = list(cases)
        rows: list[StepRow] = []
        if not wanted:
            return rows
        with self._open() as file:
            start = 0
            for group in range(file.num_row_groups):
                number = file.metadata.row_group(group).num_rows
                held = to_frame(file.read_row_group(group, columns=["case"], use_threads=False))
                if held["case"].is_in(wanted).any():
                    frame = self._prepare(file, group, list(StepRow.__struct_fields__), start)
                    selected = frame.with_row_index("row", offset=start).filter(pl.col("case").is_in(wanted))
                    rows += self._to_records(selected)
                start += number
        return rows

    # ---- reading -----------------------------------------------------------------------------------------------------

    @contextmanager
    def _open(self) -> Iterator[Any]:
        """The file; compared with `run.json` when it is first opened."""
        if not self.exists():
            raise CarinaError(f"{self.path}: missing; the run is not finished, call `carina run` again")
        with open_table(self.path, _REPAIR) as file:
            about = self.path.stat()
            version = (about.st_ino, about.st_size, about.st_mtime_ns)
            if self._checked != version:
                self._check_columns(file)
                if self._info.table is not None:
                    check_table(self.path, self._info.table, stated_in="run.json", remedy=_CHANGED)
                self._checked = version
            yield file

    def _batches(self, columns: Sequence[str]) -> Iterator[tuple[int, pl.DataFrame]]:
        with self._open() as file:
            start = 0
            for group in range(file.num_row_groups):
                frame = self._prepare(file, group, columns, start)
                yield start, frame
                start += frame.height

    def _prepare(self, file: Any, group: int, columns: Sequence[str], start: int) -> pl.DataFrame:  # noqa: ANN401
        """Some columns of a row group under the names of today, checked."""
        stored = _stored_names(file)
        names = [stored[name] for name in columns if name in stored]
        read = to_frame(file.read_row_group(group, columns=names, use_threads=False))
        return self._complete(read, stored, columns, start)

    def _complete(
        self, read: pl.DataFrame, stored: Mapping[str, str], columns: Sequence[str], start: int
    ) -> pl.DataFrame:
        """Columns under the names of today, checked; with those that earlier versions did not store."""
        constant = run_columns(self._info)
        frame = read.select(
            pl.col(stored[name]).alias(name)
            if name in stored
            else pl.lit(constant.get(name), SCHEMA[name]).alias(name)
            for name in columns
        )
        for column in frame.iter_columns():
            self._check_values(column, start)
        return frame

    def _to_records(self, frame: pl.DataFrame) -> list[StepRow]:
        rows = frame.to_dicts()
        records = []
        for values in rows:
            row = values.pop("row")
            try:
                records.append(msgspec.convert(values, StepRow))
            except msgspec.ValidationError as error:
                raise CarinaError(f"{self.path}, row {row}: not a step: {error}; {_REPAIR}") from error
        return records

    # ---- checking ----------------------------------------------------------------------------------------------------

    def _check_columns(self, file: Any) -> None:  # noqa: ANN401 - pyarrow has no types
        stored = _stored_names(file)
        found = to_frame(file.schema_arrow.empty_table()).schema
        for name, dtype in SCHEMA.items():
            if name not in stored:
                if name in _ADDED_LATER or (name in _RUN_COLUMNS and "model" not in stored):
                    continue
                raise CarinaError(f"{self.path}, column {name!r}: missing; expected the columns of a step")
            if found[stored[name]] != dtype:
                raise CarinaError(
                    f"{self.path}, column {name!r}: expected {dtype}, found {found[stored[name]]}; {_REPAIR}"
                )
        if "model" in stored:
            self._check_run()

    def _check_run(self) -> None:
        """Refuse the table of another run: its rows say which model they are of."""
        expected = run_columns(self._info)
        frame = read_frame(self.path, _REPAIR, list(expected))
        for name, value in expected.items():
            other = frame[name].ne_missing(pl.Series([value]))
            if other.any():
                row = other.arg_max() or 0
                raise CarinaError(
                    f"{self.path}, row {row}, column {name!r}: holds {frame[name][row]!r}, run.json says {value!r}: "
                    f"the table belongs to another run; {_REPAIR}"
                )

    def _check_values(self, column: pl.Series, start: int) -> None:
        """Refuse values that no step could have."""
        if column.name in _REQUIRED and column.null_count():
            self._refuse(column, column.is_null(), start, "a value")
        if column.name in _WORDS:
            allowed = _WORDS[column.name]
            strange = column.is_not_null() & ~column.is_in(allowed)
            self._refuse(column, strange, start, f"one of {', '.join(allowed)}")
        if column.name in RANGES:
            low, high = RANGES[column.name]
            # Also true for NaN, which polars takes for the largest number.
            outside = ~column.is_between(low - _ROUNDING, high + _ROUNDING)
            self._refuse(column, outside, start, f"a number from {low:g} to {high:g}")
        if column.name == "boxes" and column.list.len().sum():
            self._refuse(column, _has_strange_corners(column), start, "finite coordinates")

    def _refuse(self, column: pl.Series, wrong: pl.Series, start: int, expected: str) -> None:
        if wrong.any():
            place = wrong.fill_null(value=False).arg_max() or 0
            found = column[place]
            if isinstance(found, pl.Series):
                found = found.to_list()
            row = f"{self.path}, row {start + place}, column {column.name!r}"
            raise CarinaError(
                f"{row}: expected {expected}, found {'null' if found is None else repr(found)}; {_REPAIR}"
            )

    def _check_repeated(self, frame: pl.DataFrame) -> None:
        keys = frame.select("case", "number")
        if _is_in_order(keys):
            return
        repeated = keys.is_duplicated()
        if repeated.any():
            row = repeated.arg_max() or 0
            case, number = keys.row(row)
            raise CarinaError(
                f"{self.path}, row {row}, column 'number': case {case!r} has step {number} more than once; {_REPAIR}"
            )


def _is_in_order(keys: pl.DataFrame) -> bool:
    """Whether every case is in one piece and its steps in order, so that none is repeated: found in little memory."""
    case, number = keys["case"], keys["number"]
    is_same = (case == case.shift()).fill_null(value=False)
    is_later = (number > number.shift()).fill_null(value=True)
    return bool((~is_same | is_later).all()) and int((~is_same).sum()) == case.n_unique()


def _has_strange_corners(boxes: pl.Series) -> pl.Series:
    """Whether any corner of the boxes of each row is not finite."""
    corners = pl.element().struct.field("xyxy").list.eval(pl.element().is_finite()).list.all()
    return ~boxes.list.eval(corners).list.all()


def _stored_names(file: Any) -> dict[str, str]:  # noqa: ANN401 - pyarrow has no types
    """Columns of the file by the names of today; in tables of schema 1, `history` is the SHA-256 of today."""
    names = file.schema_arrow.names
    stored = {name: name for name in names}
    if "model" not in stored and "history" in stored:
        stored["seen_sha256"] = stored.pop("history")
    return stored


def _fields() -> Iterable[msgspec.inspect.Field]:
    record = msgspec.inspect.type_info(StepRow)
    assert isinstance(record, msgspec.inspect.StructType)  # noqa: S101 - a record is one
    return record.fields


def _alternatives(field: msgspec.inspect.Field) -> tuple[msgspec.inspect.Type, ...]:
    return field.type.types if isinstance(field.type, msgspec.inspect.UnionType) else (field.type,)


_RUN_COLUMNS: Final = ("model", "history", "blind")
SCHEMA: Final[Mapping[str, Any]] = {
    "model": pl.String(),
    "history": pl.String(),
    "blind": pl.Boolean(),
    **to_frame(to_table(StepRow, [])).schema,
}
"""Columns of the table, with their types."""
_REQUIRED: Final = frozenset(
    field.encode_name
    for field in _fields()
    if not any(isinstance(one, msgspec.inspect.NoneType) for one in _alternatives(field))
)
_WORDS: Final = {
    field.encode_name: [str(value) for value in one.values]
    for field in _fields()
    for one in _alternatives(field)
    if isinstance(one, msgspec.inspect.LiteralType)
}
"""Columns that hold one of a few words, and the words."""
