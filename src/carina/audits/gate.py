"""What a gate is: its declaration, its limits, and what it knows about the benchmark.

A gate is one class in one module, decorated with `gate`. It is created once for an audit, sees every case once, keeps
counts instead of cases, and returns a `GateResult` in the end. Modules of `audits.common`, `audits.percept` and
`audits.trek` are found by themselves; other packages announce theirs in the entry-point group `carina.gates`.
"""

import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Generic, NamedTuple, TypeVar, cast, get_type_hints

import msgspec
from msgspec import Meta

from carina.audits.result import GateResult, Objection, Objections, Row, Status, worst_status
from carina.cases.model import Case
from carina.cases.render.views import ImageSource
from carina.stats.proportion import wilson
from carina.store.documents import require_finite
from carina.store.errors import CarinaError
from carina.store.registry import Registry

T = TypeVar("T")

WARN_LEVEL: Final = 0.05
"""Share of sound benchmarks in which a gate that tests for chance warns."""
FAIL_LEVEL: Final = 0.01
"""Share in which it fails. Several gates test for chance: failing at 0.05 would stop one sound benchmark in five."""
RENDER: Final = 300
"""Views that are rendered as a test."""


# ---- limits -------------------------------------------------------------------------------------------------------

Share = Annotated[float, Meta(ge=0, le=1)]
Count = Annotated[int, Meta(ge=1)]


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the limits of a gate: a subclass has one field per limit, with a default and a description.

    `Meta(description=..., extra={"trek": 0.05})` states what the limit means, and its default for benchmarks that hold
    cases of one protocol only.
    """


class NoLimits(Limits, frozen=True):
    """For gates without a limit to set."""


L = TypeVar("L", bound=Limits)


class LimitInfo(NamedTuple):
    """One limit of a gate, for documentation."""

    name: str
    default: object
    meaning: str
    by_protocol: dict[str, object]
    """Defaults for benchmarks of one protocol, where they differ."""


# ---- context ------------------------------------------------------------------------------------------------------

SkipReasons = Mapping[str, Mapping[str, int]]
"""Stratum ("edema/LF") or target -> reason -> studies that the builder skipped for it."""


@dataclass(frozen=True, kw_only=True)
class AuditContext:
    """What gates know about the benchmark before they see its first case.

    Attributes:
        warn_level: Probability of a chance result below which a gate warns.
        fail_level: Probability below which it fails.
        images: Where the image files lie; None where files are not to be opened.
        cases: Number of cases to come, if known.
        render: Views to render as a test.
        directory: Directory of the benchmark; None for cases that are not stored as one.
        options: Options that the benchmark was built with, from its manifest.
        skipped: Why the builder skipped studies.
    """

    warn_level: float = WARN_LEVEL
    fail_level: float = FAIL_LEVEL
    images: ImageSource | None = None
    cases: int | None = None
    render: int = RENDER
    directory: Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    skipped: SkipReasons = field(default_factory=dict)
    _shared: dict[object, object] = field(default_factory=dict, repr=False)

    def shared(self, make: "Callable[[AuditContext], T]") -> T:
        """One object for all gates of this audit that ask for it, such as a decoder of cases."""
        if make not in self._shared:
            self._shared[make] = make(self)
        return cast("T", self._shared[make])

    def judge(self, p: float) -> Status:
        """The status for a probability that is already corrected for several comparisons."""
        return "fail" if p <= self.fail_level else "warn" if p <= self.warn_level else "pass"


# ---- gates --------------------------------------------------------------------------------------------------------


class Gate(ABC, Generic[L]):
    """Base of all gates: sees every case once, then returns its result.

    Args:
        context: What is known about the benchmark.
        limits: Limits of this gate, as its declaration names them.
    """

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""
    cost: float = 1.0
    """Microseconds per question, to share gates between processes evenly."""
    decoder: object | None = None
    """An object with a `cost` of its own that several gates share."""

    def __init__(self, context: AuditContext, limits: L) -> None:
        self.context = context
        self.limits = limits

    @abstractmethod
    def see(self, case: Case) -> None:
        """Examine one case. Every case of the benchmark is passed exactly once."""

    @abstractmethod
    def result(self) -> GateResult:
        """The result, after the last case."""

    def report_defects(
        self,
        n: int,
        objections: Objections,
        *,
        threshold: str,
        good: str,
        bad: str,
        unit: str = "cases",
        severity: Status = "fail",
        rows: tuple[Row, ...] = (),
    ) -> GateResult:
        """The result of a gate that accepts no defect: the share of defective records.

        Args:
            n: Examined records.
            objections: The defects.
            threshold: What the gate requires.
            good: Meaning of a pass.
            bad: Meaning of a defect, and what to do.
            unit: What is counted.
            severity: Status if there is a defect.
            rows: Measurements to list.
        """
        count = min(objections.records, n)
        interval = wilson(count, n)
        status: Status = severity if objections else "pass"
        return GateResult(
            name=self.name,
            title=self.title,
            status=status if n else "not applicable",
            n=n,
            unit=unit,
            count=count,
            rate=interval.value,
            low=interval.low,
            high=interval.high,
            threshold=threshold,
            meaning=(bad if objections else good) if n else f"The benchmark has no {unit}.",
            rows=rows,
            worst=objections.worst,
        )

    def report_rows(
        self,
        rows: Sequence[Row],
        *,
        n: int,
        threshold: str,
        good: str,
        bad: str,
        none: str,
        warned: str = "",
    ) -> GateResult:
        """The result of a gate that measures baselines: as severe as its most severe row.

        Args:
            rows: The measurements, with their statuses.
            n: Examined cases.
            threshold: What the gate requires.
            good: Meaning of a pass.
            bad: Meaning of a failure, and what to do.
            none: Meaning if there is nothing to measure.
            warned: Meaning of a warning; `bad` if empty.
        """
        status = worst_status(*(row.status for row in rows))
        wrong = sorted((row for row in rows if row.status in ("warn", "fail")), key=lambda row: row.p or 0.0)
        interval = wilson(len(wrong), len(rows))
        return GateResult(
            name=self.name,
            title=self.title,
            status=status,
            n=len(rows),
            unit=f"baselines on {n} cases",
            count=len(wrong),
            rate=interval.value,
            low=interval.low,
            high=interval.high,
            threshold=threshold,
            meaning={"pass": good, "not applicable": none, "warn": warned or bad, "fail": bad}[status],
            rows=tuple(rows),
            worst=tuple(Objection(id=row.name, what=row.note or f"{row.value:.3f}") for row in wrong),
        )


AnyGate = Gate[Any]


@dataclass(frozen=True, kw_only=True)
class GateInfo:
    """The declaration of a gate.

    Attributes:
        name: Name in tables, in `audit.json` and in a file of limits: "answer-position".
        title: A few words for headings.
        meaning: One sentence: what is true of a benchmark that passes.
        make: The gate's class.
        limits: Its limits.
        protocols: Protocols whose cases it examines; empty for all.
        order: Place in tables; lower comes first.
    """

    name: str
    title: str
    meaning: str
    make: type[AnyGate]
    limits: type[Limits] = NoLimits
    protocols: tuple[str, ...] = ()
    order: int = 1000

    def applies_to(self, protocols: Collection[str]) -> bool:
        """Whether a benchmark with cases of these protocols has something for the gate to examine."""
        return not self.protocols or any(protocol in protocols for protocol in self.protocols)

    def list_limits(self) -> tuple[LimitInfo, ...]:
        """All limits with defaults and meanings."""
        hints = get_type_hints(self.limits, include_extras=True)
        defaults = self.limits()
        return tuple(
            LimitInfo(
                name,
                getattr(defaults, name),
                " ".join(meta.description for meta in _metas(hints[name]) if meta.description),
                {key: value for meta in _metas(hints[name]) for key, value in (meta.extra or {}).items()},
            )
            for name in self.limits.__struct_fields__
        )

    def read_limits(self, stated: Mapping[str, object], protocols: Collection[str], *, where: str) -> Limits:
        """The limits of this gate, with the stated values in place of defaults.

        Args:
            stated: Limit -> value.
            protocols: Protocols of the benchmark, for defaults that depend on it.
            where: File or argument that states the values, for errors.

        Raises:
            CarinaError: A limit is unknown, of the wrong type or out of range.
        """
        values: dict[str, object] = {}
        for limit in self.list_limits():
            default = limit.default
            if len(protocols) == 1:
                default = limit.by_protocol.get(next(iter(protocols)), default)
            values[limit.name] = default
        for name, value in stated.items():
            if name not in values:
                known = ", ".join(limit.name for limit in self.list_limits()) or "none"
                raise CarinaError(
                    f"{where}: {self.name}: unknown limit {name!r}; this gate has the limits: {known}"
                )
            require_finite({self.name: {name: value}}, where)
        try:
            return msgspec.convert({**values, **stated}, self.limits)
        except msgspec.ValidationError as error:
            raise CarinaError(f"{where}: {self.name}: {error}".replace("$.", "")) from error


def _metas(annotation: object) -> Iterator[Meta]:
    for item in getattr(annotation, "__metadata__", ()):
        if isinstance(item, Meta):
            yield item


def _gate_modules() -> list[str]:
    """Modules in which Carina declares gates; listed without importing them."""
    here = Path(__file__).parent
    return [
        module.name
        for folder in ("common", "percept", "trek")
        for module in pkgutil.iter_modules([str(here / folder)], prefix=f"carina.audits.{folder}.")
    ]


GATES: Final[Registry[GateInfo]] = Registry(
    "gate", group="carina.gates", modules=_gate_modules(), entry_type=GateInfo
)
"""All gates by name."""

G = TypeVar("G", bound=type[AnyGate])


def gate(
    name: str,
    *,
    title: str,
    meaning: str,
    limits: type[Limits] = NoLimits,
    protocols: tuple[str, ...] = (),
    order: int = 1000,
) -> Callable[[G], G]:
    """Declare a class as a gate and register it.

    Args:
        name: Name in tables, in `audit.json` and in a file of limits.
        title: A few words for headings.
        meaning: One sentence: what is true of a benchmark that passes.
        limits: Limits of the gate; a subclass of `Limits`.
        protocols: Protocols whose cases it examines; empty for all.
        order: Place in tables; lower comes first.

    Returns:
        A decorator for a subclass of `Gate`.

    Raises:
        ValueError: Another gate has this name.

    Example:
        >>> from carina.audits import Gate, NoLimits, Objections, gate, list_gates
        >>> meaning = "No case shows more than one image."
        >>> @gate("single-images", title="Single images", meaning=meaning, protocols=("my-protocol",))
        ... class SingleImages(Gate[NoLimits]):
        ...     def __init__(self, context, limits):
        ...         super().__init__(context, limits)
        ...         self.n, self.objections = 0, Objections()
        ...     def see(self, case):
        ...         self.n += 1
        ...         if len(case.images) > 1:
        ...             self.objections.add(case.id, "shows several images")
        ...     def result(self):
        ...         bad = "Some cases show several images; remove these cases."
        ...         return self.report_defects(self.n, self.objections, threshold="one image", good=meaning, bad=bad)
        >>> list_gates(["my-protocol"])[-1].title
        'Single images'
    """

    def declare(make: G) -> G:
        make.name, make.title = name, title
        info = GateInfo(
            name=name,
            title=title,
            meaning=meaning,
            make=make,
            limits=limits,
            protocols=protocols,
            order=order,
        )
        GATES.register(name, info)
        return make

    return declare


def list_gates(protocols: Collection[str] | None = None) -> list[GateInfo]:
    """List the declarations of all gates, or of those that apply to a benchmark.

    Args:
        protocols: Protocols of the benchmark's cases; None for all gates.

    Returns:
        Declarations in the order of tables.

    Example:
        >>> [info.name for info in list_gates(["ground"])][:3]
        ['case-integrity', 'key-margins', 'answer-position']
    """
    found = GATES.entries().values()
    chosen = [info for info in found if protocols is None or info.applies_to(protocols)]
    return sorted(chosen, key=lambda info: (info.order, info.name))


def make_gates(
    gates: Sequence[GateInfo], context: AuditContext, limits: Mapping[str, Limits] | None = None
) -> list[AnyGate]:
    """Make fresh gates for one audit.

    Args:
        gates: Declarations, as `list_gates` returns them.
        context: What is known about the benchmark.
        limits: Limits by name of the gate; a gate without limits here gets its defaults.

    Returns:
        A gate for each declaration, in the same order. Each can be used for one audit.

    Example:
        >>> [gate.title for gate in make_gates(list_gates(["ground"])[:2], AuditContext())]
        ['Case integrity', 'Margins of answer keys']
    """
    stated = limits or {}
    return [info.make(context, stated[info.name] if info.name in stated else info.limits()) for info in gates]
