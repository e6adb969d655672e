"""Audit a stored benchmark: which gates apply, with which limits, and why the benchmark does not hold more cases."""

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from carina.audits.auditing import Work, audit_in_processes
from carina.audits.gate import (
    FAIL_LEVEL,
    GATES,
    RENDER,
    WARN_LEVEL,
    AuditContext,
    GateInfo,
    Limits,
    SkipReasons,
    list_gates,
    make_gates,
)
from carina.audits.result import Audit
from carina.cases import Benchmark, open_benchmark
from carina.store.documents import read_csv, read_json, read_yaml
from carina.store.errors import BenchmarkError, CarinaError
from carina.store.results import Location, as_path

BUILD_REPORT: Final = "build.json"
SKIPPED_STUDIES: Final = "skipped.csv"
_SMALL: Final = 20_000
"""Questions that one process examines before a second one has started."""

LimitsByGate = Mapping[str, Mapping[str, object]]
"""Gate -> limit -> value."""


class AuditOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of an audit; `carina.audit` documents them."""

    images: Path | None = None
    files: bool = True
    render: int = RENDER
    limits: LimitsByGate | None = None
    limits_source: str = "limits"
    """File or argument that states the limits, for errors."""
    gates: tuple[str, ...] | None = None
    warn_level: float = WARN_LEVEL
    fail_level: float = FAIL_LEVEL


def audit_benchmark(
    bench: Location,
    options: AuditOptions | None = None,
    *,
    workers: int | None = None,
    progress: Callable[[], object] | None = None,
) -> Audit:
    """Pass all cases of a benchmark through its gates, without writing anything.

    Args:
        bench: Directory of the benchmark.
        options: Which gates, with which limits.
        workers: Processes; by default one per core, or one for a small benchmark.
        progress: Called after each case.

    Returns:
        The results of all gates.

    Raises:
        CarinaError: The benchmark cannot be read, or an option does not fit it.

    Example:
        >>> from carina.audits import AuditOptions, audit_benchmark
        >>> audit = audit_benchmark("bench", AuditOptions(gates=("patient-overlap",)))
        >>> audit.cases, [(gate.name, gate.status) for gate in audit.gates]
        (18, [('patient-overlap', 'pass')])
    """
    chosen = options or AuditOptions()
    opened = open_benchmark(as_path(bench), chosen.images)
    selected = select_gates(opened, chosen.gates)
    limits = read_limits(opened, selected, chosen.limits or {}, where=chosen.limits_source)
    begin = partial(_begin, opened.directory, chosen, tuple(selected), limits)
    cores = 1 if opened.manifest.counts.steps < _SMALL else os.cpu_count() or 1
    return audit_in_processes(
        begin,
        workers=workers or cores,
        benchmark=opened.manifest.fingerprint,
        progress=progress or (lambda: None),
    )


def _begin(
    directory: Path, options: AuditOptions, gates: Sequence[GateInfo], limits: Mapping[str, Limits]
) -> Work:
    """The cases and fresh gates, in whichever process."""
    bench = open_benchmark(directory, options.images)
    context = AuditContext(
        warn_level=options.warn_level,
        fail_level=options.fail_level,
        images=bench if options.files else None,
        cases=len(bench),
        render=options.render,
        directory=bench.directory,
        options=bench.manifest.options,
        skipped=read_skip_reasons(bench.directory),
    )
    return Work(bench, make_gates(gates, context, limits))


def select_gates(bench: Benchmark, names: Collection[str] | None = None) -> list[GateInfo]:
    """The gates that apply to a benchmark, or those with these names.

    Raises:
        CarinaError: A name is unknown, or its gate examines cases of another protocol.
    """
    protocols = bench.manifest.counts.protocols
    if names is None:
        return list_gates(protocols)
    for name in names:
        _check_applies(GATES[name], bench, where="gates")
    return [info for info in list_gates(protocols) if info.name in names]


def load_limits(path: Path) -> LimitsByGate:
    """Limits by gate from a YAML file.

    Raises:
        CarinaError: The file cannot be read, or is not a mapping of gates to limits.
    """
    stated = read_yaml(path)
    if stated is None:
        return {}
    if not isinstance(stated, dict):
        raise CarinaError(f"{path}: expected gates with their limits, found {type(stated).__name__}")
    return stated


def read_limits(
    bench: Benchmark, gates: Sequence[GateInfo], stated: LimitsByGate, *, where: str
) -> dict[str, Limits]:
    """The limits of all selected gates: their defaults for this benchmark, and the values that are stated.

    Raises:
        CarinaError: A gate is unknown, not selected or without cases to examine; a limit is unknown or out of range.
    """
    for name, values in stated.items():
        if name not in GATES:
            raise CarinaError(f"{where}: {_unknown_gate(str(name))}")
        _check_applies(GATES[name], bench, where=where)
        if GATES[name] not in gates:
            raise CarinaError(f"{where}: {name}: this gate is not among those to run; remove its limits")
        if not isinstance(values, Mapping):
            raise CarinaError(f"{where}: {name}: expected limits by name, found {type(values).__name__}")
    protocols = bench.manifest.counts.protocols
    return {info.name: info.read_limits(stated.get(info.name, {}), protocols, where=where) for info in gates}


def _unknown_gate(name: str) -> str:
    owners = [info.name for info in list_gates() if name in info.limits.__struct_fields__]
    if owners:
        return f"{name!r} is a limit; write it below its gate, such as {owners[0]}"
    try:
        GATES[name]
    except CarinaError as error:
        return str(error)
    return name


def _check_applies(info: GateInfo, bench: Benchmark, *, where: str) -> None:
    protocols = bench.manifest.counts.protocols
    if not info.applies_to(protocols):
        raise CarinaError(
            f"{where}: {info.name}: examines {' and '.join(info.protocols)} cases, of which {bench.directory} has none"
        )


# ---- files of the builder --------------------------------------------------------------------


class _BuiltStratum(msgspec.Struct):
    """The fields of a builder's report that an audit needs."""

    target: str
    path: str
    reasons: dict[str, int]


class _BuildReport(msgspec.Struct):
    cells: list[_BuiltStratum] = []
    """Empty for a protocol without strata."""


def read_skip_reasons(directory: Path) -> SkipReasons:
    """Why the builder skipped studies: by stratum from its report, else by target from its list of skipped studies.

    Raises:
        BenchmarkError: The report is there and cannot be read.
    """
    path = directory / BUILD_REPORT
    if not path.is_file():
        return _count_skipped(directory / SKIPPED_STUDIES)
    report = read_json(path, _BuildReport, what="the report of a build", error=BenchmarkError)
    return {f"{stratum.target}/{stratum.path}": stratum.reasons for stratum in report.cells}


def _count_skipped(path: Path) -> SkipReasons:
    reasons: defaultdict[str, Counter[str]] = defaultdict(Counter)
    if path.is_file():
        for row in read_csv(path, error=BenchmarkError):
            reasons[row.get("target") or ""][row.get("reason") or "no reason"] += 1
    return dict(reasons)
