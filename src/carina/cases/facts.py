"""Facts: what the keys of a case and of its steps rest on, as typed records.

A case and a step store their facts as rows (`carina.cases.Fact`). Each protocol declares what these rows mean: one
record for its cases and one for its steps, whose fields carry the stored name of a row in their annotation. So a stored
name is written in one place, the declaration, and everything else reads and writes fields:

    facts = PerceptCaseFacts.of(case)
    facts.conspicuity, facts.iou_with_truth["r2"].low

The type of a field says how its rows look:

| type | rows |
|---|---|
| `str \\| None`, `float \\| None`, `Margin \\| None` | at most one, about the whole case or step |
| `tuple[str, ...]` | one for each text |
| `Mapping[str, T]`, T one of `str`, `float`, `Margin` | one for each key, which is what the row is about |
| `Mapping[tuple[str, str], T]` | one for each pair of keys |
| `Mapping[str, R]`, R a `FactGroup` | all rows of the first key, then all rows of the next |
| `tuple[R, ...]`, R a `FactRow` | one for each record, which maps itself to a row |
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Protocol,
    Self,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from carina.cases.model import Fact
from carina.store.errors import BenchmarkError

BY_PROGRAM: Final = "a program"
"""Value of a fact that says who drew a region, or who stated a finding, where no person did."""


@dataclass(frozen=True, slots=True)
class Margin:
    """A number with the range in which the key holds.

    Args:
        value: What was measured.
        low: Lower end of the range; None where the range has none.
        high: Upper end of the range; None where the range has none.
    """

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """The name under which the rows of a field are stored; given in the annotation of the field."""

    name: str


class FactRow(ABC):
    """A record that is stored as one row."""

    @classmethod
    @abstractmethod
    def of_row(cls, row: Fact) -> Self | None:
        """The record of a row; None where the row does not have the right form."""

    @abstractmethod
    def to_row(self, name: str) -> Fact:
        """The row of this record under a stored name."""


class HasFacts(Protocol):
    """A case or a step."""

    @property
    def facts(self) -> tuple[Fact, ...]: ...


@dataclass(frozen=True, kw_only=True)
class FactGroup:
    """Base of records that hold all facts about one key of a mapping, such as one edit of a contour."""


@dataclass(frozen=True, kw_only=True)
class FactRecord:
    """Base of the records that a protocol declares for the facts of its cases and of its steps."""

    other: tuple[Fact, ...] = ()
    """Rows that the record does not declare, or not in this form: benchmarks that were imported may have some."""

    stored_order: ClassVar[tuple[str, ...]] = ()
    """Names of all fields in the order of their rows, where it is not the order of the declaration."""

    @classmethod
    def of(cls, holder: HasFacts) -> Self:
        """The facts of a case or of a step.

        Args:
            holder: A case, or a step; of any protocol: what this record does not declare is kept in `other`.

        Example:
            >>> from types import SimpleNamespace
            >>> holder = SimpleNamespace(facts=(Fact(name="conspicuity", value=0.4),))
            >>> LesionFacts.of(holder).conspicuity
            0.4
        """
        plan = _plan_of(cls)
        values: dict[str, Any] = {}
        other: list[Fact] = []
        for row in holder.facts:
            if not plan.add(values, row.about, row):
                other.append(row)
        return cls(other=tuple(other), **plan.finish(values))

    def rows(self) -> tuple[Fact, ...]:
        """The rows to store, in the declared order.

        Raises:
            BenchmarkError: `other` holds rows: a protocol writes only facts that it declares.
        """
        if self.other:
            names = ", ".join(sorted({repr(row.name) for row in self.other}))
            raise BenchmarkError(
                f"{type(self).__name__}: does not declare the facts {names}; add a field for each, or remove them"
            )
        return tuple(_plan_of(type(self)).rows("", self))


@dataclass(frozen=True, kw_only=True)
class LesionFacts(FactRecord):
    """What every protocol that shows a lesion stores of it; can be read from a case of any protocol."""

    roles: Annotated[Mapping[str, str], Stored("role")] = field(default_factory=dict)
    """By name of a region of the case, what it is in the case: "truth", "shown", "lungs"."""
    area: Annotated[float | None, Stored("lesion area")] = None
    """Pixels of the lesion."""
    share_of_image: Annotated[float | None, Stored("lesion share of image")] = None
    """Pixels of the lesion as a share of those of the image, 0 to 1."""
    conspicuity: Annotated[float | None, Stored("conspicuity")] = None
    """Conspicuity of the lesion against its surroundings, if the source states it."""

    def region(self, role: str) -> str | None:
        """Name of the first region that has a role; None where no region has it."""
        return next((name for name, other in self.roles.items() if other == role), None)


def stored_name(record: type[FactRecord] | type[FactGroup], attribute: str) -> str:
    """The name under which a field is stored, for a builder that makes rows by itself to save time.

    Example:
        >>> stored_name(LesionFacts, "area")
        'lesion area'
    """
    return _plan_of(record).by_attribute[attribute].name


@dataclass(frozen=True, slots=True)
class FactField:
    """One declared fact, for tables of what a protocol stores."""

    name: str
    """Stored name."""
    owner: type
    """The record or group that declares it."""
    attribute: str
    """Name of its field there."""
    path: str
    """How to reach it from the record: `edits[...].operation`."""
    form: str
    """What a value is, in words."""


def fact_fields(record: type[FactRecord]) -> list[FactField]:
    """All facts that a record declares, in the order of the rows.

    Example:
        >>> [(fact.path, fact.form) for fact in fact_fields(LesionFacts)][:2]
        [('roles', 'text for each key'), ('area', 'number')]
    """
    return list(_plan_of(record).describe(record, ""))


# ---- how a value is written in one row ------------------------------------------------------------------------------


class _Scalar(ABC):
    form: ClassVar[str]

    @abstractmethod
    def value_of(self, row: Fact) -> object:
        """The value of a row; None where the row does not have the right form."""

    @abstractmethod
    def row(self, name: str, about: str, value: Any) -> Fact: ...  # noqa: ANN401 - as declared


class _Text(_Scalar):
    form = "text"

    def value_of(self, row: Fact) -> str | None:
        return row.text if row.value is None and row.low is None and row.high is None else None

    def row(self, name: str, about: str, value: str) -> Fact:
        return Fact(name=name, about=about, text=value)


class _Number(_Scalar):
    form = "number"

    def value_of(self, row: Fact) -> float | None:
        return row.value if row.text is None and row.low is None and row.high is None else None

    def row(self, name: str, about: str, value: float) -> Fact:
        return Fact(name=name, about=about, value=float(value))


class _WithRange(_Scalar):
    form = "number with range"

    def value_of(self, row: Fact) -> Margin | None:
        if row.value is None or row.text is not None:
            return None
        return Margin(row.value, row.low, row.high)

    def row(self, name: str, about: str, value: Margin) -> Fact:
        return Fact(name=name, about=about, value=float(value.value), low=value.low, high=value.high)


_SCALARS: Final[Mapping[object, _Scalar]] = {str: _Text(), float: _Number(), Margin: _WithRange()}


# ---- the rows of one field ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Field(ABC):
    """How one field is read from rows and written to rows. What is read is collected in a list or a dictionary."""

    attribute: str
    name: str
    """Stored name; empty for a group, whose own fields have names."""

    @abstractmethod
    def add(self, values: dict[str, Any], about: str, row: Fact) -> bool:
        """Collect a row; False where the field cannot hold it without loss."""

    def finish(self, collected: Any) -> object:  # noqa: ANN401 - what `add` has collected
        """The value of the field."""
        return collected

    @abstractmethod
    def rows(self, about: str, value: Any) -> Iterator[Fact]: ...  # noqa: ANN401 - as declared

    def names(self) -> Iterable[str]:
        return (self.name,)

    @property
    @abstractmethod
    def form(self) -> str:
        """What a value is, in words."""

    def describe(self, owner: type, start: str) -> Iterator[FactField]:
        """The facts that the field declares, reached from `start`."""
        yield FactField(self.name, owner, self.attribute, f"{start}{self.attribute}", self.form)


@dataclass(frozen=True)
class _Single(_Field):
    scalar: _Scalar

    @property
    def form(self) -> str:
        return self.scalar.form

    def add(self, values: dict[str, Any], about: str, row: Fact) -> bool:
        value = self.scalar.value_of(row)
        if about or value is None or self.attribute in values:
            return False
        values[self.attribute] = value
        return True

    def rows(self, about: str, value: Any) -> Iterator[Fact]:  # noqa: ANN401
        if value is not None:
            yield self.scalar.row(self.name, about, value)


@dataclass(frozen=True)
class _Texts(_Field):
    form = "texts"

    def add(self, values: dict[str, Any], about: str, row: Fact) -> bool:
        value = _SCALARS[str].value_of(row)
        if about or value is None:
            return False
        values.setdefault(self.attribute, []).append(value)
        return True

    def finish(self, collected: list[str]) -> tuple[str, ...]:
        return tuple(collected)

    def rows(self, about: str, value: tuple[str, ...]) -> Iterator[Fact]:
        return (Fact(name=self.name, about=about, text=text) for text in value)


@dataclass(frozen=True)
class _ByKey(_Field):
    scalar: _Scalar

    @property
    def form(self) -> str:
        return f"{self.scalar.form} for each key"

    def add(self, values: dict[str, Any], about: str, row: Fact) -> bool:
        value = self.scalar.value_of(row)
        by_key = values.setdefault(self.attribute, {})
        if value is None or about in by_key:
            return False
        by_key[about] = value
        return True

    def rows(self, about: str, value: Mapping[str, Any]) -> Iterator[Fact]:
        start = f"{about} " if about else ""
        return (self.scalar.row(self.name, f"{start}{key}", one) for key, one in value.items())


@dataclass(frozen=True)
class _ByPair(_Field):
    scalar: _Scalar

    @property
    def form(self) -> str:
        return f"{self.scalar.form} for each pair of keys"

    def add(self, values: dict[str, Any], about: str, row: Fact) -> bool:
        value, pair = self.scalar.value_of(row), tuple(about.split(" "))
        by_pair = values.setdefault(self.attribute, {})
        if value is None or len(pair) != 2 or pair in by_pair:
            return False
        by_pair[pair] = value
        return True

    def rows(self, about: str, value: Mapping[tuple[str, str], Any]) -> Iterator[Fact]:
        return (
            self.scalar.row(self.name, " ".join((about, *pair)).strip(), one) for pair, one in value.items()
        )


@dataclass(frozen=True)
class _Rows(_Field):
    record: type[FactRow]

    @property
    def form(self) -> str:
        return f"`{self.record.__name__}` records"

    def add(self, values: dict[str, Any], _about: str, row: Fact) -> bool:
        made = self.record.of_row(row)
        if made is None:
            return False
        values.setdefault(self.attribute, []).append(made)
        return True

    def finish(self, collected: list[FactRow]) -> tuple[FactRow, ...]:
        return tuple(collected)

    def rows(self, _about: str, value: tuple[FactRow, ...]) -> Iterator[Fact]:
        return (one.to_row(self.name) for one in value)


@dataclass(frozen=True)
class _Groups(_Field):
    record: type[FactGroup]
    plan: "_Plan"

    @property
    def form(self) -> str:
        return f"`{self.record.__name__}` for each key"

    def describe(self, owner: type, start: str) -> Iterator[FactField]:
        del owner
        return self.plan.describe(self.record, f"{start}{self.attribute}[...].")

    def names(self) -> Iterable[str]:
        return self.plan.names()

    def add(self, values: dict[str, Any], about: str, row: Fact) -> bool:
        key, rest = about, ""
        if isinstance(self.plan.by_name[row.name], _ByKey):
            key, _, rest = about.partition(" ")
        return bool(key) and self.plan.add(
            values.setdefault(self.attribute, {}).setdefault(key, {}), rest, row
        )

    def finish(self, collected: dict[str, dict[str, Any]]) -> dict[str, FactGroup]:
        return {key: self.record(**self.plan.finish(values)) for key, values in collected.items() if values}

    def rows(self, _about: str, value: Mapping[str, FactGroup]) -> Iterator[Fact]:
        for key, group in value.items():
            yield from self.plan.rows(key, group)


class _Plan:
    """How a record is read from rows and written to rows."""

    def __init__(self, made: Iterable[_Field]) -> None:
        self._fields = tuple(made)
        self.by_attribute = {one.attribute: one for one in self._fields}
        self.by_name: dict[str, _Field] = {}
        for one in self._fields:
            for name in one.names():
                if not name or name in self.by_name:
                    raise TypeError(f"field {one.attribute}: needs a stored name that no other field has")
                self.by_name[name] = one

    def names(self) -> Iterable[str]:
        return self.by_name

    def describe(self, owner: type, start: str) -> Iterator[FactField]:
        for one in self._fields:
            yield from one.describe(owner, start)

    def add(self, values: dict[str, Any], about: str, row: Fact) -> bool:
        one = self.by_name.get(row.name)
        return one is not None and one.add(values, about, row)

    def finish(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self.by_attribute[name].finish(collected) for name, collected in values.items()}

    def rows(self, about: str, record: object) -> Iterator[Fact]:
        for one in self._fields:
            yield from one.rows(about, getattr(record, one.attribute))


_PLANS: Final[dict[type, _Plan]] = {}


def _plan_of(record: type[FactRecord] | type[FactGroup]) -> _Plan:
    plan = _PLANS.get(record)
    if plan is None:
        plan = _PLANS[record] = _make_plan(record)
    return plan


def _make_plan(record: type[FactRecord] | type[FactGroup]) -> _Plan:
    hints = get_type_hints(record, include_extras=True)
    declared = [one.name for one in fields(record) if one.name != "other"]
    order = getattr(record, "stored_order", ()) or declared
    if sorted(order) != sorted(declared):
        raise TypeError(f"{record.__name__}.stored_order must name every field once: {', '.join(declared)}")
    return _Plan(_field(record, name, hints[name]) for name in order)


def _field(record: type, attribute: str, hint: Any) -> _Field:  # noqa: ANN401 - a type form
    name = ""
    if get_origin(hint) is Annotated:
        hint, *extras = get_args(hint)
        name = next((extra.name for extra in extras if isinstance(extra, Stored)), "")
    if get_origin(hint) in (Union, UnionType):
        (hint,) = (one for one in get_args(hint) if one is not NoneType)
    if hint in _SCALARS:
        return _Single(attribute, name, _SCALARS[hint])
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is tuple and arguments[0] is str:
        return _Texts(attribute, name)
    if origin is tuple and issubclass(arguments[0], FactRow):
        return _Rows(attribute, name, arguments[0])
    if origin is Mapping:
        key, value = arguments
        if value in _SCALARS:
            kind = _ByKey if key is str else _ByPair
            return kind(attribute, name, _SCALARS[value])
        if issubclass(value, FactGroup):
            return _Groups(attribute, "", value, _plan_of(value))
    raise TypeError(f"{record.__name__}.{attribute}: {hint} is not a type that facts can have")
