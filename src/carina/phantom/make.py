"""Phantom studies: from a seed and a number to studies on disk, by any number of workers."""

import shlex
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from carina.errors import StudySetError
from carina.files import alone_in
from carina.phantom import truth
from carina.phantom.course import plan_patient, plan_studies
from carina.phantom.options import Mix, PhantomOptions
from carina.phantom.plan import PatientPlan, StudyPlan
from carina.phantom.radiograph import take
from carina.phantom.reports import write_report
from carina.seeding import rng
from carina.studies import (
    Image,
    Manifest,
    PartInfo,
    Provenance,
    Study,
    claim,
    finished_part,
    finished_set,
    write_manifest,
    write_part,
    write_png,
)
from carina.studies.sources import Source
from carina.studies.vocabulary import Split
from carina.workers import in_order

SOURCE: Final = Source(
    name="phantom",
    title="Synthetic chest radiographs with exact truth",
    needs="Nothing: made by `carina phantom`.",
    licence="CC0-1.0",
    truth=("masks", "anatomy", "attributes", "devices", "relations", "priors", "quality", "reports"),
)

PART_SIZE: Final = 32
"""Studies a part: what an interrupted command may have to make again."""
WORTH_A_POOL: Final = 8
"""Studies below which starting processes takes longer than making the studies."""
SPLITS: Final[tuple[tuple[Split, float], ...]] = (("train", 0.7), ("val", 0.1), ("test", 0.2))

Pixels = NDArray[np.uint8] | NDArray[np.uint16]


def make_study(
    patient: PatientPlan, plan: StudyPlan, options: PhantomOptions, seed: int
) -> tuple[Study, dict[str, Pixels]]:
    """One study with all its truth, and the pixels of its images by key."""
    images = {_key(patient, plan, t.view): take(patient, plan, t, options, seed) for t in plan.techniques}
    found, finding_ids = truth.findings(plan, images)
    devices, device_ids = truth.devices(plan, images)
    order = plan.order
    study = Study(
        id=plan.id,
        patient=patient.id,
        source=SOURCE.name,
        order=order,
        date=plan.date,
        prior=patient.studies[order - 1].id if order > 0 else None,
        later=patient.studies[order + 1].id if order + 1 < len(patient.studies) else None,
        split=_split(patient.id, seed),
        age=plan.age,
        sex=patient.sex,
        images=tuple(
            Image(
                key=key,
                view=radiograph.technique.view,
                width=radiograph.pixels.shape[1],
                height=radiograph.pixels.shape[0],
                bits=options.bits,
                monochrome1=options.monochrome1,
                spacing_mm=(round(radiograph.pixel_mm, 4), round(radiograph.pixel_mm, 4)),
                quality=truth.quality(radiograph),
            )
            for key, radiograph in images.items()
        ),
        findings=tuple(found),
        devices=tuple(devices),
        anatomy=tuple(part for key, radiograph in images.items() for part in truth.anatomy(key, radiograph)),
        relations=tuple(truth.relations(plan, finding_ids | device_ids)),
    )
    written = write_report(
        study, prior=_prior(patient, plan), rng=rng(seed, plan.id, "report"), wording=options.wording
    )
    return written, {key: radiograph.pixels for key, radiograph in images.items()}


def _key(patient: PatientPlan, plan: StudyPlan, view: str) -> str:
    return f"images/{patient.id}/{plan.id}-{view.lower()}.png"


def _prior(patient: PatientPlan, plan: StudyPlan) -> Study | None:
    """As much of the study before as a report needs to refer to it."""
    if plan.order == 0:
        return None
    before = patient.studies[plan.order - 1]
    return Study(
        id=before.id, patient=patient.id, source=SOURCE.name, order=before.order, date=before.date, images=()
    )


def _split(patient: str, seed: int) -> Split:
    """By patient, so that no patient is in two splits."""
    draw = rng(seed, patient, "split").random()
    for split, share in SPLITS:
        if draw < share:
            return split
        draw -= share
    return SPLITS[-1][0]


def make_studies(
    n: int, seed: int, options: PhantomOptions | None = None
) -> Iterator[tuple[Study, dict[str, Pixels]]]:
    """The first n studies of a seed, in memory, one at a time."""
    chosen = options or PhantomOptions()
    for patient, plan in plan_studies(seed, n, chosen):
        yield make_study(patient, plan, chosen, seed)


