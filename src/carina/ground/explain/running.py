"""Explaining a benchmark: maps of every probe, part by part, anywhere, resumable.

A part is a pure function of the benchmark, the explainer and the ids of its cases.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from carina.cases import Benchmark, Case, open_benchmark
from carina.cases.building import write_skipped
from carina.errors import CarinaError, MapsError
from carina.files import alone_in
from carina.ground.explain.explainer import Explainer, Shown
from carina.ground.explain.maps import (
    LocalisationMap,
    Manifest,
    Provenance,
    claim,
    finished_part,
    open_maps,
    packed,
    placed,
    whole_set,
    write_manifest,
    write_part,
)
from carina.ground.explain.named import open_explainer
from carina.ground.explain.probe import asked, grey
from carina.store import PartInfo
from carina.workers import Engine, in_order

VERSION: Final = 1
"""Raised when the same benchmark, model and options give other maps."""
PART_SIZE: Final = 128
BATCH: Final = 16
OnError = Literal["skip", "stop"]


@dataclass(frozen=True, kw_only=True)
class ExplainOptions:
    """What decides the maps, beside benchmark and model."""

    method: str | None = None
    """None for the one that the model was published with."""
    method_options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    limit: int | None = None
    """Most probes, evenly over findings; None for all."""


@dataclass(frozen=True)
class _Task:
    bench: str
    images: str | None
    out: str
    model: str
    options: ExplainOptions
    fingerprint: str
    index: int
    cases: tuple[str, ...]
    on_error: OnError


@dataclass(frozen=True)
class Explained:
    """What was made, and what could not be."""

    manifest: Manifest
    skipped: tuple[tuple[str, str], ...]
    """Probes without a map, and why; the same as `skipped.csv`."""


def explain(
    bench: Benchmark,
    model: str,
    out: Path,
    options: ExplainOptions,
    *,
    images: Path | None = None,
    workers: int = 1,
    engine: Engine = "local",
    address: str | None = None,
    on_error: OnError = "skip",
    progress: Callable[[int], object] = lambda _done: None,
) -> Explained:
    """Write a map of every probe; an interrupted call is taken up where it was.

    A probe whose image can't be read, or for whose finding the model has no words, is skipped, or ends the call; called
    again, it is tried again. The bytes depend neither on the workers nor on the engine. `progress` is told of probes
    that are done.
    """
    explainer = open_explainer(model, options.method, options.method_options, bench=bench, seed=options.seed)
    chosen = chosen_cases(bench, options.limit)
    provenance = _provenance(bench, explainer, options, len(chosen))
    claim(out, provenance)
    with alone_in(out) as alone:
        if not alone:
            raise MapsError(f"{out}: another process is writing here")
        there = whole_set(out, fingerprint=provenance.fingerprint)
        if there is not None and there.counts.maps == len(chosen):
            progress(len(chosen))
            return Explained(there, ())
        tasks = (
            _Task(
                str(bench.directory.resolve()),
                None if images is None else str(images.resolve()),
                str(out.resolve()),
                model,
                options,
                provenance.fingerprint,
                index,
                tuple(chosen[start : start + PART_SIZE]),
                on_error,
            )
            for index, start in enumerate(range(0, len(chosen), PART_SIZE))
        )
        parts: list[PartInfo] = []
        for part in in_order(_write, tasks, workers=workers, ahead=2, engine=engine, address=address):
            parts.append(part)
            progress(min(PART_SIZE, len(chosen) - PART_SIZE * (len(parts) - 1)))
        manifest = write_manifest(out, provenance, parts)
        skipped = tuple(_skipped(explainer, bench, out, chosen)) if manifest.counts.maps < len(chosen) else ()
        write_skipped(out, ("case", "reason"), skipped)
        if not manifest.counts.maps:
            raise MapsError(f"{out}: none of {len(chosen)} probes can be asked: {skipped[0][1]}")
        return Explained(manifest, skipped)


def chosen_cases(bench: Benchmark, limit: int | None) -> list[str]:
    """Ids of the probes by finding, so that neighbours share their prompts; a limit takes of each finding in turn."""
    rows = bench.where(protocol="ground").table(["id", "target", "path"]).collect().rows()
    if not rows:
        raise CarinaError(f"{bench.directory}: holds no probes; make some with carina build ground")
    if limit is not None:
        turns: dict[tuple[str, str], int] = {}
        ranked = []
        for name, target, path in sorted(rows):
            turn = turns[target, path] = turns.get((target, path), -1) + 1
            ranked.append((turn, target, path, name))
        rows = [(name, target, path) for _, target, path, name in sorted(ranked)[:limit]]
    return [name for name, _, _ in sorted(rows, key=lambda row: (row[1], row[0]))]


def _provenance(bench: Benchmark, explainer: Explainer, options: ExplainOptions, number: int) -> Provenance:
    return Provenance(
        command=f"carina explain {bench.directory.resolve().name} --model {explainer.name} "
        f"--method {explainer.method}",
        seed=options.seed,
        options={
            "version": VERSION,
            "benchmark": bench.manifest.fingerprint,
            "model": explainer.name,
            "method": explainer.method,
            "settings": msgspec.to_builtins(dict(explainer.settings)),
            "limit": options.limit,
            "maps": number,
        },
        sources=bench.manifest.sources,
    )


def _write(task: _Task) -> PartInfo:
    out = Path(task.out)
    there = finished_part(out, task.index, fingerprint=task.fingerprint)
    # What was skipped before is tried again: somebody may have mended it.
    if there is not None and there.rows == len(task.cases):
        return there
    return write_part(out, task.index, list(_maps(task)), fingerprint=task.fingerprint)


def _maps(task: _Task) -> Iterator[LocalisationMap]:
    bench = _opened(task.bench, task.images)
    explainer = _explainer(task)
    # In the order of the task, not of the file: neighbours share their prompts.
    by_id = {case.id: case for case in bench.pick(task.cases)}
    for start in range(0, len(task.cases), BATCH):
        cases = [by_id[name] for name in task.cases[start : start + BATCH]]
        for case, answer in _answered(explainer, bench, cases, task.on_error):
            yield _kept(case, answer)


def _answered(
    explainer: Explainer, bench: Benchmark, cases: Sequence[Case], on_error: OnError
) -> Iterator[tuple[Case, Shown]]:
    """Probes with their answers.

    One whose image can't be read, or for whose finding the model has no words, is left out, and the others are asked
    one by one.
    """
    try:
        shown = explainer.explain([asked(case, grey(bench, case)) for case in cases])
    except CarinaError:
        if on_error == "stop":
            raise
        if len(cases) > 1:
            for case in cases:
                yield from _answered(explainer, bench, [case], on_error)
        return
    yield from zip(cases, shown, strict=True)


def _skipped(
    explainer: Explainer, bench: Benchmark, out: Path, chosen: list[str]
) -> Iterator[tuple[str, str]]:
    """Probes that have no map, and why: found by asking once more, so that a resumption knows it too."""
    made = set(open_maps(out, verify=False).ids())
    for case in bench.pick([name for name in chosen if name not in made]):
        try:
            explainer.explain([asked(case, grey(bench, case))])
        except CarinaError as error:
            yield case.id, str(error)


def _kept(case: Case, shown: Shown) -> LocalisationMap:
    rows, columns = shown.values.shape
    return LocalisationMap(
        id=case.id,
        study=case.study,
        patient=case.patient,
        split=case.split,
        target=case.target or "",
        present=case.path == "present",
        positive=shown.positive,
        negative=shown.negative,
        placed=placed(shown.frame),
        rows=rows,
        columns=columns,
        **packed(shown.values)._asdict(),
        score=shown.score,
        against=shown.against,
    )


@lru_cache(maxsize=1)
def _opened(directory: str, images: str | None) -> Benchmark:
    """Each process opens the benchmark once; the command that began the work has verified it."""
    return open_benchmark(directory, images, verify=False)


_EXPLAINERS: dict[tuple[str, str, str | None], Explainer] = {}


def _explainer(task: _Task) -> Explainer:
    """Each process opens the model once."""
    key = task.fingerprint, task.model, task.options.method
    if key not in _EXPLAINERS:
        _EXPLAINERS.clear()
        _EXPLAINERS[key] = open_explainer(
            task.model,
            task.options.method,
            task.options.method_options,
            bench=_opened(task.bench, task.images),
            seed=task.options.seed,
        )
    return _EXPLAINERS[key]
