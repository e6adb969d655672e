"""Make the maps of all probes of a benchmark, part by part; an interrupted call resumes.

A part is a pure function of the benchmark, the explainer and the ids of its cases.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
import polars as pl

from carina.cases import Benchmark, Case, open_benchmark
from carina.cases.building import SKIPPED, write_skipped
from carina.explanations.explainer import Explainer, MapResult
from carina.explanations.explainer_registry import open_explainer
from carina.explanations.maps import (
    MAPS,
    LocalisationMap,
    Manifest,
    Maps,
    Provenance,
    complete_part,
    create_maps,
    pack_grid,
    store_frame,
)
from carina.explanations.probe import make_probe, read_grey_pixels
from carina.explanations.scoring import SCORES, SCORING, SUMMARY
from carina.ground import PRESENT
from carina.models import ModelName
from carina.store import OpenSet, PartInfo
from carina.store.errors import CarinaError, MapsError
from carina.store.workers import Engine, in_order

VERSION: Final = 1
"""Increased when the same benchmark, model and options give different maps."""
PART_SIZE: Final = 128
BATCH: Final = 16
OnError = Literal["skip", "stop"]


@dataclass(frozen=True, kw_only=True)
class MapOptions:
    """Options that decide the maps, apart from benchmark and model."""

    method: str | None = None
    """Explanation method; None for the one that the model was published with."""
    method_options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    limit: int | None = None
    """Largest number of probes, taken from each finding in turn; None for all."""
    verify_images: bool = True
    """Whether image files are compared with the checksums that their cases state."""
    device: str | None = None
    """Device of torch; None for the CPU."""
    batch_size: int = BATCH
    """Probes that are explained at a time; decides nothing but speed and memory."""


@dataclass(frozen=True)
class _Task:
    bench: str
    images: str | None
    out: str
    model: str | ModelName
    options: MapOptions
    fingerprint: str
    index: int
    cases: tuple[str, ...]
    on_error: OnError


@dataclass(frozen=True)
class MapsWritten:
    """Result of `make_maps`."""

    manifest: Manifest
    skipped: tuple[tuple[str, str], ...]
    """Probes without a map, with the reason; as in `skipped.csv`."""


def make_maps(
    bench: Benchmark,
    model: str | ModelName,
    out: Path,
    options: MapOptions,
    *,
    explainer: Explainer | None = None,
    images: Path | None = None,
    workers: int = 1,
    engine: Engine = "local",
    address: str | None = None,
    on_error: OnError = "skip",
    progress: Callable[[int], object] = lambda _done: None,
    score: Callable[[], object] = lambda: None,
) -> MapsWritten:
    """Write a map of every probe. An interrupted call resumes.

    A probe whose image cannot be read, or for whose finding the model has no prompt, is skipped or ends the call;
    skipped probes are tried again by the next call. The bytes depend neither on the workers nor on the engine.

    Args:
        bench: Benchmark of probes.
        model: Name of the model, or its parsed name.
        out: Directory for the maps.
        options: Options that decide the maps, apart from benchmark and model.
        explainer: The opened model, where the caller has opened it already.
        images: Directory of the images, if it is not the one that the benchmark names.
        workers: Number of processes.
        engine: Where the processes run.
        address: Address of a Ray cluster.
        on_error: What to do with a probe that cannot be explained.
        progress: Called with the number of probes that are done.
        score: Called when the maps are complete, while no other process can write to the directory.
    """
    explainer = explainer or open_explainer(
        model,
        options.method,
        options.method_options,
        bench=bench,
        seed=options.seed,
        device=options.device,
    )
    selected = select_probes(bench, options.limit)
    provenance = _provenance(bench, explainer, options, len(selected))
    _keep_open(provenance.fingerprint, str(model), options.method, explainer)
    with create_maps(out, provenance, beside=(SKIPPED, SCORES, SUMMARY, SCORING)) as build:
        finished = build.finished()
        if finished is not None and finished.counts.maps == len(selected) and (out / SKIPPED).is_file():
            progress(len(selected))
            score()
            return MapsWritten(finished, ())
        tasks = (
            _Task(
                str(bench.directory.resolve()),
                None if images is None else str(images.resolve()),
                str(out.resolve()),
                model,
                options,
                provenance.fingerprint,
                index,
                tuple(selected[start : start + PART_SIZE]),
                on_error,
            )
            for index, start in enumerate(range(0, len(selected), PART_SIZE))
        )
        parts: list[PartInfo] = []
        for part in in_order(_write, tasks, workers=workers, ahead=2, engine=engine, address=address):
            parts.append(part)
            progress(min(PART_SIZE, len(selected) - PART_SIZE * (len(parts) - 1)))
        skipped: list[tuple[str, str]] = []

        def write_beside(manifest: Manifest) -> None:
            if manifest.counts.maps < len(selected):
                made = Maps(OpenSet(MAPS, out, verify=False, manifest=manifest)).ids()
                skipped.extend(_find_skipped_probes(explainer, bench, frozenset(made), selected))
            write_skipped(out, ("case", "reason"), skipped)
            if not manifest.counts.maps:
                raise MapsError(
                    f"{out}: none of {len(selected)} probes has a map; the first: {skipped[0][1]}"
                )

        manifest = build.close(parts, write_beside)
        score()
        return MapsWritten(manifest, tuple(skipped))


def select_probes(bench: Benchmark, limit: int | None) -> list[str]:
    """Ids of the probes in order of findings, so that neighbours share their prompts.

    Args:
        bench: Benchmark of probes.
        limit: Largest number of probes, taken from each finding in turn; None for all.

    Raises:
        CarinaError: The benchmark has no probes.
    """
    rows = bench.where(protocol="ground").table(["id", "target", "path"]).collect().rows()
    if not rows:
        raise CarinaError(
            f"{bench.directory}: expected probes, found none; build them with `carina build ground`"
        )
    if limit is not None:
        turns: dict[tuple[str, str], int] = {}
        ranked = []
        for name, target, path in sorted(rows):
            turn = turns[target, path] = turns.get((target, path), -1) + 1
            ranked.append((turn, target, path, name))
        rows = [(name, target, path) for _, target, path, name in sorted(ranked)[:limit]]
    return [name for name, _, _ in sorted(rows, key=lambda row: (row[1], row[0]))]


def require_present(bench: Benchmark, selected: Collection[str]) -> None:
    """Refuse probes of which none is positive: there is no region that a map could be compared with.

    Raises:
        CarinaError: Every selected probe is about an absent finding.
    """
    rows = bench.where(protocol="ground").table(["id", "path"]).collect()
    present = rows.filter(pl.col("path") == PRESENT)["id"]
    if present.is_in(list(selected)).any():
        return
    more = (
        "explain more of them, with a larger limit"
        if len(present)
        else "build some with `carina build ground`"
    )
    raise CarinaError(
        f"{bench.directory}: none of the {len(selected)} selected probes is positive, so no map could be scored; {more}"
    )


def _provenance(bench: Benchmark, explainer: Explainer, options: MapOptions, number: int) -> Provenance:
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
            # Stated only where it is off: maps of other calls keep their fingerprints.
            **({} if options.verify_images else {"verify_images": False}),
        },
        sources=bench.manifest.sources,
    )


def _write(task: _Task) -> PartInfo:
    # A part that lacks skipped probes is made again, because their images may be readable by now.
    return complete_part(
        Path(task.out),
        task.index,
        lambda: list(_maps(task)),
        fingerprint=task.fingerprint,
        rows=len(task.cases),
    )


def _maps(task: _Task) -> Iterator[LocalisationMap]:
    bench = _open_bench(task.bench, task.images, task.options.verify_images)
    explainer = _get_explainer(task)
    # In the order of the task, not of the file: neighbours share their prompts.
    by_id = {case.id: case for case in bench.pick(task.cases)}
    size = task.options.batch_size
    for start in range(0, len(task.cases), size):
        cases = [by_id[name] for name in task.cases[start : start + size]]
        for case, result in _explain_cases(explainer, bench, cases, task.on_error):
            yield _to_record(case, result)


def _explain_cases(
    explainer: Explainer, bench: Benchmark, cases: Sequence[Case], on_error: OnError
) -> Iterator[tuple[Case, MapResult]]:
    """Explain cases together; if one fails, explain them one by one and leave out those that fail.

    A case fails where its image cannot be read, or where the model has no prompt for its finding.
    """
    try:
        results = explainer.explain([make_probe(case, read_grey_pixels(bench, case)) for case in cases])
    except CarinaError:
        if on_error == "stop":
            raise
        if len(cases) > 1:
            for case in cases:
                yield from _explain_cases(explainer, bench, [case], on_error)
        return
    yield from zip(cases, results, strict=True)


def _find_skipped_probes(
    explainer: Explainer, bench: Benchmark, finished: Collection[str], selected: list[str]
) -> Iterator[tuple[str, str]]:
    """Probes without a map, with the reason, which is found by explaining them again: a resumed call needs it too."""
    for case in bench.pick([name for name in selected if name not in finished]):
        try:
            explainer.explain([make_probe(case, read_grey_pixels(bench, case))])
        except CarinaError as error:
            yield case.id, str(error)


def _to_record(case: Case, result: MapResult) -> LocalisationMap:
    rows, columns = result.values.shape
    return LocalisationMap(
        id=case.id,
        study=case.study,
        patient=case.patient,
        split=case.split,
        target=case.target or "",
        present=case.path == "present",
        positive=result.positive,
        negative=result.negative,
        placed=store_frame(result.frame),
        rows=rows,
        columns=columns,
        **pack_grid(result.values)._asdict(),
        score=result.score,
        against=result.against,
    )


@lru_cache(maxsize=1)
def _open_bench(directory: str, images: str | None, verify_images: bool) -> Benchmark:  # noqa: FBT001 - for the cache
    """Open the benchmark once in each process; it was verified before the work was divided."""
    return open_benchmark(directory, images, verify=False, verify_images=verify_images)


_EXPLAINERS: dict[tuple[str, str, str | None], Explainer] = {}
"""The opened model of this process: at most one, since models are large."""


def _keep_open(fingerprint: str, model: str, method: str | None, explainer: Explainer) -> None:
    _EXPLAINERS.clear()
    _EXPLAINERS[fingerprint, model, method] = explainer


def _get_explainer(task: _Task) -> Explainer:
    """The model of a task; each process opens it once."""
    key = task.fingerprint, str(task.model), task.options.method
    if key not in _EXPLAINERS:
        opened = open_explainer(
            task.model,
            task.options.method,
            task.options.method_options,
            bench=_open_bench(task.bench, task.images, task.options.verify_images),
            seed=task.options.seed,
            device=task.options.device,
        )
        _keep_open(*key, opened)
    return _EXPLAINERS[key]