def write_phantom(
    directory: Path,
    *,
    n: int,
    seed: int,
    options: PhantomOptions | None = None,
    workers: int = 1,
    progress: Callable[[int], object] = lambda _done: None,
) -> Manifest:
    """Make a study set on disk; an interrupted call is taken up where its last whole part ended.

    The bytes depend on n, seed and options alone. `progress` is told the number of studies that are done.
    """
    chosen = options or PhantomOptions()
    provenance = Provenance(
        command=_command(n, seed, chosen),
        seed=seed,
        options=msgspec.to_builtins(chosen),
        sources=(SOURCE.info(),),
    )
    claim(directory, provenance)
    with alone_in(directory) as alone:
        if not alone:
            raise StudySetError(f"{directory}: another process is writing here")
        return _write(
            directory, provenance, n=n, seed=seed, options=chosen, workers=workers, progress=progress
        )


def _write(
    directory: Path,
    provenance: Provenance,
    *,
    n: int,
    seed: int,
    options: PhantomOptions,
    workers: int,
    progress: Callable[[int], object],
) -> Manifest:
    there = finished_set(directory)
    if there and there.counts.studies > n:
        raise StudySetError(
            f"{directory}: already holds {there.counts.studies} studies, of which these {n} are the first: "
            "choose another directory, or remove this one"
        )
    parts: dict[int, PartInfo] = {}
    missing: list[int] = []
    for index, start in enumerate(range(0, n, PART_SIZE)):
        part = finished_part(directory, index, fingerprint=provenance.fingerprint)
        if (
            part
            and part.rows == min(PART_SIZE, n - start)
            and _images_there(directory, seed, start, part.rows, options)
        ):
            parts[index] = part
            progress(part.rows)
        else:
            missing.append(index)
    made = _made(
        directory, [(i * PART_SIZE, min(n, (i + 1) * PART_SIZE)) for i in missing], seed, options, workers
    )
    for index in missing:
        studies: list[Study] = []
        for study in islice(made, min(PART_SIZE, n - index * PART_SIZE)):
            studies.append(study)
            progress(1)
        parts[index] = write_part(directory, index, studies, fingerprint=provenance.fingerprint)
    listed = tuple(parts[index] for index in sorted(parts))
    if there and not missing and there.parts == listed:
        return there
    for leftover in directory.glob("images/*/.*.tmp"):  # of a process that was killed
        leftover.unlink()
    return write_manifest(directory, provenance, listed)


def _command(n: int, seed: int, options: PhantomOptions) -> str:
    """The command that makes the same set, without what does not decide its bytes."""
    words = [f"carina phantom -n {n} --seed {seed}"]
    usual = PhantomOptions()
    for name, value in _named(options).items():
        if value != _named(usual)[name]:
            words.append(f"--{name.replace('_', '-')}" + ("" if value is True else f" {value}"))
    if options.mix.findings != usual.mix.findings:
        words += [
            f"--finding {shlex.quote(f'{name}={weight:g}')}" for name, weight in options.mix.findings.items()
        ]
    return " ".join(words)


def _named(options: PhantomOptions) -> dict[str, object]:
    """Options and shares of the mix that are one value each, by name."""
    flat = msgspec.structs.asdict(options) | msgspec.structs.asdict(options.mix)
    return {name: value for name, value in flat.items() if not isinstance(value, dict | Mix)}


def _images_there(directory: Path, seed: int, start: int, rows: int, options: PhantomOptions) -> bool:
    """A part is finished only with its images; they were written before it, but may have been removed since."""
    return all(
        (directory / _key(patient, plan, technique.view)).exists()
        for patient, plan in plan_studies(seed, start + rows, options, start=start)
        for technique in plan.techniques
    )


def _made(
    directory: Path, ranges: list[tuple[int, int]], seed: int, options: PhantomOptions, workers: int
) -> Iterator[Study]:
    """The studies of these ranges in order, their images written; made by several processes where asked."""
    wanted = (
        (patient.index, plan.order)
        for start, stop in ranges
        for patient, plan in plan_studies(seed, stop, options, start=start)
    )
    few = sum(stop - start for start, stop in ranges) < WORTH_A_POOL
    return in_order(partial(_write_one, directory, seed, options), wanted, workers=1 if few else workers)


def _write_one(directory: Path, seed: int, options: PhantomOptions, wanted: tuple[int, int]) -> Study:
    index, order = wanted
    patient = plan_patient(seed, index, options)
    study, pixels = make_study(patient, patient.studies[order], options, seed)
    hashes = {key: write_png(directory / key, values) for key, values in pixels.items()}
    return msgspec.structs.replace(
        study,
        images=tuple(msgspec.structs.replace(image, sha256=hashes[image.key]) for image in study.images),
    )


__all__ = ["PART_SIZE", "SOURCE", "make_studies", "make_study", "write_phantom"]
